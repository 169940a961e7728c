"""Connecting: the embedded server or the user's own, the schema brought up to date, a pool of prepared connections."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode

import psycopg
from pgvector.psycopg import register_vector
from psycopg.rows import TupleRow
from psycopg_pool import ConnectionPool, PoolTimeout

from lab.config import database_url
from lab.errors import ServerError, UsageError, redact
from lab.resources import folder
from lab.store import embedded
from lab.store.queries import source

SCHEMA_VERSION = 10
Connection = psycopg.Connection[TupleRow]
_LOCK = 6_021_023  # advisory lock under which the schema is created or migrated


class Store:
    """A connected database with the lab's schema in it. Thread-safe; close it, or use it as a context manager.

    `tenant` is the tenant whose login this is: such a session reads its own documents and the shared ones, and writes nothing. None for the owner.
    """

    def __init__(self, dsn: str, *, size: int = 8) -> None:
        self.dsn = dsn
        self._size = size
        self._pool: ConnectionPool[Connection] | None = None
        self._guard = threading.Lock()
        self._held = threading.local()
        self.extensions: dict[str, str] = {}
        self.server_version = ""
        with _errors(), psycopg.connect(dsn, autocommit=True) as connection:
            self.tenant = _tenant(connection)
            if self.tenant is None:
                _prepare_database(connection)
                _migrate(connection)
            self.extensions = _extensions(connection)
            row = connection.execute("show server_version").fetchone()
            self.server_version = str(row[0]) if row else ""

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with self._guard:
            if self._pool is not None:
                self._pool.close()
                self._pool = None

    def address(self, user: str, password: str) -> str:
        """The URL under which another login finds this database."""
        given = psycopg.conninfo.conninfo_to_dict(self.dsn)
        host, port, name = str(given.get("host") or "localhost"), given.get("port") or 5432, quote(str(given.get("dbname") or "postgres"), safe="")
        login = f"{quote(user, safe='')}:{quote(password, safe='')}"
        more = {key: str(value) for key, value in given.items() if key.startswith("ssl") or key in {"channel_binding", "gssencmode"}}
        if host.startswith("/"):
            return f"postgresql://{login}@/{name}?{urlencode({'host': host, 'port': port, **more}, safe='/')}"
        return f"postgresql://{login}@{f'[{host}]' if ':' in host else host}:{port}/{name}" + (f"?{urlencode(more, safe='/')}" if more else "")

    def reading(self) -> Store:
        """The same database through connections in which nothing can be written."""
        given = str(psycopg.conninfo.conninfo_to_dict(self.dsn).get("options") or "")
        return Store(psycopg.conninfo.make_conninfo(self.dsn, options=f"{given} -c default_transaction_read_only=on".strip()))

    @property
    def bm25(self) -> bool:
        """Whether the server has pg_textsearch."""
        return "pg_textsearch" in self.extensions

    @contextlib.contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection in a transaction that is committed at the end and rolled back on an error."""
        with self.single() as connection, connection.transaction():
            yield connection

    @contextlib.contextmanager
    def single(self) -> Iterator[Connection]:
        """A connection outside of a transaction: every statement stands for itself. Saves two round trips where one statement is all."""
        held = getattr(self._held, "connection", None)
        if held is not None:
            with _errors():
                yield held
            return
        with self._guard:
            if self._pool is None:
                self._pool = ConnectionPool(
                    self.dsn, connection_class=psycopg.Connection, min_size=1, max_size=self._size, open=True, configure=_configure,
                    kwargs={"prepare_threshold": None, "autocommit": True}, timeout=60,
                )  # fmt: skip
            pool = self._pool
        with _errors(), pool.connection() as connection:
            yield connection

    @contextlib.contextmanager
    def pipelined(self) -> Iterator[Connection]:
        """A connection in a transaction whose statements are sent without waiting for each other's answers: one round trip where there were five."""
        with self.single() as connection, connection.pipeline(), connection.transaction():
            yield connection

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keeps one connection for this thread: what is asked inside takes no turn at the pool, which costs more than a short query."""
        if getattr(self._held, "connection", None) is not None:
            yield
            return
        with self.single() as connection:
            self._held.connection = connection
            try:
                yield
            finally:
                self._held.connection = None

    def rows(self, query: Any, parameters: Mapping[str, Any] | None = None) -> list[TupleRow]:
        """All rows of one statement."""
        with self.single() as connection:
            return connection.execute(query, parameters).fetchall()

    def table(self, query: Any, parameters: Mapping[str, Any] | None = None) -> tuple[list[str], list[TupleRow]]:
        """The names of the columns, and all rows, of one statement."""
        with self.single() as connection:
            try:
                with connection.pipeline():  # the extended protocol, in which nothing can follow a statement
                    found = connection.execute(query, parameters)
                    rows = found.fetchall()
                    return [column.name for column in found.description or ()], rows
            except (psycopg.DataError, psycopg.ProgrammingError, psycopg.InternalError, psycopg.NotSupportedError) as error:
                raise UsageError(f"the query cannot be answered ({str(error).strip().splitlines()[0]}): name one statement that reads.") from None


def connect(url: str | None = None) -> Store:
    """Connects to `url`, else to the server that LAB_DATABASE_URL or lab.toml names, else to the embedded one, which it starts."""
    given = url or database_url()
    if given:
        try:
            psycopg.conninfo.conninfo_to_dict(given)
        except psycopg.Error:
            raise UsageError("LAB_DATABASE_URL is no connection string: it must look like postgresql://user@host:5432/database.") from None
        return Store(given)
    return Store(_embedded_database(embedded.dsn()))


def _embedded_database(dsn: str) -> str:
    """Creates the database of the embedded server on first use."""
    with _errors():
        parameters = psycopg.conninfo.conninfo_to_dict(dsn)
        with psycopg.connect(psycopg.conninfo.make_conninfo(dsn, dbname="postgres"), autocommit=True) as connection:
            if not connection.execute("select from pg_database where datname = %s", [parameters["dbname"]]).fetchone():
                with contextlib.suppress(psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):
                    connection.execute(psycopg.sql.SQL("create database {}").format(psycopg.sql.Identifier(str(parameters["dbname"]))))
    return dsn


@contextlib.contextmanager
def _errors() -> Iterator[None]:
    """Turns the driver's errors that a user can mend into one redacted sentence."""
    try:
        yield
    except psycopg.errors.InsufficientPrivilege as error:
        raise UsageError(
            "this login may not do that: a tenant's login searches and lists its collections, all else takes the login that made the lab's schema."
        ) from error
    except (psycopg.OperationalError, PoolTimeout) as error:
        first = (str(error).strip().splitlines() or ["no details"])[0]
        state = getattr(error, "sqlstate", None)
        if state == "28000" or "does not exist" in first:
            raise ServerError(f"the database server let this login not in ({_hidden(first)}): check the user in LAB_DATABASE_URL.") from None
        if state is None or state[:2] in {"08", "57", "28", "3D"}:  # no connection, shut down, login, no such database
            raise ServerError(
                f"the database server did not answer as expected ({_hidden(first)}): check LAB_DATABASE_URL, or run `lab status`."
            ) from None
        if state[:2] == "53":
            raise ServerError(f"the database server is short of something ({redact(first)}): free disk or memory there.") from None
        raise ServerError(f"the database server refused a statement ({redact(first)}).") from error


def _hidden(message: str) -> str:
    """A driver's message without what could be a piece of a password: one with an unescaped @ is taken for a part of the host."""
    return re.sub(r"[^\s'\"(]*@", "", redact(message))


def _tenant(connection: Connection) -> str | None:
    """The tenant whose login this is, None for any other."""
    found = connection.execute(
        "select has_function_privilege(p.oid, 'execute') and has_schema_privilege(n.oid, 'usage') from pg_proc p join pg_namespace n on n.oid = p.pronamespace "
        "where n.nspname = 'lab_tenants' and p.proname = 'tenant'"
    ).fetchone()
    if found is None or not found[0]:
        return None
    row = connection.execute("select lab_tenants.tenant(), lab_tenants.schema_version()").fetchone()
    tenant = str(row[0]) if row and row[0] else None
    if tenant is not None and row and int(row[1]) != SCHEMA_VERSION:
        raise ServerError(f"this database holds schema version {row[1]}, this lab knows {SCHEMA_VERSION}: upgrade the older of the two.")
    return tenant


def _prepare_database(connection: Connection) -> None:
    """The extensions: pgvector must be there, pg_textsearch where it can be created."""
    have = {row[0] for row in connection.execute("select name from pg_available_extensions")}
    if "vector" not in have:
        raise ServerError("this server has no pgvector: install pgvector 0.7 or newer there, or unset LAB_DATABASE_URL for the embedded server.")
    installed = _extensions(connection)
    if "vector" not in installed:
        try:
            with contextlib.suppress(psycopg.errors.UniqueViolation):
                connection.execute("create extension if not exists vector")
        except psycopg.errors.InsufficientPrivilege:
            raise ServerError("this login may not create the extension vector: ask the administrator to run `create extension vector`.") from None
    version = tuple(int(part) for part in _extensions(connection)["vector"].split(".")[:2])
    if version < (0, 7):
        raise ServerError(f"this server has pgvector {version[0]}.{version[1]}, the lab needs 0.7 or newer: upgrade it.")
    if "pg_textsearch" in have and "pg_textsearch" not in installed:
        with contextlib.suppress(psycopg.Error):
            connection.execute("create extension if not exists pg_textsearch")
            guard_scores(connection)


def public_scores(connection: Connection) -> list[str]:
    """The functions by which every login can read a BM25 index, with a right to its table or without: the score of any text one likes holds the rarity of its
    words in all passages."""
    rows = connection.execute(
        "select p.oid::regprocedure::text from pg_proc p join pg_depend d on d.objid = p.oid and d.deptype = 'e' join pg_extension e on e.oid = d.refobjid "
        "where e.extname = 'pg_textsearch' and p.proname in ('to_bm25query', 'bm25_text_bm25query_score', 'bm25_text_text_score', 'bm25_force_merge', "
        "'bm25_spill_index', 'bm25_dump_index', 'bm25_summarize_index') "
        "and exists (select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where a.grantee = 0) order by 1"
    )
    return [str(row[0]) for row in rows]


def guard_scores(connection: Connection) -> None:
    """Keeps those functions for this login, as far as it may."""
    with contextlib.suppress(psycopg.errors.InsufficientPrivilege), connection.transaction():
        for name in public_scores(connection):
            connection.execute(psycopg.sql.SQL("grant execute on function {} to current_user").format(psycopg.sql.SQL(name)))
            connection.execute(psycopg.sql.SQL("revoke execute on function {} from public").format(psycopg.sql.SQL(name)))


def _extensions(connection: Connection) -> dict[str, str]:
    return {str(name): str(version) for name, version in connection.execute("select extname, extversion from pg_extension order by 1")}


def _migrate(connection: Connection) -> None:
    """Creates the schema, or brings an older one up; each step is one transaction, under a lock that others wait for."""
    if schema_version(connection) == SCHEMA_VERSION:
        return
    connection.execute("select pg_advisory_lock(%s)", [_LOCK])
    try:
        version = schema_version(connection)
        if version == 0:
            with connection.transaction():
                connection.execute(source("schema"))
                connection.execute(source("views"))
            return
        if version > SCHEMA_VERSION:
            raise ServerError(f"this database holds schema version {version}, this lab knows {SCHEMA_VERSION}: upgrade the lab (pip install -U).")
        for path in sorted((folder("sql") / "migrations").glob("[0-9]*.sql")):
            step = int(path.name[:4])
            if version < step <= SCHEMA_VERSION:
                with connection.transaction():
                    connection.execute(path.read_text(encoding="utf-8"))
                    connection.execute("update lab.meta set value = %s where key = 'schema_version'", [str(step)])
        with connection.transaction():
            connection.execute(source("views"))
    finally:
        connection.execute("select pg_advisory_unlock(%s)", [_LOCK])


def schema_version(connection: Connection) -> int:
    """The version of the schema in this database; 0 when there is none."""
    if connection.execute("select to_regclass('lab.meta')").fetchone() == (None,):
        return 0
    row = connection.execute("select value from lab.meta where key = 'schema_version'").fetchone()
    return int(row[0]) if row else 0


def _configure(connection: Connection) -> None:
    # A generic plan ignores how selective a filter is, and the extensions may lie in another schema than public.
    connection.execute("set plan_cache_mode = force_custom_plan")
    connection.execute('set search_path = "$user", public, extensions')
    register_vector(connection)
