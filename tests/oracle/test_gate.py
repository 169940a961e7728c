"""The gate by simulation: false alarms, losses of the margin, and what `lab power --gate` promises."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from lab.evaluation.gate import Rule, _one_sided, _ruled
from lab.evaluation.statistics import power
from lab.evaluation.statistics.paired import PairedTests
from tests.oracle.test_statistics import simulated

SETS, ALPHA = 2000, 0.05
LIMIT = ALPHA + 2 * np.sqrt(ALPHA * (1 - ALPHA) / SETS)


def outcomes(n: int, alike: float, changed: float, effect: float, margin: float, seed: int) -> Counter[str]:
    clusters = np.arange(n) // 4 if alike else np.arange(n)
    before, after = simulated(np.random.default_rng(seed), SETS, clusters, alike, changed, effect)
    tests = PairedTests(before, after, clusters, [True] * SETS, [1.0] * SETS)
    rule = Rule("hit@5", margin)
    found: Counter[str] = Counter()
    for t in range(SETS):
        paired = tests.result(t, level=1 - 2 * ALPHA, alpha=ALPHA)
        p = _one_sided(rule, paired)
        found[_ruled(rule, paired, p, p, ALPHA, same=not paired.wins + paired.losses).outcome] += 1
    return found


@pytest.mark.parametrize("changed", [0.02, 0.05, 0.1])
@pytest.mark.parametrize("alike", [0.0, 0.7])
def test_equal_systems_are_no_regression(changed: float, alike: float) -> None:
    found = outcomes(300, alike, changed, 0.0, 0.05, seed=int(1000 * changed + alike))
    assert found["regression"] / SETS <= LIMIT, found


@pytest.mark.parametrize("alike", [0.0, 0.7])
@pytest.mark.parametrize("changed", [0.06, 0.1])
def test_a_loss_of_exactly_the_margin_does_not_pass(changed: float, alike: float) -> None:
    """Where 6 % change nearly all go one way: sign-flips alone let 1 in 10 pass."""
    found = outcomes(300, alike, changed, -0.05, 0.05, seed=7)
    assert found["pass"] / SETS <= LIMIT, found


def test_at_the_number_that_power_names_equal_systems_pass_and_twice_the_margin_is_caught() -> None:
    n = power.gate_questions(0.1, 0.05)
    assert n is not None
    assert outcomes(n, 0.0, 0.1, 0.0, 0.05, seed=8)["pass"] / SETS >= 0.8 - 0.03
    assert outcomes(n, 0.0, 0.12, -0.1, 0.05, seed=9)["regression"] / SETS >= 0.8
