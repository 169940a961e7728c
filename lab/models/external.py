"""Somebody's own search endpoint, so that a production system can be measured with the same gold.

    POST URL  {"question": "…", "k": 100}
    → {"results": [{"source": "guide.md", "start": 120, "end": 480, "score": 12.3}, {"chunk_id": "guide.md::3"}, …]}, best first

`source` is the path of a document as the collection knows it, `start` and `end` code points of its text (without them: its beginning); `score` is optional.
The key is LAB_EXTERNAL_KEY, never part of the URL.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from lab.config import effective
from lab.errors import LabError, UsageError, redact
from lab.models.wire import Wire


@dataclass(frozen=True, slots=True)
class Found:
    """One line of the list: a chunk by its id, or a place in a document."""

    source: str
    chunk: int | None
    start: int
    end: int
    score: float | None


class ExternalSearch:
    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.username or parts.password or parts.query:
            raise UsageError(f"the address {redact(url)} of --external holds a key or options: set LAB_EXTERNAL_KEY, and leave them out.")
        self.wire = Wire(url, effective()["external_key"].value, "search endpoint", "LAB_EXTERNAL", "none", "--external")

    def search(self, question: str, k: int) -> list[Found]:
        """At most `k` lines, best first. Raises LabError where the answer is none."""
        answer = self.wire.post("", {"question": question, "k": k})
        rows = answer.get("results") if isinstance(answer, dict) else None
        if not isinstance(rows, list):
            raise LabError(f'{self.wire.where} did not answer with {{"results": […]}}: see the README for what --external expects.')
        return [self._found(row) for row in rows[:k]]

    def _found(self, row: Any) -> Found:
        try:
            score = float(row["score"]) if row.get("score") is not None else None
            if score is not None and not math.isfinite(score):
                raise ValueError(score)
            if row.get("chunk_id"):
                source, _, number = str(row["chunk_id"]).rpartition("::")
                return Found(source, int(number), 0, 0, score)
            start = int(row.get("start") or 0)
            return Found(str(row["source"]), None, start, int(row.get("end") or start + 1), score)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise LabError(
                f"{self.wire.where} returned a result without source or chunk_id, or with a number that is none: {str(row)[:100]}"
            ) from None


@functools.lru_cache(maxsize=4)
def endpoint(url: str) -> ExternalSearch:
    return ExternalSearch(url)
