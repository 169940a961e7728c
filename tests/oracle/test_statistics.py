"""Statistics against other libraries and by simulation: false alarms, coverage, and the constrained likelihood behind Tango's interval."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq, minimize_scalar
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from lab.evaluation.statistics import exact
from lab.evaluation.statistics.families import holm
from lab.evaluation.statistics.flips import SignFlips
from lab.evaluation.statistics.paired import PairedTests


@pytest.mark.parametrize(("wins", "losses"), [(12, 2), (0, 6), (5, 0), (33, 40), (1, 1)])
def test_mcnemar_and_clopper_pearson_agree_with_statsmodels(wins: int, losses: int) -> None:
    assert exact.mcnemar(wins, losses) == pytest.approx(mcnemar([[10, losses], [wins, 10]], exact=True).pvalue)
    assert exact.clopper_pearson(wins, losses, 0.95) == pytest.approx(proportion_confint(wins, wins + losses, method="beta"))


def test_holm_agrees_with_statsmodels() -> None:
    rng = np.random.default_rng(0)
    for size in (1, 2, 5, 9):
        p = list(rng.random(size) ** 3)
        assert holm(p) == pytest.approx(list(multipletests(p, method="holm")[1]))


@pytest.mark.parametrize(("wins", "losses", "n"), [(12, 2, 50), (9, 1, 44), (3, 0, 30), (20, 35, 300), (0, 4, 25)])
def test_tango_by_the_constrained_likelihood(wins: int, losses: int, n: int) -> None:
    """Tango (1998): the share that loses is estimated under the shift; here by maximising the likelihood numerically, not by his closed form."""
    both = n - wins - losses

    def statistic(shift: float) -> float:
        def unlikely(q: float) -> float:
            cells = np.array([q + shift, q, 1 - 2 * q - shift])
            counts = np.array([wins, losses, both])
            return float(-(counts[counts > 0] * np.log(np.maximum(cells[counts > 0], 1e-300))).sum())

        q = float(minimize_scalar(unlikely, bounds=(max(0.0, -shift), (1 - shift) / 2), method="bounded", options={"xatol": 1e-13}).x)
        return float((wins - losses - n * shift) / np.sqrt(n * (2 * q + shift * (1 - shift))))

    z, delta = 1.959964, (wins - losses) / n
    low = brentq(lambda s: statistic(s) - z, -0.98, delta - 1e-6)
    high = brentq(lambda s: statistic(s) + z, delta + 1e-6, 0.98)
    assert exact.tango(wins, losses, n, 0.95) == pytest.approx((low, high), abs=2e-4)


def test_sign_flips_agree_with_scipy() -> None:
    """scipy's one-sample permutation test of the mean, all flips."""
    d = np.random.default_rng(2).normal(0.4, 1, 12)
    oracle = stats.permutation_test((d,), np.sum, permutation_type="samples", n_resamples=np.inf, vectorized=False)
    assert SignFlips(d[:, None], np.ones(12)).p(0) == pytest.approx(oracle.pvalue)


def simulated(
    rng: np.random.Generator, sets: int, clusters: np.ndarray, alike: float, changed: float, effect: float
) -> tuple[np.ndarray, np.ndarray]:
    """Two runs of `sets` gold sets, of which a share `changed` of the questions changes, with a true difference `effect`. With probability `alike` a question does what its cluster
    does, in its score and in its change; else it is for itself. A question that is to win was missed before, one that is to lose was hit."""
    n, many = len(clusters), int(clusters.max()) + 1
    follows = rng.random((n, sets)) < alike
    base = np.where(follows, (rng.random((many, sets)) < 0.7)[clusters], rng.random((n, sets)) < 0.7).astype(float)
    draw = np.where(follows, rng.random((many, sets))[clusters], rng.random((n, sets)))
    up, both = (changed + effect) / 2, changed
    return np.where(draw < up, 0.0, np.where(draw < both, 1.0, base)), np.where(draw < up, 1.0, np.where(draw < both, 0.0, base))


@pytest.mark.parametrize("changed", [0.01, 0.04, 0.1])
@pytest.mark.parametrize(("test", "alike"), [("share", 0.0), ("flips", 0.0), ("flips", 0.7), ("flips", 1.0)])
def test_false_alarms_and_coverage(changed: float, alike: float, test: str) -> None:
    """2,000 simulated sets of 200 questions, single or in clusters of 4: on equal runs at most α + 2 standard errors reject; of the 95 % intervals at least 0.94 hold the true
    difference, also one that is not 0; p and interval agree on every one."""
    sets, n = 2000, 200
    rng = np.random.default_rng([int(1000 * changed), int(10 * alike), len(test)])
    clusters = np.arange(n) // 4 if alike else np.arange(n)
    for effect in (0.0, changed / 2):
        before, after = simulated(rng, sets, clusters, alike, changed, effect)
        tests = PairedTests(before, after, clusters, [test == "share"] * sets, [1.0] * sets)
        found = [tests.result(t) for t in range(sets)]
        if not effect:
            alarms = np.mean([f.p < 0.05 for f in found])
            assert alarms <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / sets)
        covered = np.mean([f.low <= effect <= f.high for f in found])
        assert covered >= 0.94, (effect, covered)
        assert all((f.low <= 0 <= f.high) == (f.p >= 0.05) for f in found)
