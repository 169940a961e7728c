"""Citation and definition links as rows."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import sql

from lab.store import bulk
from lab.store.collections import Collection
from lab.store.connect import Store


@dataclass(frozen=True, slots=True)
class LinkRow:
    """One mention. `cites`: from_id → to_id, offsets in from_id's document; `defines`: term → to_id, offsets in to_id's document."""

    relation: str
    from_id: int | None
    term: str | None
    to_id: int
    start: int
    end: int
    label: str
    tenant: str | None = None  # of the document that holds the mention


def replace_links(store: Store, collection: Collection, rows: Sequence[LinkRow], extractor: str) -> dict[str, int]:
    """Replaces all links of a collection in one transaction; returns the number of mentions per relation."""
    schema = sql.Identifier(collection.schema)
    unique = {(r.relation, r.from_id, r.term, r.to_id, r.start): r for r in rows}
    columns = ("relation", "from_id", "term", "to_id", "start", "end", "label", "tenant")
    with store.connection() as connection:
        connection.execute(sql.SQL("delete from {}.links").format(schema))
        loaded = ((r.relation, r.from_id, r.term, r.to_id, r.start, r.end, r.label, r.tenant) for r in unique.values())
        bulk.load(connection, collection.schema, "links", columns, loaded)
        connection.execute("update lab.collections set link_digest = %s where name = %s", ["", collection.name])
    value = hashlib.sha256(extractor.encode())
    for mention in mentions(store, collection):
        value.update("\t".join(map(str, mention)).encode() + b"\n")
    with store.connection() as connection:
        connection.execute("update lab.collections set link_digest = %s where name = %s", [value.hexdigest()[:16], collection.name])
    found = {"cites": 0, "defines": 0}
    for row in unique.values():
        found[row.relation] += 1
    return found


def mentions(store: Store, collection: Collection) -> list[tuple[str, str, str, str, str, str, int, int]]:
    """(relation, term, from_source, from_chunk, to_source, to_chunk, start, end), a row a mention, in a total order."""
    schema = sql.Identifier(collection.schema)
    rows = store.rows(
        sql.SQL(
            "select l.relation, coalesce(l.term, ''), coalesce(a.source, ''), coalesce(a.source || '::' || a.n, ''), b.source, b.source || '::' || b.n, "
            'l.start, l."end" from {0}.links l left join {0}.chunks a on a.key = l.from_id join {0}.chunks b on b.key = l.to_id '
            "order by l.relation, l.term, a.source, a.n, l.start, b.source, b.n"
        ).format(schema)
    )
    return [tuple(row) for row in rows]


_SPOT = 'c.key, c.source, c.n, c.start, c."end", c.text, c.heading, f.title'


def defined_spots(store: Store, collection: Collection) -> list[tuple[Any, ...]]:
    """(key, source, n, start, end, text, heading, title of the defining chunk, start and end of the mention, term as written), a row a term and document, in
    (source, n, start, term) order."""
    return store.rows(
        sql.SQL(
            f'select distinct on (c.source, c.n, l.start, l.term) {_SPOT}, l.start, l."end", l.label from {{0}}.links l join {{0}}.chunks c on c.key = l.to_id '
            "join {0}.files f using (source) where l.relation = 'defines' order by c.source, c.n, l.start, l.term"
        ).format(sql.Identifier(collection.schema))
    )


def cited_spots(store: Store, collection: Collection) -> list[tuple[tuple[Any, ...], int, int, tuple[Any, ...]]]:
    """(citing chunk, start and end of the mention in its document, cited chunk), chunks as in `defined_spots`, in a total order."""
    rows = store.rows(
        sql.SQL(
            f'select {_SPOT}, l.start, l."end", {_SPOT.replace("c.", "d.").replace("f.", "g.")} from {{0}}.links l join {{0}}.chunks c on c.key = l.from_id '
            "join {0}.files f on f.source = c.source join {0}.chunks d on d.key = l.to_id join {0}.files g on g.source = d.source where l.relation = 'cites' "
            "order by c.source, c.n, l.start, d.source, d.n"
        ).format(sql.Identifier(collection.schema))
    )
    return [(row[:8], int(row[8]), int(row[9]), row[10:]) for row in rows]
