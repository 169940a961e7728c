"""The statements of the arms with all values written out: runnable in psql as they stand. Fusion, side tokens' sum and filters' overlap are not SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lab.codes import VERSION, question_tokens, question_words
from lab.settings import Settings
from lab.store.arms import dense_engine, sanitise
from lab.store.collections import Collection
from lab.store.connect import Store
from lab.store.lexical import engine_of
from lab.store.queries import ddl, query
from lab.text import indexable


def statements(
    store: Store, collection: Collection, question: str, vector: np.ndarray | None, settings: Settings, *, chunks: int, paths: Sequence[str],
    lacks: Callable[[str], bool] = lambda index: False,
) -> str:  # fmt: skip
    """What the arms send, and what looks up the filters and the side tokens."""
    parts = []
    if paths:
        parts.append(_written(collection, "filtered", {"paths": list(paths)}))
    if settings.dense_arm != "none" and vector is not None:
        used = dense_engine(settings.dense_arm, chunks)
        literal = "[" + ",".join(f"{float(x):.7g}" for x in vector) + "]"
        text = _written(collection, f"dense_{used}", {"vector": literal, "limit": settings.candidates})
        if used == "hnsw":
            text = f"begin;\nset local hnsw.ef_search = {settings.ef_search};\nset local hnsw.iterative_scan = strict_order;\n{text}\ncommit;"
        parts.append(text)
    if settings.lexical_arm != "none":
        text, mode = sanitise(question), settings.query_mode
        codes = settings.codes == "on" and settings.lexical_arm == "bm25" and mode == "any" and collection.codes == VERSION
        asked = indexable(question_words(text) if codes else text)
        row = store.rows(query("search/tsquery"), {"language": collection.language, "question": asked, "mode": mode})
        values: dict[str, object] = {
            "question": asked, "index": collection.bm25_index, "tsquery": str(row[0][0] or ""), "limit": settings.candidates, "language": collection.language,
            "mode": mode, "keys": None,
        }  # fmt: skip
        engine, _ = engine_of(store, settings.lexical_arm, lacks)
        if engine == "bm25" and mode == "any":
            parts.append(
                f"begin;\nset local enable_seqscan = off;\nset local enable_sort = off;\n{_written(collection, 'lexical_bm25', values)}\ncommit;"
            )
        else:
            parts.append(_written(collection, "lexical_bm25_filtered" if engine == "bm25" else f"lexical_{engine}", values))
        tokens = question_tokens(text) if codes else []
        if tokens:
            parts.append(_written(collection, "codes", {"tokens": tokens, "chunks": chunks, "limit": 1000, "keys": None}))
    return "\n\n".join(part.strip() for part in parts)


def _written(collection: Collection, name: str, values: dict[str, object]) -> str:
    return ddl(f"search/{name}", {"schema": collection.schema}, values).as_string()
