"""Markdown (CommonMark with tables), read with markdown-it-py.

The stored text is the file's own text, so that an offset is an offset into what the author wrote, with one exception: a table row becomes
one sentence with the column heads in it ("For Pump A, the test interval is 6 months."), because a bare row says nothing when it stands alone.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

from lab.corpus.metadata import front_matter_values
from lab.corpus.readers.compose import iso_date
from lab.corpus.readers.plain import split_lines, stem_title
from lab.corpus.readers.tables import rows_as_sentences
from lab.records import Block, BlockKind, Document, Hyperlink


@functools.cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")


def read(source: str, text: str) -> Document:
    lines = split_lines(text)
    out: list[str] = []
    position = 0
    line = 0
    starts: dict[int, int] = {}  # line of the file → offset in the stored text
    blocks: list[tuple[BlockKind, int, int, int]] = []  # kind, start, end, level
    title = ""

    def copy_until(stop: int) -> None:
        nonlocal position, line
        while line < stop:
            starts[line] = position
            out.append(lines[line])
            position += len(lines[line])
            line += 1
        starts[line] = position

    metadata, begin = front_matter(lines)
    title = metadata.get("title", "")
    copy_until(begin)
    # Blank lines in its place, so that the parser's line numbers stay those of the file.
    tokens = _parser().parse("\n" * begin + "".join(lines[begin:]))
    pending: list[tuple[BlockKind, int, int, int]] = []  # kind, first line, line after, level
    for index, token in enumerate(tokens):
        if token.map is None:
            continue
        first, after = token.map
        if token.type == "table_open":
            copy_until(first)
            for sentence in rows_as_sentences(_table(tokens, index)):
                blocks.append(("row", position, position + len(sentence), 0))
                out.append(sentence + "\n")
                position += len(sentence) + 1
            line = after
            starts[line] = position
        elif token.type == "heading_open" and token.level == 0:
            copy_until(after)
            heading = plain_inline(tokens[index + 1])
            if not title:
                title = heading
            pending.append(("heading", first, after, int(token.tag[1])))
        elif token.type in {"fence", "code_block"}:
            copy_until(after)
            pending.append(("code", first, after, 0))
        elif token.type in {"paragraph_open", "html_block", "heading_open"}:
            copy_until(after)
            pending.append(("paragraph", first, after, 0))
    copy_until(len(lines))

    stored = "".join(out)
    for kind, first, after, level in pending:
        start, end = starts[first], starts[after]
        while end > start and stored[end - 1].isspace():
            end -= 1
        while start < end and stored[start].isspace() and kind != "code":
            start += 1
        if end > start:
            blocks.append((kind, start, end, level))
    ordered = sorted(blocks, key=lambda block: (block[1], -block[2]))
    said = front_matter_values(metadata)
    return Document(
        source=source,
        title=title or stem_title(source),
        text=stored,
        blocks=tuple(Block(kind, start, end, level) for kind, start, end, level in _flat(ordered)),
        format="markdown",
        metadata=said,
        anchors=anchors_of(stored, ordered),
        hyperlinks=hyperlinks(stored),
        source_url=metadata.get("source_url") or metadata.get("url", ""),
        version=metadata.get("version", ""),
        updated=iso_date(metadata.get("last_updated") or metadata.get("updated") or metadata.get("date")),
    )


_INLINE_LINK = re.compile(
    r"(?<!!)\[(?P<text>[^\[\]\n]*(?:\[[^\[\]\n]*\][^\[\]\n]*)*)\]\(\s*<?(?P<target>[^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)*)>?(?:\s+[\"'(][^\n]*?[\"')])?\s*\)"
)
_REFERENCE = re.compile(r"(?<!!)\[(?P<text>[^\[\]\n]+)\]\[(?P<label>[^\[\]\n]*)\]")
_TARGET = re.compile(r"^ {0,3}\[(?P<label>[^\]\n]+)\]:\s*<?(?P<target>\S+?)>?(?:\s+[\"'(].*)?$", re.MULTILINE)
_EXPLICIT_ANCHOR = re.compile(r"<a\s+(?:name|id)\s*=\s*[\"'](?P<name>[^\"']+)[\"']|\{#(?P<attribute>[\w:.-]+)\}")


def hyperlinks(text: str) -> tuple[Hyperlink, ...]:
    """The references an author made: `[words](target)` and `[words][label]`, by the span of the whole, in order."""
    targets = {" ".join(m["label"].lower().split()): m["target"] for m in _TARGET.finditer(text)}
    found = [Hyperlink(m.start(), m.end(), m["target"]) for m in _INLINE_LINK.finditer(text) if m["target"]]
    for m in _REFERENCE.finditer(text):
        target = targets.get(" ".join((m["label"] or m["text"]).lower().split()))
        if target:
            found.append(Hyperlink(m.start(), m.end(), target))
    return tuple(sorted(found, key=lambda link: (link.start, link.end)))


def anchors_of(text: str, blocks: Sequence[tuple[BlockKind, int, int, int]]) -> dict[str, int]:
    """`#name` → offset: the headings, named as most sites name them (lower case, words joined by hyphens), and names given in so many words."""
    found: dict[str, int] = {}
    for kind, start, end, _ in blocks:
        if kind == "heading":
            words = re.sub(r"[^\w\s-]", "", text[start:end].splitlines()[0].strip("# ").lower())
            slug = re.sub(r"\s+", "-", words.strip())
            name, number = f"#{slug}", 1
            while name in found:
                name, number = f"#{slug}-{number}", number + 1
            found[name] = start
    for match in _EXPLICIT_ANCHOR.finditer(text):
        found.setdefault(f"#{match['name'] or match['attribute']}", match.start())
    return found


def front_matter(lines: Sequence[str]) -> tuple[dict[str, str], int]:
    """(`key: value` pairs, number of lines) of a block between two lines `---` at the very top; ({}, 0) where there is none."""
    if not lines or lines[0].rstrip() != "---":
        return {}, 0
    pairs: dict[str, str] = {}
    for at, line in enumerate(lines[1:200], 1):
        if line.rstrip() in {"---", "..."}:
            return (pairs, at + 1) if pairs else ({}, 0)
        if not line.strip():
            return {}, 0
        key, sign, value = line.partition(":")
        if sign and re.fullmatch(r"[A-Za-z][\w -]*", key):
            pairs[key.strip()] = value.strip().strip("\"'")
    return {}, 0


def _flat(blocks: Sequence[tuple[BlockKind, int, int, int]]) -> list[tuple[BlockKind, int, int, int]]:
    """Without blocks that lie inside an earlier one."""
    flat: list[tuple[BlockKind, int, int, int]] = []
    for block in blocks:
        if not flat or block[1] >= flat[-1][2]:
            flat.append(block)
    return flat


def plain_inline(token: Token) -> str:
    """The words of an inline token, without marks."""
    parts = [child.content if child.type in {"text", "code_inline"} else " " if "break" in child.type else "" for child in token.children or []]
    return "".join(parts).strip()


def _table(tokens: Sequence[Token], at: int) -> list[list[str]]:
    """The cells of the table that opens at `tokens[at]`, heads first."""
    rows: list[list[str]] = []
    for token in tokens[at + 1 :]:
        if token.type == "table_close":
            break
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            rows[-1].append(plain_inline(token))
    return rows
