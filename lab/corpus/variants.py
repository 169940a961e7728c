"""The same documents under other ingest flags: a derived collection for each level of an ingest factor, made from stored text, so that no file is read again.

It is named `<collection>__<digest>` by its flags and documents: asked for again it is there, and other documents make another one. Vectors come from the shared cache.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from lab.codes import VERSION
from lab.corpus import near
from lab.corpus.derived import relink
from lab.corpus.ingest import resolved
from lab.corpus.intake import WINDOW, Work, prepare, store_window
from lab.models.embedders import embedder
from lab.progress import Progress, say
from lab.settings import IngestSettings
from lab.store import collections, documents
from lab.store.collections import Collection
from lab.store.connect import Store
from lab.text import digest

MARK = "__"


def name_of(base: Collection, settings: IngestSettings) -> str:
    """`handbook__1f3a9c07b2`: at most 40 characters."""
    told = digest([base.name, base.corpus_digest, base.language, dict(base.authority), settings.as_dict()])[:10]
    return f"{base.name[: 40 - len(MARK) - len(told)]}{MARK}{told}"


def derived_from(store: Store, name: str) -> list[Collection]:
    """The collections that were derived from one, also from an earlier state of its documents, or from one that is gone; in the order of their names."""
    stem = f"{name[: 40 - len(MARK) - 10]}{MARK}"
    return [c for c in collections.all_collections(store) if c.name.startswith(stem) and re.fullmatch("[0-9a-f]{10}", c.name[len(stem) :])]


def variant(store: Store, base: Collection, flags: Mapping[str, str]) -> Collection:
    """The documents of `base` under other ingest flags; `base` itself where they are its own. Raises UsageError for flags that are none."""
    settings = resolved(base.ingest.with_words(flags))
    if settings == resolved(base.ingest):
        return base
    name = name_of(base, settings)
    with collections.locked(store, name):
        known = collections.find(store, name)
        if known is not None and known.indexed_at is not None and known.corpus_digest == base.corpus_digest and known.codes == VERSION:
            return known
        if known is not None:
            collections.drop(store, name)  # what an interrupted call left
        return _make(store, base, name, settings)


def _make(store: Store, base: Collection, name: str, settings: IngestSettings) -> Collection:
    model = embedder(settings.embedder)
    work = Work(store, name, settings, base.language, model, dict(base.authority) or None, None, {})
    total = documents.characters(store, base)
    with Progress(f"{base.name} with {_told(base, settings)}", total / 1000, "k characters") as bar:
        window: list[documents.Load] = []
        held = 0
        for document, root, content_hash in documents.stored(store, base):
            load = prepare(work, document, root, content_hash, len(document.text))
            window.append(load)
            held += len(load.chunks)
            if held >= WINDOW:
                store_window(work, window, bar, together=True)
                window, held = [], 0
        store_window(work, window, bar, together=True)
    made = collections.get(store, name)
    if work.rules is not None:
        collections.set_authority(store, made, work.rules, documents.tiers(store, base))
    relink(store, made)
    say(f"building the indexes of {name} …")
    collections.build_indexes(store, made)
    near.refresh(store, made)
    documents.record_counts(store, made)
    documents.set_corpus_digest(store, made)
    return collections.get(store, name)


def _told(base: Collection, settings: IngestSettings) -> str:
    before = resolved(base.ingest).as_dict()
    return ", ".join(f"{key} {value}" for key, value in settings.as_dict().items() if before[key] != value)
