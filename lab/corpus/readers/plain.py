"""Plain text: paragraphs between blank lines, underlined headings and numbered ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from lab.records import Block, BlockKind, Document

_ADORNMENT = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}\s*$")
_NUMBERED = re.compile(r"(\d{1,3}(?:\.\d{1,3}){0,5})\.?[ \t]+[A-Z“\"‘(].{0,100}$")
_NAMED = re.compile(
    r"(?P<kind>PART|CHAPTER|TITLE|ARTICLE|SECTION|SCHEDULE|ANNEX|APPENDIX|RULE|CLAUSE|Part|Chapter|Title|Article|Section|Schedule|Annex|Appendix|Rule|Clause|§)"
    r"[ \t]*(?P<number>\d{1,3}[A-Za-z]?(?:[.-]\d{1,3}){0,4}|[IVXLC]{1,7}|[A-Z])\.?(?:[ \t]*[:.–—-][ \t]*\S.{0,100}|[ \t]+[A-Z“\"‘(].{0,100})?$"
)
_ROMAN = re.compile(r"[IVXLC]{1,7}\.[ \t]+[A-Z“\"‘(].{0,100}$")
Line = tuple[int, int, str]  # start, end without the line break, text


def read(source: str, text: str) -> Document:
    return structured(source, text, "text", numbered=True)


def stem_title(source: str) -> str:
    """A title for a document without one: its file name without ending."""
    return PurePosixPath(source).name.split(".")[0] or source


def structured(source: str, text: str, format: str, *, numbered: bool) -> Document:
    """A document whose headings are lines underlined (or over- and underlined) with a run of one sign; their level is the order in
    which the styles occur. With `numbered`, a line of its own such as `4.2 Isolation of pumps` or `Article 5` is one too."""
    lines = _lines(text)
    blocks: list[Block] = []
    styles: list[str] = []
    title = ""
    index = 0
    while index < len(lines):
        start, _, content = lines[index]
        if not content.strip():
            index += 1
            continue
        heading = _underlined(lines, index)
        if heading is not None:
            over, words, style, after = heading
            if style not in styles:
                styles.append(style)
            blocks.append(Block("heading", over, lines[after - 1][1], styles.index(style) + 1))
            title = title or words
            index = after
            continue
        stop = index
        while stop < len(lines) and lines[stop][2].strip() and (stop == index or _underlined(lines, stop) is None):
            stop += 1
        run = lines[index:stop]
        level = _numbered(content.strip(), styles) if numbered and (len(run) == 1 or _stands_alone(run)) else 0
        if level:
            blocks.append(Block("heading", start, run[0][1], level))
            index += 1
            continue
        if numbered and not blocks and len(run) == 1 and len(content) <= 100 and not content.rstrip().endswith((".", ";", ":", ",", "!", "?")):
            title = content.strip()  # a line of its own at the very top names the text
        kind: BlockKind = "paragraph"
        previous = text[:start].rstrip() if blocks else ""
        if content[0] in " \t" and previous.endswith("::"):
            kind = "code"
            while stop < len(lines):  # a literal block goes on over blank lines while it stays indented
                follow = stop
                while follow < len(lines) and not lines[follow][2].strip():
                    follow += 1
                if follow == len(lines) or lines[follow][2][0] not in " \t":
                    break
                stop = follow + 1
                while stop < len(lines) and lines[stop][2].strip() and lines[stop][2][0] in " \t":
                    stop += 1
            run = lines[index:stop]
        blocks.append(Block(kind, start + (0 if kind == "code" else len(content) - len(content.lstrip())), run[-1][1]))
        index = stop
    return Document(source=source, title=title or stem_title(source), text=text, blocks=tuple(blocks), format=format)


def _stands_alone(run: Sequence[Line]) -> bool:
    """Whether the first line of a paragraph is one for itself: wrapping does not explain that it ends where it does, since the next line's first word would
    have had room, and that line begins a sentence and is no item of a list."""
    first, second = run[0][2], run[1][2]
    if second[0] in " \t" or _NUMBERED.fullmatch(second) or _NAMED.fullmatch(second) or not re.match(r"[A-Z“\"‘(]", second):
        return False
    width = max(len(content) for _, _, content in run)
    return len(first.rstrip()) + 1 + len(second.split()[0]) <= width


def _numbered(line: str, styles: list[str]) -> int:
    """The level of a heading known by its number (`4.2 Isolation of pumps`, `Article 5`, `Chapter 2: Pumps`, `IV. Costs`), 0 for any other line.

    A number's depth is its level, below the underlined headings; of the named kinds the one that occurs first is the highest, as with underlines.
    """
    if line[-1] in ".;,:" and not re.fullmatch(r"(?:\S+[ \t]+)?[\dA-Z.-]{1,8}\.", line):
        return 0
    match = _NUMBERED.fullmatch(line)
    if match:
        return len(styles) + match[1].count(".") + 1
    named = _NAMED.fullmatch(line)
    style = named["kind"].lower() if named else "roman" if _ROMAN.fullmatch(line) else None
    if style is None:
        return 0
    if style not in styles:
        styles.append(style)
    return styles.index(style) + 1


def split_lines(text: str) -> list[str]:
    """Lines with their line break. Only `\\n` ends a line: form feeds and the like stand inside of one, as Markdown has it."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _lines(text: str) -> list[Line]:
    lines = []
    position = 0
    for raw in split_lines(text):
        content = raw.rstrip()
        lines.append((position, position + len(content), content))
        position += len(raw)
    return lines


def _underlined(lines: list[Line], at: int) -> tuple[int, str, str, int] | None:
    """(start, words, style, index of the line after) of the heading that begins at line `at`, or None."""

    def adornment(index: int) -> str | None:
        if index >= len(lines):
            return None
        match = _ADORNMENT.fullmatch(lines[index][2])
        return match[1] if match else None

    def title(index: int) -> str | None:
        if index >= len(lines):
            return None
        content = lines[index][2]
        return content.strip() if content.strip() and _ADORNMENT.fullmatch(content) is None else None

    over = adornment(at)
    if over is not None:
        words = title(at + 1)
        if words and adornment(at + 2) == over and len(lines[at][2]) >= len(words):
            return lines[at][0], words, over + over, at + 3
        return None
    content = lines[at][2]
    words = title(at)
    under = adornment(at + 1)
    if words and under is not None and content[0] not in " \t" and len(lines[at + 1][2]) >= len(content):
        return lines[at][0], words, under, at + 2
    return None
