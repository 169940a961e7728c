"""The schema: applied once, upgraded from every earlier version, refused when newer."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from lab.errors import ServerError
from lab.resources import folder
from lab.settings import IngestSettings
from lab.store import collections, ledger
from lab.store.connect import SCHEMA_VERSION, Store
from tests.conftest import Databases

DUMPS = Path(__file__).parent / "dumps"
SHAPE = """
select table_name, column_name, data_type, is_nullable from information_schema.columns where table_schema = 'lab' order by 1, 2
"""
TABLES = """
select table_name, column_name, data_type, is_nullable, column_default from information_schema.columns where table_schema = 'kb_c' order by 1, 2
"""
INDEXES = "select indexname, indexdef from pg_indexes where schemaname = 'kb_c' order by 1"


def test_connecting_twice_changes_nothing(store: Store) -> None:
    before = store.rows(SHAPE)
    with Store(store.dsn) as again:
        assert again.rows(SHAPE) == before
    assert store.rows("select value from lab.meta where key = 'schema_version'") == [(str(SCHEMA_VERSION),)]


def test_a_newer_schema_is_a_clear_error(store: Store) -> None:
    with store.connection() as connection:
        connection.execute("update lab.meta set value = '99' where key = 'schema_version'")
    with pytest.raises(ServerError, match=r"99.*upgrade the lab"):
        Store(store.dsn)


def test_every_earlier_version_has_a_dump() -> None:
    assert sorted(int(p.stem.split("-")[1]) for p in DUMPS.glob("schema-*.sql")) == list(range(1, SCHEMA_VERSION + 1))


@pytest.mark.parametrize("dump", sorted(DUMPS.glob("schema-*.sql")), ids=lambda p: p.stem)
def test_an_old_database_is_upgraded_without_losing_a_run(dump: Path, databases: Databases, store: Store) -> None:
    collections.create(store, "c", IngestSettings(embedder="none"), embedder="none", model_digest="none", dim=None, language="english")
    with databases.fresh("template0") as dsn:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(dump.read_text())
            runs = connection.execute("select count(*) from lab.runs").fetchone()
        with Store(dsn) as upgraded:
            for shape in (SHAPE, TABLES, INDEXES):
                assert upgraded.rows(shape) == store.rows(shape)
            assert [entry.source for entry in ledger.entries(upgraded, collections.get(upgraded, "c"))] == ["a.md"]
            assert upgraded.rows("select count(*) from lab.runs") == [runs] == [(1,)]


def test_psql_can_run_the_schema_as_it_stands() -> None:
    assert "\\" not in (folder("sql") / "schema.sql").read_text().replace("\\'", "")


def test_claims_that_an_older_lab_left_stale_are_read_again(databases: Databases) -> None:
    with databases.fresh("template0") as dsn:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute((DUMPS / "schema-0009.sql").read_text())
            for source, status, key in (("a.md", "stale", None), ("b.md", "verified", 1), ("c.md", "rejected", None)):
                connection.execute(
                    'insert into kb_c.claims (claim_id, content_hash, source_id, n, start, "end", quote, statement, kind, confidence, status, extractor, words, chunk_key) '
                    "values (%s, %s, %s, 0, 0, 1, 'q', 's', 'limit', 0.8, %s, 'rules-1', 2, %s)",
                    [source, source.encode(), source, status, key],
                )
                connection.execute(
                    "insert into kb_c.claim_passes (source_id, extractor, content_hash, claims) values (%s, 'rules-1', 'x', 1)", [source]
                )
        with Store(dsn) as upgraded:
            assert upgraded.rows("select source_id from kb_c.claim_passes") == [("b.md",)]
