"""Tables as sentences: a bare row says nothing when it stands alone, so each row becomes one sentence with the column heads in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def rows_as_sentences(rows: Sequence[Sequence[Any]]) -> list[str]:
    """One sentence a row.

    >>> rows_as_sentences([["Pump", "Test interval"], ["Pump A", "6 months"]])
    ['For Pump A, the test interval is 6 months.']
    """
    if not rows:
        return []
    heads = [str(cell).strip() for cell in rows[0]]
    sentences = []
    for row in rows[1:]:
        cells = [str(cell).strip() for cell in row]
        if not any(cells):
            continue
        parts = [f"the {_uncapital(head)} is {cell.rstrip('.')}" if head else cell for head, cell in zip(heads[1:], cells[1:], strict=False) if cell]
        subject = cells[0] or "this row"
        sentences.append(f"For {subject}, {'; '.join(parts)}." if parts else f"{heads[0]}: {subject}." if heads and heads[0] else f"{subject}.")
    if not sentences and any(heads):
        sentences.append("; ".join(head for head in heads if head) + ".")
    return sentences


def _uncapital(head: str) -> str:
    """`Test interval` → `test interval`; `PRV` and `pH` stay."""
    return head[0].lower() + head[1:] if len(head) > 1 and head[1].islower() else head
