"""Collections: one schema each, with its own tables and indexes."""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from psycopg import sql
from psycopg.types.json import Jsonb

from lab.errors import UsageError, unknown
from lab.progress import say
from lab.settings import IngestSettings
from lab.store.connect import Connection, Store
from lab.store.queries import ddl, query

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
INDEXES = ("chunks_hnsw", "chunks_bm25", "chunks_tsv", "chunks_codes", "postings_pkey")


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection as recorded: what it was made with, and the digests of what it holds."""

    name: str
    ingest: IngestSettings
    embedder: str
    model_digest: str
    dim: int | None
    language: str
    authority: Mapping[str, Any]
    corpus_digest: str
    link_digest: str
    indexed_at: dt.datetime | None
    index_build: Mapping[str, Any]
    chunks: int
    without_vector: int
    stale_rows: int
    link_counts: Mapping[str, Any]  # mentions a relation, references left out, and `extractor`: who found them
    codes: str
    tenant: str | None = None  # whose copy this is; None: the whole

    @property
    def schema(self) -> str:
        return f"kb_{self.name}" if self.tenant is None else copy_schema(self.name, self.tenant)

    @property
    def bm25_index(self) -> str:
        return f"{self.schema}.chunks_bm25"

    @property
    def link_extractor(self) -> str:
        """The version of the link extractor that made the stored links; empty where that was not recorded."""
        return str(self.link_counts.get("extractor", ""))

    @property
    def top_tier(self) -> int:
        """The highest tier in the collection's authority rules; 0 = no bonus."""
        return max([int(self.authority.get("default", 0)), *(int(rule["tier"]) for rule in self.authority.get("rules", []))])


def check_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} cannot name a collection: use lower-case letters, digits and _ (at most 40, a letter first).")
    return name


def copy_schema(name: str, tenant: str) -> str:
    """The schema of what one tenant reads of a collection. It tells neither name: every login can list schemas."""
    return f"kbt_{hashlib.sha256(f'{name}/{tenant}'.encode()).hexdigest()[:20]}"


_COLUMNS = "name, ingest, embedder, model_digest, dim, language, authority, corpus_digest, link_digest, indexed_at, index_build, chunks, without_vector, stale_rows, link_counts, codes"


def _collection(store: Store, row: tuple[Any, ...]) -> Collection:
    return Collection(row[0], IngestSettings(**row[1]), *(*row[2:], store.tenant))


def find(store: Store, name: str) -> Collection | None:
    rows = store.rows(f"select {_COLUMNS} from {_listed(store)} where name = %(name)s", {"name": name})
    return _collection(store, rows[0]) if rows else None


def get(store: Store, name: str) -> Collection:
    """The collection, or UsageError naming the nearest one."""
    found = find(store, name)
    if found is None:
        raise unknown("collection", name, [c.name for c in all_collections(store)], mend="make one with `lab ingest FOLDER -c NAME`.")
    return found


def all_collections(store: Store) -> list[Collection]:
    return [_collection(store, row) for row in store.rows(f"select {_COLUMNS} from {_listed(store)} order by name")]


def _listed(store: Store) -> str:
    """Where collections are looked up: a tenant sees those that hold something for it."""
    return "lab.collections" if store.tenant is None else "lab_tenants.collections()"


def create(store: Store, name: str, ingest: IngestSettings, *, embedder: str, model_digest: str, dim: int | None, language: str) -> Collection:
    """Creates the schema and the row, in one transaction."""
    check_name(name)
    known = [str(row[0]) for row in store.rows("select cfgname from pg_ts_config order by 1")]
    if language not in known:
        raise unknown("language", language, known, mend=f"known: {', '.join(known)}.")
    with store.connection() as connection:
        connection.execute(
            "insert into lab.collections (name, ingest, embedder, model_digest, dim, language) values (%s, %s, %s, %s, %s, %s)",
            [name, Jsonb(ingest.as_dict()), embedder, model_digest, dim, language],
        )
        connection.execute(ddl("collection", {"schema": f"kb_{name}"}, {"dim": dim or 1, "language": language}))
    return get(store, name)


@contextlib.contextmanager
def locked(store: Store, name: str) -> Iterator[None]:
    """Holds the collection against other writers; says so while it waits for one."""
    with store.single() as connection:
        key = ["retrieval-lab:" + name]
        row = connection.execute("select pg_try_advisory_lock(hashtextextended(%s, 0))", key).fetchone()
        if row is None or not row[0]:
            say(f"another process writes to collection {name!r}: waiting for it …")
            connection.execute("select pg_advisory_lock(hashtextextended(%s, 0))", key)
        try:
            yield
        finally:
            connection.execute("select pg_advisory_unlock(hashtextextended(%s, 0))", key)


def drop(store: Store, name: str) -> None:
    """Removes the collection and nothing else; runs made on it stay."""
    collection = get(store, name)
    with store.connection() as connection:
        copies = connection.execute("select schema from lab.tenant_collections where collection = %s", [name]).fetchall()
        for schema in (*(str(row[0]) for row in copies), collection.schema):
            connection.execute(sql.SQL("drop schema if exists {} cascade").format(sql.Identifier(schema)))
        connection.execute("delete from lab.collections where name = %s", [name])


@dataclass(frozen=True, slots=True)
class Size:
    """What a collection holds and takes."""

    files: int
    chunks: int
    cites: int
    defines: int
    bytes: int


def statement(collection: Collection, name: str) -> sql.Composed:
    """sql/search/<name>.sql on this collection."""
    return query(f"search/{name}", schema=collection.schema)


def size(store: Store, collection: Collection) -> Size:
    """Counts and bytes."""
    files, chunks, cites, defines = store.rows(statement(collection, "sizes"))[0]
    space = store.rows(
        "select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint from pg_class c join pg_namespace n on n.oid = c.relnamespace "
        "where n.nspname = %(schema)s and c.relkind in ('r', 'm')",
        {"schema": collection.schema},
    )
    return Size(files, chunks, cites, defines, int(space[0][0]))


# ── indexes ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def indexes(store: Store, collection: Collection) -> dict[str, int]:
    """Valid derived indexes → the file number that names this build (a rebuild changes it)."""
    rows = store.rows(
        "select i.relname, i.relfilenode::bigint from pg_index x join pg_class i on i.oid = x.indexrelid join pg_namespace n on n.oid = i.relnamespace "
        "where n.nspname = %(schema)s and x.indisvalid and i.relname = any(%(names)s) order by 1",
        {"schema": collection.schema, "names": list(INDEXES)},
    )
    return {str(name): int(node) for name, node in rows}


def build_indexes(store: Store, collection: Collection) -> None:
    """Builds HNSW, BM25 and GIN from the rows, replacing what is there, then ANALYZE. One transaction: a killed build changes nothing."""
    identifiers = {"schema": collection.schema}
    with store.connection() as connection:
        connection.execute(ddl("index/drop", identifiers, {}))
        if collection.dim is not None:
            connection.execute(ddl("index/hnsw", identifiers, {}))
        if store.bm25:
            connection.execute(ddl("index/bm25", identifiers, {"language": collection.language}))
        if not store.bm25:
            post(connection, collection)
        connection.execute(ddl("index/gin", identifiers, {}))
        for table in ("files", "chunks", "links"):
            connection.execute(sql.SQL("analyze {}.{}").format(sql.Identifier(collection.schema), sql.Identifier(table)))
    _indexed(store, collection)


def expected_indexes(store: Store, collection: Collection) -> frozenset[str]:
    """What a collection needs for every arm on this server."""
    wanted = {"chunks_tsv", "chunks_codes", "chunks_bm25" if store.bm25 and collection.tenant is None else "postings_pkey"}
    return frozenset(wanted | ({"chunks_hnsw"} if collection.dim is not None else set()))


def with_postings(connection: Connection, collection: Collection) -> bool:
    """Whether the collection has its words as rows."""
    row = connection.execute("select to_regclass(%s) is not null", [f'"{collection.schema}".postings']).fetchone()
    return row is not None and bool(row[0])


def post(connection: Connection, collection: Collection) -> None:
    """Enters the words of every passage as rows, and keeps them current from then on."""
    identifiers = {"schema": collection.schema}
    if not with_postings(connection, collection):
        connection.execute(ddl("index/postings", identifiers, {}))
    connection.execute(ddl("index/postings_fill", identifiers, {}))


def set_codes(store: Store, collection: Collection, version: str) -> None:
    with store.single() as connection:
        connection.execute("update lab.collections set codes = %s where name = %s", [version, collection.name])


def analyse(store: Store, collection: Collection, *, reindex_bm25: bool) -> None:
    """After a small change: statistics anew, and BM25 rebuilt where rows were deleted, since deleted rows still count in its scores."""
    schema = sql.Identifier(collection.schema)
    with store.connection() as connection:
        if reindex_bm25 and store.bm25:
            connection.execute(sql.SQL("reindex index {}.chunks_bm25").format(schema))
        for table in ("files", "chunks", "links"):
            connection.execute(sql.SQL("analyze {}.{}").format(schema, sql.Identifier(table)))
    _indexed(store, collection)


def _indexed(store: Store, collection: Collection) -> None:
    build = indexes(store, collection)
    with store.connection() as connection:
        connection.execute(
            "update lab.collections set indexed_at = now(), index_build = %s, stale_rows = 0 where name = %s", [Jsonb(build), collection.name]
        )


def set_link_counts(store: Store, collection: Collection, counts: Mapping[str, int], extractor: str) -> None:
    """Enters what the last linking found and left out, and the version of what found it."""
    with store.single() as connection:
        entry = Jsonb({**counts, "extractor": extractor})
        connection.execute("update lab.collections set link_counts = %s where name = %s", [entry, collection.name])


def escalation(store: Store, collection: Collection) -> str:
    """Whom to ask where the collection has no answer; empty where nobody said."""
    if collection.tenant is not None:
        return ""
    return str(store.rows("select escalation from lab.collections where name = %(n)s", {"n": collection.name})[0][0])


def set_escalation(store: Store, collection: Collection, text: str) -> None:
    with store.connection() as connection:
        connection.execute("update lab.collections set escalation = %s where name = %s", [text, collection.name])


def set_authority(store: Store, collection: Collection, rules: Mapping[str, Any], tiers: Mapping[str, int]) -> None:
    """Stores the rules and the tier of each source named in `tiers`."""
    with store.connection() as connection:
        connection.execute("update lab.collections set authority = %s where name = %s", [Jsonb(dict(rules)), collection.name])
        with connection.cursor() as cursor:
            cursor.executemany(
                sql.SQL("update {}.files set authority = %s where source = %s and authority <> %s").format(sql.Identifier(collection.schema)),
                [(tier, source, tier) for source, tier in tiers.items()],
            )
