"""Tenants: documents that only one login role may read.

The owner ingests and sees all. What a tenant reads of a collection, its own documents and the shared ones, stands in tables of its own (`kbt_…`, derived
data, made anew at the end of an ingest), on which its login alone has SELECT. So whatever it asks, no plan, statistic, counter or score tells of anybody
else's rows: on a table shared with others EXPLAIN ANALYZE counts the rows that a policy removed, and the planner's estimates count words in all of them.

Behind that stands row-level security, forced, on the tables of the collection and on each copy, by `session_user` through `lab.tenant_roles`: SET ROLE,
RESET and settings do not change `session_user`, and a right given by mistake opens no row of another tenant.

See https://www.postgresql.org/docs/current/ddl-rowsecurity.html.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
import secrets
from dataclasses import dataclass

import psycopg
from psycopg import sql

from lab.errors import LabError, ServerError, UsageError, unknown
from lab.progress import say
from lab.store import collections
from lab.store.collections import Collection
from lab.store.connect import Connection, Store, guard_scores, public_scores
from lab.store.queries import ddl

_COPY = 2  # version of what a copy holds
SHARED = "shared"  # documents that every tenant may read
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
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
        group = _prepare(connection)
        exists = connection.execute("select from pg_roles where rolname = %s", [role]).fetchone() is not None
        if given and not exists:
            raise UsageError(f"there is no role {role} on this server: create it with LOGIN, or leave --role out.")
        if not given:
            if exists:
                raise UsageError(f"a role {role} exists on this server: name it behind --role if it is meant, else another one.")
            password = secrets.token_urlsafe(24)
            _try(connection, sql.SQL("create role {} login password {}").format(sql.Identifier(role), sql.Literal(password)))
        _check_role(connection, role)
        _try(connection, sql.SQL("grant {} to {}").format(sql.Identifier(group), sql.Identifier(role)))
        connection.execute("insert into lab.tenant_roles (role, tenant) values (%s, %s)", [role, tenant])
        copies = connection.execute("select schema from lab.tenant_collections where tenant = %s and copied_at is not null", [tenant]).fetchall()
        for (schema,) in copies:
            connection.execute(ddl("tenants/rights", {"schema": str(schema), "role": role}, {}))
    for collection in collections.all_collections(store):
        refresh(store, collection)  # a tenant without documents of its own reads the shared ones
    return role, password


def remove(store: Store, tenant: str) -> tuple[str, str | None]:
    """Takes a tenant's login away; its documents stay for the owner. Returns (role, why it still exists: it was not made by `add`, or something hangs on it).

    The access ends first, in a transaction of its own, whatever becomes of the role.
    """
    with store.connection() as connection:
        row = connection.execute("delete from lab.tenant_roles where tenant = %s returning role", [tenant]).fetchone()
        if row is None:
            raise unknown("tenant", tenant, [t.name for t in all_tenants(store) if t.role is not None])
        role, group = str(row[0]), _prepare(connection)
        _try(connection, sql.SQL("revoke {} from {}").format(sql.Identifier(group), sql.Identifier(role)))
        for (schema,) in connection.execute(
            "select schema from lab.tenant_collections where tenant = %s and copied_at is not null", [tenant]
        ).fetchall():
            named = sql.Identifier(str(schema))
            connection.execute(sql.SQL("revoke all on all tables in schema {} from {}").format(named, sql.Identifier(role)))
            connection.execute(sql.SQL("revoke all on schema {} from {}").format(named, sql.Identifier(role)))
    if role != f"lab_{tenant}":
        return role, "it was not made by the lab"
    try:
        with store.connection() as connection:
            connection.execute(sql.SQL("alter role {} nologin").format(sql.Identifier(role)))
            connection.execute(
                sql.SQL("grant {} to current_user").format(sql.Identifier(role))
            )  # else an owner who is no superuser may not drop its things
            connection.execute("select pg_terminate_backend(pid) from pg_stat_activity where usename = %s and pid <> pg_backend_pid()", [role])
            connection.execute(sql.SQL("drop owned by {}").format(sql.Identifier(role)))
        with store.connection() as connection:
            connection.execute(sql.SQL("drop role {}").format(sql.Identifier(role)))
    except (psycopg.Error, LabError) as error:
        return role, f"it could not be dropped ({str(error).splitlines()[0]})"
    return role, None


def enable(store: Store, collection: Collection, tenant: str) -> None:
    """Before the first document of a tenant is stored: row-level security on the collection."""
    with store.connection() as connection:
        _prepare(connection)
        connection.execute(ddl("tenants/guard", {"schema": collection.schema, "owner": _owner(connection)}, {}))
        _note(connection, collection, check_name(tenant))


def refresh(store: Store, collection: Collection) -> None:
    """Makes the copies of a collection anew where what they hold has changed, each in one transaction: its tenant sees the last one until then."""
    present = {str(row[0]) for row in store.rows("select tenant from lab.tenant_collections where collection = %(name)s", {"name": collection.name})}
    if not present:
        return
    logins = {str(tenant): str(role) for role, tenant in store.rows("select role, tenant from lab.tenant_roles")}
    for tenant in sorted((present - {SHARED}) | (set(logins) if SHARED in present else set())):
        with store.connection() as connection:
            _note(connection, collection, tenant)
            digest = _digest(connection, collection, tenant)
            row = connection.execute(
                "select digest from lab.tenant_collections where tenant = %s and collection = %s and copied_at is not null", [tenant, collection.name]
            ).fetchone()
        if row is None or row[0] != digest:
            say(f"making the copy of {collection.name} that tenant {tenant} searches …")
            _copy(store, collection, tenant, digest, logins.get(tenant))


def _note(connection: Connection, collection: Collection, tenant: str) -> None:
    connection.execute(
        "insert into lab.tenant_collections (tenant, collection, schema) values (%s, %s, %s) on conflict do nothing",
        [tenant, collection.name, collections.copy_schema(collection.name, tenant)],
    )


def _digest(connection: Connection, collection: Collection, tenant: str) -> str:
    """Of everything that a copy holds: documents with their metadata, links, side tokens."""
    row = connection.execute(
        sql.SQL(
            "select md5(coalesce(string_agg(concat_ws(' ', source, content_hash, authority, metadata || given, extractor), '|' order by source), '')) from {}.files "
            "where tenant in (%s, 'shared') and status in ('indexed', 'missing')"
        ).format(sql.Identifier(collection.schema)),
        [tenant],
    ).fetchone()
    now = connection.execute("select link_digest, codes from lab.collections where name = %s", [collection.name]).fetchone()
    return hashlib.sha256(repr((row, now, _COPY)).encode()).hexdigest()[:16]


def _copy(store: Store, collection: Collection, tenant: str, digest: str, role: str | None) -> None:
    schema = collections.copy_schema(collection.name, tenant)
    copy = dataclasses.replace(collection, tenant=tenant)
    identifiers = {"schema": schema}
    with store.connection() as connection:
        connection.execute(sql.SQL("drop schema if exists {} cascade").format(sql.Identifier(schema)))
        connection.execute(ddl("collection", identifiers, {"dim": collection.dim or 1, "language": collection.language}))
        connection.execute(ddl("tenants/copy", {"schema": schema, "source": collection.schema}, {"tenant": tenant}))
        collections.post(connection, copy)
        if collection.dim is not None:
            connection.execute(ddl("index/hnsw", identifiers, {}))
        connection.execute(ddl("index/gin", identifiers, {}))
        for table in ("files", "chunks", "links", "postings"):
            connection.execute(sql.SQL("analyze {}.{}").format(sql.Identifier(schema), sql.Identifier(table)))
        connection.execute(ddl("tenants/wall", {"schema": schema, "owner": _owner(connection)}, {"tenant": tenant}))
        if role is not None:
            connection.execute(ddl("tenants/rights", {"schema": schema, "role": role}, {}))
        connection.execute(
            sql.SQL(
                "update lab.tenant_collections t set digest = %s, copied_at = now(), codes = c.codes, chunks = n.chunks, without_vector = n.without_vector "
                "from lab.collections c, (select count(*) as chunks, count(*) filter (where embedding is null) as without_vector from {}.chunks) n "
                "where c.name = t.collection and t.tenant = %s and t.collection = %s"
            ).format(sql.Identifier(schema)),
            [digest, tenant, collection.name],
        )


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


def _prepare(connection: Connection) -> str:
    """What all tenants of this database share; returns the name of the role that their logins are members of."""
    row = connection.execute("select oid::text from pg_database where datname = current_database()").fetchone()
    assert row is not None
    group = f"lab_tenants_{row[0]}"
    if connection.execute("select from pg_roles where rolname = %s", [group]).fetchone() is None:
        _try(connection, sql.SQL("create role {} nologin").format(sql.Identifier(group)))
    connection.execute(ddl("tenants/database", {"tenants": group}, {}))
    guard_scores(connection)
    left = public_scores(connection)
    if left:
        name = left[0]
        raise ServerError(
            f"tenants could read word statistics of all documents through {name}: ask the administrator to run "
            f"`grant execute on function {name} to {_owner(connection)}; revoke execute on function {name} from public`."
        )
    _close_doors(connection)
    return group


def _close_doors(connection: Connection) -> None:
    """Takes from the public, where this login may, what lets a tenant hold up others: locks that the lab uses, large objects and temporary tables, which keep
    a role from being dropped."""
    superuser = connection.execute("select rolsuper from pg_roles where rolname = current_user").fetchone()
    if superuser is None or not superuser[0]:
        return
    rows = connection.execute(
        "select p.oid::regprocedure::text from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname = 'pg_catalog' and (p.proname ~ "
        "'^pg_(try_)?advisory_(xact_)?lock' or p.proname in ('lo_creat', 'lo_create', 'lo_from_bytea', 'lo_import')) "
        "and exists (select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where a.grantee = 0)"
    ).fetchall()
    for (name,) in rows:
        connection.execute(sql.SQL("revoke execute on function {} from public").format(sql.SQL(name)))
    row = connection.execute("select current_database()").fetchone()
    assert row is not None
    connection.execute(sql.SQL("revoke temporary on database {} from public").format(sql.Identifier(str(row[0]))))


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
