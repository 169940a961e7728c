"""Where was it lost: of every question whose answer is not among the first k, the stage that lost it, read from the ledger.

failed         the search of the question failed
not_ingested   no chunk covers any of its judgments
not_embedded   no arm had it, and every chunk that covers it lacks a vector
no_arm         no arm had it in its list
fuse … cut     the last stage that moved it from the first k to below, or out of the list; `cut`: it was in a list, but never among the first k
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lab.evaluation.health import best_ranks
from lab.retrieval.search import ARMS

WORDS = {
    "failed": "not searched: the search failed", "not_ingested": "not in the collection", "not_embedded": "without a vector, and not found by words", "no_arm": "in no arm's list", "fuse": "fused out",
    "codes": "passed by passages with the question's codes", "authority": "out-ranked by authority", "dedup": "merged into a twin", "links": "pushed out by links",
    "rerank": "demoted by the reranker", "authority_after": "out-ranked by authority after the reranker", "steps": "passed by lists of steps", "mmr": "removed by MMR",
    "floor": "below the floor", "cut": "ranked too low from the start",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Loss:
    """The stage, and the best rank right before it (of `cut` the rank at which it stood in the end, of `no_arm` and what comes before it 0)."""

    stage: str
    rank: int


def loss(
    columns: Sequence[str], ranks: np.ndarray, graded: Sequence[int], k: int, *, targets: Collection[int] = (), bare: Collection[int] = ()
) -> Loss | None:
    """None where what answers is among the first k. `ranks` and `graded` are the ledger's; `targets` are the keys of the chunks that answer, `bare` those of chunks without a
    vector."""
    if not targets:
        return Loss("not_ingested", 0)
    best = dict(zip(columns, best_ranks(ranks, graded, len(columns)), strict=True))
    arms = [best[c] for c in columns if c in ARMS and best[c]]
    if not arms and not any(best.values()):
        return Loss("not_embedded" if set(targets) <= set(bare) else "no_arm", 0)
    steps = [("arms", min(arms, default=0))] + [(c, best[c]) for c in columns if c not in ARMS]
    if 0 < steps[-1][1] <= k:
        return None
    for (_, before), (stage, after) in reversed(list(itertools.pairwise(steps))):
        if 0 < before <= k and not 0 < after <= k:
            return Loss(stage, before)
    gone = next((i for i in range(len(steps) - 1, 0, -1) if steps[i - 1][1] and not steps[i][1]), None)
    if gone is not None:
        return Loss(steps[gone][0], steps[gone - 1][1])
    return Loss("cut", steps[-1][1])


def waterfall(lost: Mapping[str, Loss]) -> dict[str, int]:
    """Stage → questions lost there, in the order of execution."""
    counts: dict[str, int] = {}
    for one in lost.values():
        counts[one.stage] = counts.get(one.stage, 0) + 1
    return {stage: counts[stage] for stage in (*WORDS, *sorted(counts.keys() - WORDS.keys())) if stage in counts}


def in_words(stage: str) -> str:
    """What a stage did to what it lost."""
    return WORDS.get(stage, f"lost by {stage}")
