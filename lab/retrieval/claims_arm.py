"""The claims arm: the passages of the verified claims that have words of the question, each at the rank of its best claim. No vector is read."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Literal

from lab.records import ArmList
from lab.retrieval.context import Corpus
from lab.settings import Settings
from lab.store import arms, claims

_EACH = 4  # claims that are asked for, a passage wanted: a passage may have several


def claims_arm(corpus: Corpus, question: str, settings: Settings) -> ArmList:
    """At most `candidates` passages (classes, with dedup), those that pass the filters."""
    start = time.perf_counter()
    found = claims.by_words(corpus.store, corpus.collection, question, settings.candidates * _EACH)
    restriction = corpus.restriction(settings.filters)
    keys: dict[int, float] = {}
    for claim in found:
        if claim.chunk_key is not None and (restriction is None or claim.chunk_key in restriction.keys):
            keys.setdefault(claim.chunk_key, claim.score)
    rows = arms.hits(corpus.store, corpus.collection, list(keys))
    hits = arms.tied([replace(rows[key], score=score) for key, score in keys.items() if key in rows])
    ranks = arms.ranks(hits, settings.dedup != "off")
    kept = [(hit, rank) for hit, rank in zip(hits, ranks, strict=True) if rank <= settings.candidates]
    stopped: Literal["enough", "exhausted", "abstained"]
    stopped = "abstained" if not found else "enough" if len(kept) < len(hits) or len(found) == settings.candidates * _EACH else "exhausted"
    why = None if found else "no claim has a word of the question"
    return ArmList(
        "claims", "bm25_claims", tuple(hit for hit, _ in kept), tuple(rank for _, rank in kept), settings.candidates, max((rank for _, rank in kept), default=0), stopped, why, {},
        time.perf_counter() - start,
    )  # fmt: skip
