"""Tenants: documents that only one login role may read, held by row-level security on the role that logged in.

Three walls, each enough by itself for rows:

1. A tenant's login has no right to any table. It searches through functions of the schema `kbt_<collection>`, which show no plan: EXPLAIN ANALYZE on a
   table would count the rows of others that a policy removed.
2. The functions run as a role without login (`reader`) that row-level security holds, by `session_user` through `lab.tenant_roles`; SET ROLE, RESET
   and settings do not change `session_user`. FORCE holds the tables' owner too. Nobody is a tenant who is not entered there.
3. No index that is shared with others serves a tenant: its vectors are compared exactly, and BM25 counts words in its own rows only.

See https://www.postgresql.org/docs/current/ddl-rowsecurity.html.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass

import psycopg
from psycopg import sql

from lab.errors import ServerError, UsageError, unknown
from lab.store import collections
from lab.store.collections import Collection
from lab.store.connect import Connection, Store
from lab.store.queries import ddl, function

SHARED = "shared"  # documents that every tenant may read
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_SEARCHES = (
    "dense_exact", "lexical_bm25_plain", "lexical_ts_rank", "lexical_ts_rank_cd", "classes", "texts", "vectors", "defined", "cited", "term_users", "count",
    "sizes",
)  # fmt: skip
_POWERS = ("rolsuper", "rolbypassrls", "rolcreaterole", "rolreplication")
_GROUPS = ("pg_read_all_data", "pg_write_all_data", "pg_read_all_stats", "pg_monitor", "pg_read_server_files", "pg_execute_server_program")


def check_name(tenant: str) -> str:
    if not _NAME.fullmatch(tenant):
        raise UsageError(f"{tenant!r} cannot name a tenant: use lower-case letters, digits and _ (at most 40, a letter first).")
    return tenant


def prefix(tenant: str | None) -> str:
    """What a tenant's sources begin with, so that two tenants can have a file of the same name."""
    return f"@{tenant}/" if tenant is not None else ""


def bare(source: str, tenant: str | None) -> str:
    """A source without it: the path inside the root."""
    return source.removeprefix(prefix(tenant))


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant, its login role (None: it has documents, but no login yet), and the collections that hold documents of it."""

    name: str
    role: str | None
    collections: tuple[str, ...]


def all_tenants(store: Store) -> list[Tenant]:
    rows = store.rows(
        "select tenant, max(role), coalesce(array_agg(collection order by collection) filter (where collection is not null), '{}') from "
        "(select tenant, role, null as collection from lab.tenant_roles union all select tenant, null, collection from lab.tenant_collections) t "
        "group by tenant order by tenant"
    )
    return [Tenant(name, role, tuple(names)) for name, role, names in rows]


def add(store: Store, tenant: str, role: str | None = None) -> tuple[str, str | None]:
    """Gives a tenant its login: an existing `role`, or a new one `lab_<tenant>`. Returns (role, password of a new role, which is kept nowhere else).

    Raises UsageError for a tenant that has one, for a role that another tenant has, and for a role to which row-level security means nothing.
    """
    check_name(tenant)
    if tenant == SHARED:
        raise UsageError(f"{SHARED!r} is read by every tenant and has no login of its own: name another tenant.")
    given = role is not None
    role = role or f"lab_{tenant}"
    for other in all_tenants(store):
        if other.name == tenant and other.role is not None:
            raise UsageError(f"tenant {tenant!r} has the login {other.role} already: `lab tenant remove {tenant}` takes it away.")
        if other.role == role:
            raise UsageError(f"the role {role} is the login of tenant {other.name!r}: name another one, one role a tenant.")
    password = None
    with store.connection() as connection:
        names = _prepare(connection)
        exists = connection.execute("select from pg_roles where rolname = %s", [role]).fetchone() is not None
        if given and not exists:
            raise UsageError(f"there is no role {role} on this server: create it with LOGIN, or leave --role out.")
        if not given:
            if exists:
                raise UsageError(f"a role {role} exists on this server: name it behind --role if it is meant, else another one.")
            password = secrets.token_urlsafe(24)
            _try(connection, sql.SQL("create role {} login password {}").format(sql.Identifier(role), sql.Literal(password)))
        _check_role(connection, role)
        _try(connection, sql.SQL("grant {} to {}").format(sql.Identifier(names["tenants"]), sql.Identifier(role)))
        connection.execute("insert into lab.tenant_roles (role, tenant) values (%s, %s)", [role, tenant])
    return role, password


def remove(store: Store, tenant: str) -> str:
    """Takes a tenant's login away; its documents stay for the owner. A role that `add` made is dropped."""
    with store.connection() as connection:
        row = connection.execute("delete from lab.tenant_roles where tenant = %s returning role", [tenant]).fetchone()
        if row is None:
            raise unknown("tenant", tenant, [t.name for t in all_tenants(store) if t.role is not None])
        role, names = str(row[0]), _prepare(connection)
        _try(connection, sql.SQL("revoke {} from {}").format(sql.Identifier(names["tenants"]), sql.Identifier(role)))
        if role == f"lab_{tenant}":
            _try(connection, sql.SQL("drop role {}").format(sql.Identifier(role)))
    return role


def enable(store: Store, collection: Collection, tenant: str) -> None:
    """Before the first document of a tenant is stored: row-level security on the collection, and the functions of this version of the lab.

    Nothing is done where they are there already.
    """
    with store.connection() as connection:
        names = _prepare(connection)
        owner = _owner(connection)
        identifiers = {"schema": collection.schema, "functions": collection.functions, "owner": owner, **names}
        path = _search_path(connection)
        made = [function(f"search/{name}", collection.schema, collection.functions, path) for name in _SEARCHES]
        text = ddl("tenants/collection", identifiers, {}).as_string() + "".join(statement.as_string() for statement in made)
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        row = connection.execute("select obj_description(to_regnamespace(%s), 'pg_namespace')", [f'"{collection.functions}"']).fetchone()
        if row is None or row[0] != digest:
            connection.execute(ddl("tenants/collection", identifiers, {}))
            schema = sql.Identifier(collection.functions)
            for statement, name in zip(made, _SEARCHES, strict=True):
                connection.execute(statement)
                signature = connection.execute(
                    "select pg_get_function_identity_arguments(p.oid) from pg_proc p where p.pronamespace = to_regnamespace(%s) and p.proname = %s",
                    [f'"{collection.functions}"', name],
                ).fetchone()
                assert signature is not None
                named = sql.SQL("{}.{}({})").format(schema, sql.Identifier(name), sql.SQL(signature[0]))
                connection.execute(sql.SQL("revoke all on function {} from public").format(named))
                connection.execute(sql.SQL("grant execute on function {} to {}").format(named, sql.Identifier(names["tenants"])))
                connection.execute(sql.SQL("alter function {} owner to {}").format(named, sql.Identifier(names["reader"])))
            connection.execute(sql.SQL("revoke create on schema {} from {}").format(schema, sql.Identifier(names["reader"])))
            connection.execute(sql.SQL("comment on schema {} is {}").format(schema, sql.Literal(digest)))
        connection.execute(
            "insert into lab.tenant_collections (tenant, collection) values (%s, %s) on conflict do nothing", [check_name(tenant), collection.name]
        )


def refresh(store: Store, collection: Collection) -> None:
    """Brings the functions of a collection with tenants up to this version of the lab."""
    rows = store.rows("select tenant from lab.tenant_collections where collection = %(name)s order by 1 limit 1", {"name": collection.name})
    if rows:
        enable(store, collection, str(rows[0][0]))


def owner_of(store: Store, name: str, sources: list[str], tenant: str | None) -> tuple[str, str | None] | None:
    """(source, tenant) of the first of these files that belongs to another tenant, or to none."""
    collection = collections.find(store, name)
    if collection is None or not sources:
        return None
    rows = store.rows(
        sql.SQL("select source, tenant from {}.files where source = any(%(sources)s) and tenant is distinct from %(tenant)s order by source").format(
            sql.Identifier(collection.schema)
        ),
        {"sources": sources, "tenant": tenant},
    )
    return (str(rows[0][0]), rows[0][1]) if rows else None


def _prepare(connection: Connection) -> dict[str, str]:
    """The two roles of this database and what all collections share; returns the roles' names."""
    row = connection.execute("select oid::text from pg_database where datname = current_database()").fetchone()
    assert row is not None
    names = {"reader": f"lab_reader_{row[0]}", "tenants": f"lab_tenants_{row[0]}"}
    for name in names.values():
        if connection.execute("select from pg_roles where rolname = %s", [name]).fetchone() is None:
            _try(connection, sql.SQL("create role {} nologin").format(sql.Identifier(name)))
    superuser = connection.execute("select rolsuper from pg_roles where rolname = current_user").fetchone()
    if superuser is not None and not superuser[0]:  # to hand functions over to the reader one must be able to become it
        _try(connection, sql.SQL("grant {} to current_user").format(sql.Identifier(names["reader"])))
    connection.execute(ddl("tenants/database", names, {}))
    _guard_scores(connection)
    return names


def _guard_scores(connection: Connection) -> None:
    """Takes from the public what tells of a BM25 index to roles without a right to its table: the score of any text one likes holds the rarity of its words
    in all documents of the collection."""
    rows = connection.execute(
        "select p.oid::regprocedure::text, exists (select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where a.grantee = 0) "
        "from pg_proc p join pg_depend d on d.objid = p.oid and d.deptype = 'e' join pg_extension e on e.oid = d.refobjid "
        "where e.extname = 'pg_textsearch' and p.proname in ('to_bm25query', 'bm25_text_bm25query_score', 'bm25_text_text_score', 'bm25_force_merge', "
        "'bm25_spill_index', 'bm25_dump_index', 'bm25_summarize_index')"
    ).fetchall()
    for name, public in rows:
        if public:
            _try(connection, sql.SQL("grant execute on function {} to current_user").format(sql.SQL(name)))
            _try(connection, sql.SQL("revoke execute on function {} from public").format(sql.SQL(name)))
            still = connection.execute(
                "select exists (select from pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where p.oid = %s::regprocedure "
                "and a.grantee = 0)",
                [name],
            ).fetchone()
            if still is None or still[0]:
                raise ServerError(
                    f"tenants could read word statistics of all documents through {name}: ask the administrator to run "
                    f"`grant execute on function {name} to {_owner(connection)}; revoke execute on function {name} from public`."
                )


def _search_path(connection: Connection) -> str:
    """Where the functions find operators: the catalogue and the extension's schema, never a schema of the caller."""
    row = connection.execute(
        "select quote_ident(n.nspname) from pg_extension e join pg_namespace n on n.oid = e.extnamespace where extname = 'vector'"
    )
    found = row.fetchone()
    assert found is not None
    return f"pg_catalog, {found[0]}, pg_temp"


def _owner(connection: Connection) -> str:
    row = connection.execute("select current_user").fetchone()
    assert row is not None
    return str(row[0])


def _check_role(connection: Connection, role: str) -> None:
    """Raises UsageError for a role that row-level security does not hold, or that is the server's own."""
    row = connection.execute(
        sql.SQL("select rolname = session_user or rolname = current_user, rolcanlogin, {} from pg_roles where rolname = %s").format(
            sql.SQL(", ").join(map(sql.Identifier, _POWERS))
        ),
        [role],
    ).fetchone()
    assert row is not None
    own, login, *powers = row
    if own:
        raise UsageError(f"the role {role} owns the lab's tables, which is never lent to a tenant: name another one.")
    if not login:
        raise UsageError(f"the role {role} cannot log in: give it LOGIN, or name another one.")
    held = [power.removeprefix("rol") for power, has in zip(_POWERS, powers, strict=True) if has]
    if held:
        raise UsageError(
            f"the role {role} is {' and '.join(held)}, so that row-level security does not hold it: take that away, or name another one."
        )
    above = connection.execute(
        "select rolname from pg_roles where (rolname = current_user or rolname = any(%s) or rolsuper or rolbypassrls or rolname in "
        "(select role from lab.tenant_roles)) and rolname <> %s and pg_has_role(%s, oid, 'member') order by 1 limit 1",
        [list(_GROUPS), role, role],
    ).fetchone()
    if above is not None:
        raise UsageError(f"the role {role} is a member of {above[0]}, whose rights a tenant must not have: revoke that, or name another one.")
    # A schema of the search path of the owner's sessions in which a tenant can make objects would let it run its own code there.
    open_to = connection.execute("select has_schema_privilege(%s, 'public', 'create') from pg_namespace where nspname = 'public'", [role]).fetchone()
    if open_to is not None and open_to[0]:
        raise UsageError(f"the role {role} may create objects in schema public: run `revoke create on schema public from public` there first.")


def _try(connection: Connection, statement: sql.Composed) -> None:
    """Runs what needs rights that the owner of a database may lack."""
    try:
        connection.execute(statement)
    except psycopg.errors.InsufficientPrivilege as error:
        text = re.sub(r"(?i)password '.*'", "password '…'", statement.as_string())
        raise UsageError(
            f"this login may not manage roles ({str(error).splitlines()[0]}): ask the administrator for CREATEROLE, or to run `{text}`."
        ) from None
