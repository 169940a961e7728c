"""A floor with a promise: what so many unanswerable questions can support, and the lowest floor that keeps it."""

from __future__ import annotations

import math

import pytest
from scipy.stats import beta

from lab.errors import CannotJudge
from lab.evaluation.abstention import above
from lab.evaluation.floors import LEAST, Rates, TunedFloor, _curve, _lowest, _rates, needed, upper_bound


def test_the_bound_is_exact() -> None:
    """None of n: 1 − 0.05^(1/n). Others against scipy's beta distribution."""
    assert upper_bound(0, 59) == pytest.approx(1 - 0.05 ** (1 / 59)) and upper_bound(0, 59) < 0.05 < upper_bound(0, 58)
    assert upper_bound(1, 93) < 0.05 < upper_bound(1, 92)
    for passed, n in ((0, 1), (1, 10), (7, 40), (39, 40)):
        assert upper_bound(passed, n) == pytest.approx(beta.ppf(0.95, passed + 1, n - passed))
    assert (upper_bound(5, 5), upper_bound(0, 0)) == (1.0, 1.0)


@pytest.mark.parametrize(("rate", "passed", "n"), [(0.05, 0, 59), (0.05, 1, 93), (0.01, 0, 299), (0.5, 0, 5)])
def test_how_many_it_takes(rate: float, passed: int, n: int) -> None:
    assert needed(rate, passed) == n and upper_bound(passed, n) <= rate < upper_bound(passed, n - 1)


def test_the_lowest_floor_that_keeps_the_promise() -> None:
    """Of 93 unanswerable questions one may pass: the floor lies right above the second best."""
    no = [0.9, 0.8, *(0.5 - n / 1000 for n in range(91))]
    floor = _lowest(no, 0.05)
    assert floor == 0.800001 and sum(v >= floor for v in no) == 1
    assert sum(v >= _lowest(no[1:], 0.05) for v in no[1:]) == 0, "92 allow none"
    assert _lowest([0.3] * 60, 0.05) == 0.300001 and _lowest([-math.inf] * 60, 0.05) == -1.0


def test_as_it_is_printed_the_floor_stops_what_it_must() -> None:
    """With six decimals, parsed again; nearest values of 1e-6 steps were let pass once in 43."""
    for n in range(-1000, 1_000_000, 97):
        value = n / 1e6
        for signal in (value, math.nextafter(value, 2), math.nextafter(value, -2), value + 4e-7):
            floor = above(signal)
            assert float(f"{floor:.6f}") == floor and signal < floor < signal + 1.0000011e-6
    assert math.copysign(1, above(-1e-7)) == 1


def test_what_cannot_be_promised() -> None:
    with pytest.raises(CannotJudge, match=r"58 unanswerable questions cannot support 5 %: even if none passes it takes 59"):
        _lowest([0.1] * 58, 0.05)
    with pytest.raises(CannotJudge, match=r"0 unanswerable"):
        _lowest([], 0.5)
    with pytest.raises(CannotJudge, match=r"2 of 93 .* pass any floor; 5 % allows 1\. Say --codes off"):
        _lowest([math.inf, math.inf, *([0.1] * 91)], 0.05)
    assert _lowest([math.inf, *([0.1] * 92)], 0.05) == 0.100001
    with pytest.raises(CannotJudge, match=r"60 of 60 .* Say --codes off, by which no code passes a floor\.$"):
        _lowest([math.inf] * 60, 0.05)
    with pytest.raises(CannotJudge, match=r"takes 29956"):
        _lowest([0.1] * 93, LEAST)


def test_rates_curve_and_words() -> None:
    yes, no = [0.9, 0.6, 0.2, math.inf], [0.7, 0.1]
    assert _rates("test", yes, no, 0.5) == Rates("test", 2, 1, 4, 3)
    assert _curve(yes, no) == [(0.2, 1.0, 0.5), (0.6, 0.75, 0.5), (0.9, 0.5, 0.0)]
    found = TunedFloor(0.5, 0.9, Rates("dev", 60, 0, 10, 5), Rates("test", 2, 1, 4, 3), {"dev": _curve(yes, no)}, {"dev": 0.75})
    assert (
        "bounds false answers by 4.9 %" in found.words
        and "On test: false answers 50.0 % [1.3, 98.7] of 2, coverage 75.0 % [19.4, 99.4] of 4." in found.words
    )
    assert (
        list(found.to_frame().columns) == ["split", "floor", "coverage", "false_answers"]
        and found.to_json()["chosen_on"]["false_answers_interval"][0] == 0.0
    )
    assert Rates("none", 0, 0, 0, 0).to_json()["coverage_interval"] is None
    assert found.plot_curve().get_xlabel().startswith("coverage")
