"""Two runs, one share, every question for itself: exact McNemar (1947), Clopper–Pearson (1934) on the changed questions, and Tango's score interval (1998).

`wins` + `losses` of `n` paired questions changed; the difference is (wins − losses)/n.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import bdtr, betaincinv, ndtri

_STEPS = 60  # halvings of an interval of length 2: far below what a float can tell


def z_of(level: float) -> float:
    """The two-sided normal quantile of a level: 1.96 for 0.95."""
    return float(ndtri(0.5 + level / 2))


def mcnemar(wins: int, losses: int) -> float:
    """Exact two-sided p of the changed questions when both directions are as likely: twice the smaller tail, at most 1; 1 where nothing changed.

    >>> round(mcnemar(12, 2), 4)
    0.0129
    """
    return min(1.0, 2.0 * float(bdtr(min(wins, losses), wins + losses, 0.5))) if wins + losses else 1.0


def clopper_pearson(wins: int, losses: int, level: float) -> tuple[float, float]:
    """The exact interval of the share of wins among the changed questions."""
    tail = (1 - level) / 2
    low = float(betaincinv(wins, losses + 1, tail)) if wins else 0.0
    high = float(betaincinv(wins + 1, losses, 1 - tail)) if losses else 1.0
    return low, high


def tango(wins: float, losses: float, n: float, level: float) -> tuple[float, float]:
    """The score interval of a paired difference of shares, −1 to 1 (Tango 1998, Statistics in Medicine 17:891–908). With nothing changed: ± z²/(n + z²).
    Counts may be effective ones."""
    z = z_of(level)
    return _root(wins, losses, n, z), -_root(losses, wins, n, z)


def _root(wins: float, losses: float, n: float, z: float) -> float:
    """The smallest difference that a score test with `z` does not reject from above."""
    low, high = -1.0, (wins - losses) / n
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _score(wins, losses, n, middle) > z:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _score(wins: float, losses: float, n: float, delta: float) -> float:
    """Tango's T: the difference less `delta`, by its standard error under it."""
    b = -wins - losses + (2 * n - wins + losses) * delta
    c = -losses * delta * (1 - delta)
    q = (math.sqrt(max(b * b - 8 * n * c, 0.0)) - b) / (4 * n)  # the constrained estimate of the share that loses
    variance = n * (2 * q + delta * (1 - delta))
    top = wins - losses - n * delta
    return top / math.sqrt(variance) if variance > 0 else math.copysign(math.inf, top) if top else 0.0


def interval(wins: int, losses: int, n: int, level: float) -> tuple[float, float]:
    """The outer ends of Clopper–Pearson, mapped by (2p − 1)·changed/n, and of Tango's interval: it excludes 0 exactly when `mcnemar` is below 1 − level.

    Tango's interval alone excludes 0 for 5 against 0 of 100, whose exact p is .0625. It also knows what Clopper–Pearson cannot: that with few changes more may come.
    """
    low, high = tango(wins, losses, n, level)
    changed = wins + losses
    if not changed:
        return low, high
    first, last = ((2 * p - 1) * changed / n for p in clopper_pearson(wins, losses, level))
    significant = mcnemar(wins, losses) < 1 - level - 1e-12  # 1 − 0.95 is a little more than 0.05
    low = first if significant and wins > losses else min(low, first)
    high = last if significant and losses > wins else max(high, last)
    return low, high


def bound_of_nothing(n: float, level: float) -> float:
    """How large a difference may still be when nothing changed: z²/(n + z²).

    >>> round(bound_of_nothing(160, 0.9), 4)
    0.0166
    """
    z = z_of(level)
    return z * z / (n + z * z)


def least_changed(alpha: float, effects: int = 1) -> int:
    """How many must change, all one way, before p = 2^(1 − changed) is below alpha/effects: 6, 7, 7, 8 for 1 to 4 effects at .05."""
    changed = 1
    while 2.0 ** (1 - changed) >= alpha / effects:
        changed += 1
    return changed


def tangos(wins: np.ndarray, losses: np.ndarray, n: int, level: float) -> np.ndarray:
    """The lower ends of `tango` for many pairs at once, for power calculations."""
    z = z_of(level)
    low, high = np.full(wins.shape, -1.0), (wins - losses) / n
    for _ in range(_STEPS):
        middle = (low + high) / 2
        b = -wins - losses + (2 * n - wins + losses) * middle
        c = -losses * middle * (1 - middle)
        q = (np.sqrt(np.maximum(b * b - 8 * n * c, 0.0)) - b) / (4 * n)
        variance = np.maximum(n * (2 * q + middle * (1 - middle)), 1e-300)
        above = (wins - losses - n * middle) / np.sqrt(variance) > z
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.asarray((low + high) / 2)
