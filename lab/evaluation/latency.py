"""What settings cost: a timed pass of searches that share nothing, apart from the runs, in which members of a grid share work."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lab.errors import UsageError
from lab.progress import Progress
from lab.retrieval.context import Corpus
from lab.retrieval.search import Shared, check_runnable, open_corpus, question_vectors, rank
from lab.settings import Settings
from lab.store import latency, runs
from lab.store.connect import Store

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
    """Both settings in turn on at most `most` questions."""
    first, second = in_turn(corpus, questions, [before, after], most=most)
    return Latency((first[0], second[0]), (first[1], second[1]))


def in_turn(corpus: Corpus, questions: Sequence[str], wanted: Sequence[Settings], *, most: int = QUESTIONS) -> list[tuple[float, float]]:
    """(p50, p95) in milliseconds of each settings. At most `most` questions, drawn evenly from the list, are searched with all settings in turn: what else the machine does falls on all
    of them alike."""
    step = max(1, len(questions) // most)
    chosen = list(questions[::step])[:most]
    dense = any(settings.dense_arm != "none" for settings in wanted)
    vectors = question_vectors(corpus, chosen) if dense else [None] * len(chosen)
    taken: list[list[float]] = [[] for _ in wanted]
    with corpus.store.held(), Progress("timed pass", len(wanted) * len(chosen), "searches") as bar:
        for warm in (True, False):
            for text, vector in list(zip(chosen, vectors, strict=True))[: 3 if warm else None]:
                for at, settings in enumerate(wanted):
                    start = time.perf_counter()
                    rank(Shared(corpus, text, vector if settings.dense_arm != "none" else None), settings)
                    if not warm:
                        taken[at].append(1000 * (time.perf_counter() - start))
                        bar.advance()
    return [
        (statistics.median(values), statistics.quantiles(values, n=20, method="inclusive")[-1] if len(values) > 1 else values[0]) for values in taken
    ]


@dataclass(frozen=True, slots=True)
class Cost:
    """What a search with the settings of a run takes, in milliseconds, over so many questions."""

    p50: float
    p95: float
    questions: int


def costs(store: Store, run_ids: Sequence[str]) -> dict[str, Cost]:
    """Run → its last timed pass; runs that were never timed are left out."""
    return {run: Cost(*values) for run, values in latency.last(store, run_ids).items()}


def time_runs(store: Store, run_ids: Sequence[str], *, most: int = 20) -> dict[str, Cost]:
    """Times the settings of recorded runs in turn, keeps the figures and returns them. Runs whose settings cannot run here any more (another state of the documents, no server) are left out."""
    groups: dict[str, list[runs.RunRow]] = {}
    for run_id in run_ids:
        row = runs.get_run(store, run_id)
        groups.setdefault(row.collection, []).append(row)
    for name, rows in groups.items():
        try:
            corpus = open_corpus(store, name)
            wanted = [Settings(**row.settings) for row in rows]
            for settings in wanted:
                check_runnable(corpus, settings)
        except (UsageError, TypeError):
            continue
        if any(row.inputs.get("corpus_digest") != corpus.collection.corpus_digest for row in rows):
            continue
        asked = [q.text for q in runs.questions(store, rows[0].gold_digest) if q.answerable]
        if not asked:
            continue
        for row, (p50, p95) in zip(rows, in_turn(corpus, asked, wanted, most=most), strict=True):
            latency.enter(store, row.run_id, min(most, len(asked)), p50, p95)
    return costs(store, run_ids)
