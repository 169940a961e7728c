"""Vectors of texts through the cache: what any collection or run has embedded before is not embedded again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np

from lab.errors import LabError
from lab.models.embedders import Embedder, prefixes
from lab.progress import say
from lab.settings import IngestSettings
from lab.store import embeddings
from lab.store.connect import Store
from lab.text import text_hash

_WRITE_EVERY = 128


def embed(
    store: Store, embedder: Embedder, texts: Sequence[str], on_batch: Callable[[int], None] | None = None, prefix: str = ""
) -> tuple[list[np.ndarray | None], int]:
    """(one float16 vector `(dim,)` a text, or None where the model maps it to zero; how many texts were not in the cache).

    `prefix` is put before every text, and is part of what the cache knows it by. An embedder that says `remembered = False` is asked each time. Vectors are rounded to half precision at once, so that a fresh one and a cached one are the same.
    """
    if embedder.dim is None:
        return [None] * len(texts), 0
    texts = [prefix + text for text in texts] if prefix else texts
    hashes = [text_hash(text) for text in texts]
    remembered = getattr(embedder, "remembered", True)
    found, broken = embeddings.cached_vectors(store, embedder.digest, sorted(set(hashes)), embedder.dim) if remembered else ({}, 0)
    if broken:
        say(f"{broken} cached vectors have the wrong length or hold no numbers: they are computed again.")
    missing: dict[bytes, str] = {}
    for key, text in zip(hashes, texts, strict=True):
        if key not in found:
            missing.setdefault(key, text)
    keys = sorted(missing, key=lambda key: (len(missing[key]), key))
    for at in range(0, len(keys), _WRITE_EVERY):
        part = keys[at : at + _WRITE_EVERY]
        array = embedder.encode([missing[key] for key in part], on_batch)
        if not np.isfinite(array).all():
            raise LabError(f"embedder {embedder.name} returned NaN or infinity: check the model.")
        fresh: dict[bytes, np.ndarray | None] = {key: row.astype(np.float16) if np.any(row) else None for key, row in zip(part, array, strict=True)}
        if remembered:
            embeddings.store_vectors(store, embedder.digest, fresh)
        found.update(fresh)
    return [found[key] for key in hashes], len(keys)


def prefix_of(settings: IngestSettings, side: Literal["query", "passage"]) -> str:
    """What goes before a question or a passage of a collection made with these flags."""
    said = settings.query_prefix if side == "query" else settings.passage_prefix
    if said == "auto":
        return prefixes(settings.embedder)[0 if side == "query" else 1]
    return "" if said == "none" else said


def tokens(store: Store, embedder: Embedder) -> Callable[[Sequence[str]], Mapping[bytes, np.ndarray]]:
    """A function that gives float16 token vectors `(tokens, dim)` by hash of the text, through the cache."""

    def read(texts: Sequence[str]) -> Mapping[bytes, np.ndarray]:
        wanted = {text_hash(text): text for text in texts}
        found = embeddings.cached_tokens(store, embedder.digest, sorted(wanted), embedder.dim or 0)
        missing = sorted(set(wanted) - set(found))
        if missing:
            arrays = embedder.token_vectors([wanted[key] for key in missing])
            fresh = {key: array.astype(np.float16) for key, array in zip(missing, arrays, strict=True)}
            embeddings.store_tokens(store, embedder.digest, fresh)
            found.update(fresh)
        return found

    return read
