"""Composing a document's text block by block, for formats whose bytes are no text: what is added keeps its offsets.

Blocks stand apart by an empty line, table rows and list items by a line break.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lab.records import Block, BlockKind, Document, Hyperlink

_SPACES = re.compile(r"[ \t\r\n\f\v\u00a0\u2028\u2029]+")
# What Postgres cannot hold, and marks that no reader sees: they would split words for the index.
_INVISIBLE = re.compile("[\0\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\ufeff\ud800-\udfff\x01-\x08\x0e-\x1f\x7f]")


def clean(text: str) -> str:
    """Without NUL, control and invisible characters."""
    return _INVISIBLE.sub("", text)


@dataclass(slots=True)
class Inline:
    """Running text as it is gathered: white space collapsed, hyperlinks, anchors and terms by offset."""

    text: str = ""
    links: list[Hyperlink] = field(default_factory=list)
    anchors: list[tuple[str, int]] = field(default_factory=list)
    terms: list[tuple[int, int]] = field(default_factory=list)

    def add(self, text: str | None) -> None:
        if not text:
            return
        words = _SPACES.sub(" ", clean(text))
        if words.startswith(" ") and (not self.text or self.text[-1] in " \n"):
            words = words[1:]
        self.text += words

    def newline(self) -> None:
        self.text = self.text.rstrip(" ") + "\n" if self.text else ""

    def link(self, start: int, target: str) -> None:
        """What was added since `start` refers to `target`."""
        end = len(self.text.rstrip())
        while start < end and self.text[start].isspace():
            start += 1
        if end > start and target:
            self.links.append(Hyperlink(start, end, target))

    def marked(self, mark: str) -> None:
        """Puts the sign of a list item before the text."""
        shift = len(mark) - (len(self.text) - len(self.text.lstrip()))
        self.text = mark + self.text.lstrip()
        self.links = [Hyperlink(link.start + shift, link.end + shift, link.target) for link in self.links]
        self.anchors = [(name, at + shift if at else 0) for name, at in self.anchors]
        self.terms = [(a + shift, b + shift) for a, b in self.terms]

    def term(self, start: int) -> None:
        end = len(self.text.rstrip())
        if end > start:
            self.terms.append((start, end))


class Composer:
    """Builds one document. Add in reading order; `document` closes it."""

    def __init__(self, source: str, format: str) -> None:
        self.source = source
        self.format = format
        self.title = ""
        self.metadata: dict[str, Any] = {}
        self.source_url = self.version = self.updated = ""
        self._parts: list[str] = []
        self._length = 0
        self._blocks: list[Block] = []
        self._pages: list[tuple[int, int]] = []
        self._page: int | None = None
        self._anchors: dict[str, int] = {}
        self._waiting: list[str] = []  # anchors of what comes next
        self._links: list[Hyperlink] = []
        self._terms: list[tuple[int, int, int]] = []
        self._last: BlockKind | None = None
        self._item = False

    def page(self, number: int) -> None:
        """What is added from here on stands on this page."""
        self._page = number

    def anchor(self, name: str | None) -> None:
        """A name for the place where the next block begins."""
        if name:
            self._waiting.append(name)

    def add(self, kind: BlockKind, content: Inline | str, *, level: int = 0, item: bool = False) -> tuple[int, int] | None:
        """Adds a block and returns its span; nothing for white space alone. An `item` stands directly below another one."""
        inline = Inline(clean(content)) if isinstance(content, str) else content
        text = inline.text
        begin, end = 0, len(text.rstrip())
        if kind != "code":
            begin = len(text) - len(text.lstrip())
        else:
            begin = len(text) - len(text.lstrip("\n"))
        if end <= begin:
            for name, _ in inline.anchors:
                self.anchor(name)
            return None
        if self._length:
            tight = (kind == self._last == "row") or (item and self._item)
            self._write("\n" if tight else "\n\n")
        start = self._length
        if self._page is not None and (not self._pages or self._pages[-1][1] != self._page):
            self._pages.append((start, self._page))
        for name in self._waiting:
            self._anchors.setdefault(name, start)
        self._waiting.clear()
        self._write(text[begin:end])
        shift = start - begin
        for name, at in inline.anchors:
            self._anchors.setdefault(name, max(at + shift, start))
        for link in inline.links:
            if link.end <= end:
                self._links.append(Hyperlink(link.start + shift, link.end + shift, link.target))
        for a, b in inline.terms:
            self._terms.append((a + shift, b + shift, self._length))
        self._blocks.append(Block(kind, start, self._length, level))
        self._last, self._item = kind, item
        return start, self._length

    def term(self, span: tuple[int, int], end: int) -> None:
        """`span` is a term whose definition ends at `end`."""
        self._terms.append((*span, end))

    @property
    def length(self) -> int:
        return self._length

    def _write(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)

    def document(self, title: str = "") -> Document:
        text = "".join(self._parts)
        return Document(
            source=self.source, title=" ".join(clean(title or self.title).split()), text=text, blocks=tuple(self._blocks), format=self.format,
            metadata=self.metadata, pages=tuple(self._pages), anchors=self._anchors, hyperlinks=tuple(self._links), terms=tuple(self._terms),
            source_url=self.source_url, version=self.version, updated=self.updated,
        )  # fmt: skip


def iso_date(word: str | None) -> str:
    """`2024-05-01` of what a file calls a date (`D:20240501…`, `2024-05-01T10:00:00Z`, `1 May 2024`), "" where it is none."""
    if not word:
        return ""
    found: tuple[int, int, int] | None = None
    match = re.search(r"(?<!\d)(1[89]\d\d|2[01]\d\d)-?(\d\d)-?(\d\d)(?!\d(?:\d{2}|$))|^D:((?:19|20)\d\d)(\d\d)(\d\d)", word)
    if match:
        year, month, day = (int(part) for part in match.groups() if part)
        found = year, month, day
    else:
        months = "jan feb mar apr may jun jul aug sep oct nov dec".split()
        named = re.search(r"(?i)\b(?:(\d{1,2})(?:st|nd|rd|th)?\s+)?([a-z]{3})[a-z]*\.?\s+(?:(\d{1,2})(?:st|nd|rd|th)?,?\s+)?((?:19|20)\d\d)\b", word)
        if named and named[2].lower() in months and (named[1] or named[3]):
            found = int(named[4]), months.index(named[2].lower()) + 1, int(named[1] or named[3])
    try:
        return dt.date(*found).isoformat() if found else ""
    except ValueError:  # 31 February
        return ""


def table_rows(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Rows of one width, cells cleaned, empty rows and empty columns left out."""
    cleaned = [[" ".join(clean(cell).split()) for cell in row] for row in rows]
    cleaned = [row for row in cleaned if any(row)]
    width = max((len(row) for row in cleaned), default=0)
    full = [row + [""] * (width - len(row)) for row in cleaned]
    keep = [at for at in range(width) if any(row[at] for row in full)]
    return [[row[at] for at in keep] for row in full]


def as_metadata(pairs: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata with empty values left out."""
    return {key: value for key, value in pairs.items() if value not in (None, "", [])}
