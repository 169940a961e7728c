"""Rerankers: one score a passage for one question, higher is better; scores have an absolute meaning of their own."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import numpy as np

from lab.config import effective, home, threads
from lab.errors import LabError, UsageError, redact
from lab.models.embedders import Embedder
from lab.models.wire import Wire
from lab.text import text_hash

TokenVectors = Callable[[Sequence[str]], Mapping[bytes, np.ndarray]]
_BATCH = 32


class Reranker(Protocol):
    """`score` must not depend on the companions of a passage: alone or in any batch it gets the same value within 1e-4.

    `digest` names the weights, so that a cached score is never that of another model.
    """

    name: str

    @property
    def digest(self) -> str: ...

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

    @property
    def digest(self) -> str:
        return f"maxsim-{self.embedder.digest}"

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


class CrossEncoder:
    """`cross-encoder:NAME` or a folder: a sentence-transformers CrossEncoder (Nogueira & Cho 2019), as it scores: no scale in common with other models."""

    def __init__(self, path: str) -> None:
        self.name = f"cross-encoder:{path}"
        self.path = path

    @functools.cached_property
    def model(self) -> Any:
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        try:
            import torch
            from sentence_transformers import CrossEncoder as Model
            from transformers.utils import logging

            logging.disable_progress_bar()
            if threads():
                torch.set_num_threads(threads())
            model = Model(self.path, device="cpu")
        except (OSError, ValueError, ImportError, KeyError) as error:
            first = (str(error).strip().splitlines() or ["no details"])[0]
            raise UsageError(
                f"the reranker {self.name} cannot be loaded ({first[:200]}): name a folder that holds a cross-encoder, or one of the hub while online."
            ) from None
        if getattr(model, "num_labels", 1) != 1:
            raise UsageError(f"the reranker {self.name} gives {model.num_labels} numbers a pair, not one score: name a model made for ranking.")
        return model

    @functools.cached_property
    def digest(self) -> str:
        longest = getattr(self.model, "max_seq_length", None) or self.model.max_length  # renamed in version 5
        value = hashlib.sha256(str(longest).encode())
        for name, array in sorted(self.model.model.state_dict().items()):
            value.update(name.encode() + np.ascontiguousarray(array.cpu().float().numpy()).tobytes())
        return f"cross-encoder-{value.hexdigest()[:24]}"

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        if not passages:
            return []
        pairs = [(question, passage) for passage in passages]
        return [float(score) for score in self.model.predict(pairs, batch_size=_BATCH, show_progress_bar=False, convert_to_numpy=True)]


class RerankServer:
    """`http:URL`: text-embeddings-inference's `/rerank`, or where the path ends in `/v1/rerank` or `/v2/rerank` the form of Cohere and Jina.

    The model's name is LAB_RERANK_MODEL, the key LAB_RERANK_KEY, never part of the URL.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.username or parts.password or parts.query:
            raise UsageError(f"the reranker's address {redact(url)} holds a key or options: set LAB_RERANK_KEY, and leave them out.")
        self.name = f"http:{url}"
        self.model = effective()["rerank_model"].value
        self.listed = parts.path.rstrip("/").endswith(("/v1/rerank", "/v2/rerank"))
        self.path = "" if parts.path.rstrip("/").endswith("/rerank") else "/rerank"
        self.wire = Wire(url, effective()["rerank_key"].value, "rerank server", "LAB_RERANK", self.model or "default", "--reranker")

    @functools.cached_property
    def digest(self) -> str:
        told = {} if self.listed else self.wire.get("/info")
        return f"{self.name}@{self.model or told.get('model_sha') or told.get('model_id') or ''}"

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        scores: list[float] = []
        for at in range(0, len(passages), _BATCH):
            scores += self._batch(question, list(passages[at : at + _BATCH]))
        return scores

    def _batch(self, question: str, passages: list[str]) -> list[float]:
        if self.listed:
            answer = self.wire.post(self.path, {"query": question, "documents": passages, **({"model": self.model} if self.model else {})})
            rows, key = (answer.get("results") if isinstance(answer, dict) else None), "relevance_score"
        else:
            rows, key = self.wire.post(self.path, {"query": question, "texts": passages, "truncate": True}), "score"
        found: dict[int, float] = {}
        try:
            for row in rows or []:
                found[int(row["index"])] = float(row[key])
        except (TypeError, KeyError, ValueError, AttributeError):
            found = {}
        if sorted(found) != list(range(len(passages))):
            raise LabError(f"{self.wire.where} returned {len(found)} scores for {len(passages)} passages: is it a rerank server of this kind?")
        return [found[at] for at in range(len(passages))]


CARD = "lab-training.json"  # beside the weights that `lab rerank train` made: what they were trained on


def trained_on(word: str) -> frozenset[str]:
    """Hashes (hex) of the questions that a reranker made by `lab rerank train` has seen; empty for any other."""
    kind, _, rest = word.partition(":")
    card = Path(_path(rest)) / CARD if kind.lower() == "cross-encoder" and rest else None
    return frozenset(json.loads(card.read_text(encoding="utf-8"))["questions"]) if card is not None and card.is_file() else frozenset()


def _path(name: str) -> str:
    """A folder, the name of a reranker trained here, or a name on the hub."""
    own = home() / "rerankers" / name
    return str(own) if "/" not in name and (own / CARD).is_file() else str(Path(name).expanduser()) if name.startswith("~") else name


@functools.lru_cache(maxsize=4)
def named(word: str) -> Reranker:
    """The reranker behind `cross-encoder:NAME` or `http:URL`; weights load on first use. Raises UsageError for any other word."""
    kind, _, rest = word.partition(":")
    if kind.lower() == "cross-encoder" and rest:
        return CrossEncoder(_path(rest))
    if kind.lower() in {"http", "https"} and rest:
        url = word if rest.startswith("//") else rest
        return RerankServer(url)
    raise UsageError(f"--reranker cannot be {word!r}: it takes none, maxsim, cross-encoder:NAME or http:URL.")
