"""Speed of search on a collection of the user's: arms, stages, the copied recipe beside them, many searchers at once, growth."""

from __future__ import annotations

import math
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
from lab.store import collections, naive, part
from lab.store.connect import Store, connect

_QUESTIONS = 200
_NAIVE = 12  # questions for the recipe that takes seconds
_SEARCHERS = 16
_SIZES = (10_000, 50_000)
_PART = "bench_growth"


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


def growth(name: str) -> dict[str, float]:
    """The median of both arms at 10,000, at 50,000 and at all passages of a collection, and the exponent: 0 does not grow, 1 grows with the size."""
    with connect() as store:
        whole = open_corpus(store, name)
        if whole.collection.dim is None or whole.chunks < 2 * _SIZES[0]:
            raise UsageError(f"growth is measured on a collection with vectors and at least {2 * _SIZES[0]:,} passages; {name!r} is none.")
        questions = sample(whole, _QUESTIONS)
        pairs = [(text, vector) for text, vector in zip(questions, question_vectors(whole, questions), strict=True) if vector is not None]
        figures: dict[str, float] = {}
        try:
            for size in [*(size for size in _SIZES if size < whole.chunks), whole.chunks]:
                if size < whole.chunks:
                    say(f"copying {size:,} passages …")
                    part.copy_part(store, whole.collection, _PART, size)
                corpus = open_corpus(store, _PART) if size < whole.chunks else whole
                found = _one_by_one(corpus, pairs, Settings(authority_weight=0.0))
                figures[f"{size:,} chunks, both arms, p50 ms"] = found["both arms, p50 ms"]
        finally:
            if collections.find(store, _PART) is not None:
                collections.drop(store, _PART)
        sizes = [float(label.split(" ")[0].replace(",", "")) for label in figures]
        return {**figures, "exponent": _exponent(sizes, list(figures.values()))}


def _exponent(sizes: Sequence[float], times: Sequence[float]) -> float:
    """Slope of log time over log size, by least squares."""
    xs, ys = [math.log(x) for x in sizes], [math.log(y) for y in times]
    mx, my = statistics.mean(xs), statistics.mean(ys)
    return sum((x - mx) * (y - my) for x, y in zip(xs, ys, strict=True)) / sum((x - mx) ** 2 for x in xs)
