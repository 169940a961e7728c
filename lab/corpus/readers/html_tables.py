"""Tables of a page: which hold data, and their cells as a grid."""

from __future__ import annotations

from typing import Any

from lab.corpus.readers.compose import clean
from lab.corpus.readers.html_main import BLOCKS

_WIDEST = 200  # columns of a table; what lies beyond is no table to be read row by row


def is_data(table: Any, cells: list[list[Any]]) -> bool:
    """Whether a table holds data; else it lays out a page. Nested tables, headings and blocks in cells speak for layout."""
    if (table.get("role") or "").lower() in {"presentation", "none"} or table.find(".//table") is not None:
        return False
    filled = [row for row in cells if sum(bool(cell.text_content().strip()) for cell in row) >= 2]
    if len(filled) < 2:
        return False
    if any(cell.find(f".//{tag}") is not None for row in cells for cell in row for tag in ("h1", "h2", "h3", "pre", "ul", "dl")):
        return False
    texts = [len(cell.text_content()) for row in filled for cell in row]
    return table.find(".//th") is not None or max(texts) <= 600


def in_body(row: list[Any]) -> bool:
    return all(ancestor.tag != "thead" for cell in row[:1] for ancestor in cell.iterancestors())


def grid(cells: list[list[Any]]) -> list[list[str]]:
    """The texts of a table's cells with spans filled in: a cell over several rows or columns is repeated over rows, empty over further columns."""
    out: list[list[str]] = []
    open_spans: dict[int, tuple[int, str]] = {}  # column → rows left, text
    for row in cells:
        line: list[str] = []
        waiting = list(row)
        while (waiting or (len(line) in open_spans)) and len(line) < _WIDEST:
            at = len(line)
            if at in open_spans:
                left, text = open_spans.pop(at)
                line.append(text)
                if left > 1:
                    open_spans[at] = (left - 1, text)
                continue
            cell = waiting.pop(0)
            text = _cell_text(cell)
            across, down = _span(cell, "colspan"), _span(cell, "rowspan")
            if len(line) + across > _WIDEST:
                across = max(1, _WIDEST - len(line))
            for n in range(across):
                line.append(text if n == 0 or cell.tag == "th" else "")
                if down > 1:
                    open_spans[at + n] = (down - 1, text if n == 0 or cell.tag == "th" else "")
        out.append(line)
    return out


def _cell_text(cell: Any) -> str:
    parts: list[str] = []
    _gather(cell, parts)
    return " ".join(clean("".join(parts)).split())


def _gather(element: Any, parts: list[str]) -> None:
    parts.append(element.text or "")
    for child in element:
        if isinstance(child.tag, str):
            apart = " " if child.tag in BLOCKS or child.tag == "br" else ""
            raised = child.tag == "sup" and parts[-1][-1:].isdigit() and (child.text or "x").strip()[:1].isdigit()
            parts.append("^" if raised else apart)
            _gather(child, parts)
            parts.append(apart)
        parts.append(child.tail or "")


def _span(cell: Any, name: str) -> int:
    word = (cell.get(name) or "1").strip()
    return max(1, min(int(word), 100)) if word.isdigit() else 1
