"""Speed of search on a collection of the user's: arms, stages, the copied recipe beside them, many searchers at once."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lab.errors import UsageError
from lab.progress import Progress, say
from lab.retrieval.audit import sample
from lab.retrieval.context import Corpus
from lab.retrieval.search import Shared, open_corpus, question_vectors, rank
from lab.settings import Settings
from lab.store import naive
from lab.store.connect import Store, connect

_QUESTIONS = 200
_NAIVE = 12  # questions for the recipe that takes seconds
_SEARCHERS = 16


def collection_speed(name: str) -> dict[str, float]:
    """Milliseconds a question as the client sees them, top 100 of each arm, 200 questions that are the first twelve words of passages; without embedding them."""
    with connect() as store:
        corpus = open_corpus(store, name)
        if corpus.collection.dim is None:
            raise UsageError(f"collection {name!r} was ingested with --embedder none: name one with vectors.")
        questions = sample(corpus, _QUESTIONS)
        vectors = question_vectors(corpus, questions)
        pairs = [(text, vector) for text, vector in zip(questions, vectors, strict=True) if vector is not None]
        settings = Settings(authority_weight=0.0)
        figures: dict[str, float] = {"chunks": float(corpus.chunks), "questions": float(len(pairs))}
        figures |= _one_by_one(corpus, pairs, settings)
        figures |= _copied_recipe(corpus, pairs, figures["both arms, p50 ms"])
        with Store(store.dsn, size=_SEARCHERS) as wide:
            figures |= _many(open_corpus(wide, name), pairs, settings)
        return figures


def _one_by_one(corpus: Corpus, pairs: Sequence[tuple[str, Any]], settings: Settings) -> dict[str, float]:
    dense, lexical, stages = [], [], []
    with corpus.store.held(), Progress(f"search {corpus.collection.name}", len(pairs), "questions") as bar:
        for text, vector in pairs:
            start = time.perf_counter()
            found = rank(Shared(corpus, text, vector), settings, texts=False)
            whole = time.perf_counter() - start
            dense.append(1000 * found.arms["dense"].seconds)
            lexical.append(1000 * found.arms["lexical"].seconds)
            stages.append(1000 * whole - dense[-1] - lexical[-1])
            bar.advance()
    both = [a + b for a, b in zip(dense, lexical, strict=True)]
    return {
        "dense arm, p50 ms": statistics.median(dense), "lexical arm with codes, p50 ms": statistics.median(lexical), "both arms, p50 ms": statistics.median(both),
        "both arms, p95 ms": statistics.quantiles(both, n=20)[-1], "fusion, stages and ledger, p50 ms": statistics.median(stages),
    }  # fmt: skip


def _copied_recipe(corpus: Corpus, pairs: Sequence[tuple[str, Any]], ours: float) -> dict[str, float]:
    say(f"the copied recipe on {_NAIVE} questions …")
    seconds = [naive.seconds(corpus.store, corpus.collection, text, vector) for text, vector in pairs[:_NAIVE]]
    middle = 1000 * statistics.median(seconds)
    return {"any-word ts_rank_cd and vector through a CTE, p50 ms": middle, "as a multiple of both arms": middle / ours}


def _many(corpus: Corpus, pairs: Sequence[tuple[str, Any]], settings: Settings) -> dict[str, float]:
    def one(pair: tuple[str, Any]) -> float:
        start = time.perf_counter()
        rank(Shared(corpus, *pair), settings, texts=False)
        return 1000 * (time.perf_counter() - start)

    work = [pairs[at % len(pairs)] for at in range(4 * len(pairs))]
    start = time.perf_counter()
    with ThreadPoolExecutor(_SEARCHERS) as pool:
        times = list(pool.map(one, work))
    whole = time.perf_counter() - start
    return {
        f"{_SEARCHERS} searchers at once, searches a second": len(work) / whole, f"{_SEARCHERS} searchers at once, p95 ms": statistics.quantiles(times, n=20)[-1],
    }  # fmt: skip
