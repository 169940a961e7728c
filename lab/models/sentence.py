"""Embedders run here by sentence-transformers (Reimers & Gurevych 2019): any model by its name or folder. Weights load on the first use."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lab.config import threads
from lab.errors import LabError, UsageError
from lab.models.embedders import check_vectors

_BATCH = 32


def load(path: str) -> Any:
    """The model at a folder, or of that name on the hub; nothing is fetched where HF_HUB_OFFLINE is set."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import torch
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    logging.disable_progress_bar()
    if threads():
        torch.set_num_threads(threads())
    return SentenceTransformer(path, device="cpu")


class SentenceModel:
    """A sentence-transformers model. `name` is what the user typed."""

    def __init__(self, name: str, path: str) -> None:
        self.name = name
        self.path = path

    @functools.cached_property
    def model(self) -> Any:
        try:
            return load(self.path)
        except (OSError, ValueError, ImportError) as error:
            first = (str(error).strip().splitlines() or ["no details"])[0]
            raise UsageError(
                f"the embedder {self.name} cannot be loaded ({first[:200]}): name a folder that holds a sentence-transformers model, or one of the hub."
            ) from None

    @functools.cached_property
    def dim(self) -> int | None:
        ask = getattr(self.model, "get_embedding_dimension", None) or self.model.get_sentence_embedding_dimension  # renamed in version 5
        return int(ask())

    @functools.cached_property
    def limit(self) -> int | None:
        length = self.model.max_seq_length
        return int(length) if length else None

    @functools.cached_property
    def digest(self) -> str:
        """Over all weights and what is done with them, so that another model under the same name shares nothing."""
        value = hashlib.sha256(str(self.model).encode())
        for name, array in sorted(self.model.state_dict().items()):
            value.update(name.encode() + np.ascontiguousarray(array.cpu().float().numpy()).tobytes())
        return f"sentence-{value.hexdigest()[:24]}"

    def count_tokens(self, text: str) -> int:
        return len(self.model.tokenizer.encode(text, add_special_tokens=False, verbose=False))

    def encode(self, texts: Sequence[str], on_batch: Callable[[int], None] | None = None) -> np.ndarray:
        out = np.zeros((len(texts), self.dim or 0), dtype=np.float32)
        # Texts of like length together: padding costs as much as text. The order of the result is that of `texts`.
        order = sorted(range(len(texts)), key=lambda i: (-len(texts[i]), i))
        for at in range(0, len(order), _BATCH):
            batch = order[at : at + _BATCH]
            vectors = self.model.encode(
                [texts[i] for i in batch], batch_size=_BATCH, show_progress_bar=False, convert_to_numpy=True, normalize_embeddings=True
            )
            out[batch] = check_vectors(np.asarray(vectors, dtype=np.float32), self.name, len(batch), self.dim or 0)
            if on_batch is not None:
                on_batch(len(batch))
        return out

    def token_vectors(self, texts: Sequence[str]) -> list[np.ndarray]:
        if not texts:
            return []
        arrays = self.model.encode(list(texts), batch_size=8, show_progress_bar=False, output_value="token_embeddings")
        out = []
        for array in arrays:
            tokens = np.asarray(array.cpu().numpy(), dtype=np.float32)[1:-1]  # without [CLS] and [SEP], which stand for no word
            lengths = np.linalg.norm(tokens, axis=1, keepdims=True)
            if tokens.ndim != 2:
                raise LabError(f"embedder {self.name} gives no token vectors: use --reranker none.")
            out.append(check_vectors(tokens / np.where(lengths > 0, lengths, 1), self.name, len(tokens), self.dim or 0))
        return out
