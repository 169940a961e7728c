"""Automatic numbers and raised text of an ODT: list styles, the outline of its headings (OASIS OpenDocument 1.3, part 3, 16.31 and 19.880)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lab.corpus.readers.numbering import numeral

_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_STYLE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"


@dataclass(frozen=True, slots=True)
class _Level:
    kind: str  # "" for a bullet
    prefix: str
    suffix: str
    shown: int
    start: int


@dataclass(slots=True)
class Numbering:
    """List styles by name, the outline, which text styles raise, and how far each list has counted."""

    lists: dict[str, dict[int, _Level]] = field(default_factory=dict)
    outline: dict[int, _Level] = field(default_factory=dict)
    raised: set[str] = field(default_factory=set)
    _open: list[tuple[str, dict[int, int]]] = field(default_factory=list)
    _last: dict[str, dict[int, int]] = field(default_factory=dict)  # style → counts of the last list of that style
    _headings: dict[int, int] = field(default_factory=dict)

    def enter(self, element: Any) -> None:
        """A list begins; an inner one has the style of the outer, and counts with it."""
        name = element.get(_TEXT + "style-name") or (self._open[-1][0] if self._open else "")
        if self._open and name == self._open[-1][0]:
            counts = self._open[-1][1]
        elif element.get(_TEXT + "continue-numbering") == "true" or element.get(_TEXT + "continue-list"):
            counts = self._last.get(name, {})
        else:
            counts = {}
        counts = {level: count for level, count in counts.items() if level <= len(self._open) or element.get(_TEXT + "continue-numbering") == "true"}
        self._open.append((name, counts))

    def leave(self) -> None:
        name, counts = self._open.pop()
        self._last[name] = counts
        if self._open and self._open[-1][0] == name:
            depth = len(self._open)
            self._open[-1] = (name, {level: count for level, count in counts.items() if level <= depth})

    def item(self, element: Any) -> str:
        """What stands before the next item of the list that is open: its number, or a dash."""
        if not self._open:
            return "-"
        name, counts = self._open[-1]
        depth = len(self._open)
        levels = self.lists.get(name, {})
        start = element.get(_TEXT + "start-value") or ""
        counts[depth] = int(start) if start.isdecimal() else counts.get(depth, levels[depth].start - 1 if depth in levels else 0) + 1
        return _written(levels, counts, depth) or "-"

    def heading(self, level: int) -> str:
        """The number of the next heading of that level, "" where the outline gives none."""
        start = self.outline[level].start if level in self.outline else 1
        self._headings[level] = self._headings.get(level, start - 1) + 1
        for deeper in [at for at in self._headings if at > level]:
            del self._headings[deeper]
        return _written(self.outline, self._headings, level)


def _written(levels: dict[int, _Level], counts: dict[int, int], level: int) -> str:
    if level not in levels or not levels[level].kind:
        return ""
    one = levels[level]
    parts = [
        numeral(counts.get(at, 1), levels[at].kind) for at in range(max(1, level - one.shown + 1), level + 1) if at in levels and levels[at].kind
    ]
    return (one.prefix + ".".join(parts) + one.suffix).strip()


def of(*roots: Any) -> Numbering:
    """What the styles in these trees (styles.xml, then content.xml) say."""
    found = Numbering()
    for root in roots:
        if root is None:
            continue
        for style in root.iter(_TEXT + "list-style"):
            found.lists[style.get(_STYLE + "name") or ""] = _levels(style)
        for style in root.iter(_TEXT + "outline-style"):
            found.outline = _levels(style)
        for style in root.iter(_STYLE + "style"):
            properties = style.find(_STYLE + "text-properties")
            position = (properties.get(_STYLE + "text-position") or "") if properties is not None else ""
            first = position.split(" ")[0]
            if first == "super" or (first.rstrip("%").isdecimal() and int(first.rstrip("%")) > 0):
                found.raised.add(style.get(_STYLE + "name") or "")
    return found


def _levels(style: Any) -> dict[int, _Level]:
    levels = {}
    for element in style:
        number = element.get(_TEXT + "level") or ""
        if isinstance(element.tag, str) and number.isdecimal():
            shown, start = element.get(_TEXT + "display-levels") or "1", element.get(_TEXT + "start-value") or "1"
            levels[int(number)] = _Level(
                element.get(_STYLE + "num-format") or "", element.get(_STYLE + "num-prefix") or "", element.get(_STYLE + "num-suffix") or "",
                int(shown) if shown.isdecimal() else 1, int(start) if start.isdecimal() else 1,
            )  # fmt: skip
    return levels
