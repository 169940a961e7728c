"""Documents that are neither relevant nor irrelevant to a question (`metadata.ignore`), taken out of what is scored as if they had not been returned.

A Cranfield question was written from one paper: to find that paper is no merit, and to list it first is no fault.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

import numpy as np

from lab.records import SearchResult


def without(found: SearchResult, sources: Collection[str], k: int) -> SearchResult:
    """The first `k` of a result that was searched so much deeper as `sources` may take, without passages of these documents: what stood below them moves up, in the list and in
    every column of the ledger."""
    results = [r for r in found.results if r.source not in sources][:k]
    kept = [i for i, hit in enumerate(found.ledger.hits) if hit.source not in sources]
    ranks = found.ledger.ranks.copy()
    gone = np.asarray([hit.source in sources for hit in found.ledger.hits], dtype=bool)
    for column in range(ranks.shape[1]):
        taken = np.sort(ranks[gone, column])
        taken = taken[taken > 0]
        ranks[:, column] -= np.searchsorted(taken, ranks[:, column], side="left").astype(ranks.dtype)
    if "cut" in found.ledger.columns:
        cut = found.ledger.columns.index("cut")
        ranks[ranks[:, cut] > k, cut] = 0
    ledger = dataclasses.replace(found.ledger, hits=tuple(found.ledger.hits[i] for i in kept), ranks=ranks[kept])
    renumbered = tuple(dataclasses.replace(r, rank=rank) for rank, r in enumerate(results, 1))
    return dataclasses.replace(found, results=renumbered, ledger=ledger, beyond=tuple(hit for hit in found.beyond if hit.source not in sources))
