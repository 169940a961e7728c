"""What goes on while an ingest runs: documents are read, cut, embedded by the window, and stored."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.codes import VERSION
from lab.corpus import authority, chunking, reading, sources
from lab.corpus.readers import beir
from lab.corpus.readers.worker import Worker
from lab.corpus.validate import Refused
from lab.corpus.vectors import embed, prefix_of
from lab.errors import UsageError
from lab.models.embedders import Embedder
from lab.progress import Progress
from lab.records import Document
from lab.settings import IngestSettings
from lab.store import collections, documents, ledger, tenants
from lab.store.collections import Collection
from lab.store.connect import Store

WINDOW = 1024  # chunks that are embedded together: the more, the less padding; vectors are kept as they come, so that a stop loses none


@dataclass(slots=True)
class Work:
    """What is known while an ingest goes on."""

    store: Store
    name: str
    settings: IngestSettings
    language: str
    model: Embedder
    rules: dict[str, Any] | None
    collection: Collection | None
    known: dict[str, ledger.FileRow]
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("indexed", "unchanged", "replaced", "missing", "retired", "refused"), 0))
    refused: list[tuple[str, str]] = field(default_factory=list)
    unrecorded: list[tuple[str, str, str, int]] = field(default_factory=list)  # refused before the collection was made: source, root, reason, size
    seen: set[str] = field(default_factory=set)
    back: list[str] = field(default_factory=list)
    same: list[str] = field(default_factory=list)
    tenant: str | None = None
    guarded: bool = False  # row-level security is on, where there is a tenant
    dry: bool = False
    would: int = 0  # chunks that a dry run would store
    embedded: int = 0
    over_limit: int = 0
    changed: bool = False


def files_in(work: Work, files: Sequence[sources.File], password: str | None) -> None:
    total = sum(_size(file) for file in files)
    with Progress(f"ingest {work.name}", total / 1000, "kB") as bar, Worker() as worker:
        window: list[documents.Load] = []
        held = 0
        for file in files:
            load = _read(work, file, worker, password)
            if load is None:
                bar.advance(_size(file) / 1000)
                continue
            window.append(load)
            held += len(load.chunks)
            if held >= WINDOW:
                store_window(work, window, bar)
                window, held = [], 0
        store_window(work, window, bar)


def _size(file: sources.File) -> int:
    try:
        return file.path.stat().st_size
    except OSError:
        return 0  # gone since it was listed, or a link to nowhere


def _read(work: Work, file: sources.File, worker: Worker, password: str | None) -> documents.Load | None:
    """The file ready to be stored, or None when it is unchanged or refused."""
    work.seen.add(file.source)
    row = work.known.get(file.source)
    try:
        outcome = reading.read(file, row, worker, password)
        if outcome.document is None:
            _unchanged(work, file.source, row)
            return None
        load = prepare(work, outcome.document, str(file.root), outcome.digest, outcome.size)
        if not load.chunks:
            raise Refused("empty: the file holds no text")
        return load
    except Refused as refusal:
        _refuse(work, file.source, str(file.root), str(refusal), _size(file))
        return None


def _unchanged(work: Work, source: str, row: ledger.FileRow | None) -> None:
    work.counts["unchanged"] += 1
    (work.back if row is not None and row.status == "missing" else work.same).append(source)


def _refuse(work: Work, source: str, root: str, reason: str, size: int) -> None:
    work.counts["refused"] += 1
    work.refused.append((source, reason))
    if work.dry:
        return
    if work.collection is None:
        work.unrecorded.append((source, root, reason, size))
    else:
        work.changed = ledger.refuse(work.store, work.collection, source, root, reason, size, work.tenant) > 0 or work.changed


def records_in(work: Work, path: Path) -> None:
    """A BEIR corpus: every record is a document."""
    if not path.is_file():
        raise UsageError(f"{path} does not exist: --format beir takes a corpus.jsonl or the folder that holds it.")
    root = str(path.resolve())
    beir.check(path)  # a line that is no record is found before anything is stored
    with Progress(f"ingest {work.name}", path.stat().st_size / 1000, "kB") as bar:
        window: list[documents.Load] = []
        held = 0
        for record, line in beir.records(path):
            document = dataclasses.replace(record, source=tenants.prefix(work.tenant) + record.source)
            work.seen.add(document.source)
            digest = hashlib.sha256(line).digest()
            row = work.known.get(document.source)
            if row is not None and row.content_hash == digest and row.status in {"indexed", "missing"}:
                _unchanged(work, document.source, row)
                bar.advance(len(line) / 1000)
                continue
            load = prepare(work, document, root, digest, len(line))
            if not load.chunks:
                _refuse(work, document.source, root, "empty: the record holds no text", len(line))
                continue
            window.append(load)
            held += len(load.chunks)
            if held >= (WINDOW if work.model.dim is not None else 5 * WINDOW):
                store_window(work, window, bar, together=True)
                window, held = [], 0
        store_window(work, window, bar, together=True)


def prepare(work: Work, document: Document, root: str, digest: bytes, size: int) -> documents.Load:
    """A document cut into chunks, ready to be embedded and stored."""
    prefix = prefix_of(work.settings, "passage")
    window = work.model.limit
    if window is not None and prefix:
        window -= work.model.count_tokens(prefix)
    chunks = chunking.chunk(document, work.settings, work.model.count_tokens, window)
    bodies = [chunking.body(c, work.settings) for c in chunks]
    for text in bodies:
        # A text of fewer characters than the window has tokens fits in any case.
        too_long = window is not None and len(text) > window - 2 and work.model.count_tokens(text) + 2 > window
        work.over_limit += too_long or len(text) == chunking.INDEXED
    tier = authority.tier(work.rules, tenants.bare(document.source, work.tenant)) if work.rules else 0
    return documents.Load(document, root, digest, size, tier, chunks, bodies, [], work.tenant)


def store_window(work: Work, window: Sequence[documents.Load], bar: Progress, *, together: bool = False) -> None:
    """Embeds the texts of a window in one go, then stores its documents."""
    if not window:
        return
    if work.dry:
        for load in window:
            row = work.known.get(load.document.source)
            work.counts["replaced" if _replaces(row) else "indexed"] += 1
            work.would += len(load.chunks)
            bar.advance(load.bytes / 1000)
        return
    if work.collection is None:
        work.collection = collections.create(
            work.store, work.name, work.settings, embedder=work.model.name, model_digest=work.model.digest, dim=work.model.dim, language=work.language
        )
        collections.set_codes(work.store, work.collection, VERSION)
    if work.tenant is not None and not work.guarded:
        tenants.enable(work.store, work.collection, work.tenant)
        work.guarded = True
    texts = [text for load in window for text in load.bodies]
    total = sum(load.bytes for load in window) / 1000
    fresh = 0.0

    def on_batch(done: int) -> None:
        nonlocal fresh
        step = min(total * done / max(len(texts), 1), total - fresh)
        fresh += step
        bar.advance(step)

    vectors, embedded = embed(work.store, work.model, texts, on_batch, prefix_of(work.settings, "passage"))
    work.embedded += embedded
    ready, at = [], 0
    for load in window:
        ready.append(dataclasses.replace(load, vectors=vectors[at : at + len(load.bodies)]))
        at += len(load.bodies)
    store = documents.store_batch if together else documents.store_documents
    store(work.store, work.collection, ready)
    for load in ready:
        row = work.known.get(load.document.source)
        work.counts["replaced" if _replaces(row) else "indexed"] += 1
    work.changed = True
    bar.advance(total - fresh)


def _replaces(row: ledger.FileRow | None) -> bool:
    return row is not None and row.content_hash is not None and row.status != "retired"
