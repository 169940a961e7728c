"""Reciprocal rank fusion (Cormack, Clarke & Büttcher 2009): score = Σ weight / (rrf_k + rank), ranks from 1, an absent list adds 0."""

from __future__ import annotations

import operator
from collections.abc import Mapping

from lab.records import ArmList, Candidate, Hit
from lab.settings import Settings


def fuse(arms: Mapping[str, ArmList], settings: Settings, members: Mapping[bytes, list[Hit]]) -> list[Candidate]:
    """The candidates of all arms, best first; ties by (best rank in any arm, source, n).

    With dedup on, the unit is the exact class: it is spoken for by its best-ranked fetched copy here (the stage `dedup` puts the copy of highest
    authority in its place) and already has that copy's tier.

    >>> # dense [a, b], lexical [b, c], k = 60 → b = 1/62 + 1/61, a = 1/61, c = 1/62
    """
    weights, rrf_k = settings.arms, settings.rrf_k
    by_class = settings.dedup != "off"
    first: dict[object, Hit] = {}
    best: dict[object, int] = {}
    ranks: dict[object, dict[str, int]] = {}
    similarity: dict[object, float] = {}
    for name in sorted(arms):
        for hit, rank in zip(arms[name].hits, arms[name].ranks, strict=True):
            unit: object = hit.class_id if by_class else hit.key
            by_arm = ranks.setdefault(unit, {})
            if name in by_arm:
                continue  # a further copy of a class that this arm has already brought
            by_arm[name] = rank
            if unit not in best or rank < best[unit]:
                best[unit], first[unit] = rank, hit
            if name == "dense":
                similarity[unit] = hit.score
    keyed = []
    for unit, by_arm in ranks.items():
        score = 0.0
        for name, rank in by_arm.items():  # in sorted order of the arms, so that the sum is the same to the last bit
            score += weights[name] / (rrf_k + rank)
        hit = first[unit]
        copies = tuple(m.key for m in members[hit.class_id] if m.key != hit.key) if by_class and hit.class_id in members else ()
        keyed.append((-score, best[unit], hit.source, hit.n, Candidate(hit, score, score, similarity.get(unit), by_arm, copies)))
    keyed.sort(key=operator.itemgetter(0, 1, 2, 3))
    return [row[4] for row in keyed]
