"""Several effects at once: Holm's (1979) step-down p, and intervals that exclude 0 exactly where Holm rejects."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p: Sequence[float]) -> list[float]:
    """Adjusted p in the order given, each at most 1: the largest of (m − j + 1)·p over the effects up to its rank."""
    order = sorted(range(len(p)), key=lambda i: (p[i], i))
    adjusted, least = [0.0] * len(p), 0.0
    for rank, i in enumerate(order):
        least = max(least, min(1.0, (len(p) - rank) * p[i]))
        adjusted[i] = least
    return adjusted


def levels(p: Sequence[float], alpha: float) -> list[float]:
    """The level of each effect's interval: 1 − alpha/(m − r′ + 1), r′ the smaller of its rank and that of the first effect that Holm does not reject."""
    order = sorted(range(len(p)), key=lambda i: (p[i], i))
    first = next((rank for rank, i in enumerate(order, 1) if p[i] >= alpha / (len(p) - rank + 1)), len(p))
    found = [0.0] * len(p)
    for rank, i in enumerate(order, 1):
        found[i] = 1 - alpha / (len(p) - min(rank, first) + 1)
    return found
