"""Does a gold set still fit a collection? Every judged document must be there, and hold the quote where the judgment says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lab.errors import CannotJudge
from lab.gold.files import gold_digest
from lab.records import GoldSet, Judgment
from lab.store import documents
from lab.store.collections import Collection
from lab.store.connect import Store


@dataclass(frozen=True, slots=True)
class GoldCheck:
    """The outcome: `ok`, `drifted`, `unknown_documents` or `empty`. `broken` lists (question, source, class) of what is not intact."""

    counts: Mapping[str, int]
    unknown_documents: Sequence[str]
    broken: Sequence[tuple[str, str, str]]
    outcome: str

    def to_json(self) -> dict[str, Any]:
        return {
            "schema_version": 1,
            "counts": dict(self.counts),
            "unknown_documents": list(self.unknown_documents),
            "broken": [{"question": q, "source": s, "class": c} for q, s, c in self.broken],
            "outcome": self.outcome,
        }


def check(store: Store, collection: Collection, gold: GoldSet) -> GoldCheck:
    """Compares each quote with the stored text at [start, end)."""
    sources = sorted({j.source for j in gold.judgments})
    texts = {source: text for source, _, text in documents.texts(store, collection, sources)}
    counts = dict.fromkeys(("intact", "moved", "reworded", "ambiguous", "gone"), 0)
    broken = []
    for judgment in gold.judgments:
        text = texts.get(judgment.source)
        if text is None:
            continue
        found = classify(judgment, text)
        counts[found] += 1
        if found != "intact":
            broken.append((judgment.question_id, judgment.source, found))
    unknown = [source for source in sources if source not in texts]
    if not gold.questions or not any(j for j in gold.judgments):
        outcome = "empty"
    elif unknown:
        outcome = "unknown_documents"
    else:
        outcome = "drifted" if broken else "ok"
    return GoldCheck(counts, unknown, broken, outcome)


def classify(judgment: Judgment, text: str) -> str:
    """`intact`, `moved` (the quote stands once elsewhere in the document), `ambiguous` (more than once) or `gone`."""
    if text[judgment.start : judgment.end] == judgment.quote:
        return "intact"
    times = text.count(judgment.quote) if judgment.quote else 0
    return "gone" if times == 0 else "moved" if times == 1 else "ambiguous"


def relocate(gold: GoldSet, texts: Mapping[str, str]) -> tuple[GoldSet, list[Judgment]]:
    """The gold set with moved judgments at their new place, and the judgments that are gone or ambiguous (left out)."""
    kept, lost = [], []
    for judgment in gold.judgments:
        text = texts.get(judgment.source, "")
        found = classify(judgment, text)
        if found == "intact":
            kept.append(judgment)
        elif found == "moved":
            start = text.index(judgment.quote)
            kept.append(replace(judgment, start=start, end=start + len(judgment.quote)))
        else:
            lost.append(judgment)
    return replace(gold, judgments=tuple(kept)), lost


@dataclass(frozen=True, slots=True)
class Fitted:
    """A gold set as it can be scored on a collection; `lost` counts judgments that had to be left out."""

    gold: GoldSet
    lost: int = 0
    notes: tuple[str, ...] = ()


def fit(store: Store, collection: Collection, gold: GoldSet) -> Fitted:
    """The gold set as it can be scored on this collection; CannotJudge when it does not fit.

    A set whose documents change with the Python that carries them (it has a `made-for.json`) is relocated by its quotes: moved judgments go to their
    new place, those that are gone are left out and named, and the digest is that of what remains. Every other set must fit as it stands.
    """
    if not gold.metadata.get("relocate"):
        require(store, collection, gold)
        return Fitted(gold)
    sources = sorted({j.source for j in gold.judgments})
    adapted, lost = relocate(gold, {source: text for source, _, text in documents.texts(store, collection, sources)})
    if not adapted.judgments:
        require(store, collection, gold)
    if adapted.judgments == gold.judgments:
        return Fitted(gold)
    before = set(gold.judgments)
    moved = sum(j not in before for j in adapted.judgments)
    notes = [f"gold set {gold.name!r} was made on other texts: {moved} judgments relocated by their quotes"] if moved else []
    if lost:
        named = _some(sorted({f"{j.question_id} in {j.source}" for j in lost}), 20)
        notes.append(f"{len(lost)} judgments of {gold.name!r} are gone from these texts and left out: {named}")
    return Fitted(replace(adapted, digest=gold_digest(adapted.questions, adapted.judgments)), len(lost), tuple(notes))


def require(store: Store, collection: Collection, gold: GoldSet) -> GoldCheck:
    """The check, or CannotJudge naming what does not fit."""
    result = check(store, collection, gold)
    if result.outcome == "empty":
        raise CannotJudge(f"gold set {gold.name!r} holds no judgment: nothing can be scored.")
    if result.outcome == "unknown_documents":
        raise CannotJudge(
            f"gold set {gold.name!r} judges {len(result.unknown_documents)} documents that collection {collection.name!r} does not hold "
            f"({_some(result.unknown_documents)}): ingest them, or name the collection the gold was made for."
        )
    if result.outcome == "drifted":
        ids = sorted({q for q, _, _ in result.broken})
        raise CannotJudge(
            f"{len(result.broken)} judgments of {gold.name!r} do not stand where they should in collection {collection.name!r} "
            f"(questions {_some(ids)}): run `lab gold check {gold.name} -c {collection.name}` for the list."
        )
    return result


def _some(names: Sequence[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
