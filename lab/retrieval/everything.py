"""Passages outside of any search: where they come from, and all of a collection in the order of its documents."""

from __future__ import annotations

from lab.records import Provenance, Result, Window
from lab.retrieval.context import Corpus
from lab.store import arms, chunks


def everything(corpus: Corpus) -> tuple[Result, ...]:
    """Every passage of a collection by (source, n), as results without score: what a model reads that needs no retrieval."""
    keys = chunks.keys(corpus.store, corpus.collection)
    hits, texts = arms.hits(corpus.store, corpus.collection, keys), arms.texts(corpus.store, corpus.collection, keys)
    found: list[Result] = []
    for key in keys:
        if key in hits and key in texts:
            hit, passage = hits[key], texts[key]
            found.append(
                Result(
                    len(found) + 1, hit.chunk_id, hit.source, hit.start, hit.end, passage.text, passage.context, 0.0, None, hit.authority, hit.class_id, key,
                    provenance=provenance(passage),
                )
            )  # fmt: skip
    return tuple(found)


def provenance(passage: arms.Passage) -> Provenance:
    """Where a stored passage comes from."""
    window = None
    if passage.window_start is not None and passage.window_end is not None and passage.reading is not None:
        window = Window(passage.window_start, passage.window_end, passage.reading)
    updated = passage.last_updated.isoformat() if passage.last_updated else None
    return Provenance(
        passage.title, passage.page, passage.source_url or None, passage.document_version or None, updated, dict(passage.metadata), window
    )
