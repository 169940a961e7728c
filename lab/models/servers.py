"""Embedders that other people's servers run: Ollama, OpenAI-compatible ones, text-embeddings-inference. One client, three dialects.

Address and key come from LAB_EMBED_URL and LAB_EMBED_KEY. A request is tried up to five times, with growing pauses, where trying again can help.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lab.config import effective
from lab.errors import LabError, UsageError
from lab.models.embedders import check_vectors
from lab.models.wire import Wire

_BATCH = 32
DEFAULT_URLS = {"ollama": "http://localhost:11434", "openai": "", "tei": "http://localhost:8080"}


class EmbeddingServer:
    """`dialect`: `ollama` (/api/embed, else the older /api/embeddings), `openai` (/v1/embeddings) or `tei` (/embed). The dimension is what the server
    gives for a first text."""

    def __init__(self, dialect: str, model: str) -> None:
        self.name = f"{dialect}:{model}"
        self.dialect = dialect
        self.model = model
        self._old_ollama = False

    @functools.cached_property
    def wire(self) -> Wire:
        url = (effective()["embed_url"].value or DEFAULT_URLS[self.dialect]).rstrip("/")
        if not url:
            raise UsageError(f"--embedder {self.name} needs the address of its server: set LAB_EMBED_URL.")
        url = url.removesuffix("/v1") if self.dialect == "openai" else url
        return Wire(url, effective()["embed_key"].value, "embedding server", "LAB_EMBED", self.model)

    @functools.cached_property
    def dim(self) -> int | None:
        return int(np.asarray(self._vectors(["dimension"])).shape[1])

    @functools.cached_property
    def _told(self) -> tuple[str, int | None]:
        """(what the server calls its weights, its longest input in tokens), as far as it tells."""
        if self.dialect == "tei":
            info = self.wire.get("/info")
            return str(info.get("model_sha") or info.get("model_id") or ""), int(info["max_input_length"]) if info.get("max_input_length") else None
        if self.dialect == "ollama":
            models = self.wire.get("/api/tags").get("models") or []
            names = {self.model, f"{self.model}:latest"}
            return next((str(m.get("digest", "")) for m in models if isinstance(m, dict) and m.get("name") in names), ""), None
        return "", None

    @property
    def limit(self) -> int | None:
        return self._told[1]

    @property
    def digest(self) -> str:
        return f"{self.name}@{self._told[0][:24]}" if self._told[0] else self.name

    def count_tokens(self, text: str) -> int:
        """Words × 1.3: the tokenizer is the server's."""
        return round(len(text.split()) * 1.3)

    def encode(self, texts: Sequence[str], on_batch: Callable[[int], None] | None = None) -> np.ndarray:
        dim = self.dim or 0
        out = np.zeros((len(texts), dim), dtype=np.float32)
        for at in range(0, len(texts), _BATCH):
            batch = texts[at : at + _BATCH]
            vectors = check_vectors(self._vectors(batch), self.name, len(batch), dim)
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
            out[at : at + len(batch)] = vectors / np.where(lengths > 0, lengths, 1)
            if on_batch is not None:
                on_batch(len(batch))
        return out

    def token_vectors(self, texts: Sequence[str]) -> list[np.ndarray]:
        raise LabError(f"embedder {self.name} gives no token vectors: use --reranker none, or ingest with --embedder minilm.")

    # ── the wire ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _vectors(self, texts: Sequence[str]) -> np.ndarray:
        """float32 `(n, dim)` in the order of `texts`, not yet of unit length."""
        if self.dialect == "tei":
            rows: Any = self.wire.post("/embed", {"inputs": list(texts), "normalize": True})
        elif self.dialect == "openai":
            answer = self.wire.post("/v1/embeddings", {"model": self.model, "input": list(texts), "encoding_format": "float"})
            data = answer.get("data") if isinstance(answer, dict) else None
            try:
                rows = [item["embedding"] for item in sorted(data or [], key=lambda item: item.get("index", 0))]
            except (TypeError, KeyError, AttributeError):
                rows = None
        else:
            rows = self._ollama(texts)
        if not isinstance(rows, list) or len(rows) != len(texts):
            got = len(rows) if isinstance(rows, list) else "no"
            raise LabError(f"{self.wire.where} returned {got} vectors for {len(texts)} texts: is it an embedding server of the kind {self.dialect}?")
        try:
            array = np.asarray(rows, dtype=np.float32)
        except (ValueError, TypeError):
            array = np.zeros(0, dtype=np.float32)
        if array.ndim != 2 or array.shape[1] == 0:
            raise LabError(f"{self.wire.where} returned vectors of unequal length, or none: check the model.")
        return array

    def _ollama(self, texts: Sequence[str]) -> Any:
        if not self._old_ollama:
            answer = self.wire.post("/api/embed", {"model": self.model, "input": list(texts)}, missing_ok=True)
            if answer is not None:
                return answer.get("embeddings") if isinstance(answer, dict) else None
            self._old_ollama = True
        rows = []
        for text in texts:
            answer = self.wire.post("/api/embeddings", {"model": self.model, "prompt": text})
            rows.append(answer.get("embedding") if isinstance(answer, dict) else None)
        return rows
