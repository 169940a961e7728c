"""A page's lines in reading order: columns, paragraphs, and what returns from page to page."""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from lab.corpus.readers.pdf_lines import Line


@dataclass(frozen=True, slots=True)
class Group:
    """The lines of one paragraph, or of one heading (`level` > 0)."""

    lines: tuple[Line, ...]
    level: int = 0


# ── columns ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def in_order(pieces: Sequence[Line]) -> list[list[Line]]:
    """Columns in reading order, each a list of whole lines from top to bottom. Text that stands on its side comes last."""
    upright = [piece for piece in pieces if piece.upright]
    aside = [piece for piece in pieces if not piece.upright]
    columns = [_lines(column) for column in _columns(upright, 0)]
    return columns + ([[piece] for piece in aside] if aside else [])


def _columns(pieces: Sequence[Line], depth: int) -> list[list[Line]]:
    """Bands between lines that cross the gutter, each band from its left column to its right one."""
    gutter = _gutter(pieces) if depth < 3 else None
    if gutter is None:
        return [list(pieces)] if pieces else []
    crossing = sorted((p for p in pieces if p.left < gutter < p.right), key=lambda p: -p.top)
    out: list[list[Line]] = []
    rest = [p for p in pieces if not p.left < gutter < p.right]
    edges = [p.bottom for p in crossing]
    for at in range(len(crossing) + 1):
        above = edges[at - 1] if at else float("inf")
        below = edges[at] if at < len(crossing) else float("-inf")
        band = [p for p in rest if below < (p.top + p.bottom) / 2 <= above]
        if at and out and out[-1] and crossing[at - 1] is not None and not band and at < len(crossing):
            out[-1].append(crossing[at])
            continue
        if band:
            out += _columns([p for p in band if p.right <= gutter], depth + 1)
            out += _columns([p for p in band if p.left >= gutter], depth + 1)
        if at < len(crossing):
            out.append([crossing[at]])
    return _merged(out)


def _merged(columns: Sequence[list[Line]]) -> list[list[Line]]:
    """Neighbouring runs of crossing lines made one column, so that they can be a paragraph."""
    out: list[list[Line]] = []
    for column in columns:
        if out and len(column) == 1 and out[-1] and out[-1][-1].bottom >= column[0].bottom and _alike(out[-1][-1], column[0]) and len(out[-1]) < 400:
            out[-1].append(column[0])
        elif column:
            out.append(list(column))
    return out


def _alike(a: Line, b: Line) -> bool:
    return abs(a.left - b.left) < 30 and a.right - a.left > 0 and abs(a.size - b.size) < 0.6


def _gutter(pieces: Sequence[Line]) -> float | None:
    """The x of a gap that few lines cross, with running text on both sides; None for a page of one column and for tables without rules."""
    if len(pieces) < 8:
        return None
    left, right = min(p.left for p in pieces), max(p.right for p in pieces)
    width = right - left
    if width < 150:
        return None
    best: tuple[int, float, float] | None = None
    steps = 60
    for step in range(int(steps * 0.2), int(steps * 0.8)):
        x = left + width * step / steps
        a = [p for p in pieces if p.right <= x]
        b = [p for p in pieces if p.left >= x]
        crossing = len(pieces) - len(a) - len(b)
        if len(a) < 4 or len(b) < 4 or crossing > 0.25 * len(pieces):
            continue
        if not (_running(a, x - left) and _running(b, right - x) and _beside(a, b)):
            continue
        gap = min(p.left for p in b) - max(p.right for p in a)
        key = (-crossing, gap, -abs(x - (left + right) / 2))
        if best is None or key > best:
            best = (key[0], key[1], key[2])
            found = x
    return found if best is not None else None


def _running(pieces: Sequence[Line], width: float) -> bool:
    """Whether pieces fill their column as text does: cells of a table are short."""
    return statistics.median(p.right - p.left for p in pieces) >= 0.55 * width and statistics.median(len(p.text) for p in pieces) >= 12


def _beside(a: Sequence[Line], b: Sequence[Line]) -> bool:
    """Whether two columns stand beside each other for most of the shorter one's height."""
    low, high = max(min(p.bottom for p in a), min(p.bottom for p in b)), min(max(p.top for p in a), max(p.top for p in b))
    shorter = min(max(p.top for p in a) - min(p.bottom for p in a), max(p.top for p in b) - min(p.bottom for p in b))
    return high - low > 0.5 * shorter


def _lines(pieces: Sequence[Line]) -> list[Line]:
    """Pieces on one baseline joined, left to right; lines from top to bottom."""
    rows: list[list[Line]] = []
    for piece in sorted(pieces, key=lambda p: (-(p.top + p.bottom) / 2, p.left)):
        middle = (piece.top + piece.bottom) / 2
        for row in reversed(rows[-3:]):
            if row[0].bottom - 0.15 * row[0].size <= middle <= row[0].top + 0.15 * row[0].size:
                row.append(piece)
                break
        else:
            rows.append([piece])
    out = []
    for row in rows:
        ordered = sorted(row, key=lambda p: (p.left, p.right))
        if len(ordered) == 1:
            out.append(ordered[0])
            continue
        main = max(ordered, key=lambda p: len(p.text))
        out.append(
            replace(
                main, text=" ".join(p.text for p in ordered), left=ordered[0].left, right=max(p.right for p in ordered),
                bottom=min(p.bottom for p in ordered), top=max(p.top for p in ordered), bold=all(p.bold for p in ordered),
            )
        )  # fmt: skip
    return out


# ── paragraphs ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────

_WORDS = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty"
_NUMBER_ALONE = re.compile(
    rf"(?i)(?:chapter|part|book|section|appendix|annex)(?:\s+(?:\d{{1,3}}|[ivxlc]+|[a-z]|{_WORDS.replace(' ', '|')}))?|(?:{_WORDS.replace(' ', '|')})(?:\s*-?\s*(?:one|two|three|four|five|six|seven|eight|nine))?"
)
_NUMBER_FIRST = re.compile(r"\s*(?:\d{1,3}(?:\.\d{1,3})*|[A-Z](?:\.\d{1,3})+)[.)]?\s")
_ITEM = re.compile(r"^(?:[•‣◦▪●○■□–—*·]|\(?(?:\d{1,2}|[a-z]|[ivx]{1,4})[.)])\s+\S|^-\s+\S")


def paragraphs(columns: Sequence[Sequence[Line]], level: Callable[[Line], int]) -> list[Group]:
    """The lines of each column gathered into paragraphs and headings. A paragraph that runs over into the next column is put together."""
    out: list[Group] = []
    for column in columns:
        steps = [a.bottom - b.bottom for a, b in pairwise(column) if 0 < a.bottom - b.bottom < 4 * max(a.size, 4)]
        usual = statistics.median(steps) if steps else 0.0
        group: list[Line] = []
        rank = 0
        for line in column:
            its = level(line)
            if group and not _goes_on(group[-1], line, rank, its, usual):
                out.append(Group(tuple(group), rank))
                group = []
            if not group:
                rank = its
            group.append(line)
        if group:
            out.append(Group(tuple(group), rank))
    return out


def numbered_apart(groups: Sequence[Group]) -> list[Group]:
    """A number on a line of its own ("CHAPTER", "ONE", "Part II") made one heading with the title below it."""
    out: list[Group] = []
    waiting: list[Group] = []
    for group in groups:
        text = " ".join(line.text for line in group.lines).strip()
        if _NUMBER_ALONE.fullmatch(text) and (group.level or group.lines[0].size >= 9):
            waiting.append(group)
            continue
        if waiting and group.level:
            lines = tuple(line for before in waiting for line in before.lines) + group.lines
            out.append(Group(lines, group.level))
        else:
            out += [*waiting, group]
        waiting = []
    return out + waiting


def _goes_on(last: Line, line: Line, rank: int, its: int, usual: float) -> bool:
    if bool(rank) != bool(its):
        return False
    step = last.bottom - line.bottom
    if rank:  # a heading over two lines
        return abs(last.size - line.size) < 0.3 and 0 < step < 1.7 * last.size and last.bold == line.bold and not _NUMBER_FIRST.match(line.text)
    if step <= 0 or step > max(1.3 * usual, 1.25 * last.size) or abs(last.size - line.size) > 1.5:
        return False
    return not _ITEM.match(line.text)


# ── what returns ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────

_PAGE_NUMBER = re.compile(r"[-–—(]?\s*\d{1,4}\s*[-–—)]?")
_NUMBERS = re.compile(r"\d+|\b[ivxlc]+\b", re.IGNORECASE)


def running_heads(pages: Sequence[Sequence[Line]], sizes: Sequence[tuple[float, float]]) -> set[tuple[int, int]]:
    """(page, index) of the lines that are running heads, feet and page numbers.

    Known by place: a height near the edge at which many pages have a line, with far fewer different texts than pages (numbers aside). The first
    lines of the text also share a height, but they differ from page to page.
    """
    if len(pages) < 3:
        return set()
    at_height: dict[tuple[bool, int], list[tuple[int, int, str]]] = defaultdict(list)
    for number, lines in enumerate(pages):
        height = sizes[number][1]
        for index, line in enumerate(lines):
            middle = (line.top + line.bottom) / 2
            if middle > 0.87 * height or middle < 0.11 * height or (middle < 0.17 * height and _PAGE_NUMBER.fullmatch(line.text.strip())):
                place = round((height - middle if middle > height / 2 else middle) / 4)
                at_height[(middle > height / 2, place)].append((number, index, _NUMBERS.sub("#", line.text).strip().lower()))
    found: set[tuple[int, int]] = set()
    for (top, place), entries in sorted(at_height.items()):
        near = entries + at_height.get((top, place + 1), [])
        on = {number for number, _, _ in near}
        texts = {text for _, _, text in near}
        if len(on) >= max(3, 0.25 * len(pages)) and len(texts) <= max(2, 0.34 * len(near)):
            found.update((number, index) for number, index, _ in near)
            continue
        # a text that returns on at least three pages, whatever the others at this height are
        by_text: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for number, index, text in near:
            by_text[text].append((number, index))
        for text, places in by_text.items():
            if len({number for number, _ in places}) >= (3 if text != "#" else 2) and (len(places) >= 0.1 * len(pages) or text == "#"):
                found.update(places)
    return found
