"""Tenants: who logs in as one reads its own documents and the shared ones, and nothing of anybody else, whatever it tries."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from lab.corpus.ingest import ingest
from lab.errors import ServerError, UsageError
from lab.retrieval.search import search
from lab.store import collections, links, tenants
from lab.store.connect import Store
from tests.conftest import Databases, Lab, write

SECRET = "zirconium"  # stands in bravo's documents only
ALPHA = {
    "guide.md": "# Guide\n\n## 1 Valves\n\nThe relief valve is tested every year, see section 2 and [the base](base.md).\n\n## 2 Pumps\n\nA pump is tested monthly.\n",
    "notes.md": "# Notes\n\n" + "\n\n".join(f"## Valve {i}\n\nAlpha keeps valve number {i} in store {i}." for i in range(12)),
    "copy.md": "# Copy\n\nThe same words stand in both houses.\n",
}
BRAVO = {
    "guide.md": f"# Guide\n\n## 1 Valves\n\nThe {SECRET} valve of bravo is never tested, see section 2.\n\n## 2 Pumps\n\n{SECRET.title()} pumps are bravo's secret.\n",
    "many.md": "# Many\n\n"
    + "\n\n".join(f"## Relief {i}\n\nHow often is the relief valve tested? Bravo tests {SECRET} relief valve {i} often." for i in range(60)),
    "copy.md": "# Copy\n\nThe same words stand in both houses.\n",
}
SHARED = {"base.md": "# Base\n\nA valve means a device that stops a flow.\n"}
OWNER = {"board.md": "# Board\n\nThe board met about the relief valve of all tenants.\n"}


@dataclass(frozen=True)
class House:
    """A database with two tenants, as its owner and as each of them sees it."""

    owner: Store
    alpha: Store
    bravo: Store
    roles: dict[str, str]

    def schema(self, tenant: str, name: str = "kb") -> str:
        """Where the tenant's copy lies."""
        return collections.copy_schema(name, tenant)

    def words(self) -> dict[str, str]:
        """Names to put into statements."""
        oid = self.owner.rows("select oid::text from pg_database where datname = current_database()")[0][0]
        return self.roles | {"tenants": f"lab_tenants_{oid}", "own": self.schema("alpha"), "theirs": self.schema("bravo")}

    def sql(self, tenant: str) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect({"alpha": self.alpha, "bravo": self.bravo}[tenant].dsn, autocommit=True)


def login(dsn: str, role: str, password: str | None) -> str:
    given = psycopg.conninfo.conninfo_to_dict(dsn) | {"user": role} | ({"password": password} if password else {})
    return psycopg.conninfo.make_conninfo(**given)  # type: ignore[arg-type]


def fill(owner: Store, folder: Path, embedder: str = "keyword") -> None:
    for tenant, files in (("alpha", ALPHA), ("bravo", BRAVO), ("shared", SHARED), (None, OWNER)):
        ingest(write(folder / str(tenant), files), "kb", store=owner, tenant=tenant, embedder=embedder)


@pytest.fixture(scope="module")
def house(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    roles = {name: f"lab_{name}{os.getpid()}" for name in ("alpha", "bravo")}
    with databases.fresh() as dsn, Store(dsn) as owner:
        fill(owner, tmp_path_factory.mktemp("tenants"))
        ingest(
            write(tmp_path_factory.mktemp("other"), {"x.md": f"# X\n\nA {SECRET} thing of the owner.\n"}), "other", store=owner, embedder="keyword"
        )
        logins = {}
        for name, role in roles.items():
            with owner.single() as connection:
                connection.execute(f"create role {role} login password 'trial'")
            assert tenants.add(owner, name, role) == (role, None)
            logins[name] = login(dsn, role, "trial")
        with Store(logins["alpha"]) as alpha, Store(logins["bravo"]) as bravo:
            yield House(owner, alpha, bravo, roles)
        for name in roles:
            tenants.remove(owner, name)
        with owner.single() as connection:
            for role in roles.values():
                connection.execute(f"drop role {role}")


def everything(result: Any) -> set[str]:
    """Every source that a result names anywhere: results, copies, links, ledger, arms."""
    found = {hit.source for hit in result.ledger.hits} | {hit.source for arm in result.arms.values() for hit in arm.hits}
    for r in result.results:
        found |= {r.source, *(copy.rpartition("::")[0] for copy in r.copies)}
    return found


SETTINGS: list[dict[str, str | float]] = [
    {}, {"dense": "exact"}, {"dense": "none"}, {"lexical": "none"}, {"lexical": "ts_rank"}, {"lexical": "ts_rank_cd"}, {"query_mode": "all"},
    {"query_mode": "websearch"}, {"dedup": "off"}, {"cites": "on", "defines": "always"}, {"mmr_lambda": 0.7}, {"ef_search": 1000},
]  # fmt: skip


@pytest.mark.parametrize("flags", SETTINGS, ids=str)
@pytest.mark.parametrize("question", ["How often is the relief valve tested?", SECRET, "the same words stand in both houses", "what is a valve?"])
def test_no_search_of_a_tenant_names_a_document_of_another(house: House, question: str, flags: dict[str, str | float]) -> None:
    found = search("kb", question, store=house.alpha, settings=None, **flags)
    assert {source.split("/")[0] for source in everything(found)} <= {"@alpha", "@shared"}
    assert all(SECRET not in (r.text + r.context).lower() for r in found.results)
    assert not any("bravo" in note or "board" in note for note in found.ledger.notes)


def test_as_many_results_come_back_as_there_are(house: House) -> None:
    """Bravo's 60 passages repeat the question; alpha has 15 of its own and one shared: asked for 20, it gets 16, and of the arms 10 of 10."""
    own = house.owner.rows("select count(*) from kb_kb.chunks where tenant in ('alpha', 'shared')")[0][0]
    found = search("kb", "How often is the relief valve tested?", store=house.alpha, k=20, lexical="none", dedup="off")
    assert len(found.results) == own == 16
    lexical = search("kb", "valve", store=house.alpha, k=10, dense="none")
    assert len(lexical.results) == 10
    assert {r.source.split("/")[0] for r in search("kb", "relief valve", store=house.owner, k=100).results} >= {"@alpha", "@bravo", "board.md"}


def test_word_counts_are_those_of_the_tenant(house: House, databases: Databases, tmp_path: Path) -> None:
    """BM25 of alpha is that of a collection which holds alpha's and the shared documents only."""
    write(tmp_path, {f"@alpha/{k}": v for k, v in ALPHA.items()} | {f"@shared/{k}": v for k, v in SHARED.items()})
    with databases.fresh() as dsn, Store(dsn) as alone:
        ingest(tmp_path, "kb", store=alone, embedder="keyword")
        want = search("kb", "how often is the relief valve tested", store=alone, dense="none", dedup="off", authority_weight=0)
        got = search("kb", "how often is the relief valve tested", store=house.alpha, dense="none", dedup="off", authority_weight=0)
    assert [(r.chunk_id) for r in got.results] == [(r.chunk_id) for r in want.results]
    scores = [[hit.score for hit in found.arms["lexical"].hits] for found in (got, want)]
    assert scores[0] == pytest.approx(scores[1], rel=1e-4)


def test_links_stay_within_what_a_tenant_can_read(house: House) -> None:
    rows = links.mentions(house.owner, collections.get(house.owner, "kb"))
    pairs = {(row[2], row[4]) for row in rows if row[0] == "cites"}
    assert pairs == {("@alpha/guide.md", "@alpha/guide.md"), ("@alpha/guide.md", "@shared/base.md"), ("@bravo/guide.md", "@bravo/guide.md")}


def test_two_tenants_have_files_of_one_name_and_pruning_one_leaves_the_other(store: Store, tmp_path: Path) -> None:
    for tenant in ("alpha", "bravo"):
        ingest(write(tmp_path / "same", {"a.md": "# A\n\nOne.", "b.md": "# B\n\nTwo."}), "kb", store=store, tenant=tenant, embedder="none")
    (tmp_path / "same" / "b.md").unlink()
    report = ingest(tmp_path / "same", "kb", store=store, tenant="alpha", prune=True)
    assert (report.files["unchanged"], report.files["retired"]) == (1, 1)
    rows = store.rows("select source, status from kb_kb.files order by source")
    assert rows == [("@alpha/a.md", "indexed"), ("@alpha/b.md", "retired"), ("@bravo/a.md", "indexed"), ("@bravo/b.md", "indexed")]
    report = ingest(tmp_path / "same" / "a.md", "kb", store=store, tenant="bravo")
    assert report.files["unchanged"] == 1
    with pytest.raises(UsageError, match="of tenant alpha"):
        ingest(write(tmp_path / "odd", {"@alpha/a.md": "# A\n\nMine."}), "kb", store=store)


DENIED = [
    "select * from kb_kb.chunks", "select count(*) from kb_kb.files", "select * from kb_kb.links", "select * from kb_kb.events", "select * from kb_kb.near",
    "select * from lab.embeddings", "select * from lab.token_vectors", "select * from lab.runs", "select * from lab.results", "select * from lab.passages",
    "select * from lab.collections", "select * from lab.tenant_roles", "select * from lab.questions",
    "select * from {theirs}.chunks", "select * from {theirs}.postings", "explain select * from {theirs}.chunks", "explain analyze select * from {theirs}.links",
    "select * from {own}.near", "select * from {own}.events", "delete from {own}.chunks", "create table {own}.x (a int)", "create index on {own}.chunks (n)",
    "analyze {theirs}.chunks; select * from {theirs}.chunks", "select pg_advisory_lock(6021023)", "select lo_creat(-1)", "create temp table k (x int)",
    "set role postgres", "set role {bravo}", "set session authorization {bravo}", "set session authorization postgres",
    "reset session authorization; select * from kb_kb.chunks", "reset role; select * from kb_kb.chunks", "set row_security = off; select * from kb_kb.chunks",
    "set lab.tenant = 'bravo'; select * from kb_kb.chunks", "set role {tenants}; select * from kb_kb.chunks",
    "insert into lab.tenant_roles values ('{alpha}', 'bravo')", "update lab.tenant_roles set tenant = 'bravo' where role = '{alpha}'",
    "grant {bravo} to {alpha}", "alter role {alpha} bypassrls", "alter table kb_kb.chunks disable row level security", "drop policy tenant on kb_kb.chunks",
    "create function lab_tenants.tenant(int) returns text language sql as 'select 1'",
    "create schema mine", "create function public.f() returns int language sql as 'select 1'", "analyze kb_kb.chunks; select * from kb_kb.chunks",
    "explain analyze select * from kb_kb.chunks order by embedding <=> '[1]' limit 5", "copy kb_kb.chunks to stdout", "select pg_read_file('PG_VERSION')",
    "select to_bm25query('zirconium', 'kb_kb.chunks_bm25')", "select bm25_text_bm25query_score('zirconium valve', to_bm25query('zirconium', 'kb_kb.chunks_bm25'))",
    "select bm25_dump_index('kb_kb.chunks_bm25')", "select bm25_summarize_index('kb_kb.chunks_bm25')", "select ts_stat('select tsv from kb_kb.chunks')",
    "select * from pg_statistic", "select pg_stat_get_live_tuples('kb_kb.chunks'::regclass)", "select lo_import('/etc/passwd')",
    "select query_to_xml('select * from kb_kb.chunks', true, true, '')", "select table_to_xml('kb_kb.chunks', true, true, '')",
]  # fmt: skip


@pytest.mark.parametrize("attempt", DENIED)
def test_an_attempt_is_refused(house: House, attempt: str) -> None:
    text = attempt.format(**house.words())
    with (
        house.sql("alpha") as connection,
        pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName)),
    ):
        if text.startswith("copy"):
            with connection.cursor().copy(text) as copy:
                list(copy)
        else:
            connection.execute(text)


def visible(connection: psycopg.Connection[Any], statement: str) -> str:
    return "\n".join(str(row) for row in connection.execute(statement).fetchall())


@pytest.mark.parametrize(
    "before", ["select 1", "set role {tenants}", "reset role", "set row_security = off", "set lab.tenant = 'bravo'", "set search_path = pg_temp, public",
               "set enable_seqscan = off", "reset all", "set client_min_messages = log; set debug_print_plan = on"],
)  # fmt: skip
def test_sql_of_its_own_shows_its_own(house: House, before: str) -> None:
    own = house.schema("alpha")
    with house.sql("alpha") as connection:
        try:
            connection.execute(before.format(**house.words()))
        except psycopg.errors.InsufficientPrivilege:
            connection.execute("reset all")
        if "row_security" in before:  # the policy holds, so it cannot be turned off
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(f"select * from {own}.chunks")
            connection.execute("reset row_security")
        if before.startswith("set role"):  # the group has no right to a copy
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(f"select * from {own}.chunks")
            connection.execute("reset role")
        for table, column in (("chunks", "text"), ("files", "text"), ("postings", "lexeme"), ("links", "label")):
            found = [str(value).lower() for (value,) in connection.execute(f"select {column} from {own}.{table}")]
            assert found
            assert not any(SECRET in value or "board" in value for value in found)
        assert connection.execute(f"select count(*), sum(1) filter (where tenant not in ('alpha', 'shared')) from {own}.chunks").fetchone() == (
            16,
            None,
        )
        assert [row[0] for row in connection.execute("select name from lab_tenants.collections()")] == ["kb"]
        assert connection.execute("select lab_tenants.tenant()").fetchone() == ("alpha",)
        assert connection.execute("select sum(chunks) from lab_tenants.collections()").fetchone() == (16,)
        known = connection.execute("select distinct schemaname from pg_stats where schemaname like 'kb%'").fetchall()
        assert known in ([], [(own,)])


ARMS = {
    "hnsw": "select key from {own}.chunks order by embedding <=> (select embedding from {own}.chunks order by key limit 1) limit 10",
    "bm25": "select key, tf from {own}.postings where lexeme in ('zirconium', 'relief')",
    "ts_rank": "select key, ts_rank(tsv, 'zirconium | relief') from {own}.chunks where tsv @@ 'zirconium | relief'",
    "codes": "select key from {own}.chunks where codes && array['s:1', 'e:zirconium']",
    "twins": "select key from {own}.chunks where class_id = {secret}",
    "links": "select to_id from {own}.links where term = 'zirconium valve'",
}


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("setting", ["select 1", "set enable_seqscan = off", "set enable_indexscan = off", "set random_page_cost = 0.1"])
def test_explain_tells_nothing_of_what_others_have(house: House, databases: Databases, arm: str, setting: str) -> None:
    """Plan, estimates and counters of every arm, for a word and a text that bravo has and for ones that nobody has: the same."""
    secret = house.owner.rows("select class_id from kb_kb.chunks where source = '@bravo/many.md' limit 1")[0][0]

    def look(word: str, text: bytes) -> tuple[list[str], Any]:
        with psycopg.connect(house.alpha.dsn, autocommit=True) as connection:
            connection.execute(setting)
            statement = ARMS[arm].format(own=house.schema("alpha"), secret=f"'\\x{bytes(text).hex()}'::bytea").replace(SECRET, word)
            connection.execute("begin")
            plan = [str(row[0]) for row in connection.execute("explain (analyze, verbose, timing off, summary off, buffers on) " + statement)]
            counts = connection.execute(
                "select relname, seq_scan, seq_tup_read, idx_scan, idx_tup_fetch from pg_stat_xact_all_tables where schemaname like 'kb%' order by 1"
            ).fetchall()
            connection.execute("rollback")
        hidden = [re.sub(r"Buffers:.*|Memory.*|shared hit=\d+|read=\d+", "", line).replace(word, "").replace(bytes(text).hex(), "") for line in plan]
        return [line for line in hidden if line.strip() and "Planning" not in line], counts

    assert look(SECRET, bytes(secret)) == look("zirconiux", b"0123456789abcdef")


def test_a_right_given_by_mistake_opens_no_row(house: House) -> None:
    """The second wall: with SELECT on every table row-level security still holds, and turning it off is an error."""
    role, theirs = house.roles["alpha"], house.schema("bravo")
    with house.owner.single() as admin:
        for schema in ("kb_kb", theirs):
            admin.execute(f"grant usage on schema {schema} to {role}; grant select on all tables in schema {schema} to {role}")
    try:
        with house.sql("alpha") as connection:
            assert {r[0] for r in connection.execute("select tenant from kb_kb.chunks")} == {"alpha", "shared"}
            assert {r[0] for r in connection.execute("select tenant from kb_kb.files")} == {"alpha", "shared"}
            assert {r[0] for r in connection.execute("select tenant from kb_kb.links")} <= {"alpha", "shared"}
            for table in ("files", "chunks", "links", "postings", "word_counts"):
                assert connection.execute(f"select * from {theirs}.{table}").fetchall() == []
            for table in ("events", "near", "near_pairs"):
                assert connection.execute(f"select * from kb_kb.{table}").fetchall() == []
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
                connection.execute("set row_security = off; select * from kb_kb.chunks")
            connection.rollback()
            connection.execute("reset row_security")
            nearest = connection.execute(
                "select source from kb_kb.chunks order by embedding <=> (select embedding from kb_kb.chunks limit 1) limit 10"
            )
            assert len(nearest.fetchall()) == 10
    finally:
        with house.owner.single() as admin:
            for schema in ("kb_kb", theirs):
                admin.execute(f"revoke all on all tables in schema {schema} from {role}; revoke usage on schema {schema} from {role}")


def test_a_role_that_is_no_tenants_sees_nothing(house: House) -> None:
    role = f"lab_stranger{os.getpid()}"
    with house.owner.single() as admin:
        admin.execute(f"create role {role} login password 'trial'")
        admin.execute(f"grant usage on schema kb_kb to {role}; grant select on all tables in schema kb_kb to {role}; grant usage on schema lab_tenants to {role}; "
                      f"grant execute on all functions in schema lab_tenants to {role}")  # fmt: skip
        try:
            with psycopg.connect(login(house.owner.dsn, role, "trial")) as connection:
                assert connection.execute("select count(*) from kb_kb.chunks").fetchone() == (0,)
        finally:
            admin.execute(f"drop owned by {role}; drop role {role}")


def test_roles_that_must_not_be_lent_are_refused(house: House) -> None:
    role = f"lab_odd{os.getpid()}"
    own = house.owner.rows("select current_user")[0][0]
    with pytest.raises(UsageError, match="never lent"):
        tenants.add(house.owner, "charlie", own)
    with pytest.raises(UsageError, match="one role a tenant"):
        tenants.add(house.owner, "charlie", house.roles["alpha"])
    with pytest.raises(UsageError, match="there is no role"):
        tenants.add(house.owner, "charlie", "nobody_of_that_name")
    with pytest.raises(UsageError, match="read by every tenant"):
        tenants.add(house.owner, "shared")
    with house.owner.single() as admin:
        for rights, said in (
            ("nologin", "cannot log in"),
            ("login bypassrls", "bypassrls"),
            ("login superuser", "super"),
            ("login createrole", "createrole"),
        ):
            admin.execute(f"create role {role} {rights}")
            try:
                with pytest.raises(UsageError, match=said):
                    tenants.add(house.owner, "charlie", role)
            finally:
                admin.execute(f"drop role {role}")
        for group in ("pg_read_all_data", house.roles["bravo"], own):
            admin.execute(f'create role {role} login; grant "{group}" to {role}')
            try:
                with pytest.raises(UsageError, match="is a member of"):
                    tenants.add(house.owner, "charlie", role)
            finally:
                admin.execute(f"drop role {role}")


def test_the_command_line_of_a_tenant(house: House, lab: Lab) -> None:
    answer = lab("search", "kb", "relief valve", "--json", store=house.alpha)
    assert answer.code == 0
    assert {r["source"].split("/")[0] for r in answer.json["results"]} <= {"@alpha", "@shared"}
    listed = lab("collections", "--json", store=house.alpha).json["collections"]
    assert [(c["name"], c["chunks"]) for c in listed] == [("kb", 16)]
    assert lab("search", "other", "thing", store=house.alpha).code == 2
    files = lab("collections", "kb", "--json", store=house.alpha).json["files"]
    assert {f["source"].split("/")[0] for f in files} == {"@alpha", "@shared"}
    assert lab("status", "--json", store=house.alpha).json["tenant"] == "alpha"
    for command in (("link", "kb"), ("index", "kb"), ("tenant", "list")):
        assert lab(*command, store=house.alpha).code == 2
    assert lab("drop", "kb", "--yes", store=house.alpha).code == 2
    assert "ingest with the login" in lab("ingest", ".", "-c", "kb", store=house.alpha).err
    shown = lab("search", "kb", "relief valve", "--sql", store=house.alpha).out
    with house.sql("alpha") as connection:
        for statement in shown.split(";\n\n"):
            connection.execute(statement.rstrip(";\n ")).fetchall()


def test_tenant_commands(store: Store, lab: Lab, tmp_path: Path) -> None:
    name = f"acme{os.getpid()}"
    lab("ingest", str(write(tmp_path / "d", {"a.md": "# A\n\nWords of acme."})), "-c", "kb", "--tenant", name, "--embedder", "none", store=store)
    made = lab("tenant", "add", name, "--json", store=store).json
    assert made["role"] == f"lab_{name}"
    assert len(made["password"]) >= 32
    assert lab("tenant", "list", "--json", store=store).json["tenants"] == [{"tenant": name, "role": f"lab_{name}", "collections": ["kb"]}]
    assert "has the login" in lab("tenant", "add", name, store=store).err
    for address in (login(store.dsn, made["role"], made["password"]), made["url"]):
        with Store(address) as own:
            assert [r.source for r in search("kb", "words", store=own, dense="none").results] == [f"@{name}/a.md"]
    assert lab("tenant", "remove", name, store=store).code == 0
    assert store.rows("select count(*) from pg_roles where rolname = %(role)s", {"role": f"lab_{name}"}) == [(0,)]
    assert lab("tenant", "remove", name, store=store).code == 2
    assert lab("ingest", str(tmp_path / "d"), "-c", "kb", "--tenant", "Bad Name", store=store).code == 2
    lab("drop", "kb", "--yes", store=store)
    assert store.rows("select nspname from pg_namespace where nspname like 'kb%'") == []


def test_a_copy_follows_what_changes(store: Store, tmp_path: Path) -> None:
    """Edits, removals, shared documents and links reach the tenant with the end of the ingest; a login made later reads what was there before."""
    name = f"echo{os.getpid()}"
    ingest(
        write(tmp_path / "a", {"a.md": "# A\n\nThe red valve.", "b.md": "# B\n\nThe blue valve."}), "kb", store=store, tenant=name, embedder="none"
    )
    role, password = tenants.add(store, name)

    def seen(question: str = "valve") -> set[str]:
        with Store(login(store.dsn, role, password)) as own:
            return {r.source for r in search("kb", question, store=own, dense="none").results}

    try:
        assert seen() == {f"@{name}/a.md", f"@{name}/b.md"}
        (tmp_path / "a" / "b.md").unlink()
        write(tmp_path / "a", {"a.md": "# A\n\nThe green valve."})
        ingest(tmp_path / "a", "kb", store=store, tenant=name, prune=True)
        assert (seen(), seen("red"), seen("green")) == ({f"@{name}/a.md"}, set(), {f"@{name}/a.md"})
        ingest(write(tmp_path / "s", {"s.md": "# S\n\nA shared valve."}), "kb", store=store, tenant="shared")
        assert seen() == {f"@{name}/a.md", "@shared/s.md"}
        with store.single() as connection:  # something that keeps the role from being dropped
            connection.execute(f"create table public.kept (a int); alter table public.kept owner to {role}")
            connection.execute("create table public.other (a int)")
    finally:
        gone, left = tenants.remove(store, name)
    assert (gone, left) == (role, None)
    with pytest.raises(ServerError, match="let this login not in"):
        seen()


def test_a_tenant_holds_up_nobody(house: House, lab: Lab) -> None:
    """The locks of the lab are out of reach, and an owner's command does not wait for one that is not needed."""
    with house.owner.single() as connection:
        connection.execute("select pg_advisory_lock(6021023)")
        try:
            assert lab("search", "kb", "valve", store=house.owner).code == 0
        finally:
            connection.execute("select pg_advisory_unlock(6021023)")


def test_an_owner_without_superuser_rights_is_held_by_force(databases: Databases, tmp_path: Path) -> None:
    """On a server of one's own the owner is seldom superuser: FORCE holds it, and its functions do not open what its policy opens to itself."""
    owner, tenant = f"lab_owner{os.getpid()}", f"delta{os.getpid()}"
    databases.admin.execute(f"create role {owner} login createrole password 'trial'")
    try:
        with databases.fresh("template0") as dsn:
            database = psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]
            with psycopg.connect(dsn, autocommit=True) as admin:
                admin.execute("create extension vector; create extension if not exists pg_textsearch")
                admin.execute(f'alter database "{database}" owner to {owner}')
            with Store(login(dsn, owner, "trial")) as own:
                with pytest.raises(ServerError, match="ask the administrator to run"):
                    ingest(write(tmp_path / "t", ALPHA), "kb", store=own, tenant=tenant, embedder="keyword")
                with psycopg.connect(dsn, autocommit=True) as admin:
                    for name in ("to_bm25query(text,text)", "to_bm25query(text)", "bm25_text_bm25query_score(text,bm25query)", "bm25_text_text_score(text,text)",
                                 "bm25_force_merge(text)", "bm25_spill_index(text)"):  # fmt: skip
                        admin.execute(f"grant execute on function {name} to {owner}; revoke execute on function {name} from public")
                ingest(tmp_path / "t", "kb", store=own, tenant=tenant, embedder="keyword")
                ingest(write(tmp_path / "o", BRAVO), "kb", store=own, embedder="keyword")
                role, password = tenants.add(own, tenant)
                mine = search("kb", "relief valve", store=own, k=100)
                assert {r.source.split("/")[0] for r in mine.results} > {f"@{tenant}"}
                with Store(dsn) as admin_store:
                    assert [r.chunk_id for r in search("kb", "relief valve", store=admin_store, k=100).results] == [r.chunk_id for r in mine.results]
                with Store(login(dsn, role, password)) as theirs:
                    found = search("kb", f"{SECRET} relief valve", store=theirs, k=40)
                    assert {source.split("/")[0] for source in everything(found)} == {f"@{tenant}"}
                tenants.remove(own, tenant)
    finally:
        databases.admin.execute(f"drop role if exists lab_{tenant}")
        for name in ("tenants",):
            for (role,) in databases.admin.execute("select rolname from pg_roles where rolname like %s", [f"lab_{name}_%"]).fetchall():
                oid = role.rpartition("_")[2]
                if databases.admin.execute("select from pg_database where oid = %s::oid", [oid]).fetchone() is None:
                    databases.admin.execute(f"drop role {role}")
        databases.admin.execute(f"drop role {owner}")
