"""The one rule by which paired scores are compared, and its result.

Two runs of a share (hit@k) without clusters: exact McNemar with the interval of `exact`. Everything else, main effects and interactions too: sign-flips of whole clusters with
the interval of `flips`, each end moved out to at least delta ∓ z²/(n_eff + z²), and of a share to Tango's end at the effective counts (changes that nearly all go one way are
skewed, which flips are not), but for the one nearest 0 where p is below alpha. An end of 0 contains 0. So p and interval never disagree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lab.evaluation.statistics import exact, power
from lab.evaluation.statistics.flips import SignFlips

ALPHA = 0.05
_NEAR = 1e-9


@dataclass(frozen=True, slots=True)
class Paired:
    """Scores of the same questions before and after. `delta` = after − before, per question; `[low, high]` its interval at `level`.

    `p` is that of the test alone, `p_adjusted` after Holm over `effects` of one family (None: exploratory). `changed` counts the clusters whose scores changed; without
    clusters every question is its own.
    """

    questions: int
    before: float
    after: float
    delta: float
    low: float
    high: float
    level: float
    p: float
    test: str
    wins: int
    losses: int
    ties: int
    clusters: int
    changed: int
    n_eff: float
    error: float | None  # standard error of the mean difference, by clusters; None for a share
    p_adjusted: float | None = None
    effects: int = 1
    alpha: float = ALPHA

    @property
    def smallest(self) -> float | None:
        """The smallest true difference that would show with a chance of 0.8; None where none would, or nothing changed."""
        alpha = self.alpha / self.effects
        if self.error is None:
            return power.smallest_effect(self.n_eff, (self.wins + self.losses) / max(self.questions, 1), alpha)
        return power.smallest_mean_effect(self.error, alpha) if self.error > 0 else None

    @property
    def verdict(self) -> str:
        """`nothing_changed`, `cannot_tell`, or `higher`, `lower`: whether that is better depends on the measure."""
        if not self.wins and not self.losses:
            return "nothing_changed"
        p = self.p if self.p_adjusted is None else self.p_adjusted
        if p >= self.alpha:
            return "cannot_tell"
        return "higher" if self.delta > 0 else "lower"

    def to_json(self) -> dict[str, Any]:
        """The numbers under their names; `a`, `b` are the means."""
        return {
            "a": self.before, "b": self.after, "delta": self.delta, "low": self.low, "high": self.high, "level": self.level, "p": self.p, "p_adjusted": self.p_adjusted,
            "test": self.test, "wins": self.wins, "losses": self.losses, "ties": self.ties, "questions": self.questions, "clusters": self.clusters, "changed": self.changed,
            "n_eff": round(self.n_eff, 2), "smallest": self.smallest,
        }  # fmt: skip


class PairedTests:
    """Tests of several columns of scores of the same questions. `before` and `after` are `(questions, columns)`; `clusters` a code a question; `shares` tells the columns
    that are 0 or 1 in both runs, `units` the range of each column's measure, `baseline` the scores whose likeness within clusters counts (default: `before`)."""

    def __init__(
        self,
        before: np.ndarray,
        after: np.ndarray,
        clusters: Sequence[int] | np.ndarray,
        shares: Sequence[bool],
        units: Sequence[float],
        baseline: np.ndarray | None = None,
    ) -> None:
        self.before, self.after = np.asarray(before, float), np.asarray(after, float)
        self.codes = np.unique(np.asarray(clusters), return_inverse=True)[1]
        self.sizes = np.bincount(self.codes).astype(float)
        self.clustered = bool(len(self.sizes)) and bool(self.sizes.max() > 1)
        self.shares, self.units = list(shares), list(units)
        self.baseline = self.before if baseline is None else np.asarray(baseline, float)
        self.differences = self.after - self.before
        self.differences[np.abs(self.differences) < _NEAR] = 0.0
        self._flips: SignFlips | None = None

    @property
    def flips(self) -> SignFlips:
        if self._flips is None:
            sums = np.zeros((len(self.sizes), self.differences.shape[1]))
            np.add.at(sums, self.codes, self.differences)
            self._flips = SignFlips(sums, self.sizes)
        return self._flips

    def counts(self, column: int) -> tuple[int, int, int]:
        """(wins, losses, ties) in questions."""
        d = self.differences[:, column]
        wins, losses = int((d > 0).sum()), int((d < 0).sum())
        return wins, losses, len(d) - wins - losses

    def _exact(self, column: int) -> bool:
        return self.shares[column] and not self.clustered

    def p(self, column: int) -> float:
        wins, losses, _ = self.counts(column)
        return 1.0 if not wins + losses else exact.mcnemar(wins, losses) if self._exact(column) else self.flips.p(column)

    def result(self, column: int, *, level: float = 1 - ALPHA, alpha: float = ALPHA, effects: int = 1) -> Paired:
        """The comparison of one column, with its interval at `level`."""
        wins, losses, ties = self.counts(column)
        n = len(self.differences)
        before, after = float(self.before[:, column].mean()), float(self.after[:, column].mean())
        delta = float(self.differences[:, column].mean())
        n_eff = n / self.design_effect(column)
        p = self.p(column)
        nothing = not wins + losses
        if nothing:
            reach = exact.bound_of_nothing(n_eff, level) * self.units[column]
            low, high, test, changed = -reach, reach, "none: nothing changed", 0
        elif self._exact(column):
            low, high = exact.interval(wins, losses, n, level)
            test, changed = "exact McNemar", wins + losses
        else:
            changed = self.flips.changed(column)
            low, high = self._moved_out(column, delta, n_eff, p, level)
            test = f"sign-flips of {'clusters' if self.clustered else 'questions'}{' (all of them)' if changed <= 16 else ''}"
        return Paired(
            n,
            before,
            after,
            delta,
            low,
            high,
            level,
            p,
            test,
            wins,
            losses,
            ties,
            len(self.sizes),
            changed,
            n_eff,
            self._error(column),
            None,
            effects,
            alpha,
        )

    def _moved_out(self, column: int, delta: float, n_eff: float, p: float, level: float) -> tuple[float, float]:
        unit = self.units[column]
        low, high = self.flips.interval(column, level)
        low, high = max(low, -unit), min(high, unit)  # so few clusters reject no shift: the measure's own range is left
        reach = exact.bound_of_nothing(n_eff, level) * unit
        first, last = delta - reach, delta + reach
        if self.shares[column]:  # flips are symmetric, changes that nearly all go one way are not: the score interval at the effective counts knows
            wins, losses, _ = self.counts(column)
            scale = n_eff / len(self.differences)
            score_low, score_high = exact.tango(wins * scale, losses * scale, n_eff, level)
            first, last = min(first, score_low), max(last, score_high)
        significant = p < 1 - level - _NEAR  # 1 − 0.95 is a little more than 0.05
        if not (significant and delta > 0):
            low = min(low, first)
        if not (significant and delta < 0):
            high = max(high, last)
        if significant and low <= 0 <= high:  # draws and full count may differ in the last digit
            low, high = (math.ulp(0.0), high) if delta > 0 else (low, -math.ulp(0.0))
        if not significant:
            low, high = min(low, 0.0), max(high, 0.0)
        return max(low, -unit), min(high, unit)

    def design_effect(self, column: int) -> float:
        """max(1, 1 + (mean cluster size − 1)·ICC), of the baseline's scores or of the differences, whichever is larger: where all questions of a cluster change together, they
        are one piece of evidence, however little alike their scores were."""
        if not self.clustered:
            return 1.0
        return max(design_effect(scores[:, column], self.codes) for scores in (self.baseline, self.differences))

    def _error(self, column: int) -> float | None:
        if self.shares[column]:
            return None
        sums = self.flips.sums[:, column]
        return math.sqrt(float(((sums - sums.mean()) ** 2).sum())) / max(len(self.differences), 1)


def design_effect(scores: np.ndarray, codes: np.ndarray) -> float:
    """How much less a clustered question tells: 1 + (mean size − 1)·ICC, the intraclass correlation by one-way analysis of variance (Fisher 1925), at least 1."""
    sizes = np.bincount(codes).astype(float)
    groups, n = len(sizes), len(scores)
    if groups < 2 or n <= groups:
        return max(1.0, n / max(groups, 1)) if groups < 2 and n > 1 else 1.0
    means = np.bincount(codes, weights=scores) / sizes
    between = float((sizes * (means - scores.mean()) ** 2).sum()) / (groups - 1)
    within = float(((scores - means[codes]) ** 2).sum()) / (n - groups)
    usual = (n - float((sizes**2).sum()) / n) / (groups - 1)
    whole = between + (usual - 1) * within
    icc = min(1.0, max(0.0, (between - within) / whole)) if whole > 0 else 0.0
    return max(1.0, 1 + (n / groups - 1) * icc)


def non_inferior(low: float, margin: float) -> bool:
    """Is a loss as large as `margin` ruled out? `low` is the lower end at level 1 − 2·alpha."""
    return low > -margin


def equivalent(low: float, high: float, margin: float) -> bool:
    """Are differences as large as `margin` ruled out both ways (two one-sided tests; Schuirmann 1987)? `[low, high]` at level 1 − 2·alpha."""
    return -margin < low and high < margin
