"""Does a gold set still fit a collection? Every judged document must be there, and hold the quote where the judgment says.

intact      the quote stands at [start, end)
moved       it stands once, elsewhere in the document
ambiguous   it stands elsewhere, more than once
reworded    a stretch of the document has at least 0.8 of its words in common with it (token sets, Jaccard)
gone        none of these
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lab.errors import CannotJudge
from lab.gold.files import gold_digest
from lab.records import GoldSet, Judgment, Question
from lab.store import documents
from lab.store.collections import Collection
from lab.store.connect import Store
from lab.text import WORD, words

MAX_DRIFT = 0.02
REWORDED = 0.8
Relocation = tuple[str, int, int]  # class, and [start, end) of where it stands now; 0, 0 where it does not


@dataclass(frozen=True, slots=True)
class Broken:
    """A judgment that is not intact: its class, and where it, or what it became, stands now (nowhere: 0, 0)."""

    judgment: Judgment
    found: str
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class GoldCheck:
    """The outcome: `ok`, `drifted`, `unknown_documents` or `empty`. `broken` lists what is not intact. `drifted` means that more than `max_drift` of the judgments
    are not."""

    counts: Mapping[str, int]
    unknown_documents: Sequence[str]
    broken: Sequence[Broken]
    outcome: str
    max_drift: float = MAX_DRIFT

    def to_json(self) -> dict[str, Any]:
        return {
            "schema_version": 1,
            "counts": dict(self.counts),
            "unknown_documents": list(self.unknown_documents),
            "broken": [
                {"question": b.judgment.question_id, "source": b.judgment.source, "class": b.found, "start": b.start, "end": b.end, "text": b.text}
                for b in self.broken
            ],
            "max_drift": self.max_drift,
            "outcome": self.outcome,
        }


def check(store: Store, collection: Collection, gold: GoldSet, *, max_drift: float = MAX_DRIFT) -> GoldCheck:
    """Compares each quote with the stored text at [start, end)."""
    sources = sorted({j.source for j in gold.judgments})
    texts = {source: text for source, _, text in documents.texts(store, collection, sources)}
    counts = dict.fromkeys(("intact", "moved", "reworded", "ambiguous", "gone"), 0)
    broken = []
    for judgment in gold.judgments:
        text = texts.get(judgment.source)
        if text is None:
            continue
        found, start, end = classify(judgment, text)
        counts[found] += 1
        if found != "intact":
            broken.append(Broken(judgment, found, start, end, text[start:end]))
    unknown = [source for source in sources if source not in texts]
    if not gold.questions or not any(j for j in gold.judgments):
        outcome = "empty"
    elif unknown:
        outcome = "unknown_documents"
    else:
        outcome = "drifted" if len(broken) > max_drift * len(gold.judgments) else "ok"
    return GoldCheck(counts, unknown, broken, outcome, max_drift)


def classify(judgment: Judgment, text: str, *, near: bool = True) -> Relocation:
    """The class of a judgment in the document's present text, and where it stands. Without `near` nothing reworded is looked for: it counts as gone."""
    if text[judgment.start : judgment.end] == judgment.quote:
        return "intact", judgment.start, judgment.end
    times = text.count(judgment.quote) if judgment.quote else 0
    if times == 1:
        start = text.index(judgment.quote)
        return "moved", start, start + len(judgment.quote)
    if times:
        return "ambiguous", 0, 0
    found = reworded(judgment.quote, text) if near else None
    return ("reworded", *found) if found is not None else ("gone", 0, 0)


def reworded(quote: str, text: str) -> tuple[int, int] | None:
    """`[start, end)` of the stretch of `text` most like `quote`: as many words, the highest Jaccard of the sets of words, at least 0.8; the first of equals."""
    wanted = Counter(words(quote))
    size = sum(wanted.values())
    places = [match.span() for match in WORD.finditer(text)]
    spoken = [words(text[start:end]) for start, end in places]
    flat = [part[0] if part else "" for part in spoken]
    if not wanted or len(flat) < 1:
        return None
    kinds = set(wanted)
    best, at = 0.0, 0
    window: Counter[str] = Counter()
    shared = 0
    for right, word in enumerate(flat):
        window[word] += 1
        shared += window[word] == 1 and word in kinds
        left = right - size
        if left >= 0:
            gone = flat[left]
            window[gone] -= 1
            if not window[gone]:
                del window[gone]
                shared -= gone in kinds
        if right < min(size, len(flat)) - 1:
            continue  # the window is not full yet
        share = shared / (len(kinds) + len(window) - shared)
        if share > best:
            best, at = share, max(0, right - size + 1)
    if best < REWORDED:
        return None
    last = min(at + size, len(places)) - 1
    return places[at][0], places[last][1]


def repair(gold: GoldSet, found: GoldCheck) -> tuple[GoldSet, int]:
    """The gold set with the moved judgments at their new place, and how many these are. What was reworded, is ambiguous or gone is left for a person."""
    place = {id(b.judgment): b for b in found.broken if b.found == "moved"}
    judgments = tuple(replace(j, start=place[id(j)].start, end=place[id(j)].end) if id(j) in place else j for j in gold.judgments)
    return replace(gold, judgments=judgments, digest=gold_digest(gold.questions, (*judgments, *gold.refused))), len(place)


def circular(gold: str, questions: Sequence[Question], flags: Iterable[str]) -> list[str]:
    """A sentence for each flag that some questions were derived from: they cannot judge it."""
    said = []
    for flag in flags:
        made = sum(q.metadata.get("derived_from") == flag for q in questions)
        if made:
            said.append(
                f"{made} of {len(questions)} questions of {gold!r} were made from the links that {flag} turns on: for it their evidence is circular"
            )
    return said


def relocate(gold: GoldSet, texts: Mapping[str, str]) -> tuple[GoldSet, list[Judgment]]:
    """The gold set with moved judgments at their new place, and the judgments that are gone or ambiguous (left out)."""
    kept, lost = [], []
    for judgment in gold.judgments:
        text = texts.get(judgment.source, "")
        found, start, end = classify(judgment, text, near=False)
        if found in {"intact", "moved"}:
            kept.append(replace(judgment, start=start, end=end))
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

    A set whose documents change with the Python that carries them (it has a `made-for.json`), and any set of which at most 2 % of the judgments have drifted, is
    relocated by its quotes: moved judgments go to their new place, those that are gone are left out and named, and the digest is that of what remains.
    """
    if not gold.metadata.get("relocate") and not require(store, collection, gold).broken:
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
    return Fitted(replace(adapted, digest=gold_digest(adapted.questions, (*adapted.judgments, *adapted.refused))), len(lost), tuple(notes))


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
        ids = sorted({b.judgment.question_id for b in result.broken})
        raise CannotJudge(
            f"{len(result.broken)} of {len(gold.judgments)} judgments of {gold.name!r} do not stand where they should in collection {collection.name!r} "
            f"(questions {_some(ids)}): run `lab gold check {gold.name} -c {collection.name}` for the list."
        )
    return result


def _some(names: Sequence[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
