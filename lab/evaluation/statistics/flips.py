"""Sign-flips of whole clusters: what differences like these would look like if both runs were alike.

Under that hypothesis a cluster's sum of differences is as likely to have the other sign. The statistic is the total, studentised by the root of the sum of squares; flips do
not change that root, so the total alone orders them. All flips are counted where there are few clusters, else 9,999 seeded draws and the observed one (so p is never 0).

The interval holds every shift that the test does not reject. For a shift s the flipped total of sums d and sizes m is A − sB with A = Σ±d, B = Σ±m; it reaches the observed
D − sN for all s beyond (D − A)/(N − B) or (D + A)/(N + B). So an end is an order statistic of these ratios: nothing has to be searched.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

DRAWS = 9_999
_ALL = 13  # clusters up to which every flip is taken
_EXACT = 16  # changed clusters up to which p counts every flip
_SEED = 20_240_229
_BLOCK = 1_000
_NEAR = 1e-9


class SignFlips:
    """The flips of several columns of differences over the same clusters. `sums` is `(clusters, columns)`, `sizes` `(clusters,)`."""

    def __init__(self, sums: np.ndarray, sizes: np.ndarray) -> None:
        self.sums = np.where(np.abs(sums) < _NEAR, 0.0, sums)
        self.total = self.sums.sum(axis=0)
        self.size = float(sizes.sum())
        blocks = [(block @ self.sums, block @ sizes) for block in _signs(len(sizes))]
        self._flipped = np.concatenate([a for a, _ in blocks])  # (flips, columns); the first row is the observed one
        self._sizes = np.concatenate([b for _, b in blocks])

    def changed(self, column: int) -> int:
        """How many clusters have a difference at all."""
        return int(np.count_nonzero(self.sums[:, column]))

    def p(self, column: int) -> float:
        """Two-sided; exact where at most 16 clusters changed."""
        observed = abs(float(self.total[column]))
        there = self.sums[self.sums[:, column] != 0, column]
        if not len(there):
            return 1.0
        if len(there) <= _EXACT:
            return float(np.mean(np.abs(_all_totals(there)) >= observed - _NEAR))
        return float(np.mean(np.abs(self._flipped[:, column]) >= observed - _NEAR))

    def interval(self, column: int, level: float) -> tuple[float, float]:
        """The shifts per question that are not rejected; an end is infinite where so few clusters cannot reject any."""
        flipped, total = self._flipped[:, column], float(self.total[column])
        with np.errstate(divide="ignore", invalid="ignore"):
            one = np.where(self.size - self._sizes > _NEAR, (total - flipped) / (self.size - self._sizes), np.nan)
            other = np.where(self.size + self._sizes > _NEAR, (total + flipped) / (self.size + self._sizes), np.nan)
        always = np.isnan(one) | np.isnan(other)  # the observed flip and its mirror reach every shift
        least, most = np.where(always, -np.inf, np.fmin(one, other)), np.where(always, np.inf, np.fmax(one, other))
        place = int(np.floor((1 - level) * len(flipped) + _NEAR))  # so many may be as extreme
        return float(np.partition(least, place)[place]), float(np.partition(most, len(most) - 1 - place)[len(most) - 1 - place])


def _signs(clusters: int) -> Iterator[np.ndarray]:
    """Blocks of rows of ±1, the first row all +1: every flip, or that and 9,999 draws."""
    if clusters <= _ALL:
        every = np.array(list(itertools.product((1.0, -1.0), repeat=clusters)))
        yield every.reshape(-1, clusters)
        return
    source = np.random.default_rng(_SEED)
    yield np.ones((1, clusters))
    for start in range(0, DRAWS, _BLOCK):
        yield source.integers(0, 2, (min(_BLOCK, DRAWS - start), clusters)).astype(np.float64) * 2 - 1


def _all_totals(sums: np.ndarray) -> np.ndarray:
    """The total under every flip of some sums, `(2**len,)`."""
    totals = np.zeros(1)
    for value in sums:
        totals = np.concatenate([totals + value, totals - value])
    return totals
