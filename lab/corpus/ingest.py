"""Ingest: folders and files → a collection. What did not change is not read again; an interrupted ingest goes on where it stopped."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab.codes import VERSION
from lab.corpus import authority, chunking, metadata, near, sources
from lab.corpus.derived import recode, relink
from lab.corpus.intake import Work, files_in, records_in
from lab.corpus.linking import EXTRACTOR
from lab.corpus.outcome import IngestReport
from lab.corpus.vectors import prefix_of
from lab.errors import CannotJudge, UsageError
from lab.models.embedders import embedder
from lab.progress import say
from lab.settings import IngestSettings
from lab.store import collections, documents, ledger, tenants
from lab.store.connect import Store, connect

FORMATS = ("auto", "beir")


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
            files_in(work, files, password)
        else:
            for path in listed:
                records_in(work, path / "corpus.jsonl" if path.is_dir() else path)
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
) -> Work:
    existing = collections.find(store, name)
    base = settings or (existing.ingest if existing else IngestSettings())
    wanted = resolved(base.with_words(words))
    made = resolved(existing.ingest).as_dict() if existing is not None else wanted.as_dict()
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
    return Work(
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


def _own(work: Work, sources: list[str]) -> None:
    """A file without a tenant can have the name that another's has by its prefix."""
    other = tenants.owner_of(work.store, work.name, sources, work.tenant)
    if other is not None:
        whose = f"of tenant {other[1]}" if other[1] is not None else "of no tenant"
        raise UsageError(f"the collection holds a document {other[0]} {whose}: use another collection, or another name for the folder.")


def resolved(settings: IngestSettings) -> IngestSettings:
    """With prefixes in so many words: what a model is known to want may be learnt later."""
    return dataclasses.replace(settings, query_prefix=prefix_of(settings, "query") or "none", passage_prefix=prefix_of(settings, "passage") or "none")


def _rules(authority_file: str | Path | None, paths: Sequence[Path]) -> dict[str, Any] | None:
    if authority_file is not None:
        return authority.load(Path(authority_file))
    for path in paths:
        if path.is_dir() and (path / authority.FILE).is_file():
            return authority.load(path / authority.FILE)
    return None


def _nothing(paths: Sequence[Path], work: Work) -> CannotJudge:
    named = ", ".join(map(str, paths))
    if work.refused:
        source, reason = work.refused[0]
        many = f"{len(work.refused)} files refused, as {source}" if len(work.refused) > 1 else source
        return CannotJudge(f"nothing readable under {named}: {many} ({reason}).")
    return CannotJudge(f"nothing readable under {named}: there is no file (hidden ones and {authority.FILE} do not count).")


# ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _vanished(work: Work, gone: list[str], prune: bool) -> list[str]:
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


def _foretold(work: Work, missing: Sequence[str], seconds: float) -> IngestReport:
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


def _finish(work: Work, missing: Sequence[str], start: float) -> IngestReport:
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
