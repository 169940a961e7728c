"""Documents and chunks of a collection: loading, one document a transaction, and reading them back."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pgvector import HalfVector
from psycopg import sql
from psycopg.types.json import Jsonb

from lab.codes import VERSION, side_tokens
from lab.errors import UsageError
from lab.records import Block, Chunk, Document, Hyperlink
from lab.store import bulk, ledger
from lab.store.collections import Collection, statement
from lab.store.connect import Connection, Store
from lab.text import class_id, indexable


@dataclass(frozen=True, slots=True)
class Load:
    """A document ready to be stored. `vectors[i]` belongs to `chunks[i]`; None = found by words only."""

    document: Document
    root: str
    content_hash: bytes
    bytes: int
    authority: int
    chunks: Sequence[Chunk]
    bodies: Sequence[str]
    vectors: Sequence[np.ndarray | None]
    tenant: str | None = None


def store_documents(store: Store, collection: Collection, loads: Iterable[Load]) -> int:
    """Replaces each document in a transaction of its own; returns the number of chunks that were deleted on the way."""
    deleted = 0
    with store.single() as connection:
        for load in loads:
            with connection.transaction():
                deleted += _replace_many(connection, collection, [load])
    return deleted


def store_batch(store: Store, collection: Collection, loads: Sequence[Load]) -> int:
    """The same for many small documents (records of one file) in one transaction."""
    with store.connection() as connection:
        return _replace_many(connection, collection, loads)


def _replace_many(connection: Connection, collection: Collection, loads: Sequence[Load]) -> int:
    schema = sql.Identifier(collection.schema)
    sources = [load.document.source for load in loads]
    row = connection.execute(sql.SQL("select count(*) from {}.chunks where source = any(%s)").format(schema), [sources]).fetchone()
    deleted = int(row[0]) if row else 0
    gone = connection.execute(
        sql.SQL("delete from {}.files where source = any(%s) returning source, given, status, content_hash").format(schema), [sources]
    ).fetchall()
    kept = {source: given for source, given, _, _ in gone}
    before = {source for source, _, status, content_hash in gone if content_hash is not None and status != "retired"}
    bulk.load(connection, collection.schema, "files", _FILES, (_file(load, kept, before) for load in loads))
    bulk.load(connection, collection.schema, "chunks", _CHUNKS, (row for load in loads for row in _chunks(load)))
    ledger.enter(connection, collection, [(source, "replaced" if source in before else "indexed", None) for source in sources])
    ledger.changed(connection, collection, deleted)
    return deleted


_FILES = (
    "source", "tenant", "root", "format", "title", "text", "content_hash", "bytes", "authority", "metadata", "given", "extractor", "source_url",
    "document_version", "last_updated", "structure", "status", "outcome",
)  # fmt: skip
_CHUNKS = (
    "source", "tenant", "n", "start", "end", "text", "context", "heading", "page", "window_start", "window_end", "body", "class_id", "codes", "embedding",
)  # fmt: skip


def _file(load: Load, given: Mapping[str, Any], before: Container[str]) -> tuple[Any, ...]:
    d = load.document
    return (
        d.source, load.tenant, load.root, d.format, d.title, d.text, load.content_hash, load.bytes, load.authority, Jsonb(dict(d.metadata)),
        Jsonb(given.get(d.source, {})), d.extractor, d.source_url, d.version, d.updated or None, Jsonb(structure(d)), "indexed",
        "replaced" if d.source in before else "indexed",
    )  # fmt: skip


def _chunks(load: Load) -> Iterator[tuple[Any, ...]]:
    for chunk, body, vector in zip(load.chunks, load.bodies, load.vectors, strict=True):
        yield (
            chunk.source, load.tenant, chunk.n, chunk.start, chunk.end, chunk.text, chunk.context, list(chunk.heading), chunk.page,
            *(chunk.window or (None, None)), indexable(body), class_id(chunk.text), side_tokens(body), None if vector is None else HalfVector(vector),
        )  # fmt: skip


def structure(document: Document) -> dict[str, Any]:
    """What a reader saw besides the text, as it is stored; a document that is one paragraph has none."""
    blocks = [[b.kind, b.start, b.end, b.level] for b in document.blocks]
    found: dict[str, Any] = {
        "blocks": blocks if len(blocks) != 1 or document.blocks[0].kind != "paragraph" else [],
        "pages": [list(page) for page in document.pages],
        "anchors": dict(document.anchors),
        "hyperlinks": [[link.start, link.end, link.target] for link in document.hyperlinks],
        "terms": [list(term) for term in document.terms],
    }
    return {key: value for key, value in found.items() if value}


def texts(store: Store, collection: Collection, sources: Sequence[str] | None = None) -> Iterator[tuple[str, str, str]]:
    """(source, title, text) of the stored documents in source order, streamed."""
    schema = sql.Identifier(collection.schema)
    with store.connection() as connection, connection.cursor(name="texts") as cursor:
        where = sql.SQL("" if sources is None else " and source = any(%(sources)s)")
        cursor.execute(
            sql.SQL("select source, title, text from {}.files where status in ('indexed', 'missing') and text is not null{} order by source").format(
                schema, where
            ),
            {"sources": None if sources is None else list(sources)},
        )
        yield from cursor


@dataclass(frozen=True, slots=True)
class Linkable:
    """A stored document as links are looked for in it."""

    source: str
    title: str
    text: str
    source_url: str = ""
    anchors: Mapping[str, int] = field(default_factory=dict)
    hyperlinks: Sequence[Hyperlink] = ()
    terms: Sequence[tuple[int, int, int]] = ()
    tenant: str | None = None


def scopes(store: Store, collection: Collection) -> list[str | None]:
    """The tenants that have documents here; None stands for the documents of no tenant."""
    rows = store.rows(
        sql.SQL(
            "select distinct tenant from {}.files where status in ('indexed', 'missing') and text is not null order by tenant nulls first"
        ).format(sql.Identifier(collection.schema))
    )
    return [row[0] for row in rows]


def linkable(store: Store, collection: Collection, tenants: Sequence[str | None] | None = None) -> Iterator[Linkable]:
    """Every stored document in source order, streamed; of these `tenants` only, where None in the list stands for the documents of none."""
    schema = sql.Identifier(collection.schema)
    with store.connection() as connection, connection.cursor(name="linkable") as cursor:
        cursor.execute(
            sql.SQL(
                "select source, title, text, source_url, structure - 'blocks', tenant from {}.files where status in ('indexed', 'missing') and text is not null "
                "and (%(all)s or tenant = any(%(named)s) or (tenant is null and %(none)s)) order by source"
            ).format(schema),
            {"all": tenants is None, "named": [name for name in tenants or () if name is not None], "none": None in (tenants or ())},
        )
        for source, title, text, url, structure, tenant in cursor:
            yield Linkable(
                source, title, text, url, structure.get("anchors", {}),
                [Hyperlink(*link) for link in structure.get("hyperlinks", ())], [tuple(term) for term in structure.get("terms", ())],
                tenant,
            )  # fmt: skip


def tiers(store: Store, collection: Collection) -> dict[str, int]:
    """Source → authority tier."""
    rows = store.rows(sql.SQL("select source, authority from {}.files").format(sql.Identifier(collection.schema)))
    return {str(source): int(tier) for source, tier in rows}


def asked_about(store: Store, collection: Collection) -> Iterator[tuple[int, str, int, int, int, str, list[str], str]]:
    """(key, source, n, start, end, text, heading, title of the document) of every chunk in (source, n) order, streamed."""
    with store.connection() as connection, connection.cursor(name="asked") as cursor:
        cursor.itersize = 2000
        cursor.execute(
            sql.SQL(
                'select c.key, c.source, c.n, c.start, c."end", c.text, c.heading, f.title from {0}.chunks c join {0}.files f using (source) order by c.source, c.n'
            ).format(sql.Identifier(collection.schema))
        )
        yield from cursor


def text_between(store: Store, collection: Collection, source: str, start: int, end: int) -> str:
    """`[start, end)` of the stored text of one document."""
    rows = store.rows(
        sql.SQL("select substr(text, %(at)s, %(many)s) from {}.files where source = %(source)s").format(sql.Identifier(collection.schema)),
        {"at": start + 1, "many": max(end - start, 0), "source": source},
    )
    return str(rows[0][0]) if rows else ""


def stored(store: Store, collection: Collection) -> Iterator[tuple[Document, str, bytes]]:
    """(document as its reader saw it, root, content hash) of every document, by source, streamed: what can be cut and embedded anew without its file.

    UsageError for a collection with tenants: a copy of it would lie outside of their walls.
    """
    schema = sql.Identifier(collection.schema)
    if store.rows(sql.SQL("select from {}.files where tenant is not null limit 1").format(schema)):
        raise UsageError(f"{collection.name!r} holds documents of tenants: its ingest flags cannot be factors.")
    with store.connection() as connection, connection.cursor(name="stored") as cursor:
        cursor.execute(
            sql.SQL(
                "select source, title, text, format, metadata, structure, source_url, document_version, last_updated, extractor, root, content_hash from {}.files "
                "where status in ('indexed', 'missing') and text is not null order by source"
            ).format(schema)
        )
        for source, title, text, format_, metadata, saw, url, version, updated, extractor, root, content_hash in cursor:
            blocks = tuple(Block(*block) for block in saw.get("blocks", ())) or ((Block("paragraph", 0, len(text)),) if text.strip() else ())
            yield (
                Document(
                    source, title, text, blocks, format_, metadata, tuple((at, page) for at, page in saw.get("pages", ())), saw.get("anchors", {}),
                    tuple(Hyperlink(*link) for link in saw.get("hyperlinks", ())), tuple((a, b, c) for a, b, c in saw.get("terms", ())), url, version,
                    updated.isoformat() if updated else "", extractor,
                ),
                root, bytes(content_hash or b""),
            )  # fmt: skip


def characters(store: Store, collection: Collection) -> int:
    """How long all stored texts are together."""
    rows = store.rows(
        sql.SQL("select coalesce(sum(length(text)), 0) from {}.files where status in ('indexed', 'missing')").format(
            sql.Identifier(collection.schema)
        )
    )
    return int(rows[0][0])


def set_corpus_digest(store: Store, collection: Collection) -> str:
    """The digest of (source, content hash) over all indexed files, recorded with the collection."""
    value = hashlib.sha256()
    for source, row in ledger.rows(store, collection).items():
        if row.content_hash is not None and row.status in {"indexed", "missing"}:
            value.update(source.encode() + b"\0" + row.content_hash)
    text = value.hexdigest()[:16]
    with store.connection() as connection:
        connection.execute("update lab.collections set corpus_digest = %s where name = %s", [text, collection.name])
    return text


def record_counts(store: Store, collection: Collection) -> None:
    """Enters the number of chunks, and of those without a vector, with the collection."""
    found = counts(store, collection)
    with store.connection() as connection:
        connection.execute(
            "update lab.collections set chunks = %s, without_vector = %s where name = %s", [found["chunks"], found["without_vector"], collection.name]
        )


def recode(store: Store, collection: Collection, body: Callable[[str, str], str]) -> None:
    """Makes side tokens and indexed text of every passage anew, in one transaction. `body(context, text)` is what is indexed of a passage."""
    schema = sql.Identifier(collection.schema)
    with store.connection() as connection:
        rows = connection.execute(sql.SQL("select key, context, text from {}.chunks order by key").format(schema)).fetchall()
        connection.execute("create temporary table coded (key bigint, codes text[], body text) on commit drop")
        with connection.cursor() as cursor, cursor.copy("copy coded from stdin") as copy:
            for key, context, text in rows:
                whole = body(context, text)
                copy.write_row((key, side_tokens(whole), indexable(whole)))
        done = connection.execute(
            sql.SQL(
                "update {}.chunks c set codes = n.codes, body = n.body from coded n where n.key = c.key and (c.codes <> n.codes or c.body <> n.body)"
            ).format(schema)
        )
        # Replaced rows move BM25 scores until a reindex.
        connection.execute("update lab.collections set stale_rows = stale_rows + %s where name = %s", [done.rowcount, collection.name])
        connection.execute("update lab.collections set codes = %s where name = %s", [VERSION, collection.name])


def counts(store: Store, collection: Collection) -> Mapping[str, Any]:
    """Rows, and rows without a vector."""
    row = store.rows(statement(collection, "count"))[0]
    return {"chunks": int(row[0]), "without_vector": int(row[1]) if collection.dim is not None else 0}


def defined_terms(store: Store, collection: Collection) -> list[str]:
    """The normalised terms that the collection defines, sorted."""
    rows = store.rows(
        sql.SQL("select distinct term from {}.links where relation = 'defines' order by term").format(sql.Identifier(collection.schema))
    )
    return [str(row[0]) for row in rows]
