"""Speed of measures and tests, on made rankings: 8 runs × 1,000 questions × 100 results × 20 measures, beside ir_measures on the same lists."""

from __future__ import annotations

import time

import numpy as np

from lab.evaluation.compare import SHARES, unit_of
from lab.evaluation.coverage import Target, credit, judged
from lab.evaluation.measures import Ranking, lists_of, parse, table
from lab.evaluation.statistics.families import holm
from lab.evaluation.statistics.paired import PairedTests
from lab.records import Judgment

RUNS, QUESTIONS, RESULTS = 8, 1_000, 100
MEASURES = (
    "hit@1", "hit@3", "hit@5", "hit@10", "hit@20", "hit@100", "R@5", "R@10", "R@100", "RR@10", "RR@100", "nDCG@5", "nDCG@10", "nDCG@100", "distinct@10", "distinct@100", "sources@10",
    "short@10", "judged@10", "judged@100",
)  # fmt: skip
_SEED = 3
_PASSAGES = 2_000


def measure_speed() -> dict[str, float]:
    """Seconds for all measures of all runs, for the tests of seven runs against the first in every measure, and for ir_measures' share of the measures."""
    rng = np.random.default_rng(_SEED)
    wanted = []
    for q in range(QUESTIONS):
        drawn = rng.choice(_PASSAGES, int(rng.integers(1, 6)), replace=False)
        wanted.append(
            [
                Target(Judgment(str(q), str(k), 0, 10, int(rng.integers(1, 3)), ""), frozenset({int(k).to_bytes(4, "big")}), frozenset({int(k)}))
                for k in drawn
            ]
        )
    runs = [[[int(k) for k in rng.choice(_PASSAGES, RESULTS, replace=False)] for _ in range(QUESTIONS)] for _ in range(RUNS)]
    measures = [parse(m) for m in MEASURES]
    start = time.perf_counter()
    tables = []
    for run in runs:
        rankings = []
        for keys, targets in zip(run, wanted, strict=True):
            results = [(k, k.to_bytes(4, "big")) for k in keys]
            names = [str(k) for k in keys]
            grades = [t.judgment.grade for t in targets]
            rankings.append(Ranking(credit(results, targets), names, names, grades, judged=judged(results, targets)))
        tables.append(table(measures, lists_of(rankings)))
    measured = time.perf_counter()
    shares, units = [m.name in SHARES for m in measures], [unit_of(str(m)) for m in measures]
    for after in tables[1:]:
        tests = PairedTests(tables[0], after, np.arange(QUESTIONS), shares, units)
        found = [tests.result(i) for i in range(len(measures))]
        holm([one.p for one in found])
    tested = time.perf_counter()
    theirs = _ir_measures(runs, wanted)
    return {
        "measures of 8 runs, seconds": measured - start, "tests of 7 pairs × 20 measures, seconds": tested - measured, "both, seconds": tested - start,
        "ir_measures, its 14 of them alone, seconds": theirs, "ir_measures against our measures, times": theirs / (measured - start),
    }  # fmt: skip


def _ir_measures(runs: list[list[list[int]]], wanted: list[list[Target]]) -> float:
    import ir_measures

    known = [m.replace("hit@", "Success@") for m in MEASURES if m.startswith(("hit", "R@", "RR", "nDCG"))]
    parsed = [ir_measures.parse_measure(m) for m in known]
    qrels = {str(q): {t.judgment.source: t.judgment.grade for t in targets} for q, targets in enumerate(wanted)}
    ranked = [{str(q): {str(k): float(RESULTS - at) for at, k in enumerate(keys)} for q, keys in enumerate(run)} for run in runs]
    start = time.perf_counter()
    for run in ranked:
        list(ir_measures.iter_calc(parsed, qrels, run))
    return time.perf_counter() - start
