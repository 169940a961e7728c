"""Loading rows by COPY."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from psycopg import sql

from lab.store.connect import Connection


def load(connection: Connection, schema: str, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Appends rows to `schema.table`, in the transaction of `connection`; `columns` in the order of a row's values.

    Postgres takes no COPY into a table whose row-level security holds for this role, as it does for an owner who is no superuser (FORCE): there the rows
    go through a temporary table.
    """
    target = sql.Identifier(schema, table)
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    with connection.cursor() as cursor:
        through = sql.Identifier("pg_temp", "incoming")
        held = _held(connection, schema, table)
        if held:
            cursor.execute(sql.SQL("create temporary table incoming on commit drop as select {} from {} limit 0").format(names, target))
        with cursor.copy(sql.SQL("copy {} ({}) from stdin").format(through if held else target, names)) as copy:
            for row in rows:
                copy.write_row(row)
        if held:
            cursor.execute(sql.SQL("insert into {} ({names}) select {names} from {}").format(target, through, names=names))
            cursor.execute("drop table pg_temp.incoming")


def _held(connection: Connection, schema: str, table: str) -> bool:
    """Whether row-level security applies to this role there. The server tells with the login whether it is a superuser's, whom none holds."""
    if connection.info.parameter_status("is_superuser") == "on":
        return False
    row = connection.execute("select row_security_active(%s)", [f'"{schema}"."{table}"']).fetchone()
    return row is not None and bool(row[0])
