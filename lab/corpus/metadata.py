"""What users say about files: front matter and `--metadata file.csv`, typed, so that filters compare numbers as numbers and dates as dates."""

from __future__ import annotations

import csv
import datetime as dt
import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.corpus.validate import Refused, decode
from lab.errors import UsageError

_TYPES = ("text", "int", "float", "bool", "date")
_TRUE, _FALSE = frozenset({"true", "yes", "on"}), frozenset({"false", "no", "off"})


class Quoted(str):
    """A value that its author put in quotes: a text, whatever it looks like."""

    __slots__ = ()


def typed(word: str) -> Any:
    """The value of a word: true or false, a whole number, a number, else the text itself (an ISO date sorts as text).

    >>> typed("12"), typed("3.50"), typed("true"), typed("2024-05-01"), typed("007"), typed("draft")
    (12, 3.5, True, '2024-05-01', '007', 'draft')
    """
    text = word.strip()
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    if re.fullmatch(r"-?(?:0|[1-9]\d{0,17})", text):  # 007 is a code
        return int(text)
    if re.fullmatch(r"-?(?:0|[1-9]\d{0,14})\.\d{1,15}", text):
        return float(text)
    return text


def load(path: Path) -> dict[str, dict[str, Any]]:
    """Source → its values, from a CSV with a column `source`. A head may declare its type (`year:int`; text, int, float, bool or date); a column without
    is numbers where every value is one. Empty cells say nothing. Raises UsageError naming line and column of what cannot be."""
    try:
        rows = list(csv.reader(io.StringIO(decode(path.read_bytes()))))
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): name an existing CSV file behind --metadata.") from None
    except (Refused, csv.Error) as error:
        raise UsageError(f"{path} is no CSV file ({error}): save it as CSV in UTF-8.") from None
    if not rows or "source" not in [head.strip() for head in rows[0]]:
        raise UsageError(f"{path} must have a column named source in its first line: the path of a file below the folder that is ingested.")
    names, types = [], []
    for head in rows[0]:
        name, _, kind = head.strip().partition(":")
        if kind and kind not in _TYPES:
            raise UsageError(f"{path}: column {name!r} cannot be of type {kind!r}: it takes {', '.join(_TYPES)}.")
        names.append(name.strip())
        types.append(kind)
    double = sorted({name for name in names if names.count(name) > 1})
    if double or "" in names:
        raise UsageError(f"{path}: " + (f"the column {double[0]!r} stands twice: keep one." if double else "a column has no name."))
    at = names.index("source")
    body = [(line, row) for line, row in enumerate(rows[1:], 2) if any(cell.strip() for cell in row)]
    for column, kind in enumerate(types):
        if not kind and column != at:
            types[column] = _guess([row[column] for _, row in body if column < len(row) and row[column].strip()])
    found: dict[str, dict[str, Any]] = {}
    for line, row in body:
        if len(row) != len(names):
            raise UsageError(f"{path} line {line} has {len(row)} cells, the first line {len(names)}.")
        source = row[at].strip()
        if not source:
            raise UsageError(f"{path} line {line} names no source.")
        if source in found:
            raise UsageError(f"{path} line {line}: {source!r} stands twice: keep one.")
        found[source] = {
            names[column]: _value(cell.strip(), types[column], f"{path} line {line}, column {names[column]!r}")
            for column, cell in enumerate(row)
            if column != at and cell.strip()
        }
    return found


def _guess(cells: list[str]) -> str:
    values = [typed(cell) for cell in cells]
    for kind, name in ((bool, "bool"), (int, "int")):
        if values and all(type(value) is kind for value in values):
            return name
    if values and all(type(value) in {int, float} for value in values):
        return "float"
    return "text"


def _value(cell: str, kind: str, where: str) -> Any:
    try:
        if kind == "int":
            if not re.fullmatch(r"-?[0-9]{1,18}", cell):
                raise ValueError
            return int(cell)
        if kind == "float":
            number = float(cell)
            if number != number or number in {float("inf"), float("-inf")}:
                raise ValueError
            return number
        if kind == "date":
            if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", cell):
                raise ValueError
            return dt.date.fromisoformat(cell).isoformat()
    except ValueError:
        raise UsageError(f"{where}: {cell!r} is no {kind if kind != 'date' else 'date like 2024-05-01'}.") from None
    if kind == "bool":
        if cell.lower() in _TRUE | _FALSE | {"0", "1"}:
            return cell.lower() in _TRUE | {"1"}
        raise UsageError(f"{where}: {cell!r} is neither true nor false.")
    return cell


def front_matter_values(pairs: Mapping[str, Any]) -> dict[str, Any]:
    """Front matter with its values typed, in lists and mappings too; what says nothing (empty, null, ~) is left out."""
    return {key: _typed_deep(value) for key, value in pairs.items() if value not in ("", "null", "~", None)}


def _typed_deep(value: Any) -> Any:
    if isinstance(value, list):
        return [_typed_deep(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _typed_deep(item) for key, item in value.items()}
    if isinstance(value, Quoted):
        return str(value)
    return typed(str(value))
