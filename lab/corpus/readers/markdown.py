"""Markdown (CommonMark with tables), read with markdown-it-py.

The stored text is the file's own text, so that an offset is an offset into what the author wrote, with one exception: a table row becomes
one sentence with the column heads in it ("For Pump A, the test interval is 6 months."), because a bare row says nothing when it stands alone.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from lab.corpus.metadata import Quoted, front_matter_values
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
    title = _said(metadata, "title")
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
            for sentence in rows_as_sentences(_table(tokens, index), 1):
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
        terms=tuple(_definitions(stored, ordered)),
        source_url=_said(metadata, "source_url", "url"),
        version=_said(metadata, "version"),
        updated=iso_date(_said(metadata, "last_updated", "updated", "date")),
    )


_INLINE_LINK = re.compile(
    r"(?<!!)\[(?P<text>[^\[\]\n]*(?:\[[^\[\]\n]*\][^\[\]\n]*)*)\]\(\s*<?(?P<target>[^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)*)>?(?:\s+[\"'(][^\n]*?[\"')])?\s*\)"
)
_REFERENCE = re.compile(r"(?<!!)\[(?P<text>[^\[\]\n]+)\]\[(?P<label>[^\[\]\n]*)\]")
_TARGET = re.compile(r"^ {0,3}\[(?P<label>[^\]\n]+)\]:\s*<?(?P<target>\S+?)>?(?:\s+[\"'(].*)?$", re.MULTILINE)
_HTML_LINK = re.compile(r"<a\s[^<>]*?href\s*=\s*[\"'](?P<target>[^\"'<>\n]+)[\"'][^<>]*>.{0,500}?</a>", re.IGNORECASE | re.DOTALL)
_EXPLICIT_ANCHOR = re.compile(r"<a\s+(?:name|id)\s*=\s*[\"'](?P<name>[^\"']+)[\"']|\{#(?P<attribute>[\w:.-]+)\}")


def hyperlinks(text: str) -> tuple[Hyperlink, ...]:
    """The references an author made: `[words](target)`, `[words][label]` and `<a href>`, by the span of the whole, in order."""
    targets = {" ".join(m["label"].lower().split()): m["target"] for m in _TARGET.finditer(text)}
    found = [Hyperlink(m.start(), m.end(), m["target"]) for m in _INLINE_LINK.finditer(text) if m["target"]]
    found += [Hyperlink(m.start(), m.end(), m["target"]) for m in _HTML_LINK.finditer(text) if len(m[0]) < 2000]
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


_GLOSSARY = re.compile(r"gloss|definition|terminolog|\bterms\b|abbreviation|acronym", re.IGNORECASE)
_MEANING = re.compile(r"(?m)^(?P<term>\S[^\n]{0,78})\n(?:[ \t]*\n)?(?P<sign>:[ \t]+)\S[^\n]*(?:\n(?![ \t]*\n|:[ \t])[^\n]+)*")


def _definitions(text: str, blocks: Sequence[tuple[BlockKind, int, int, int]]) -> list[tuple[int, int, int]]:
    """(start, end of a term, end of its meaning) of definition lists (`Term`, below it `: meaning`) under a heading that says it is a glossary."""
    headings = [(start, text[start:end]) for kind, start, end, _ in blocks if kind == "heading"]
    code = [(start, end) for kind, start, end, _ in blocks if kind == "code"]
    found = []
    for match in _MEANING.finditer(text):
        above = next((words for start, words in reversed(headings) if start <= match.start()), "")
        if _GLOSSARY.search(above) and not any(a <= match.start() < b for a, b in code):
            found.append((match.start("term"), match.start("term") + len(match["term"].rstrip()), match.end()))
    return found


def front_matter(lines: Sequence[str]) -> tuple[dict[str, Any], int]:
    """(values as text, lists and mappings of texts; number of lines) of the YAML between two lines `---` at the very top; ({}, 0) where there is none."""
    if not lines or lines[0].rstrip() != "---" or (len(lines) > 1 and not lines[1].strip()):
        return {}, 0
    end = next((at for at, line in enumerate(lines[1:400], 1) if line.rstrip() in {"---", "..."}), None)
    if end is None:
        return {}, 0
    block = "".join(lines[1:end])
    if len(block) > 100_000 or re.search(r"(?m)^(?:[^\n#\"']*[\s:\[{,-])?[&*][\w-]+(?=\s|$)", block):  # anchors may multiply without end
        return {}, 0
    import yaml

    try:
        found = yaml.load(block, Loader=_loader())
    except (yaml.YAMLError, RecursionError):
        return {}, 0
    if not isinstance(found, dict) or not all(isinstance(key, str) and re.fullmatch(r"[A-Za-z][\w .-]*", key) for key in found):
        return {}, 0
    return {key.strip(): value for key, value in found.items()}, end + 1


@functools.cache
def _loader() -> Any:
    """PyYAML's loader of texts, which tells those that stand in quotes."""
    import yaml

    class Loader(yaml.BaseLoader):  # type: ignore[misc]
        def construct_scalar(self, node: Any) -> Any:
            value = super().construct_scalar(node)
            return Quoted(value) if node.style in {"'", '"'} else value

    return Loader


def _said(values: Mapping[str, Any], *names: str) -> str:
    """The first of some values that is a text."""
    return next((value for name in names if isinstance(value := values.get(name), str) and value), "")


def _flat(blocks: Sequence[tuple[BlockKind, int, int, int]]) -> list[tuple[BlockKind, int, int, int]]:
    """Without blocks that lie inside an earlier one."""
    flat: list[tuple[BlockKind, int, int, int]] = []
    for block in blocks:
        if not flat or block[1] >= flat[-1][2]:
            flat.append(block)
    return flat


def plain_inline(token: Token) -> str:
    """The words of an inline token, without marks."""
    parts = [
        child.content if child.type in {"text", "code_inline"} else " " if "break" in child.type or child.content.lower().startswith("<br") else ""
        for child in token.children or []
    ]
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
