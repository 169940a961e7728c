"""The external arm: somebody's ranked list, its places mapped to the chunks that hold them."""

from __future__ import annotations

import time
from dataclasses import replace

from lab.corpus.linking import chunk_at, chunk_from
from lab.models.external import endpoint
from lab.records import ArmList, Hit
from lab.retrieval.context import Corpus
from lab.settings import Settings
from lab.store import arms, chunks


def external_arm(corpus: Corpus, question: str, settings: Settings) -> ArmList:
    """The list of the endpoint as an arm: each line the chunk that holds most of its span, a chunk once, at its first place. Lines that name what the collection
    lacks, or what the filters leave out, are counted in the reason it stopped."""
    start = time.perf_counter()
    given = corpus.given.get(settings.external)
    found = (
        list(given.get(question, ()))[: settings.candidates]
        if given is not None
        else endpoint(settings.external).search(question, settings.candidates)
    )
    spots = chunks.spots(corpus.store, corpus.collection, sorted({line.source for line in found}))
    restriction = corpus.restriction(settings.filters)
    keys: dict[int, float] = {}
    lost = 0
    for at, line in enumerate(found, 1):
        there = spots.get(line.source, [])
        if line.chunk is not None:
            spot = next((chunk for chunk in there if chunk.n == line.chunk), None)
        else:
            spot = chunk_at(there, line.start, line.end) or chunk_from(there, line.start)
        if spot is None:
            lost += 1
        elif restriction is None or spot.key in restriction.keys:
            keys.setdefault(spot.key, line.score if line.score is not None else 1.0 / at)
    rows = arms.hits(corpus.store, corpus.collection, list(keys))
    hits: list[Hit] = [replace(rows[key], score=score) for key, score in keys.items() if key in rows]
    fallback = f"{lost} of {len(found)} results of the endpoint name passages that {corpus.collection.name} does not hold" if lost else None
    ranks = arms.ranks(hits, settings.dedup != "off")
    return ArmList(
        "external",
        "external",
        tuple(hits),
        tuple(ranks),
        settings.candidates,
        max(ranks, default=0),
        "exhausted",
        None,
        {},
        time.perf_counter() - start,
        fallback,
    )
