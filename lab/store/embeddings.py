"""The caches of what models compute: vectors, token vectors and scores of rerankers, by (model digest, hash of the exact text).

Tenants have no part in them: that a text is cached tells that somebody has it. Theirs are computed anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from pgvector import HalfVector

from lab.store.connect import Store


def cached_vectors(store: Store, model_digest: str, hashes: Sequence[bytes], dim: int) -> tuple[dict[bytes, np.ndarray | None], int]:
    """Hash → float16 vector `(dim,)`, or None for a text the model maps to zero; and how many rows were unusable (wrong length)."""
    if not hashes or store.tenant is not None:
        return {}, 0
    rows = store.rows(
        "select text_hash, vector from lab.embeddings where model_digest = %(model)s and text_hash = any(%(hashes)s)",
        {"model": model_digest, "hashes": list(hashes)},
    )
    found: dict[bytes, np.ndarray | None] = {}
    broken = 0
    for key, vector in rows:
        if vector is None:
            found[bytes(key)] = None
            continue
        array = np.asarray(vector.to_numpy(), dtype=np.float16)
        if array.shape != (dim,) or not np.isfinite(array).all():
            broken += 1
            continue
        found[bytes(key)] = array
    return found, broken


def store_vectors(store: Store, model_digest: str, vectors: Mapping[bytes, np.ndarray | None]) -> None:
    """Writes vectors; an unusable row of the same key is replaced."""
    if not vectors or store.tenant is not None:
        return
    with store.connection() as connection, connection.cursor() as cursor:
        cursor.execute("create temporary table incoming (text_hash bytea, vector halfvec) on commit drop")
        with cursor.copy("copy incoming from stdin") as copy:
            for key, vector in vectors.items():
                copy.write_row((key, None if vector is None else HalfVector(vector)))
        cursor.execute(
            "insert into lab.embeddings select %s, text_hash, vector from incoming order by text_hash "
            "on conflict (model_digest, text_hash) do update set vector = excluded.vector",
            [model_digest],
        )


def cached_tokens(store: Store, model_digest: str, hashes: Sequence[bytes], dim: int) -> dict[bytes, np.ndarray]:
    """Hash → float16 token vectors `(tokens, dim)`; unusable rows (wrong length, no numbers) are left out, so that they are computed again."""
    if not hashes or store.tenant is not None:
        return {}
    rows = store.rows(
        "update lab.token_vectors set used_at = now() where model_digest = %(model)s and text_hash = any(%(hashes)s) "
        "returning text_hash, tokens, dim, vectors",
        {"model": model_digest, "hashes": list(hashes)},
    )
    found = {}
    for key, tokens, width, data in rows:
        array = np.frombuffer(data, dtype=np.float16)
        if width == dim and array.size == tokens * dim and np.isfinite(array).all():
            found[bytes(key)] = array.reshape(tokens, dim)
    return found


def store_tokens(store: Store, model_digest: str, vectors: Mapping[bytes, np.ndarray], *, limit_bytes: int = 2_000_000_000) -> None:
    """Writes token vectors and drops the least recently used beyond `limit_bytes`."""
    if not vectors or store.tenant is not None:
        return
    with store.connection() as connection, connection.cursor() as cursor:
        cursor.executemany(
            "insert into lab.token_vectors (model_digest, text_hash, tokens, dim, vectors) values (%s, %s, %s, %s, %s) "
            "on conflict (model_digest, text_hash) do update set tokens = excluded.tokens, dim = excluded.dim, vectors = excluded.vectors, used_at = now()",
            [(model_digest, key, *array.shape, array.astype(np.float16).tobytes()) for key, array in vectors.items()],
        )
        cursor.execute(
            "delete from lab.token_vectors t using (select model_digest, text_hash, sum(octet_length(vectors)) over "
            "(order by used_at desc, model_digest, text_hash) as upto from lab.token_vectors) old "
            "where old.upto > %s and (t.model_digest, t.text_hash) = (old.model_digest, old.text_hash)",
            [limit_bytes],
        )


def cached_scores(store: Store, model_digest: str, question: bytes, hashes: Sequence[bytes]) -> dict[bytes, float]:
    """Text hash → the reranker's score for that question."""
    if not hashes or store.tenant is not None:
        return {}
    rows = store.rows(
        "select text_hash, score from lab.rerank_scores where model_digest = %(model)s and question_hash = %(question)s and text_hash = any(%(hashes)s)",
        {"model": model_digest, "question": question, "hashes": list(hashes)},
    )
    return {bytes(key): float(score) for key, score in rows if np.isfinite(score)}


def store_scores(store: Store, model_digest: str, question: bytes, scores: Mapping[bytes, float]) -> None:
    finite = {key: score for key, score in scores.items() if np.isfinite(score)}
    if not finite or store.tenant is not None:
        return
    with store.single() as connection, connection.cursor() as cursor:
        cursor.execute(
            "insert into lab.rerank_scores (model_digest, question_hash, text_hash, score) select %s, %s, * from unnest(%s::bytea[], %s::float8[]) "
            "on conflict (model_digest, question_hash, text_hash) do update set score = excluded.score",
            [model_digest, question, list(finite), list(finite.values())],
        )


def forget(store: Store, model_digest: str) -> None:
    """Drops the cached vectors of one model."""
    with store.connection() as connection:
        connection.execute("delete from lab.embeddings where model_digest = %s", [model_digest])


def prune(store: Store) -> int:
    """Empties the caches; returns the number of rows that went."""
    with store.connection() as connection:
        return sum(connection.execute(f"delete from lab.{table}").rowcount for table in ("embeddings", "token_vectors", "rerank_scores"))
