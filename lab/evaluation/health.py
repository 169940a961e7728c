"""What a mean hides, looked at in every run: each arm alone, what every stage rescued and harmed, coin flips at k, links that never reached the list.

All of it is read from the ledger: nothing is searched again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lab.evaluation.coverage import Target
from lab.records import Ledger, SearchResult
from lab.retrieval.search import ARMS
from lab.retrieval.stages import STAGES

ORDER = (*ARMS, "fuse", *(stage.name for stage in STAGES))
_PLAIN = frozenset(
    {*ARMS, "fuse", "codes", "authority", "dedup", "floor", "cut"}
)  # with these alone, passages with equal evidence are interchangeable


@dataclass(slots=True)
class Health:
    """Over the questions of one run, at one cutoff `k`.

    `alone`: hit@k of each arm's own list, of the fusion and of what is returned. `rescued`, `harmed`: stage → questions whose first relevant passage it moved
    into, out of the first k; `first_lost`: stage → questions whose relevant first rank it gave away. `tied_best`, `tied_worst`: hit@k if every coin flip at k
    fell well, or ill; `tied`: questions with one that matters.
    """

    k: int
    questions: int = 0
    alone: dict[str, float] = field(default_factory=dict)
    rescued: dict[str, int] = field(default_factory=dict)
    harmed: dict[str, int] = field(default_factory=dict)
    first_lost: dict[str, int] = field(default_factory=dict)
    tied: int = 0
    tied_best: float = 0.0
    tied_worst: float = 0.0
    links_brought: int = 0
    links_returned: int = 0
    short: int = 0
    lost: dict[str, int] = field(default_factory=dict)  # stage → questions whose answer it lost, see lab.evaluation.losses
    weak_arm: str = ""
    ann_recall: float | None = (
        None  # mean recall of the vector index against the exact list, on a sample of the questions; None where no index was used
    )
    abstain: dict[str, Any] = field(default_factory=dict)  # see lab.evaluation.abstention
    answers: dict[str, Any] = field(default_factory=dict)  # see lab.evaluation.answering
    notes: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The object in `lab run --json` and `lab runs show --json`."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "notes"}


def columns_of(ledgers: Iterable[Ledger]) -> tuple[str, ...]:
    """Every column that any question has, in the order of execution: an intent may turn stages on for its question alone."""
    there = {column for ledger in ledgers for column in ledger.columns}
    return tuple(column for column in ORDER if column in there)


def spread(ledger: Ledger, columns: Sequence[str]) -> np.ndarray:
    """The ranks of one question under all `columns`: a stage that was not executed leaves the order as it was, an arm that was off holds nothing."""
    ranks = np.zeros((len(ledger.hits), len(columns)), dtype=np.int32)
    for at, column in enumerate(columns):
        if column in ledger.columns:
            ranks[:, at] = ledger.ranks[:, ledger.columns.index(column)]
        elif column not in ARMS and at:
            ranks[:, at] = ranks[:, at - 1]
    return ranks


def grades(found: SearchResult, wanted: Sequence[Target]) -> list[int]:
    """Of each passage in the ledger, the highest grade of a judgment that it, or an exact twin of it, covers; 0 = none."""
    by_key: dict[int, int] = {}
    by_class: dict[bytes, int] = {}
    for target in wanted:
        grade = target.judgment.grade
        for key in target.keys:
            by_key[key] = max(grade, by_key.get(key, 0))
        for name in target.classes:
            by_class[name] = max(grade, by_class.get(name, 0))
    return [max(by_key.get(hit.key, 0), by_class.get(hit.class_id, 0)) for hit in found.ledger.hits]


def examine(rankings: Mapping[str, SearchResult], wanted: Mapping[str, Sequence[Target]], graded: Mapping[str, Sequence[int]], k: int) -> Health:
    """The health of a run. `graded` holds `grades` of each question."""
    health = Health(k)
    found_by: dict[str, dict[str, bool]] = {}  # column → question → hit@k there
    columns = columns_of(found.ledger for found in rankings.values())
    for question, found in sorted(rankings.items()):
        ledger = found.ledger
        ranks = spread(ledger, columns)
        health.questions += 1
        health.short += len(found.results) < k
        best = best_ranks(ranks, graded[question], len(columns))
        at = dict(zip(columns, best, strict=True))
        for column, rank in at.items():
            found_by.setdefault(column, {})[question] = 0 < rank <= k
        steps = [column for column in columns if column not in ARMS]
        for before, after in itertools.pairwise(steps):
            was, now = 0 < at[before] <= k, 0 < at[after] <= k
            if now and not was:
                health.rescued[after] = health.rescued.get(after, 0) + 1
            if was and not now:
                health.harmed[after] = health.harmed.get(after, 0) + 1
            if at[before] == 1 and at[after] != 1:
                health.first_lost[after] = health.first_lost.get(after, 0) + 1
        if "links" in at and len(ledger.hits):
            links = columns.index("links")
            brought = (ranks[:, links] > 0) & (ranks[:, :links] == 0).all(axis=1)
            health.links_brought += int(brought.sum())
            health.links_returned += int((brought & (ranks[:, -1] > 0)).sum())
        hit = found_by[columns[-1]][question] if columns else False
        luck, mischief = _flips(found, wanted[question], k, hit)
        health.tied += luck != mischief
        health.tied_best += luck
        health.tied_worst += mischief
    n = max(health.questions, 1)
    health.tied_best, health.tied_worst = health.tied_best / n, health.tied_worst / n
    shares = {column: sum(hits.values()) / n for column, hits in found_by.items()}
    health.alone = {name: shares[name] for name in (*ARMS, "fuse") if name in shares}
    if columns:
        health.alone["returned"] = shares[columns[-1]]
    _say(health, found_by)
    return health


def best_ranks(ranks: np.ndarray, graded: Sequence[int], columns: int) -> list[int]:
    """Per column the best rank of a relevant passage, 0 where none is there."""
    mask = np.asarray(graded, dtype=np.int32) > 0
    if not mask.any():
        return [0] * columns
    rows = ranks[mask].astype(np.int64)
    least = np.where(rows > 0, rows, np.iinfo(np.int64).max).min(axis=0)
    return [0 if value == np.iinfo(np.int64).max else int(value) for value in least]


def _flips(found: SearchResult, wanted: Sequence[Target], k: int, hit: bool) -> tuple[bool, bool]:
    """(hit@k, hit@k) if the passages that nothing tells apart from the one at rank k had been ordered well, and ill.

    Nothing tells two passages apart when their scores are equal; or, where no step but fusion, codes and authority made them, when every arm gave both the same
    score, or neither, and their tiers and codes are the same: then only the order of their names gave them different ranks.
    """
    if len(found.results) < k or found.results[k - 1].linked_by:
        return hit, hit
    last = found.results[k - 1]
    scores = {name: {h.key: h.score for h in arm.hits} for name, arm in found.arms.items()}
    coded = {key: share for arm in found.arms.values() for key, share in arm.coded.items()}
    plain = set(found.ledger.columns) <= _PLAIN and any(last.key in one for one in scores.values())

    def evidence(key: int, tier: int) -> tuple[object, ...]:
        return (*(one.get(key) for one in scores.values()), tier, coded.get(key))

    same = evidence(last.key, last.authority)
    equal = [r for r in found.results if not r.linked_by and (r.score == last.score or (plain and evidence(r.key, r.authority) == same))]
    inside = [r for r in equal if r.rank <= k]
    outside = {r.class_id: r.key for r in equal if r.rank > k}
    known = {r.class_id for r in found.results}
    if plain:
        outside |= {
            h.class_id: h.key for arm in found.arms.values() for h in arm.hits if h.class_id not in known and evidence(h.key, h.authority) == same
        }
    if len(equal) and equal[-1].rank == len(found.results):
        outside |= {h.class_id: h.key for h in found.beyond if h.class_id not in known}
    if not outside:
        return hit, hit
    if any(_covers(r.key, r.class_id, wanted) for r in found.results[:k] if r not in inside):
        return True, True
    gold = sum(_covers(r.key, r.class_id, wanted) for r in inside) + sum(_covers(key, cls, wanted) for cls, key in outside.items())
    return gold > 0, gold > len(outside)


def _covers(key: int, class_id: bytes, wanted: Sequence[Target]) -> bool:
    return any(t.judgment.grade > 0 and (key in t.keys or class_id in t.classes) for t in wanted)


def _say(health: Health, found_by: Mapping[str, Mapping[str, bool]]) -> None:
    """Warnings in words."""
    k = health.k
    alone = [(sum(found_by[name].values()), name) for name in ARMS if name in found_by]
    if len(alone) > 1 and "fuse" in found_by:
        _, best = max(alone, key=lambda pair: (pair[0], -ARMS.index(pair[1])))
        lost = sum(found_by[best][q] and not found_by["fuse"][q] for q in found_by["fuse"])
        won = sum(found_by["fuse"][q] and not found_by[best][q] for q in found_by["fuse"])
        if lost > won and (p := sign_test(won, lost)) < 0.05:
            health.weak_arm = next(name for _, name in sorted(alone) if name != best)
            health.notes.append(
                f"the {best} arm alone finds more than the fusion at hit@{k} ({health.alone[best]:.3f} against {health.alone['fuse']:.3f}; {lost} questions lost by "
                f"fusing, {won} won, p = {p:.2g}): lower --{health.weak_arm}-weight, or leave the {health.weak_arm} arm out"
            )
    if health.links_brought and not health.links_returned:
        health.notes.append(f"links brought {health.links_brought} passages and none was among the results: links are inert here")
    if health.tied:
        health.notes.append(
            f"{health.tied} questions are decided at rank {k} by the order of equal passages: hit@{k} lies between {health.tied_worst:.3f} and {health.tied_best:.3f}"
        )


def sign_test(wins: int, losses: int) -> float:
    """Exact two-sided p of `wins` against `losses` when both are as likely (McNemar 1947, exact): 1 where nothing changed."""
    n = wins + losses
    least = sum(math.comb(n, i) for i in range(min(wins, losses) + 1))
    return min(1.0, float(2 * least / 2**n))
