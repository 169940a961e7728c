"""Filters on what is known of a document: `year>=2020, status=final|draft, updated<2024-07-01, source=standards/*`.

Conditions are joined by commas and must all hold. `=` and `!=` take sets (`a|b`) and patterns (`*`); `<`, `<=`, `>`, `>=` compare numbers as numbers and
all else as text, so that ISO dates compare as dates. A list satisfies a condition when one of its members does. Values may stand in double quotes.

Names are keys of the metadata (front matter, `--metadata`), and what every document has: source, format, title, version, updated, url, authority.
"""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass

from lab.errors import UsageError

BUILT_IN = ("source", "format", "title", "version", "updated", "url", "authority")
_LONGEST = 2_000  # characters
_CONDITION = re.compile(r'\s*(?P<key>[^\W\d][\w.-]*(?: +[\w.-]+)*)\s*(?P<sign>!=|>=|<=|=|>|<)(?P<values>(?:"(?:[^"\\]|\\.)*"|[^,"])+)(?:,|$)')
_VALUE = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|([^|"]+?))\s*(?:\||$)')
_HELP = "write conditions such as year>=2020, status=final|draft, updated<2024-07-01"


@dataclass(frozen=True, slots=True)
class Condition:
    """`key sign value`; several values are a set, of which one must be met (with `!=`: none)."""

    key: str
    sign: str
    values: tuple[str, ...]

    @property
    def path(self) -> str:
        """The condition as a jsonpath predicate (https://www.postgresql.org/docs/current/functions-json.html#FUNCTIONS-SQLJSON-PATH)."""
        tests = " || ".join(test for value in self.values for test in _tests(self.sign, value))
        found = f"exists($.{json.dumps(self.key)} ? ({tests}))"
        return f"!({found})" if self.sign == "!=" else found


@functools.lru_cache(maxsize=1024)
def parse(text: str) -> tuple[Condition, ...]:
    """The conditions of a filter; () for `none`. Raises UsageError with what is wrong.

    >>> parse("year>=2020, status=final|draft")[1]
    Condition(key='status', sign='=', values=('final', 'draft'))
    """
    if text.strip().lower() in {"", "none"}:
        return ()
    if len(text) > _LONGEST or "\0" in text or any("\ud800" <= sign <= "\udfff" for sign in text):
        raise UsageError(f"--filters cannot read more than {_LONGEST} characters, nor signs that are no text: {_HELP}.")
    conditions = []
    at = 0
    while at < len(text):
        match = _CONDITION.match(text, at)
        if match is None:
            raise UsageError(f"--filters cannot read {text[at:].strip()!r}: {_HELP}.")
        values = _values(match["values"].strip())
        if not values or (len(values) > 1 and match["sign"] not in {"=", "!="}):
            raise UsageError(f"--filters cannot read {match[0].strip(' ,')!r}: {_HELP}.")
        conditions.append(Condition(match["key"], match["sign"], values))
        at = match.end()
    return tuple(conditions)


def _values(text: str) -> tuple[str, ...]:
    found: list[str] = []
    at = 0
    while at < len(text):
        match = _VALUE.match(text, at)
        if match is None or match.end() == at:
            return ()
        found.append(re.sub(r"\\(.)", r"\1", match[1]) if match[1] is not None else match[2])
        at = match.end()
    return tuple(found)


def _tests(sign: str, value: str) -> list[str]:
    """What a jsonpath must test: a number may be stored as number or text."""
    literal = json.dumps(value)
    number = value if re.fullmatch(r"-?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?", value) else None  # 007 is a text
    if sign in {"=", "!="}:
        if "*" in value:
            pattern = ".*".join(re.sub(r"([.^$+?{}\[\]()|\\])", r"\\\1", part) for part in value.split("*"))
            return [f'@ like_regex {json.dumps("^" + pattern + "$")} flag "s"']
        tests = [f"@ == {literal}"]
        if number is not None:
            tests.append(f"@ == {number}")
        if value.lower() in {"true", "false"}:
            tests.append(f"@ == {value.lower()}")
        return tests
    if number is None:
        return [f"@ {sign} {literal}"]
    # A number stored as text counts as one; a text that begins as a date does is compared as text.
    return [f"@ {sign} {number}", f'(@.type() == "string" && @.double() {sign} {number})', f'(@ like_regex "^[0-9]{{4}}-" && @ {sign} {literal})']
