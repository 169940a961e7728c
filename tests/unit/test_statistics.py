"""Statistics of paired scores: numbers that can be redone by hand, and laws."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from scipy.special import bdtr

from lab.evaluation.compare import in_words, oriented, verdict_of
from lab.evaluation.statistics import exact, power
from lab.evaluation.statistics.families import holm, levels
from lab.evaluation.statistics.flips import SignFlips
from lab.evaluation.statistics.paired import Paired, PairedTests, design_effect, equivalent, non_inferior


def pair(wins: int, losses: int, n: int, *, clusters: list[int] | None = None, **more: float) -> Paired:
    """Two runs of hit@5: `wins` questions won, `losses` lost, half of the others hit in both."""
    before = np.array([0.0] * wins + [1.0] * losses + [float(i % 2) for i in range(n - wins - losses)])
    after = before.copy()
    after[:wins], after[wins : wins + losses] = 1.0, 0.0
    return PairedTests(before[:, None], after[:, None], clusters or list(range(n)), [True], [1.0]).result(0, **more)  # type: ignore[arg-type]


# ── two runs of a share ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_paired_data_get_a_paired_test() -> None:
    """200 questions, 12 improve, 2 get worse: 2·(1 + 14 + 91)/2^14."""
    found = pair(12, 2, 200)
    assert found.p == pytest.approx(2 * (1 + 14 + 91) / 2**14) == pytest.approx(0.0129, abs=5e-5)
    assert (found.verdict, found.test, found.delta) == ("higher", "exact McNemar", pytest.approx(0.05))
    assert 0 < found.low < 0.05 < found.high


def test_a_small_sample_is_no_finding() -> None:
    found = pair(3, 1, 30)
    assert found.verdict == "cannot_tell"
    assert in_words("hit@5", found).startswith("hit@5: cannot tell: 4 changed, at least 6 needed for p < .05")
    assert [exact.least_changed(0.05, effects) for effects in (1, 2, 3, 4)] == [6, 7, 7, 8]


@pytest.mark.parametrize(("wins", "losses", "n"), [(5, 0, 100), (1, 0, 100), (6, 0, 100), (0, 6, 30), (12, 2, 200), (9, 2, 50), (10, 2, 50), (3, 17, 1000), (0, 1, 5), (40, 60, 100), (30, 0, 30)])  # fmt: skip
def test_p_and_interval_never_disagree(wins: int, losses: int, n: int) -> None:
    """Tango's interval alone excludes 0 for 5 against 0 of 100, whose exact p is .0625."""
    found = pair(wins, losses, n)
    assert (found.low <= 0 <= found.high) == (found.p >= 0.05)
    assert found.low <= found.delta <= found.high and found.low >= -1 and found.high <= 1
    assert exact.tango(5, 0, 100, 0.95)[1] > 0 and pair(5, 0, 100).low < 0 and pair(5, 0, 100).p == 0.0625


def test_the_interval_of_nothing_is_a_bound() -> None:
    """z²/(n + z²) with z = 1.96: of 200 questions 1.88 points."""
    found = pair(0, 0, 200)
    assert (found.verdict, found.p) == ("nothing_changed", 1.0)
    assert found.high == -found.low == pytest.approx(1.959964**2 / (200 + 1.959964**2)) == pytest.approx(0.01885, abs=1e-5)
    assert exact.tango(0, 0, 200, 0.95) == pytest.approx((-found.high, found.high), abs=1e-9)
    assert "nothing changed in 200 questions (a true difference is at most 1.9 points)" in in_words("hit@5", found)
    assert verdict_of("hit@5", found) == "nothing_changed"


def test_less_is_better_where_it_is() -> None:
    assert verdict_of("short@10", pair(12, 2, 200)) == "worse" and verdict_of("hit@5", pair(12, 2, 200)) == "better"


def test_clopper_pearson_by_its_definition() -> None:
    """The ends at which 7 of 10 or more, or 7 of 10 or fewer, has a chance of 2.5 %."""
    low, high = exact.clopper_pearson(7, 3, 0.95)
    chance = lambda p, ks: sum(math.comb(10, k) * p**k * (1 - p) ** (10 - k) for k in ks)  # noqa: E731
    assert chance(low, range(7, 11)) == pytest.approx(0.025) and chance(high, range(8)) == pytest.approx(0.025)
    assert exact.clopper_pearson(0, 3, 0.95)[0] == 0.0 and exact.clopper_pearson(3, 0, 0.95)[1] == 1.0


# ── clusters ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_identical_paraphrases_are_one_piece_of_evidence() -> None:
    """20 parents, 5 identical paraphrases each: a clustered standard error √5 times the naive one, and the p of 20 questions."""
    rng = np.random.default_rng(3)
    each = rng.integers(0, 2, 20).astype(float)
    scores = np.repeat(each, 5)
    codes = np.repeat(np.arange(20), 5)
    assert design_effect(scores, codes) == pytest.approx(5.0)
    before = np.zeros(20)
    wins = np.array([1.0] * 7 + [-1.0] * 1 + [0.0] * 12)
    whole = PairedTests(before[:, None], (before + wins)[:, None], range(20), [False], [1.0]).result(0)
    copied = PairedTests(np.repeat(before, 5)[:, None], np.repeat(before + wins, 5)[:, None], codes, [False], [1.0]).result(0)
    assert (copied.p, copied.delta) == (whole.p, whole.delta) and copied.p == pytest.approx(2 * (1 + 8) / 2**8)
    assert (copied.clusters, copied.changed, copied.wins) == (20, 8, 35)


def test_unlike_members_of_a_cluster_cost_nothing() -> None:
    assert design_effect(np.tile([0.0, 1.0], 10), np.repeat(np.arange(10), 2)) == 1.0


def test_sign_flips_count_every_flip_of_few_changes() -> None:
    """Sums 3, 2, 2, −1: |total| of at least 6 for 6 flips of 16: ±(3+2+2−1), ±(3+2+2+1), and none else but 3+2+2−1 = 6."""
    flips = SignFlips(np.array([[3.0], [2.0], [2.0], [-1.0], [0.0]]), np.full(5, 4.0))
    totals = [abs(a * 3 + b * 2 + c * 2 + d) for a, b, c, d in itertools.product((1, -1), repeat=4)]
    assert flips.p(0) == sum(t >= 6 for t in totals) / 16 == 4 / 16


def test_p_is_never_zero() -> None:
    rng = np.random.default_rng(0)
    d = rng.random((60, 1))
    assert SignFlips(d, np.ones(60)).p(0) == 1e-4
    assert SignFlips(d[:17], np.ones(17)).p(0) <= 3e-4 and SignFlips(d[:16], np.ones(16)).p(0) == 2 / 2**16


def test_the_interval_holds_the_shifts_that_are_not_rejected() -> None:
    """Against brute force: all flips of 10 clusters of unequal size, shifts on a fine grid."""
    rng = np.random.default_rng(7)
    sizes = rng.integers(1, 6, 10).astype(float)
    sums = sizes * rng.normal(0.3, 0.5, 10)
    low, high = SignFlips(sums[:, None], sizes).interval(0, 0.9)
    signs = np.array(list(itertools.product((1, -1), repeat=10)), dtype=float)

    def p(shift: float) -> float:
        d = sums - shift * sizes
        return float(np.mean(np.abs(signs @ d) >= abs(d.sum()) - 1e-9))

    inside = [s for s in np.arange(-1.5, 2.0, 0.001) if p(s) > 0.1]
    assert low == pytest.approx(min(inside), abs=0.002) and high == pytest.approx(max(inside), abs=0.002)


def test_so_few_clusters_reject_nothing() -> None:
    found = PairedTests(np.zeros((20, 1)), np.ones((20, 1)), np.repeat(np.arange(4), 5), [True], [1.0]).result(0)
    assert (found.verdict, found.p, found.low, found.high) == ("cannot_tell", 0.125, pytest.approx(-1.0), 1.0) or found.low <= 0
    assert "4 clusters of questions changed, at least 6 needed" in in_words("hit@5", found)


# ── families ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_holm_by_hand() -> None:
    """.01·4, .02·3, .03·2, .04·1; each at least the one before it."""
    assert holm([0.03, 0.01, 0.04, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0]) and holm([]) == []


def test_levels_agree_with_holm() -> None:
    """.001 < .05/3 is rejected; .03 ≥ .05/2 is the first that is not: it and what follows get the level 1 − .05/2."""
    assert levels([0.03, 0.001, 0.04], 0.05) == pytest.approx([1 - 0.05 / 2, 1 - 0.05 / 3, 1 - 0.05 / 2])


def test_six_of_six_tell_in_the_second_step_of_holm() -> None:
    """30 wins, and 6 wins without a loss: .03125 is below .05, which is what the second of two is held against."""
    before, after = np.zeros((200, 2)), np.zeros((200, 2))
    after[:30, 0] = after[:6, 1] = 1.0
    tests = PairedTests(before, after, range(200), [False, False], [1.0, 1.0])
    p = [tests.p(0), tests.p(1)]
    second = dataclasses.replace(tests.result(1, level=levels(p, 0.05)[1], effects=2), p_adjusted=holm(p)[1])
    assert (second.p, second.p_adjusted, second.verdict) == (0.03125, 0.03125, "higher") and second.low > 0


def test_a_p_of_exactly_alpha_rejects_nothing() -> None:
    """1 − 0.95 is a little more than 0.05 in floating point."""
    found = PairedTests(np.zeros((40, 1)), np.r_[np.ones(5), np.zeros(35)][:, None], range(40), [False], [1.0]).result(0, level=1 - 0.0625)
    assert found.p == 0.0625 and found.low <= 0 <= found.high


def test_where_less_is_better_a_question_wins_when_it_falls() -> None:
    raw = pair(12, 2, 200)
    turned = oriented("short@10", raw)
    assert (turned.wins, turned.losses) == (2, 12) and oriented("hit@5", raw) is raw
    assert "2 questions won, 12 lost" in in_words("short@10", turned)


@pytest.mark.parametrize("seed", range(20))
def test_an_interval_excludes_zero_exactly_where_holm_rejects(seed: int) -> None:
    rng = np.random.default_rng(seed)
    before = rng.integers(0, 2, (150, 4)).astype(float)
    after = before.copy()
    for t in range(4):
        changed = rng.choice(150, rng.integers(3, 30), replace=False)
        after[changed, t] = np.where(rng.random(len(changed)) < rng.choice([0.5, 0.75, 0.95]), 1.0, 0.0)
    for clusters in (np.arange(150), rng.integers(0, 40, 150)):
        tests = PairedTests(before, after, clusters, [False] * 4, [1.0] * 4)
        p = [tests.p(t) for t in range(4)]
        adjusted = holm(p)
        for t, level in enumerate(levels(p, 0.05)):
            found = dataclasses.replace(tests.result(t, level=level, effects=4), p_adjusted=adjusted[t])
            assert (found.low <= 0 <= found.high) == (adjusted[t] >= 0.05), (found, adjusted[t])
            assert (found.verdict in {"higher", "lower"}) == (adjusted[t] < 0.05)
            assert found.low <= found.delta <= found.high


# ── what can be shown ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("n", "points"), [(100, 8.8), (200, 6.4), (300, 5.3), (500, 4.1), (1000, 2.9)])
def test_the_smallest_effect_that_is_found(n: int, points: float) -> None:
    found = power.smallest_effect(n, 0.1)
    assert found is not None and 100 * found == pytest.approx(points, abs=0.05)
    assert power.mcnemar_power(n, 0.1, found, 0.05) == pytest.approx(0.8, abs=1e-3)


def test_power_by_simulation() -> None:
    """200 questions, 10 % change, a true difference of 6.4 points: exact McNemar finds it in 0.8 of 4,000 draws, ± 0.05."""
    rng = np.random.default_rng(1)
    changed = rng.binomial(200, 0.1, 4000)
    wins = rng.binomial(changed, (0.1 + 0.064) / 0.2)
    found = np.mean([exact.mcnemar(int(w), int(m - w)) < 0.05 for w, m in zip(wins, changed, strict=True)])
    assert found == pytest.approx(0.8, abs=0.05) and found == pytest.approx(power.mcnemar_power(200, 0.1, 0.064, 0.05), abs=0.025)


def test_too_few_questions_show_nothing() -> None:
    assert power.smallest_effect(20, 0.1) is None and power.smallest_effect(200, 0.0) is None
    assert power.questions_for(0.2, 0.1) is None, "no more can be won than changes"
    n = power.questions_for(0.064, 0.1)
    assert n is not None and power.mcnemar_power(n, 0.1, 0.064, 0.05) >= 0.8 > power.mcnemar_power(n - 2, 0.1, 0.064, 0.05) - 0.01


def test_a_margin_nobody_can_meet() -> None:
    """n = 160, margin .01: even 0 flips give −.0166."""
    assert power.least_margin(160) == pytest.approx(0.0166, abs=5e-5)
    assert power.gate_passes(160, 0.0, 0.01) == 0.0 and power.gate_passes(160, 0.0, 0.017) == 1.0
    assert not non_inferior(-power.least_margin(160), 0.01) and equivalent(-0.02, 0.03, 0.04) and not equivalent(-0.02, 0.05, 0.04)


def test_a_fixed_threshold_fails_unchanged_code() -> None:
    """True rate .80, 200 questions, threshold .77: below it with a chance of 13 %; two runs of the same code have no changed question, and p = 1."""
    assert bdtr(153, 200, 0.8) == pytest.approx(0.13, abs=0.01)
    assert pair(0, 0, 200).p == 1.0 and non_inferior(exact.interval(0, 0, 200, 0.9)[0], 0.03)


def test_how_often_a_gate_on_equal_systems_passes() -> None:
    rng = np.random.default_rng(5)
    changed = rng.binomial(200, 0.05, 1500)
    wins = rng.binomial(changed, 0.5)
    passed = np.mean([exact.interval(int(w), int(m - w), 200, 0.9)[0] > -0.05 for w, m in zip(wins, changed, strict=True)])
    assert power.gate_passes(200, 0.05, 0.05) == pytest.approx(passed, abs=0.03)
