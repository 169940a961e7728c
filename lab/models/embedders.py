"""Embedders: text → vector. One protocol, a registry by name, and a reading through the cache.

An embedder is cheap to make: weights load on the first text that the cache does not hold.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from lab.errors import LabError, UsageError, unknown


class Embedder(Protocol):
    """`dim` None: the collection has no vectors. `limit` is the longest input in tokens, None where there is none."""

    name: str

    @property
    def dim(self) -> int | None: ...

    @property
    def limit(self) -> int | None: ...

    @property
    def digest(self) -> str:
        """Names the weights and everything else that decides the vectors; part of every cache key."""
        ...

    def count_tokens(self, text: str) -> int:
        """Tokens of `text` as the model counts them, special tokens left out."""
        ...

    def encode(self, texts: Sequence[str], on_batch: Callable[[int], None] | None = None) -> np.ndarray:
        """Unit vectors `(n, dim)` float32 in the order of `texts`; a row of zeros for a text without anything to embed."""
        ...

    def token_vectors(self, texts: Sequence[str]) -> list[np.ndarray]:
        """One `(tokens, dim)` float32 array of unit vectors a text, for late interaction."""
        ...


class NoEmbedder:
    """`none`: lexical search only."""

    name = "none"
    dim: int | None = None
    limit: int | None = None
    digest = "none"

    def count_tokens(self, text: str) -> int:
        """Words × 1.3, the usual rule where there is no tokenizer."""
        return round(len(text.split()) * 1.3)

    def encode(self, texts: Sequence[str], on_batch: Callable[[int], None] | None = None) -> np.ndarray:
        raise LabError("embedder none makes no vectors: search with --dense none, or ingest with --embedder minilm.")

    def token_vectors(self, texts: Sequence[str]) -> list[np.ndarray]:
        raise LabError("embedder none makes no token vectors: use --reranker none, or ingest with --embedder minilm.")


class KeywordEmbedder:
    """`keyword`: hashed bag of words, 1,024 slots, for seeing the whole machine work without a model.

    Lower case; tokens are runs of a–z; stop words go; each token adds 1 to slot `int(md5(token).hexdigest(), 16) mod 1024`; Euclidean length 1.
    """

    name = "keyword"
    dim: int | None = 1024
    limit: int | None = None
    digest = "keyword-1024-v1"
    _STOP = frozenset("a an and are as at be best by for from good great has have in is it its of on or that the this to with you your".split())

    def _tokens(self, text: str) -> list[str]:
        return [token for token in re.findall(r"[a-z]+", text.lower()) if token not in self._STOP]

    def count_tokens(self, text: str) -> int:
        return round(len(text.split()) * 1.3)

    def encode(self, texts: Sequence[str], on_batch: Callable[[int], None] | None = None) -> np.ndarray:
        out = np.zeros((len(texts), 1024), dtype=np.float32)
        for row, text in enumerate(texts):
            for token in self._tokens(text):
                out[row, _slot(token)] += 1
        lengths = np.linalg.norm(out, axis=1, keepdims=True)
        np.divide(out, lengths, out=out, where=lengths > 0)
        if on_batch is not None:
            on_batch(len(texts))
        return out

    def token_vectors(self, texts: Sequence[str]) -> list[np.ndarray]:
        arrays = []
        for text in texts:
            tokens = self._tokens(text)
            array = np.zeros((len(tokens), 1024), dtype=np.float32)
            for row, token in enumerate(tokens):
                array[row, _slot(token)] = 1
            arrays.append(array)
        return arrays


@functools.lru_cache(maxsize=100_000)
def _slot(token: str) -> int:
    return int(hashlib.md5(token.encode(), usedforsecurity=False).hexdigest(), 16) % 1024


def _minilm() -> Embedder:
    from lab.models.minilm import MiniLM

    return MiniLM()


_REGISTRY: dict[str, Callable[[], Embedder]] = {"none": NoEmbedder, "keyword": KeywordEmbedder, "minilm": _minilm}
SERVERS = ("ollama", "openai", "tei")


_MADE: dict[str, Embedder] = {}


def embedder(name: str) -> Embedder:
    """The embedder of that name, one instance a process: none, keyword, minilm, `ollama:MODEL`, `openai:MODEL`, `tei:MODEL`, or a sentence-transformers
    model by its folder or its name with a slash (`sentence-transformers:NAME` for one without)."""
    if name not in _MADE:
        _MADE.setdefault(name, _make(name))
    return _MADE[name]


def _make(name: str) -> Embedder:
    if name in _REGISTRY:
        return _REGISTRY[name]()
    kind, sign, model = name.partition(":")
    if sign and kind in SERVERS and model:
        from lab.models.servers import EmbeddingServer

        return EmbeddingServer(kind, model)
    if sign and kind == "sentence-transformers" and model:
        from lab.models.sentence import SentenceModel

        return SentenceModel(name, model)
    if "/" in name or Path(name).is_dir():
        from lab.models.sentence import SentenceModel

        return SentenceModel(name, name)
    if sign and kind == "function":
        raise UsageError(
            "the vectors of this collection were made by a function that this process does not have: in Python, open it first by KnowledgeBase(embed=that function, collection=…); "
            "or do without vectors (search with --dense none, extract claims with --no-embed)."
        )
    raise unknown("embedder", name, _REGISTRY)


def counter(name: str) -> Callable[[str], int]:
    """How the embedder of that name counts tokens; words × 1.3 for a function that this process does not have."""
    return (NoEmbedder() if name.startswith("function:") and name not in _MADE else embedder(name)).count_tokens


def register(made: Embedder) -> None:
    """Makes an embedder known by its name to this process, in place of one that had it; another process that opens its collections has to do the same."""
    _MADE[made.name] = made


def unregister(name: str) -> None:
    """Lets go of an embedder that `register` made known."""
    _MADE.pop(name, None)


# What asymmetric models were trained to see before a text, by a part of their name: (question, passage). From their model cards.
_PREFIXES = (
    ("e5-mistral", "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: ", ""),
    ("multilingual-e5", "query: ", "passage: "),
    ("e5-", "query: ", "passage: "),
    ("nomic-embed", "search_query: ", "search_document: "),
    ("bge-m3", "", ""),
    ("bge-", "Represent this sentence for searching relevant passages: ", ""),
    ("mxbai-embed", "Represent this sentence for searching relevant passages: ", ""),
    ("snowflake-arctic-embed-l-v2", "query: ", ""),
    ("snowflake-arctic-embed-m-v2", "query: ", ""),
    ("snowflake-arctic-embed2", "query: ", ""),
    ("snowflake-arctic-embed", "Represent this sentence for searching relevant passages: ", ""),
)


def prefixes(name: str) -> tuple[str, str]:
    """(what goes before a question, before a passage) for the model of that name; empty for symmetric and unknown ones.

    >>> prefixes("intfloat/e5-small-v2"), prefixes("minilm")
    (('query: ', 'passage: '), ('', ''))
    """
    lower = name.lower()
    return next(((question, passage) for part, question, passage in _PREFIXES if part in lower), ("", ""))


def check_vectors(array: np.ndarray, name: str, rows: int, dim: int) -> np.ndarray:
    """Refuses what no index could hold: the wrong shape, NaN or infinity."""
    if array.shape != (rows, dim):
        raise LabError(f"embedder {name} returned an array of shape {array.shape}, {(rows, dim)} was expected: check the model.")
    if not np.isfinite(array).all():
        raise LabError(f"embedder {name} returned NaN or infinity: check the model.")
    return array
