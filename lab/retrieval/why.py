"""Why a passage was not returned: the stage that lost it, or how far it was from every arm's list."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from lab.errors import UsageError
from lab.records import SearchResult
from lab.retrieval.analyse import by_entities, by_intent
from lab.retrieval.context import Corpus
from lab.retrieval.search import Shared, question_vectors, rank
from lab.settings import Settings
from lab.store import arms as queries
from lab.store import chunks
from lab.store.arms import Restriction
from lab.store.lexical import lexical


@dataclass(frozen=True, slots=True)
class Why:
    """What became of one passage. `ranks`: column of the ledger → rank, None where it was not in that list. `lost_at` None: it was returned."""

    chunk_id: str
    ranks: Mapping[str, int | None]
    lost_at: str | None
    reason: str


def why(corpus: Corpus, question: str, settings: Settings, target: str) -> list[Why]:
    """One entry for the chunk named (`guide.md::3`), or for every chunk of the source named, in the order of the document.

    Raises UsageError where the collection has no such passage.
    """
    source, sign, number = target.rpartition("::")
    chosen = int(number) if sign and _is_number(number) else None
    source = source if chosen is not None else target
    spots = [spot for spot in chunks.spots(corpus.store, corpus.collection, [source]).get(source, []) if chosen is None or spot.n == chosen]
    if not spots:
        raise UsageError(f"{corpus.collection.name!r} holds no passage {target!r}: name a source or a chunk, as `lab search` prints them.")
    question = queries.sanitise(question)
    with corpus.store.held():
        vector = question_vectors(corpus, [question])[0] if settings.dense_arm != "none" else None
        settings, _ = by_entities(corpus, question, settings)  # as rank does, so that the reasons are those of what was searched
        settings, _ = by_intent(corpus, question, settings)
        shared = Shared(corpus, question, vector)
        found = rank(shared, settings, texts=False)
        return [_one(corpus, question, settings, vector, found, spot.key, f"{source}::{spot.n}", spot.class_id) for spot in spots]


def arm_ranks(corpus: Corpus, question: str, settings: Settings, keys: Collection[int]) -> dict[str, int | None]:
    """Arm → the best rank of any of these chunks in the arm's whole list, however far down; None where the arm does not know them (no vector, no word in common)."""
    question = queries.sanitise(question)
    vector = question_vectors(corpus, [question])[0] if settings.dense_arm != "none" else None
    allowed = corpus.restriction(settings.filters)
    found: dict[str, int | None] = {}
    if vector is not None:
        whole = queries.dense(
            corpus.store, corpus.collection, vector, engine="exact", ef_search=settings.ef_search, candidates=corpus.chunks, by_class=False, chunks=corpus.chunks,
            lacks=corpus.lacks, restriction=allowed,
        )  # fmt: skip
        found["dense"] = next((rank for hit, rank in zip(whole.hits, whole.ranks, strict=True) if hit.key in keys), None)
    if settings.lexical_arm != "none":
        whole = lexical(
            corpus.store, corpus.collection, question, ranker=settings.lexical_arm, mode=settings.query_mode, candidates=corpus.chunks, by_class=False, chunks=corpus.chunks,
            codes=settings.codes == "on", lacks=corpus.lacks, restriction=allowed,
        )  # fmt: skip
        found["lexical"] = next((rank for hit, rank in zip(whole.hits, whole.ranks, strict=True) if hit.key in keys), None)
    return found


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) < 10


def _one(corpus: Corpus, question: str, settings: Settings, vector: np.ndarray | None, found: SearchResult, key: int, name: str, cls: bytes) -> Why:
    ledger = found.ledger
    row = next((at for at, hit in enumerate(ledger.hits) if hit.key == key), None)
    ranks = {column: (int(ledger.ranks[row][at]) or None) if row is not None else None for at, column in enumerate(ledger.columns)}
    if any(r.key == key for r in found.results):
        return Why(name, ranks, None, f"it was returned, at rank {next(r.rank for r in found.results if r.key == key)}")
    speaker = next((r for r in found.results if r.class_id == cls or name in r.copies), None)
    if speaker is not None:
        return Why(name, ranks, "dedup", f"{speaker.chunk_id} (rank {speaker.rank}), with the same text, speaks for it")
    stages = [column for column in ledger.columns if column not in found.arms]
    present = [stage for stage in stages if ranks[stage] is not None]
    if present:
        lost = stages[stages.index(present[-1]) + 1]
        last = ranks[present[-1]]
        if lost == "cut":
            return Why(name, ranks, "cut", f"rank {last} after {present[-1]}, and k is {settings.k}")
        return Why(
            name, ranks, lost, f"rank {last} after {present[-1]}, left out by {lost}" + (": the floor emptied the list" if lost == "floor" else "")
        )
    restriction = corpus.restriction(settings.filters)
    if restriction is not None and key not in restriction.keys:
        return Why(name, ranks, "filters", f"its document does not pass the filter {settings.filters}")
    if any(ranks[arm] for arm in found.arms):
        return Why(name, ranks, "fuse", "an arm brought it, but a copy of the same text in its place")
    return Why(name, ranks, "arms", "; ".join(_distance(corpus, question, settings, vector, found, key, arm) for arm in found.arms))


def _distance(corpus: Corpus, question: str, settings: Settings, vector: np.ndarray | None, found: SearchResult, key: int, arm: str) -> str:
    """How a passage that an arm did not bring compares with the last one that it did."""
    listed = found.arms[arm]
    if listed.abstained:
        return f"the {arm} arm abstained ({listed.abstained})"
    last = f", the last of {listed.got} that it brought {listed.hits[-1].score:.3f}" if listed.hits else ""
    if arm == "dense":
        stored = queries.vectors(corpus.store, corpus.collection, [key]).get(key)
        if stored is None or vector is None:
            return "dense: the passage has no vector"
        mine = (
            stored.astype(np.float64)
            @ vector.astype(np.float64)
            / (np.linalg.norm(stored.astype(np.float64)) * np.linalg.norm(vector.astype(np.float64)))
        )
        return f"dense: similarity {mine:.3f}{last}"
    if arm in {"external", "claims"}:
        return f"{arm}: not among its {listed.got} results"
    alone = lexical(
        corpus.store, corpus.collection, question, ranker=settings.lexical_arm, mode=settings.query_mode, candidates=1, by_class=False, chunks=corpus.chunks,
        codes=settings.codes == "on", lacks=corpus.lacks, restriction=Restriction(frozenset({key})),
    )  # fmt: skip
    return f"lexical: score {alone.hits[0].score:.3f}{last}" if alone.hits else "lexical: no word of the question stands in it"
