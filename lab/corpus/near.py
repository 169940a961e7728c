"""Finding near twins in a collection: only what is new is looked at, in parts that stay when the work is interrupted."""

from __future__ import annotations

from lab.corpus import twins
from lab.progress import Progress
from lab.store import documents, near
from lab.store.collections import Collection
from lab.store.connect import Store

_PART = 5_000  # classes signed in one transaction


def refresh(store: Store, collection: Collection) -> int:
    """Brings the pairs of near twins up to date; returns how many classes were new. Nothing happens where near twins are not wanted."""
    if collection.ingest.twins != "near":
        return 0
    near.forget(store, collection)
    new = near.count_unseen(store, collection)
    if new:
        with Progress(f"twins {collection.name}", new, "passages") as bar:
            while part := near.unseen(store, collection, _PART):
                near.add(store, collection, {name: twins.bands(text) for name, text in part})
                bar.advance(len(part))
    found = []
    for a, b, text_a, text_b in near.candidates(store, collection):
        alike = twins.similarity(text_a, text_b)
        if alike > 0:
            found.append((a, b, alike))
    near.pair(store, collection, found)
    return new


def near_classes(store: Store, collection: Collection) -> dict[str, str]:
    """Chunk id → name of its near class, the smallest chunk id in it; exact classes where near twins are not wanted."""
    refresh(store, collection)
    pairs, texts = near.pairs_with_texts(store, collection) if collection.ingest.twins == "near" else ([], {})
    return twins.classes(near.members(store, collection), pairs, texts, documents.defined_terms(store, collection))
