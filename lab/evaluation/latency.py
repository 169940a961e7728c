"""What settings cost: a timed pass of searches that share nothing, apart from the runs, in which members of a grid share work."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lab.progress import Progress
from lab.retrieval.context import Corpus
from lab.retrieval.search import Shared, question_vectors, rank
from lab.settings import Settings

QUESTIONS = 50


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds a search, embedding of the question left out: median and 95th percentile of each settings, and the ratios of those of the second to the first."""

    p50: tuple[float, float]
    p95: tuple[float, float]

    @property
    def ratio(self) -> float:
        """Of the medians."""
        return self.p50[1] / self.p50[0]

    @property
    def ratio_p95(self) -> float:
        return self.p95[1] / self.p95[0]

    def to_json(self) -> dict[str, Any]:
        return {
            "p50_ms": [round(v, 3) for v in self.p50], "p95_ms": [round(v, 3) for v in self.p95], "ratio_p50": round(self.ratio, 3), "ratio_p95": round(self.ratio_p95, 3),
        }  # fmt: skip


def timed(corpus: Corpus, questions: Sequence[str], before: Settings, after: Settings, *, most: int = QUESTIONS) -> Latency:
    """Searches at most `most` questions, drawn evenly from the list, with both settings in turn: what else the machine does falls on both."""
    step = max(1, len(questions) // most)
    chosen = list(questions[::step])[:most]
    vectors = (
        question_vectors(corpus, chosen)
        if "none" not in {before.dense_arm, after.dense_arm} or before.dense_arm != after.dense_arm
        else [None] * len(chosen)
    )
    taken: tuple[list[float], list[float]] = ([], [])
    with corpus.store.held(), Progress("timed pass", 2 * len(chosen), "searches") as bar:
        for warm in (True, False):
            for text, vector in list(zip(chosen, vectors, strict=True))[: 3 if warm else None]:
                for at, settings in enumerate((before, after)):
                    start = time.perf_counter()
                    rank(Shared(corpus, text, vector if settings.dense_arm != "none" else None), settings)
                    if not warm:
                        taken[at].append(1000 * (time.perf_counter() - start))
                        bar.advance()
    p95 = [statistics.quantiles(values, n=20, method="inclusive")[-1] if len(values) > 1 else values[0] for values in taken]
    return Latency((statistics.median(taken[0]), statistics.median(taken[1])), (p95[0], p95[1]))
