"""Near twins as rows: the bands of every exact class, and the pairs that are alike. Written in parts, so that an interrupted pass goes on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from psycopg import sql

from lab.store import bulk
from lab.store.collections import Collection
from lab.store.connect import Store

_FEW = 0.02  # share of classes to compare up to which each is looked up in the index; from there on all bands are joined at once, which is quicker


def _sql(text: str, collection: Collection) -> sql.Composed:
    return sql.SQL(text).format(sql.Identifier(collection.schema))


def forget(store: Store, collection: Collection) -> int:
    """Drops the classes that no passage has any more, with their pairs; returns how many."""
    with store.connection() as connection:
        return connection.execute(
            _sql("delete from {0}.near n where not exists (select from {0}.chunks c where c.class_id = n.class_id)", collection)
        ).rowcount


def unseen(store: Store, collection: Collection, limit: int) -> list[tuple[bytes, str]]:
    """(class, text) of at most `limit` classes that have no bands yet, in the order of their names."""
    rows = store.rows(
        _sql(
            "select distinct on (class_id) class_id, text from {0}.chunks c where not exists (select from {0}.near n where n.class_id = c.class_id) "
            "order by class_id limit %(limit)s",
            collection,
        ),
        {"limit": limit},
    )
    return [(bytes(name), str(text)) for name, text in rows]


def count_unseen(store: Store, collection: Collection) -> int:
    rows = store.rows(
        _sql("select count(distinct class_id) from {0}.chunks c where not exists (select from {0}.near n where n.class_id = c.class_id)", collection)
    )
    return int(rows[0][0])


def add(store: Store, collection: Collection, bands: Mapping[bytes, Sequence[int]]) -> None:
    with store.connection() as connection:
        rows = ((name, "{" + ",".join(map(str, values)) + "}") for name, values in sorted(bands.items()))
        bulk.load(connection, collection.schema, "near", ("class_id", "bands"), rows)


def candidates(store: Store, collection: Collection) -> Iterator[tuple[bytes, bytes, str, str]]:
    """(class, class, text, text) of the pairs that share a band and of which one was not compared yet; streamed, each once, the smaller name first."""
    schema = collection.schema
    with store.connection() as connection, connection.cursor(name="near") as cursor:
        row = connection.execute(_sql("select count(*) filter (where not paired), count(*) from {0}.near", collection)).fetchone()
        if row is None or not row[0]:
            return
        if row[0] > _FEW * row[1]:
            pairs = (
                "with bands as (select class_id, paired, unnest(bands) as band from {0}.near) "
                "select distinct a.class_id as a, b.class_id as b from bands a join bands b using (band) "
                "where a.class_id < b.class_id and not (a.paired and b.paired)"
            )
        else:
            pairs = (
                "select distinct least(n.class_id, m.class_id) as a, greatest(n.class_id, m.class_id) as b from {0}.near n "
                "join {0}.near m on n.bands && m.bands and m.class_id <> n.class_id where not n.paired"
            )
        cursor.execute(
            sql.SQL(
                "with pairs as materialized (" + pairs + ") select a, b, (select text from {0}.chunks where class_id = a limit 1), "
                "(select text from {0}.chunks where class_id = b limit 1) from pairs order by a, b"
            ).format(sql.Identifier(schema))
        )
        for a, b, text_a, text_b in cursor:
            yield bytes(a), bytes(b), str(text_a), str(text_b)


def pair(store: Store, collection: Collection, pairs: Iterable[tuple[bytes, bytes, float]]) -> None:
    """Stores the pairs found, and that all classes were compared, in one transaction."""
    with store.connection() as connection:
        with connection.cursor() as cursor:
            cursor.execute("create temporary table incoming (a bytea, b bytea, similarity real) on commit drop")
            with cursor.copy("copy incoming from stdin") as copy:
                for row in pairs:
                    copy.write_row(row)
            cursor.execute(_sql("insert into {0}.near_pairs select a, b, similarity from incoming on conflict do nothing", collection))
        connection.execute(_sql("update {0}.near set paired = true where not paired", collection))


def pairs_with_texts(store: Store, collection: Collection) -> tuple[list[tuple[bytes, bytes]], dict[bytes, str]]:
    """The stored pairs, and the text of every class in one."""
    pairs = [(bytes(a), bytes(b)) for a, b in store.rows(_sql("select a, b from {0}.near_pairs order by a, b", collection))]
    names = sorted({name for both in pairs for name in both})
    rows = store.rows(
        _sql("select distinct on (class_id) class_id, text from {0}.chunks where class_id = any(%(names)s) order by class_id", collection),
        {"names": names},
    )
    return pairs, {bytes(name): str(text) for name, text in rows}


def members(store: Store, collection: Collection) -> list[tuple[str, bytes]]:
    """(chunk_id, class) of every chunk, in (source, n) order."""
    return [
        (str(name), bytes(exact))
        for name, exact in store.rows(_sql("select source || '::' || n, class_id from {0}.chunks order by source, n", collection))
    ]
