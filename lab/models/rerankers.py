"""Rerankers: one score a passage for one question, higher is better; scores have an absolute meaning of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from lab.models.embedders import Embedder
from lab.text import text_hash

TokenVectors = Callable[[Sequence[str]], Mapping[bytes, np.ndarray]]


class Reranker(Protocol):
    """`score` must not depend on the companions of a passage: alone or in any batch it gets the same value within 1e-4."""

    name: str

    def score(self, question: str, passages: Sequence[str]) -> list[float]: ...


class MaxSim:
    """`maxsim`: Σ over the question's tokens of the highest cosine to a token of the passage, divided by the number of the
    question's tokens, so in [−1, 1]. Khattab & Zaharia 2020 (ColBERT), here on the collection's own embedder.

    `passage_vectors` reads token vectors by text through a cache; a question or passage without tokens scores 0.
    """

    name = "maxsim"

    def __init__(self, embedder: Embedder, passage_vectors: TokenVectors) -> None:
        self.embedder = embedder
        self.passage_vectors = passage_vectors

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        query = self.embedder.token_vectors([question])[0].astype(np.float16).astype(np.float32)
        tokens = self.passage_vectors(passages)
        scores = []
        for passage in passages:
            array = tokens[text_hash(passage)].astype(np.float32)
            if not len(query) or not len(array):
                scores.append(0.0)
                continue
            scores.append(float((query @ array.T).max(axis=1).mean()))
        return scores
