"""The hybrid recipe that is copied most, for benchmarks to stand beside (sql/bench/naive.sql)."""

from __future__ import annotations

import time

import numpy as np
from pgvector import HalfVector

from lab.store.arms import sanitise
from lab.store.collections import Collection
from lab.store.connect import Store
from lab.store.queries import query


def seconds(store: Store, collection: Collection, question: str, vector: np.ndarray) -> float:
    """How long it takes for one question."""
    row = store.rows(query("search/tsquery"), {"language": collection.language, "question": sanitise(question), "mode": "any"})
    statement = query("bench/naive", schema=collection.schema)
    start = time.perf_counter()
    store.rows(statement, {"vector": HalfVector(vector), "tsquery": str(row[0][0] or ""), "limit": 100})
    return time.perf_counter() - start
