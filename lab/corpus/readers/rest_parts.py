"""What is not read as it stands in a reST file: tables become sentences, comments go.

Grid and simple tables are parsed by docutils (https://docutils.sourceforge.io/docs/ref/rst/restructuredtext.html#tables); the directives `list-table` and
`csv-table` are lists and CSV by their own definition.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence

from lab.corpus.readers.compose import table_rows
from lab.corpus.readers.tables import rows_as_sentences

_GRID = re.compile(r"[ \t]*\+(?:-+\+)+[ \t]*$")
_SIMPLE = re.compile(r"[ \t]*=+(?:[ \t]+=+)+[ \t]*$")
_DIRECTIVE = re.compile(r"(?P<indent>[ \t]*)\.\. (?P<name>list-table|csv-table|table) ?::[ \t]*(?P<title>.*)$")
_MARKUP = re.compile(r"[ \t]*\.\.[ \t]+(?:_|\[|\||[\w:+.-]+ ?::)")
_LITERAL = re.compile(
    r"[ \t]*\.\. (?:code|code-block|sourcecode|literalinclude|parsed-literal|highlight|math|raw|doctest|productionlist|prompt|ipython|plot) ?::"
)
_COMMENT = re.compile(r"(?P<indent>[ \t]*)\.\.(?:[ \t]+\S.*)?$")


def rewritten(text: str) -> tuple[str, list[tuple[int, int]]]:
    """(the text with each table row as one sentence on a line of its own and without comments, the spans of those sentences)."""
    if ".." not in text and "==" not in text and "+-" not in text:
        return text, []
    lines = text.split("\n")
    out: list[str] = []
    spans: list[tuple[int, int]] = []
    length = 0

    def keep(line: str) -> None:
        nonlocal length
        out.append(line)
        length += len(line) + 1

    at = 0
    tried = 0  # lines before it were looked at as a table, and are none
    while at < len(lines):
        if _LITERAL.match(lines[at]) or (lines[at].rstrip().endswith("::") and not _MARKUP.match(lines[at])):
            for line in lines[at : _below(lines, at)]:  # what is shown as it stands
                keep(line)
            at = _below(lines, at)
            continue
        found = _table(lines, at) if at >= tried else None
        if found is None and at >= tried and (_GRID.fullmatch(lines[at]) or _SIMPLE.fullmatch(lines[at])):
            tried = next((n for n in range(at, len(lines)) if not lines[n].strip()), len(lines))
        if found is not None:
            after, title, sentences = found
            if out and out[-1].strip():
                keep("")
            if title:
                keep(title)
                keep("")
            for sentence in sentences:
                spans.append((length, length + len(sentence)))
                keep(sentence)
            if after < len(lines) and lines[after].strip():
                keep("")
            at = after
            continue
        if _COMMENT.fullmatch(lines[at]) and not _MARKUP.match(lines[at]):
            after = _below(lines, at)
            # An empty comment ends an indented block and says nothing of what follows it.
            at = after if lines[at].strip() != ".." or after == at + 1 or lines[at + 1].strip() else at + 1
            continue
        keep(lines[at])
        at += 1
    return "\n".join(out), spans


def _below(lines: Sequence[str], at: int) -> int:
    """The line after the block that is indented more than line `at`."""
    indent = _indent(lines[at])
    after, last = at + 1, at + 1
    while after < len(lines) and (not lines[after].strip() or _indent(lines[after]) > indent):
        after += 1
        if lines[after - 1].strip():
            last = after
    return last


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _table(lines: Sequence[str], at: int, *, inner: bool = False) -> tuple[int, str, list[str]] | None:
    """(line after, title, sentences) of the table that begins at line `at`; None where none does, or where it cannot be read."""
    line = lines[at]
    if _GRID.fullmatch(line) or _SIMPLE.fullmatch(line):
        after = _grid_end(lines, at) if _GRID.fullmatch(line) else _simple_end(lines, at)
        parsed = _parsed([row.strip("\r") for row in lines[at:after]], grid=_GRID.fullmatch(line) is not None) if after else None
        return (after, "", rows_as_sentences(table_rows(parsed[0]), parsed[1] or None)) if parsed and parsed[0] else None
    directive = _DIRECTIVE.fullmatch(line.rstrip("\r"))
    if directive is None or inner:
        return None
    after = _below(lines, at)
    body = [row.rstrip("\r") for row in lines[at + 1 : after]]
    options: dict[str, str] = {}
    while body and (match := re.fullmatch(r"[ \t]+:([\w-]+):[ \t]*(.*)", body[0])):
        options[match[1]] = match[2]
        body.pop(0)
    heads = int(options["header-rows"]) if options.get("header-rows", "").isdecimal() else 0
    if directive["name"] == "csv-table":
        if "file" in options or "url" in options:
            return None
        sign = options.get("delim", ",")
        delimiter = {"tab": "\t", "space": " "}.get(sign, sign if len(sign) == 1 else ",")
        text = "\n".join(row.strip() for row in body if row.strip())
        try:
            rows = [cells for cells in csv.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True) if cells]
            if "header" in options:
                rows = [*csv.reader(io.StringIO(options["header"]), delimiter=delimiter, skipinitialspace=True), *rows]
                heads += 1
        except csv.Error:
            return None
    elif directive["name"] == "list-table":
        rows = _listed(body)
    else:
        begin = next((n for n, row in enumerate(body) if row.strip()), None)
        found = _table(body, begin, inner=True) if begin is not None else None
        whole = found is not None and not any(row.strip() for row in body[found[0] :])
        return (after, directive["title"].strip(), found[2]) if found is not None and whole else None
    return (after, directive["title"].strip(), rows_as_sentences(table_rows(rows), heads or None)) if rows else None


def _listed(body: Sequence[str]) -> list[list[str]]:
    """The cells of a `list-table`: a list of lists."""
    rows: list[list[str]] = []
    deep = None  # where the sign of a cell stands; what stands deeper is text of the cell
    for line in body:
        first = re.match(r"(?P<row>[ \t]*[*+-][ \t]+)(?P<cell>[*+-](?:[ \t]+|$))(?P<text>.*)", line)
        if first and (deep is None or len(first["row"]) == deep):
            deep = len(first["row"])
            rows.append([first["text"]])
            continue
        match = re.match(r"(?P<indent>[ \t]*)[*+-](?:[ \t]+|$)(?P<text>.*)", line)
        if match and rows and len(match["indent"]) == deep:
            rows[-1].append(match["text"])
        elif rows and rows[-1]:
            rows[-1][-1] += " " + line.strip()
    return rows


def _grid_end(lines: Sequence[str], at: int) -> int:
    after = at
    while after < len(lines) and lines[after].strip() and lines[after].lstrip()[0] in "+|":
        after += 1
    return after if after - at >= 3 and _GRID.fullmatch(lines[after - 1]) else 0


def _simple_end(lines: Sequence[str], at: int) -> int:
    """Behind the last border: one that an empty line or the end follows. A table may hold empty lines before."""
    borders = 1
    for after in range(at + 1, min(len(lines), at + 2000)):
        if _SIMPLE.fullmatch(lines[after]) and _indent(lines[after]) == _indent(lines[at]):
            borders += 1
            if borders >= 2 and (after + 1 == len(lines) or not lines[after + 1].strip()):
                return after + 1
    return 0


def _parsed(block: Sequence[str], *, grid: bool) -> tuple[list[list[str]], int] | None:
    """(rows of cells, how many of them are heads) by docutils; None where it finds the table malformed."""
    from docutils.parsers.rst import tableparser
    from docutils.statemachine import StringList

    indent = min(_indent(line) for line in block if line.strip())
    lines = [line[indent:].rstrip() for line in block]
    width = max(map(len, lines))
    parser = tableparser.GridTableParser() if grid else tableparser.SimpleTableParser()
    try:
        _, heads, body = parser.parse(StringList([line.ljust(width) if grid else line for line in lines], source=""))
    except (tableparser.TableMarkupError, AssertionError, IndexError, ValueError):
        return None
    rows = []
    for row in [*heads, *body]:
        # None stands where a cell of another row or column reaches in.
        rows.append(["" if cell is None else " ".join(" ".join(part.split()) for part in cell[3] if part.strip()) for cell in row])
    return rows, len(heads)
