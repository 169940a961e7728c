"""The ledger of files: how each stands, what became of it and why, what is known of it besides its text."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import sql
from psycopg.types.json import Jsonb

from lab.store import bulk
from lab.store.collections import Collection
from lab.store.connect import Connection, Store


@dataclass(frozen=True, slots=True)
class FileRow:
    """A line of the ledger."""

    source: str
    root: str
    format: str
    content_hash: bytes | None
    status: str
    reason: str | None
    authority: int
    extractor: str = ""
    tenant: str | None = None


def rows(store: Store, collection: Collection) -> dict[str, FileRow]:
    found = store.rows(
        sql.SQL("select source, root, format, content_hash, status, reason, authority, extractor, tenant from {}.files order by source").format(
            sql.Identifier(collection.schema)
        )
    )
    return {row[0]: FileRow(*row) for row in found}


def mark(store: Store, collection: Collection, sources: Sequence[str], status: str, reason: str | None) -> int:
    """Sets the status of some files. `retired` and `refused` ones lose their chunks; returns how many chunks went."""
    if not sources:
        return 0
    schema = sql.Identifier(collection.schema)
    with store.connection() as connection:
        gone = 0
        if status in {"retired", "refused"}:
            gone = connection.execute(sql.SQL("delete from {}.chunks where source = any(%s)").format(schema), [list(sources)]).rowcount
            changed(connection, collection, gone)
        moved = connection.execute(
            sql.SQL(
                "update {}.files set status = %s, reason = %s, outcome = %s, changed_at = clock_timestamp(), checked_at = clock_timestamp() "
                "where source = any(%s) and status <> %s returning source"
            ).format(schema),
            [status, reason, "unchanged" if status == "indexed" else status, list(sources), status],
        ).fetchall()
        enter(connection, collection, [(source, "found" if status == "indexed" else status, reason) for (source,) in sorted(moved)])
        return gone


def unchanged(store: Store, collection: Collection, sources: Sequence[str]) -> None:
    """Enters that an ingest looked at these files and found them as they were."""
    if sources:
        with store.single() as connection:
            connection.execute(
                sql.SQL("update {}.files set outcome = 'unchanged', checked_at = clock_timestamp() where source = any(%s)").format(
                    sql.Identifier(collection.schema)
                ),
                [list(sources)],
            )


def refuse(store: Store, collection: Collection, source: str, root: str, reason: str, size: int, tenant: str | None = None) -> int:
    """Enters a file that could not be read; what was stored of an earlier version goes, since it is no longer what the file says."""
    schema = sql.Identifier(collection.schema)
    with store.connection() as connection:
        gone = connection.execute(sql.SQL("delete from {}.chunks where source = %s").format(schema), [source]).rowcount
        if gone:
            changed(connection, collection, gone)
        connection.execute(
            sql.SQL(
                "insert into {}.files (source, tenant, root, format, bytes, status, reason, outcome) values (%s, %s, %s, 'unknown', %s, 'refused', %s, 'refused') "
                "on conflict (source) do update set status = 'refused', outcome = 'refused', reason = excluded.reason, text = null, content_hash = null, "
                "structure = '{{}}', extractor = '', root = excluded.root, changed_at = clock_timestamp(), checked_at = clock_timestamp()"
            ).format(schema),
            [source, tenant, root, size, reason],
        )
        enter(connection, collection, [(source, "refused", reason)])
        return gone


def restore(store: Store, collection: Collection, sources: Sequence[str]) -> None:
    """A file that was missing and is there again, unchanged."""
    mark(store, collection, sources, "indexed", None)


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A line of the ledger as people read it: status is how it stands, outcome what the last ingest that looked at it did."""

    source: str
    status: str
    outcome: str
    reason: str | None
    format: str
    extractor: str
    title: str
    source_url: str
    document_version: str
    last_updated: dt.date | None
    metadata: Mapping[str, Any]
    chunks: int
    changed_at: dt.datetime
    checked_at: dt.datetime


def entries(store: Store, collection: Collection) -> list[FileEntry]:
    """The ledger in source order, with the number of chunks a file."""
    rows = store.rows(
        sql.SQL(
            "select source, status, outcome, reason, format, extractor, title, source_url, document_version, last_updated, metadata || given, "
            "(select count(*) from {0}.chunks c where c.source = f.source), changed_at, checked_at from {0}.files f order by source"
        ).format(sql.Identifier(collection.schema))
    )
    return [FileEntry(*row) for row in rows]


def give(store: Store, collection: Collection, metadata: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Stores what a metadata file says of each source, in place of what an earlier one said; returns the sources that the collection lacks."""
    schema = sql.Identifier(collection.schema)
    with store.connection() as connection:
        known = {str(row[0]) for row in connection.execute(sql.SQL("select source from {}.files").format(schema))}
        with connection.cursor() as cursor:
            cursor.executemany(
                sql.SQL("update {}.files set given = %s where source = %s and given <> %s").format(schema),
                [(Jsonb(dict(values)), source, Jsonb(dict(values))) for source, values in sorted(metadata.items()) if source in known],
            )
    return sorted(set(metadata) - known)


def enter(connection: Connection, collection: Collection, rows: Sequence[tuple[str, str, str | None]]) -> None:
    """Enters what became of some files in the history."""
    bulk.load(connection, collection.schema, "events", ("source", "outcome", "reason"), rows)


def changed(connection: Connection, collection: Collection, deleted: int) -> None:
    """In the transaction of every change: links and BM25 scores are out of date until the ingest has ended, now or in a later call."""
    connection.execute("update lab.collections set stale_rows = stale_rows + %s, link_digest = '' where name = %s", [deleted, collection.name])
