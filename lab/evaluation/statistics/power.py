"""What a number of questions can show: power of exact McNemar, the smallest effect it would find, and how often a gate on equal systems could not judge."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
from scipy.special import bdtr, bdtrc, betaincinv, gammaln, ndtri, xlog1py, xlogy

from lab.evaluation.statistics.exact import tangos

POWER = 0.8
_RARE = 1e-9  # probability that is left out of a sum
_HALVINGS = 40


def binomial(n: int, p: float) -> np.ndarray:
    """The probabilities of 0 … n successes."""
    k = np.arange(n + 1)
    return np.asarray(np.exp(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + xlogy(k, p) + xlog1py(n - k, -p)))


def mcnemar_power(n: int, changed: float, delta: float, alpha: float) -> float:
    """The chance that exact McNemar is below `alpha` for `n` questions of which a share `changed` changes, with a true difference `delta` (both 0 to 1)."""
    if changed <= 0:
        return 0.0
    share = min(1.0, (changed + delta) / (2 * changed))
    weights, m, least = _changed(n, changed, alpha)
    return float((weights * (bdtr(least, m, share) + bdtrc(m - least - 1, m, share))).sum())


@functools.lru_cache(maxsize=1_000)
def _changed(n: int, changed: float, alpha: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(probability, how many changed, smaller count up to which it is rejected), of the numbers of changed questions that can be rejected at all."""
    weights = binomial(n, changed)
    m = np.flatnonzero(weights > _RARE)
    least = np.array([_rejects_up_to(int(one), alpha) for one in m])
    kept = least >= 0
    return weights[m][kept], m[kept], least[kept]


@functools.lru_cache(maxsize=100_000)
def _rejects_up_to(m: int, alpha: float) -> int:
    """The largest smaller count for which 2·P(X ≤ count) < alpha, −1 where none is."""
    tails = 2 * bdtr(np.arange(m // 2 + 1), m, 0.5)
    return int(np.searchsorted(tails, alpha)) - 1


def smallest_effect(n: float, changed: float, alpha: float = 0.05, power: float = POWER) -> float | None:
    """The smallest true difference (0 to 1) that would be found with this power; None where even one that changes all in one direction would not be.

    >>> round(100 * smallest_effect(200, 0.1), 1)
    6.4
    """
    whole = max(1, math.floor(n))
    if changed <= 0 or mcnemar_power(whole, changed, changed, alpha) < power:
        return None
    low, high = 0.0, changed
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if mcnemar_power(whole, changed, middle, alpha) >= power else (middle, high)
    return high


def smallest_mean_effect(error: float, alpha: float = 0.05, power: float = POWER) -> float:
    """The same for a mean with standard error `error`, by the normal approximation."""
    return float((ndtri(1 - alpha / 2) + ndtri(power)) * error)


def questions_for(delta: float, changed: float, alpha: float = 0.05, power: float = POWER, *, most: int = 100_000) -> int | None:
    """How many questions would find a true difference `delta` where a share `changed` changes; None beyond `most`."""
    if not 0 < abs(delta) <= changed:
        return None
    return least(lambda n: mcnemar_power(n, changed, abs(delta), alpha) >= power, most)


def least(enough: Callable[[int], bool], most: int) -> int | None:
    """The smallest number from 8 on for which `enough` holds, by doubling and halving; None beyond `most`."""
    high = 8
    while not enough(high):
        high *= 2
        if high > most:
            return None
    low = high // 2
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


# ── the gate ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def least_margin(n: float, alpha: float = 0.05) -> float:
    """The margin below which not even two equal rankings could pass: z²/(n + z²) with the one-sided z.

    >>> round(least_margin(160), 4)
    0.0166
    """
    z = float(ndtri(1 - alpha))
    return z * z / (n + z * z)


def gate_passes(n: float, changed: float, margin: float, alpha: float = 0.05, delta: float = 0.0) -> float:
    """The chance that the gate's one-sided bound lies above −margin for `n` independent questions of which a share `changed` changes, with a true difference `delta`."""
    whole = max(1, math.floor(n))
    weights = binomial(whole, changed)
    share = min(1.0, max(0.0, (changed + delta) / (2 * changed))) if changed > 0 else 0.5
    passing = 0.0
    for m in np.flatnonzero(weights > 1e-6):
        of = binomial(int(m), share)
        wins = np.flatnonzero(of > 1e-6)
        passing += float(weights[m]) * float(of[wins][_lows(wins, int(m), whole, alpha) > -margin].sum())
    return passing


def _lows(wins: np.ndarray, m: int, n: int, alpha: float) -> np.ndarray:
    """The lower ends of `exact.interval` at level 1 − 2·alpha, for `wins` of `m` changed questions."""
    won, lost = wins.astype(float), (m - wins).astype(float)
    lows = tangos(won, lost, n, 1 - 2 * alpha)
    if not m:
        return lows
    share = np.where(won > 0, betaincinv(np.maximum(won, 1), lost + 1, alpha), 0.0)
    first = (2 * share - 1) * m / n
    significant = (won > lost) & (2 * bdtr(np.minimum(won, lost), m, 0.5) < 2 * alpha - 1e-12)
    return np.asarray(np.where(significant, first, np.minimum(lows, first)))


def gate_questions(changed: float, margin: float, alpha: float = 0.05, power: float = POWER, *, most: int = 20_000) -> int | None:
    """How many independent questions a gate needs to pass equal systems with this chance; None beyond `most`."""
    return least(lambda n: gate_passes(n, changed, margin, alpha) >= power, most)
