"""What settings cost: a timed pass of searches that share nothing, apart from the runs, in which members of a grid share work."""

from __future__ import annotations

import secrets
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lab.errors import LabError, ServerError, UsageError
from lab.groups import evenly
from lab.progress import Progress, say
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
    first, second = in_turn([(corpus, before), (corpus, after)], questions, most=most)
    return Latency((first[0], second[0]), (first[1], second[1]))


def in_turn(places: Sequence[tuple[Corpus, Settings]], questions: Sequence[str], *, most: int = QUESTIONS) -> list[tuple[float, float]]:
    """(p50, p95) in milliseconds of each settings on its collection. At most `most` questions, drawn evenly from the list, are searched by all in turn: what else the machine does
    falls on all of them alike."""
    chosen = evenly(questions, most)
    vectors: dict[str, Sequence[np.ndarray | None]] = {}
    for corpus, settings in places:
        if settings.dense_arm != "none" and corpus.collection.name not in vectors:
            vectors[corpus.collection.name] = question_vectors(corpus, chosen)
    taken: list[list[float]] = [[] for _ in places]
    with places[0][0].store.held(), Progress("timed pass", len(places) * len(chosen), "searches") as bar:
        for warm in (True, False):
            for number, text in enumerate(chosen[: 3 if warm else None]):
                for at, (corpus, settings) in enumerate(places):
                    vector = vectors[corpus.collection.name][number] if settings.dense_arm != "none" else None
                    start = time.perf_counter()
                    rank(Shared(corpus, text, vector), settings)
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
    """Run → what it cost in the newest pass in which all of these runs took turns; nothing where there is none."""
    return {run: Cost(*values) for run, values in latency.together(store, run_ids).items()}


def time_runs(store: Store, run_ids: Sequence[str], *, most: int = 20) -> dict[str, Cost]:
    """Times the settings of recorded runs in turn, keeps the figures as one pass and returns them. Runs whose settings cannot run here any more (another state of the documents, a file of
    lists) are left out, and named."""
    opened: dict[str, Corpus] = {}
    places: dict[str, tuple[Corpus, Settings]] = {}
    asked: list[str] = []
    for run_id in run_ids:
        row = runs.get_run(store, run_id)
        try:
            corpus = opened.setdefault(row.collection, open_corpus(store, row.collection))
            settings = Settings(**row.settings)
            check_runnable(corpus, settings)
        except (UsageError, TypeError) as error:
            say(f"{run_id} is not timed: {error}")
            continue
        if row.inputs.get("corpus_digest") != corpus.collection.corpus_digest:
            say(f"{run_id} is not timed: the documents of {row.collection} have changed since")
            continue
        places[run_id] = (corpus, settings)
        asked = asked or [q.text for q in runs.questions(store, row.gold_digest) if q.answerable]
    if not places or not asked:
        return {}
    try:
        found = in_turn(list(places.values()), asked, most=most)
    except ServerError:
        raise
    except LabError as error:
        say(f"the runs are not timed: {error}")
        return {}
    figures = {run_id: (p50, p95, min(most, len(asked))) for run_id, (p50, p95) in zip(places, found, strict=True)}
    latency.enter(store, f"p{secrets.token_hex(8)}", figures)
    return {run: Cost(*values) for run, values in figures.items()}
