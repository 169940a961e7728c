"""Tables as sentences: a bare row says nothing when it stands alone, so each row becomes one sentence with the column heads in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any


def rows_as_sentences(rows: Sequence[Sequence[Any]], heads: int | None = None) -> list[str]:
    """One sentence a row. `heads` says how many rows at the top are heads; None: the first, where it looks like one.

    >>> rows_as_sentences([["Pump", "Test interval"], ["Pump A", "6 months"]])
    ['For Pump A, the test interval is 6 months.']
    >>> rows_as_sentences([["Pump A", "6 months"], ["Pump B", "3 months"]])
    ['Pump A: 6 months.', 'Pump B: 3 months.']
    """
    if not rows:
        return []
    texts = [[str(cell).strip() for cell in row] for row in rows]
    if heads is None:
        heads = 1 if _looks_like_heads(texts[0]) else 0
    columns = _merged(texts[:heads])
    sentences = []
    for cells in texts[heads:]:
        if not any(cells):
            continue
        if not columns:
            first, *others = [cell.rstrip(".") for cell in cells if cell]
            sentences.append(f"{first}: {'; '.join(others)}." if others else f"{first}.")
            continue
        parts = [
            f"the {_uncapital(head)} is {cell.rstrip('.')}" if head else cell for head, cell in zip(columns[1:], cells[1:], strict=False) if cell
        ]
        parts += [cell for cell in cells[len(columns) :] if cell]
        subject = cells[0] or "this row"
        sentences.append(f"For {subject}, {'; '.join(parts)}." if parts else f"{columns[0]}: {subject}." if columns[0] else f"{subject}.")
    if not sentences and any(columns):
        sentences.append("; ".join(head for head in columns if head) + ".")
    return sentences


def _looks_like_heads(cells: Sequence[str]) -> bool:
    """Short words without numbers, years apart: the first row of a table of data has them too, so a number is the sign that it is data."""
    return all(len(cell) <= 60 and (not re.search(r"\d", cell) or re.fullmatch(r"(?:19|20)\d\d", cell)) for cell in cells) and sum(
        map(bool, cells)
    ) >= min(2, len(cells))


def _merged(rows: Sequence[Sequence[str]]) -> list[str]:
    """Heads over several rows made one: a group's name before the names of its columns."""
    width = max((len(row) for row in rows), default=0)
    return [" ".join(dict.fromkeys(row[at] for row in rows if at < len(row) and row[at])) for at in range(width)]


def _uncapital(head: str) -> str:
    """`Test interval` → `test interval`; `PRV` and `pH` stay."""
    return head[0].lower() + head[1:] if len(head) > 1 and head[1].islower() else head
