"""Which stretch of a document covers a judgment: one rule for what is measured, generated and pooled."""

from __future__ import annotations

from lab.records import Judgment


def covers(start: int, end: int, judgment: Judgment) -> bool:
    """A chunk `[start, end)` of the judgment's document covers it when it holds at least half of the span's characters or, for a span
    longer than the chunk, when at least half of the chunk lies inside the span."""
    shared = min(end, judgment.end) - max(start, judgment.start)
    if shared <= 0:
        return False
    span, chunk = judgment.end - judgment.start, end - start
    return 2 * shared >= span or (span > chunk and 2 * shared >= chunk)
