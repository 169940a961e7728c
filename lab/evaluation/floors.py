"""A floor chosen with a promise: at most so many false answers, and a bound that the unanswerable questions can support; with what it costs in coverage, on questions that did not choose it.

A false answer is an unanswerable question that passes the floor; coverage is the share of the answerable ones that pass. The promise holds where the exact one-sided 95 % bound (Clopper & Pearson 1934)
of the false-answer rate at the chosen floor is at most what was asked for: for 0.05 that takes 59 unanswerable questions of which none passes, or 93 of which one does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaincinv

from lab.errors import CannotJudge, UsageError
from lab.evaluation.abstention import above, auroc, signals
from lab.evaluation.run import as_gold
from lab.evaluation.shown import Shown, draw
from lab.evaluation.statistics.exact import clopper_pearson
from lab.gold.check import fit
from lab.gold.splits import may_learn
from lab.records import GoldSet
from lab.retrieval.context import Corpus
from lab.retrieval.search import check_runnable, open_corpus
from lab.settings import Settings, resolved
from lab.store.connect import Store, connect

CONFIDENCE = 0.95
LEAST = 0.0001  # false answers that can be asked for: it takes 29,956 unanswerable questions of which none passes


def upper_bound(passed: int, n: int, confidence: float = CONFIDENCE) -> float:
    """The exact one-sided bound of a rate of which `passed` of `n` were seen; 1 where there is nothing to go by.

    >>> round(upper_bound(0, 59), 4), round(upper_bound(0, 58), 4), round(upper_bound(1, 93), 4), round(upper_bound(1, 92), 4)
    (0.0495, 0.0503, 0.05, 0.0505)
    """
    return float(betaincinv(passed + 1, n - passed, confidence)) if passed < n else 1.0


def needed(rate: float, passed: int = 0) -> int:
    """The fewest unanswerable questions that can support a bound when so many of them pass.

    >>> needed(0.05), needed(0.05, 1), needed(0.2)
    (59, 93, 14)
    """
    n = passed + max(1, math.ceil(math.log(1 - CONFIDENCE) / math.log(1 - rate)))
    while upper_bound(passed, n) > rate:
        n += 1
    return n


@dataclass(frozen=True, slots=True)
class Rates:
    """What a floor does on the questions of one split: of `unanswerable` questions `false` pass, of `answerable` ones `passed`. Intervals are exact, two-sided, 95 %."""

    split: str
    unanswerable: int
    false: int
    answerable: int
    passed: int

    @property
    def false_answers(self) -> float | None:
        return self.false / self.unanswerable if self.unanswerable else None

    @property
    def coverage(self) -> float | None:
        return self.passed / self.answerable if self.answerable else None

    def to_json(self) -> dict[str, Any]:
        """The parts `chosen_on` and `reported_on` of `lab tune floor --json`."""
        return {
            "split": self.split, "unanswerable": self.unanswerable, "false": self.false, "false_answers": self.false_answers, "false_answers_interval": _interval(self.false, self.unanswerable),
            "false_answers_bound": upper_bound(self.false, self.unanswerable) if self.unanswerable else None, "answerable": self.answerable, "passed": self.passed, "coverage": self.coverage,
            "coverage_interval": _interval(self.passed, self.answerable),
        }  # fmt: skip


def _interval(count: int, n: int) -> list[float] | None:
    return list(clopper_pearson(count, n - count, CONFIDENCE)) if n else None


@dataclass(frozen=True, slots=True, repr=False)
class TunedFloor(Shown):
    """`value` goes behind --floor. `curves`: split → [floor, coverage, false answers], from the loosest floor to the strictest (the risk–coverage curve)."""

    value: float
    wanted: float
    chosen_on: Rates
    reported_on: Rates | None
    curves: Mapping[str, Sequence[tuple[float, float, float]]]
    auroc: Mapping[str, float]

    @property
    def words(self) -> str:
        """The promise, and what became of it on questions that did not choose the floor."""
        c = self.chosen_on
        said = (
            f"--floor {self.value:.6f} on {c.split}: {c.false} of {c.unanswerable} unanswerable questions pass, which bounds false answers by {100 * upper_bound(c.false, c.unanswerable):.1f} % "
            f"(asked: {100 * self.wanted:.3g} %); {c.passed} of {c.answerable} answerable ones pass."
        )
        if self.reported_on is None:
            return said
        return f"{said} On {self.reported_on.split}: {_told(self.reported_on)}."

    def to_frame(self) -> Any:
        """The curves, one row a point: split, floor, coverage, false_answers (pandas)."""
        import pandas as pd

        rows = [(split, *point) for split, curve in self.curves.items() for point in curve]
        return pd.DataFrame(rows, columns=["split", "floor", "coverage", "false_answers"])

    def to_json(self) -> dict[str, Any]:
        """The object of `lab tune floor --json`."""
        return {
            "schema_version": 1, "floor": self.value, "wanted_false_answers": self.wanted, "confidence": CONFIDENCE, "chosen_on": self.chosen_on.to_json(),
            "reported_on": None if self.reported_on is None else self.reported_on.to_json(), "auroc": dict(self.auroc),
            "curves": {split: [list(point) for point in curve] for split, curve in self.curves.items()},
        }  # fmt: skip

    def plot_curve(self) -> Any:
        """The risk–coverage curve of each split with the chosen floor; matplotlib axes."""
        return draw("floor_plots", "risk_coverage", self)


def _told(r: Rates) -> str:
    def share(count: int, n: int) -> str:
        interval = _interval(count, n)
        return "none" if interval is None else f"{100 * count / n:.1f} % [{100 * interval[0]:.1f}, {100 * interval[1]:.1f}]"

    return f"false answers {share(r.false, r.unanswerable)} of {r.unanswerable}, coverage {share(r.passed, r.answerable)} of {r.answerable}"


def tune_floor(
    collection: str, gold: str | GoldSet, max_false_answers: float, *, store: Store | None = None, settings: Settings | str | None = None, split: str = "dev",
    report: str | None = "test", **flags: str | float,
) -> TunedFloor:  # fmt: skip
    """The lowest floor of which the unanswerable questions of `split` support that at most `max_false_answers` of their like pass; told on `report` too, where the gold set has it.

    Raises UsageError for the split `test`, for a rate that is none, and without a dense arm; CannotJudge where the questions are too few to support it, or too many of them pass any floor.
    """
    if store is None:
        with connect() as opened:
            return tune_floor(collection, gold, max_false_answers, store=opened, settings=settings, split=split, report=report, **flags)
    may_learn(split)
    if report == split:
        raise UsageError(f"--report {report} chooses the floor: report it on other questions.")
    if not LEAST <= max_false_answers < 1:
        raise UsageError(f"--max-false-answers {max_false_answers:g} is no share that questions can support: from {LEAST:g}, below 1.")
    base = resolved(settings).with_words({k: str(v) for k, v in flags.items()})
    if base.dense_arm == "none":
        raise UsageError("a floor looks at the dense arm's cosine: tune it with a dense arm.")
    if base.floor != "none" or base.floor_on != "dense":
        raise UsageError("the floor is what is tuned, on the dense arm's cosine: leave --floor and --floor-on out.")
    corpus = open_corpus(store, collection)
    check_runnable(corpus, base)
    yes, no = _signals(corpus, as_gold(gold, split), base)
    value = _lowest(no, max_false_answers)
    curves, ranked = {split: _curve(yes, no)}, {split: auroc(yes, no)} if yes else {}
    told = None
    if report is not None:
        other_yes, other_no = _signals(corpus, as_gold(gold, report), base)
        told = _rates(report, other_yes, other_no, value)
        curves[report] = _curve(other_yes, other_no)
        if other_yes and other_no:
            ranked[report] = auroc(other_yes, other_no)
    return TunedFloor(value, max_false_answers, _rates(split, yes, no, value), told, curves, ranked)


def _signals(corpus: Corpus, gold: GoldSet, settings: Settings) -> tuple[list[float], list[float]]:
    """The floor's signals of the answerable and of the unanswerable questions; one without any (the dense arm found nothing) lies below every floor."""
    fitted = fit(corpus.store, corpus.collection, gold).gold
    judged = {j.question_id for j in fitted.judgments}
    known = signals(corpus, fitted.questions, [settings])[0]
    yes = [known.get(q.question_id, -math.inf) for q in fitted.questions if q.answerable and q.question_id in judged]
    return yes, [known.get(q.question_id, -math.inf) for q in fitted.questions if not q.answerable]


def _lowest(no: Sequence[float], rate: float) -> float:
    """The lowest floor that keeps the promise, rounded up to six decimals as it is printed."""
    n = len(no)
    if upper_bound(0, n) > rate if n else True:
        raise CannotJudge(
            f'{n} unanswerable questions cannot support {100 * rate:.3g} %: even if none passes it takes {needed(rate)}. Ask for more, or write more of them (questions with "answerable": false).'
        )
    always = sum(math.isinf(v) and v > 0 for v in no)
    allowed = max((x for x in range(n) if upper_bound(x, n) <= rate), default=-1)
    if always > allowed:
        share = math.ceil(100 * upper_bound(always, n)) / 100
        more = f", or --max-false-answers {share:.2f} or more" if share < 1 else ""
        raise CannotJudge(
            f"{always} of {n} unanswerable questions name a code or a section that the collection holds, and pass any floor; {100 * rate:.3g} % allows {allowed}. Say --codes off, by which no code passes "
            f"a floor{more}."
        )
    ordered = sorted(no, reverse=True)
    first = ordered[allowed] if allowed < n else -math.inf  # the best one that must not pass
    return above(first) if math.isfinite(first) else -1.0


def _rates(split: str, yes: Sequence[float], no: Sequence[float], floor: float) -> Rates:
    return Rates(split, len(no), sum(v >= floor for v in no), len(yes), sum(v >= floor for v in yes))


def _curve(yes: Sequence[float], no: Sequence[float]) -> list[tuple[float, float, float]]:
    """A point at every floor at which the coverage changes."""
    floors = sorted({v for v in yes if math.isfinite(v)})
    a, b = np.asarray(yes), np.asarray(no)
    return [(float(f), float(np.mean(a >= f)), float(np.mean(b >= f)) if len(b) else 0.0) for f in floors]
