"""The chunks of a collection as they are stored: where they lie, what they say, their vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from psycopg import sql

from lab.store.collections import Collection
from lab.store.connect import Store


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a chunk lies; what links and judgments are resolved against."""

    key: int
    source: str
    n: int
    start: int
    end: int
    heading: tuple[str, ...]
    class_id: bytes


def spots(store: Store, collection: Collection, sources: Sequence[str] | None = None) -> dict[str, list[Spot]]:
    """Source → its chunks in order."""
    where = sql.SQL("" if sources is None else " where source = any(%(sources)s)")
    rows = store.rows(
        sql.SQL('select key, source, n, start, "end", heading, class_id from {}.chunks{} order by source, n').format(
            sql.Identifier(collection.schema), where
        ),
        {"sources": None if sources is None else list(sources)},
    )
    found: dict[str, list[Spot]] = {}
    for key, source, n, start, end, heading, cls in rows:
        found.setdefault(source, []).append(Spot(key, source, n, start, end, tuple(heading), bytes(cls)))
    return found


def classed_texts(store: Store, collection: Collection) -> Iterator[tuple[bytes, str, str]]:
    """(exact class, source, text) of every chunk in (source, n) order, streamed."""
    with store.connection() as connection, connection.cursor(name="classed") as cursor:
        cursor.execute(sql.SQL("select class_id, source, text from {}.chunks order by source, n").format(sql.Identifier(collection.schema)))
        for class_id, source, text in cursor:
            yield bytes(class_id), str(source), str(text)


def without_vector(store: Store, collection: Collection) -> frozenset[int]:
    """The keys of the chunks that are found by words only."""
    if collection.dim is None:
        return frozenset()
    rows = store.rows(sql.SQL("select key from {}.chunks where embedding is null").format(sql.Identifier(collection.schema)))
    return frozenset(int(key) for (key,) in rows)


def spans(store: Store, collection: Collection, sources: Sequence[str]) -> dict[str, tuple[str, int, int, str]]:
    """Chunk id → (source, start, end, text) of the chunks of some documents."""
    rows = store.rows(
        sql.SQL('select source, n, start, "end", text from {}.chunks where source = any(%(sources)s)').format(sql.Identifier(collection.schema)),
        {"sources": list(sources)},
    )
    return {f"{source}::{n}": (str(source), int(start), int(end), str(text)) for source, n, start, end, text in rows}


def passages_with_code(store: Store, collection: Collection, token: str) -> int:
    """How many chunks carry a side token."""
    return int(
        store.rows(
            sql.SQL("select count(*) from {}.chunks where codes @> array[%(token)s]").format(sql.Identifier(collection.schema)), {"token": token}
        )[0][0]
    )


def passages_with_phrase(store: Store, collection: Collection, phrase: str) -> int:
    """How many chunks hold these words in a row, as the text search configuration reads them."""
    rows = store.rows(
        sql.SQL("select count(*) from {}.chunks where tsv @@ phraseto_tsquery(%(language)s::regconfig, %(phrase)s)").format(
            sql.Identifier(collection.schema)
        ),
        {"language": collection.language, "phrase": phrase},
    )
    return int(rows[0][0])


def chunks_named(store: Store, collection: Collection, chunk_ids: Sequence[str]) -> dict[str, str]:
    """Chunk id → its text; ids that are none are left out."""
    parts = [name.rpartition("::") for name in chunk_ids]
    rows = store.rows(
        sql.SQL(
            "select c.source || '::' || c.n, c.text from {}.chunks c join unnest(%(s)s::text[], %(n)s::int[]) as w (source, n) on c.source = w.source and c.n = w.n"
        ).format(sql.Identifier(collection.schema)),
        {"s": [source for source, _, n in parts if n.isdigit()], "n": [int(n) for _, _, n in parts if n.isdigit()]},
    )
    return {str(name): str(text) for name, text in rows}


def keys(store: Store, collection: Collection) -> list[int]:
    """The key of every chunk, in (source, n) order."""
    return [int(row[0]) for row in store.rows(sql.SQL("select key from {}.chunks order by source, n").format(sql.Identifier(collection.schema)))]


def chunk_texts(store: Store, collection: Collection) -> list[str]:
    """The text of every chunk, in (source, n) order."""
    return [str(row[0]) for row in store.rows(sql.SQL("select text from {}.chunks order by source, n").format(sql.Identifier(collection.schema)))]


def chunk_bodies(store: Store, collection: Collection) -> list[str]:
    """What was embedded and indexed of every chunk, in (source, n) order."""
    return [str(row[0]) for row in store.rows(sql.SQL("select body from {}.chunks order by source, n").format(sql.Identifier(collection.schema)))]


def passages(store: Store, collection: Collection, source: str, first: int, last: int) -> list[dict[str, Any]]:
    """The passages `first` to `last` of a document, in order."""
    rows = store.rows(
        sql.SQL(
            'select source, n, start, "end", context, page, text from {}.chunks where source = %(source)s and n between %(first)s and %(last)s order by n'
        ).format(sql.Identifier(collection.schema)),
        {"source": source, "first": first, "last": last},
    )
    return [
        {"passage_id": f"{name}::{n}", "source": name, "start": start, "end": end, "section": context, "page": page, "text": text}
        for name, n, start, end, context, page, text in rows
    ]


def vectors_of(store: Store, collection: Collection) -> np.ndarray:
    """All stored vectors, float32 `(chunks, dim)`, in (source, n) order; chunks without one are left out."""
    rows = store.rows(
        sql.SQL("select embedding from {}.chunks where embedding is not null order by source, n").format(sql.Identifier(collection.schema))
    )
    return np.array([row[0].to_numpy() for row in rows], dtype=np.float32)
