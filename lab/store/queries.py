"""Named SQL: one query a file under sql/, written for psql, turned into what psycopg runs.

`:name` and `:'name'` are parameters, `:"name"` is an identifier; lines that start with a backslash are psql's and are dropped.
Literals, quoted identifiers, comments, `::` and function bodies in `$$` are left alone; `%` is doubled where psycopg would read it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from psycopg import sql

from lab.errors import LabError
from lab.resources import folder

_TOKEN = re.compile(
    r"""
    (?P<keep>'(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$ | ::)
    | :"(?P<identifier>[a-z_]\w*)" | :'(?P<text>[a-z_]\w*)' | (?<![\w:]):(?P<number>[a-z_]\w*)
    """,
    re.VERBOSE | re.DOTALL,
)


@functools.cache
def source(name: str) -> str:
    """The text of sql/<name>.sql without psql's own commands."""
    path = folder("sql") / f"{name}.sql"
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise LabError(f"sql/{name}.sql is missing from this installation: install the package again.") from None
    return "\n".join(line for line in text.splitlines() if not line.startswith("\\"))


def query(name: str, **identifiers: str) -> sql.Composed:
    """sql/<name>.sql with its identifiers filled in and its parameters as psycopg placeholders.

    >>> query("search/texts", schema="kb_x").as_string()[-60:]
    'chunks where key = any(%(keys)s::bigint[]);'
    """
    return _prepared(name, tuple(sorted(identifiers.items())))


@functools.lru_cache(maxsize=1024)
def _prepared(name: str, identifiers: tuple[tuple[str, str], ...]) -> sql.Composed:
    return _compose(source(name), dict(identifiers), sql.Placeholder, placeholders=True)


def ddl(name: str, identifiers: dict[str, str], values: dict[str, object]) -> sql.Composed:
    """sql/<name>.sql with parameters written out as literals, since DDL takes none. May hold several statements."""
    return _compose(source(name), identifiers, lambda parameter: sql.Literal(values[parameter]), placeholders=False)


def _compose(text: str, identifiers: dict[str, str], parameter: Callable[[str], sql.Composable], *, placeholders: bool) -> sql.Composed:
    """The text with identifiers and parameters put in; with `placeholders` it is for psycopg to fill, which reads `%`."""
    parts: list[sql.Composable] = []
    position = 0
    for match in _TOKEN.finditer(text):
        parts.append(_plain(text[position : match.start()], placeholders))
        position = match.end()
        if match["keep"] is not None:
            parts.append(_plain(match["keep"], placeholders))
        elif match["identifier"] is not None:
            parts.append(sql.Identifier(identifiers[match["identifier"]]))
        else:
            parts.append(parameter(match["text"] or match["number"]))
    parts.append(_plain(text[position:], placeholders))
    return sql.Composed(parts)


def _plain(text: str, placeholders: bool) -> sql.SQL:
    return sql.SQL(text.replace("%", "%%") if placeholders else text)
