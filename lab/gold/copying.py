"""How much a question copies from the passage that answers it: what flatters a lexical arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.text import STOP_WORDS, content_stems, copied_share, copying_band, stem, words


@dataclass(frozen=True, slots=True)
class Copying:
    """`share` of the question's content stems that stand in the passage; `elsewhere`: the highest share in another passage that the arms brought; `rarest`: the
    shared stem that the fewest passages hold, and how many do; `run`: words copied in a row; `lexical_first`: does the lexical arm alone rank it first?"""

    share: float
    elsewhere: float
    rarest: str
    rarest_passages: int
    run: int
    lexical_first: bool | None

    @property
    def band(self) -> str:
        return copying_band(self.share)

    def to_json(self) -> dict[str, Any]:
        """What is stored in a question's metadata."""
        return {
            "copied": round(self.share, 2), "band": self.band, "copied_elsewhere": round(self.elsewhere, 2), "rarest_shared": self.rarest,
            "rarest_passages": self.rarest_passages, "longest_run": self.run, "lexical_first": self.lexical_first,
        }  # fmt: skip


def copying(question: str, passage: str, others: Sequence[str], passages_with: Mapping[str, int], lexical_first: bool | None = None) -> Copying:
    """The meter for one question. `passages_with`: stem → number of passages that hold it.

    >>> copying("How often is the pump oiled?", "The pump is oiled weekly.", ["The fan is oiled."], {"pump": 2, "oil": 7}).rarest
    'pump'
    """
    there = set(content_stems(passage))
    shared = sorted({s for s in content_stems(question) if s in there}, key=lambda s: (passages_with.get(s, 0), s))
    return Copying(
        copied_share(question, passage), max((copied_share(question, other) for other in others), default=0.0), shared[0] if shared else "",
        passages_with.get(shared[0], 0) if shared else 0, longest_run(question, passage), lexical_first,
    )  # fmt: skip


def longest_run(question: str, passage: str) -> int:
    """The most words in a row that stand in both, of runs that hold a content word.

    >>> longest_run("Which seal of the brine pump leaks?", "A seal of the brine pump is red.")
    5
    """
    left, right = words(question), words(passage)
    best = 0
    before = [0] * (len(right) + 1)
    for i, word in enumerate(left, 1):
        row = [0] * (len(right) + 1)
        for j, other in enumerate(right, 1):
            if word == other:
                row[j] = before[j - 1] + 1
                if row[j] > best and any(w not in STOP_WORDS for w in left[i - row[j] : i]):
                    best = row[j]
        before = row
    return best


def stems_of(text: str) -> frozenset[str]:
    """The different stems of a text, stop words left out."""
    return frozenset(stem(word) for word in words(text) if word not in STOP_WORDS)
