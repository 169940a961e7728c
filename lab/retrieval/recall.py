"""Recall of claims: by words, without any model; by vector where it is asked for, and by words again where no vector is to be had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lab.errors import LabError, UsageError, unknown
from lab.store import arms, chunks, claims, collections
from lab.store.claims import STATUSES, Claim, Filter
from lab.store.collections import Collection
from lab.store.connect import Store

SIMILARITY = 0.3  # below this cosine a claim is about something else
K = 10


@dataclass(frozen=True, slots=True)
class Recalled:
    """Claims that answer a question, best first. `engine`: bm25, semantic, or bm25_fallback (`said` tells why). `texts`: chunk id → the passage, which is the authority."""

    question: str
    collection: str
    claims: Sequence[Claim]
    engine: str
    texts: Mapping[str, str] = field(default_factory=dict)
    said: str = ""

    def to_json(self) -> dict[str, Any]:
        """The object of `lab claims search --json`."""
        return {
            "schema_version": 1, "question": self.question, "collection": self.collection, "engine": self.engine,
            "claims": [
                {
                    "claim_id": c.claim_id, "statement": c.statement, "subject": c.subject or None, "kind": c.kind, "confidence": c.confidence, "authority": c.authority, "status": c.status,
                    "quote": c.quote, "passage": {"chunk_id": c.chunk_id, "source": c.source, "start": c.start, "end": c.end, "text": self.texts.get(c.chunk_id)},
                    "similarity": c.similarity, "score": c.score,
                }
                for c in self.claims
            ],
            "diagnostic": {"stage": "claims", "message": self.said} if self.said else None,
        }  # fmt: skip


def recall(
    store: Store, name: str, question: str, *, k: int = K, semantic: bool = False, floor: float = SIMILARITY, kinds: Sequence[str] = (), confidence: float = 0.0, authority: int = 0,
    statuses: Sequence[str] = ("verified",),
) -> Recalled:  # fmt: skip
    """The best `k` claims. By words no embedding model is loaded and no vector read. Raises UsageError for an unknown collection, kind or status, and for numbers that are none."""
    collection = collections.get(store, name)
    if not 1 <= k <= 1000:
        raise UsageError(f"k cannot be {k}: it takes a whole number from 1 to 1000.")
    if not 0 <= confidence <= 1:
        raise UsageError(f"confidence cannot be {confidence:g}: from 0 to 1.")
    if not 0 <= authority <= 9:
        raise UsageError(f"authority cannot be {authority}: tiers go from 0 to 9.")
    if not -1 <= floor <= 1:
        raise UsageError(f"the least similarity cannot be {floor:g}: from -1 to 1.")
    for status in statuses:
        if status not in STATUSES:
            raise unknown("status", status, STATUSES)
    if kinds:
        there = claims.kinds(store, collection)
        for kind in kinds:
            if kind not in there:
                raise unknown("kind of claim", kind, there, mend=f"`lab claims extract {name}` makes them.")
    question = arms.sanitise(question)
    chosen = Filter(tuple(statuses), tuple(kinds) or None, confidence, authority)
    engine, said = ("semantic" if semantic else "bm25"), ""
    found: list[Claim] = []
    if semantic:
        try:
            found = _near(store, collection, question, k, floor, chosen)
        except LabError as error:
            engine, said = "bm25_fallback", f"claims were searched by words: {error}"
    if engine != "semantic":
        found = claims.by_words(store, collection, question, k, chosen)
    if not found and not said:
        said = _nothing(store, collection, semantic, floor)
    texts = chunks.chunks_named(store, collection, sorted({c.chunk_id for c in found}))
    return Recalled(question, name, found, engine, texts, said)


def _near(store: Store, collection: Collection, question: str, k: int, floor: float, chosen: Filter) -> list[Claim]:
    from lab.retrieval.search import open_corpus, question_vectors  # what loads models waits until it is wanted

    if collection.dim is None:
        raise UsageError(f"collection {collection.name!r} was ingested with --embedder none.")
    vector = question_vectors(open_corpus(store, collection.name), [question])[0]
    return [] if vector is None else claims.by_vector(store, collection, vector, k, floor, chosen)


def _nothing(store: Store, collection: Collection, semantic: bool, floor: float) -> str:
    if not claims.counts(store, collection):
        return f"{collection.name!r} has no claims yet: run `lab claims extract {collection.name}`."
    return f"no claim is as near as {floor:g}." if semantic else "no claim that passes the filters has a word of the question."
