"""Ingest: folders and files → a collection. What did not change is not read again; an interrupted ingest goes on where it stopped."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.codes import VERSION
from lab.corpus import authority, chunking, metadata, near, reading, sources
from lab.corpus.derived import recode, relink
from lab.corpus.linking import EXTRACTOR
from lab.corpus.outcome import IngestReport
from lab.corpus.readers import beir
from lab.corpus.readers.worker import Worker
from lab.corpus.validate import Refused
from lab.corpus.vectors import embed, prefix_of
from lab.errors import CannotJudge, UsageError
from lab.models.embedders import Embedder, embedder
from lab.progress import Progress, say
from lab.records import Document
from lab.settings import IngestSettings
from lab.store import collections, documents, ledger, tenants
from lab.store.collections import Collection
from lab.store.connect import Store, connect

_WINDOW = 1024  # chunks that are embedded together: the more, the less padding; vectors are kept as they come, so that a stop loses none
FORMATS = ("auto", "beir")


@dataclass(slots=True)
class _Work:
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


def ingest(
    paths: str | Path | Sequence[str | Path],
    collection: str,
    *,
    store: Store | None = None,
    settings: IngestSettings | None = None,
    authority_file: str | Path | None = None,
    language: str = "english",
    format: str = "auto",
    prune: bool = False,
    root: str | None = None,
    metadata_file: str | Path | None = None,
    password: str | None = None,
    dry_run: bool = False,
    tenant: str | None = None,
    **flags: str | int,
) -> IngestReport:
    """Reads files and folders into a collection, and returns what became of each file.

    Trust tiers come from `authority_file`, else from source_authority.json in the first folder named that has one, else they stay as they were: a
    collection has one set of rules, the last given. `root` names the one folder given by something else than its path, so that the same documents in
    another place (a shipped set, checked out or installed) are the same files. `metadata_file` is a CSV (`lab.corpus.metadata`), `password` opens encrypted
    PDFs. A `dry_run` reads and cuts everything, and stores nothing. The documents are `tenant`'s: their sources begin with `@tenant/`, and of all tenants'
    logins only its own finds them (`shared`: every one does); without it no tenant's login does (`lab.store.tenants`). `flags` are ingest flags (`chunker="fixed"`). A collection keeps the flags it was
    made with: other ones raise UsageError, as do a path that does not exist and an unknown flag; nothing readable at all raises CannotJudge, with nothing
    written.
    """
    if store is None:
        with connect() as opened:
            return ingest(
                paths,
                collection,
                store=opened,
                settings=settings,
                authority_file=authority_file,
                language=language,
                format=format,
                prune=prune,
                root=root,
                metadata_file=metadata_file,
                password=password,
                dry_run=dry_run,
                tenant=tenant,
                **flags,
            )
    start = time.monotonic()
    collections.check_name(collection)
    if tenant is not None:
        tenants.check_name(tenant)
    if store.tenant is not None:
        raise UsageError(f"this is the login of tenant {store.tenant}, which searches: ingest with the login that made the lab's schema.")
    if format not in FORMATS:
        raise UsageError(f"--format cannot be {format!r}: it takes {', '.join(FORMATS)}.")
    listed = [Path(p) for p in ([paths] if isinstance(paths, (str, Path)) else paths)]
    if not listed:
        raise UsageError("name at least one file or folder to ingest.")
    for path in listed:
        if not path.exists():
            raise UsageError(f"{path} does not exist: name a file or a folder that does.")
    words = {name: str(value) for name, value in flags.items()}
    said = metadata.load(Path(metadata_file)) if metadata_file is not None else {}
    with contextlib.nullcontext() if dry_run else collections.locked(store, collection):
        work = _begin(store, collection, settings, words, authority_file, listed, language, tenant)
        work.dry = dry_run
        left: list[tuple[str, str]] = []
        files = sources.listed(listed, work.known, root, left, tenant) if format == "auto" else []
        work.counts["refused"] += len(left)
        work.refused += left
        _own(work, [file.source for file in files])
        if format == "auto":
            _ingest_files(work, files, password)
        else:
            for path in listed:
                _ingest_records(work, path / "corpus.jsonl" if path.is_dir() else path)
        gone = sources.vanished(listed, work.known, work.seen, format, root)
        if dry_run:
            work.counts["retired" if prune else "missing"] = len(gone)
            return _foretold(work, [] if prune else gone, time.monotonic() - start)
        if work.collection is None:
            raise _nothing(listed, work)
        missing = _vanished(work, gone, prune)
        if said:
            absent = ledger.give(store, work.collection, {tenants.prefix(tenant) + source: values for source, values in said.items()})
            if absent:
                say(f"{len(absent)} sources of {metadata_file} are not in the collection, as {absent[0]}")
        return _finish(work, missing, start)


def _begin(
    store: Store,
    name: str,
    settings: IngestSettings | None,
    words: dict[str, str],
    authority_file: str | Path | None,
    paths: Sequence[Path],
    language: str,
    tenant: str | None,
) -> _Work:
    existing = collections.find(store, name)
    base = settings or (existing.ingest if existing else IngestSettings())
    wanted = _resolved(base.with_words(words))
    made = _resolved(existing.ingest).as_dict() if existing is not None else wanted.as_dict()
    differing = next((key for key, value in wanted.as_dict().items() if made[key] != value), None)
    if differing is not None:
        raise UsageError(
            f"collection {name!r} was made with {differing} {made[differing]}: use another name behind -c, or `lab drop {name} --yes` first."
        )
    unread = sorted(set(words) & set(chunking.SIZES) - chunking.READ[wanted.chunker])
    if unread:
        say(f"--chunker {wanted.chunker} does not read --{', --'.join(name.replace('_', '-') for name in unread)}: nothing depends on it.")
    model = embedder(wanted.embedder)
    if existing is not None and existing.model_digest != model.digest:
        raise UsageError(f"collection {name!r} was made with another model of the name {existing.embedder}: use another name behind -c.")
    return _Work(
        store=store,
        name=name,
        settings=wanted,
        language=existing.language if existing else language,
        model=model,
        rules=_rules(authority_file, paths) or (dict(existing.authority) if existing else None),
        collection=existing,
        known={source: row for source, row in ledger.rows(store, existing).items() if row.tenant == tenant} if existing else {},
        tenant=tenant,
    )


def _own(work: _Work, sources: list[str]) -> None:
    """A file without a tenant can have the name that another's has by its prefix."""
    other = tenants.owner_of(work.store, work.name, sources, work.tenant)
    if other is not None:
        whose = f"of tenant {other[1]}" if other[1] is not None else "of no tenant"
        raise UsageError(f"the collection holds a document {other[0]} {whose}: use another collection, or another name for the folder.")


def _resolved(settings: IngestSettings) -> IngestSettings:
    """With prefixes in so many words: what a model is known to want may be learnt later."""
    return dataclasses.replace(settings, query_prefix=prefix_of(settings, "query") or "none", passage_prefix=prefix_of(settings, "passage") or "none")


def _rules(authority_file: str | Path | None, paths: Sequence[Path]) -> dict[str, Any] | None:
    if authority_file is not None:
        return authority.load(Path(authority_file))
    for path in paths:
        if path.is_dir() and (path / authority.FILE).is_file():
            return authority.load(path / authority.FILE)
    return None


def _nothing(paths: Sequence[Path], work: _Work) -> CannotJudge:
    named = ", ".join(map(str, paths))
    if work.refused:
        source, reason = work.refused[0]
        many = f"{len(work.refused)} files refused, as {source}" if len(work.refused) > 1 else source
        return CannotJudge(f"nothing readable under {named}: {many} ({reason}).")
    return CannotJudge(f"nothing readable under {named}: there is no file (hidden ones and {authority.FILE} do not count).")


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _ingest_files(work: _Work, files: Sequence[sources.File], password: str | None) -> None:
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
            if held >= _WINDOW:
                _store(work, window, bar)
                window, held = [], 0
        _store(work, window, bar)


def _size(file: sources.File) -> int:
    try:
        return file.path.stat().st_size
    except OSError:
        return 0  # gone since it was listed, or a link to nowhere


def _read(work: _Work, file: sources.File, worker: Worker, password: str | None) -> documents.Load | None:
    """The file ready to be stored, or None when it is unchanged or refused."""
    work.seen.add(file.source)
    row = work.known.get(file.source)
    try:
        outcome = reading.read(file, row, worker, password)
        if outcome.document is None:
            _unchanged(work, file.source, row)
            return None
        load = _load(work, outcome.document, str(file.root), outcome.digest, outcome.size)
        if not load.chunks:
            raise Refused("empty: the file holds no text")
        return load
    except Refused as refusal:
        _refuse(work, file.source, str(file.root), str(refusal), _size(file))
        return None


def _unchanged(work: _Work, source: str, row: ledger.FileRow | None) -> None:
    work.counts["unchanged"] += 1
    (work.back if row is not None and row.status == "missing" else work.same).append(source)


def _refuse(work: _Work, source: str, root: str, reason: str, size: int) -> None:
    work.counts["refused"] += 1
    work.refused.append((source, reason))
    if work.dry:
        return
    if work.collection is None:
        work.unrecorded.append((source, root, reason, size))
    else:
        work.changed = ledger.refuse(work.store, work.collection, source, root, reason, size, work.tenant) > 0 or work.changed


def _ingest_records(work: _Work, path: Path) -> None:
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
            load = _load(work, document, root, digest, len(line))
            if not load.chunks:
                _refuse(work, document.source, root, "empty: the record holds no text", len(line))
                continue
            window.append(load)
            held += len(load.chunks)
            if held >= (_WINDOW if work.model.dim is not None else 5 * _WINDOW):
                _store(work, window, bar, together=True)
                window, held = [], 0
        _store(work, window, bar, together=True)


def _load(work: _Work, document: Document, root: str, digest: bytes, size: int) -> documents.Load:
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


def _store(work: _Work, window: Sequence[documents.Load], bar: Progress, *, together: bool = False) -> None:
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


# ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _vanished(work: _Work, gone: list[str], prune: bool) -> list[str]:
    """Marks what is there no more as missing; with `prune` it is retired."""
    assert work.collection is not None
    if prune:
        ledger.mark(work.store, work.collection, gone, "retired", "the file is gone and --prune was given")
        work.counts["retired"] = len(gone)
        work.changed = work.changed or bool(gone)
        gone = []
    else:
        ledger.mark(work.store, work.collection, gone, "missing", "the file is gone")
        work.counts["missing"] = len(gone)
    ledger.restore(work.store, work.collection, work.back)
    ledger.unchanged(work.store, work.collection, work.same)
    return gone


def _foretold(work: _Work, missing: Sequence[str], seconds: float) -> IngestReport:
    """The report of a dry run: links are not looked for."""
    return IngestReport(
        work.name,
        work.counts,
        work.refused,
        missing,
        work.would,
        {"cites": 0, "defines": 0},
        {"external": 0, "unresolved": 0},
        0,
        0,
        work.over_limit,
        seconds,
        dry_run=True,
    )


def _finish(work: _Work, missing: Sequence[str], start: float) -> IngestReport:
    assert work.collection is not None
    collection = work.collection
    for source, root, reason, size in work.unrecorded:
        ledger.refuse(work.store, collection, source, root, reason, size, work.tenant)
    if work.rules is not None and work.rules != collection.authority:
        rows = ledger.rows(work.store, collection)
        tiers = {source: authority.tier(work.rules, tenants.bare(source, row.tenant)) for source, row in rows.items()}
        collections.set_authority(work.store, collection, work.rules, tiers)
    now = collections.get(work.store, collection.name)  # what an interrupted call left undone counts too
    if not now.link_digest or now.link_extractor != EXTRACTOR:
        relink(work.store, collection)
    if now.codes != VERSION:
        recode(work.store, collection)
        now = collections.get(work.store, collection.name)
    if not set(collections.indexes(work.store, collection)) >= collections.expected_indexes(work.store, collection):
        say(f"building the indexes of {collection.name} …")
        collections.build_indexes(work.store, collection)
    elif work.changed or now.stale_rows > 0:
        collections.analyse(work.store, collection, reindex_bm25=now.stale_rows > 0)
    near.refresh(work.store, collection)
    tenants.refresh(work.store, collection)
    documents.record_counts(work.store, collection)
    documents.set_corpus_digest(work.store, collection)
    sizes = collections.size(work.store, collection)
    return IngestReport(
        collection.name, work.counts, work.refused, missing, sizes.chunks, {"cites": sizes.cites, "defines": sizes.defines},
        {key: collections.get(work.store, collection.name).link_counts.get(key, 0) for key in ("external", "unresolved")}, work.embedded,
        documents.counts(work.store, collection)["without_vector"], work.over_limit, time.monotonic() - start,
    )  # fmt: skip
