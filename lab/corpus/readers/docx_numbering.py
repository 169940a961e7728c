"""Automatic numbers of a DOCX: what Word writes before a paragraph or heading that carries a list level (ECMA-376, part 1, 17.9)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from lab.corpus.readers.numbering import numeral

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_KINDS = {"decimal": "1", "decimalZero": "1", "lowerLetter": "a", "upperLetter": "A", "lowerRoman": "i", "upperRoman": "I"}


@dataclass(frozen=True, slots=True)
class _Level:
    format: str
    text: str
    start: int
    style: str | None


@dataclass(slots=True)
class Numbering:
    """The definitions of a document, and how far each list has counted. Call `label` once a paragraph, in reading order."""

    levels: dict[str, dict[int, _Level]] = field(default_factory=dict)  # abstract definition → level → what it looks like
    lists: dict[str, str] = field(default_factory=dict)  # number id → abstract definition
    restarts: dict[str, dict[int, int]] = field(default_factory=dict)  # number id → level → where it starts anew
    styles: dict[str, tuple[str | None, int | None]] = field(default_factory=dict)  # paragraph style → (number id, level)
    counts: dict[str, dict[int, int]] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)

    def label(self, paragraph: Any, style: str) -> tuple[str, bool] | None:
        """(number as written, or "" for a bullet; whether it is a list's) of a paragraph that carries a list level, else None."""
        own = paragraph.find(f"{_W}pPr/{_W}numPr")
        number, level = _numbers(own)
        styled = self.styles.get(style, (None, None))
        number = number if number is not None else styled[0]
        if number is None or number == "0" or number not in self.lists:
            return None
        abstract = self.lists[number]
        levels = self.levels.get(abstract, {})
        if level is None:
            level = next((at for at, one in levels.items() if one.style is not None and one.style == style), styled[1] or 0)
        if level not in levels:
            return "", True
        counts = self.counts.setdefault(abstract, {})
        if number not in self.begun:
            self.begun.add(number)
            for at, start in self.restarts.get(number, {}).items():
                counts[at] = start - 1
        counts[level] = counts.get(level, levels[level].start - 1) + 1
        for deeper in [at for at in counts if at > level]:
            del counts[deeper]
        if levels[level].format in {"bullet", "none"}:
            return "", True

        def part(match: re.Match[str]) -> str:
            at = int(match[1]) - 1
            one = levels.get(at)
            return numeral(counts.get(at, one.start), _KINDS.get(one.format, "1")) if one is not None else ""

        return re.sub(r"%(\d)", part, levels[level].text).strip(), own is not None


def of(document: Any) -> Numbering:
    """The numbering of an opened DOCX; an empty one where it has none."""
    import lxml.etree

    found = Numbering()
    part = next((part for part in document.part.package.iter_parts() if str(part.partname) == "/word/numbering.xml"), None)
    if part is None:
        return found
    try:
        root = lxml.etree.fromstring(part.blob, lxml.etree.XMLParser(resolve_entities=False, no_network=True))
    except lxml.etree.XMLSyntaxError:
        return found
    for abstract in root.iter(_W + "abstractNum"):
        found.levels[abstract.get(_W + "abstractNumId") or ""] = {
            int(level.get(_W + "ilvl") or 0): _Level(
                _value(level, "numFmt") or "decimal", _value(level, "lvlText") or "", _int(_value(level, "start"), 1), _value(level, "pStyle")
            )
            for level in abstract.iter(_W + "lvl")
            if (level.get(_W + "ilvl") or "0").isdecimal()
        }
    for number in root.iter(_W + "num"):
        name = number.get(_W + "numId") or ""
        found.lists[name] = _value(number, "abstractNumId") or ""
        for override in number.iter(_W + "lvlOverride"):
            start = _value(override, "startOverride")
            if start is not None and (override.get(_W + "ilvl") or "0").isdecimal():
                found.restarts.setdefault(name, {})[int(override.get(_W + "ilvl") or 0)] = _int(start, 1)
    elements = {element.get(_W + "styleId"): element for element in document.styles.element.iter(_W + "style")}
    for name in elements:
        at, seen = name, set()
        number_id, level = None, None
        while at in elements and at not in seen:
            seen.add(at)
            own_number, own_level = _numbers(elements[at].find(f"{_W}pPr/{_W}numPr"))
            number_id, level = number_id if number_id is not None else own_number, level if level is not None else own_level
            based = elements[at].find(_W + "basedOn")
            at = based.get(_W + "val") if based is not None else None
        found.styles[name or ""] = (number_id, level)
    return found


def _numbers(properties: Any) -> tuple[str | None, int | None]:
    if properties is None:
        return None, None
    level = _value(properties, "ilvl")
    return _value(properties, "numId"), int(level) if level is not None and level.isdecimal() else None


def _value(element: Any, name: str) -> str | None:
    child = element.find(_W + name)
    return child.get(_W + "val") if child is not None else None


def _int(word: str | None, default: int) -> int:
    return int(word) if word is not None and word.isdecimal() else default
