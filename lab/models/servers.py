"""Embedders that other people's servers run: Ollama, OpenAI-compatible ones, text-embeddings-inference. One client, three dialects.

Address and key come from LAB_EMBED_URL and LAB_EMBED_KEY. A request is tried up to five times, with growing pauses, where trying again can help.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from lab.config import effective
from lab.errors import LabError, ServerError, UsageError, redact
from lab.models.embedders import check_vectors

_BATCH = 32
_TRIES = 5
_SECONDS = 60.0  # for one request
_PAUSE = 0.5  # before the second try; doubled each time
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
    def url(self) -> str:
        url = (effective()["embed_url"].value or DEFAULT_URLS[self.dialect]).rstrip("/")
        if not url:
            raise UsageError(f"--embedder {self.name} needs the address of its server: set LAB_EMBED_URL.")
        if urlsplit(url).scheme not in {"http", "https"} or not urlsplit(url).hostname:
            raise UsageError(f"LAB_EMBED_URL {redact(url)!r} is no address: it must look like http://localhost:8080.")
        return url.removesuffix("/v1") if self.dialect == "openai" else url

    @functools.cached_property
    def _client(self) -> Any:
        import httpx

        key = effective()["embed_key"].value
        here = urlsplit(self.url).hostname in {"localhost", "127.0.0.1", "::1"}
        return httpx.Client(timeout=_SECONDS, headers={"Authorization": f"Bearer {key}"} if key else {}, trust_env=not here)

    @functools.cached_property
    def dim(self) -> int | None:
        return int(np.asarray(self._vectors(["dimension"])).shape[1])

    @functools.cached_property
    def _told(self) -> tuple[str, int | None]:
        """(what the server calls its weights, its longest input in tokens), as far as it tells."""
        if self.dialect == "tei":
            info = self._get("/info")
            return str(info.get("model_sha") or info.get("model_id") or ""), int(info["max_input_length"]) if info.get("max_input_length") else None
        if self.dialect == "ollama":
            models = self._get("/api/tags").get("models") or []
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
            rows: Any = self._post("/embed", {"inputs": list(texts), "normalize": True})
        elif self.dialect == "openai":
            answer = self._post("/v1/embeddings", {"model": self.model, "input": list(texts), "encoding_format": "float"})
            data = answer.get("data") if isinstance(answer, dict) else None
            try:
                rows = [item["embedding"] for item in sorted(data or [], key=lambda item: item.get("index", 0))]
            except (TypeError, KeyError, AttributeError):
                rows = None
        else:
            rows = self._ollama(texts)
        if not isinstance(rows, list) or len(rows) != len(texts):
            got = len(rows) if isinstance(rows, list) else "no"
            raise LabError(f"{self._where()} returned {got} vectors for {len(texts)} texts: is it an embedding server of the kind {self.dialect}?")
        try:
            array = np.asarray(rows, dtype=np.float32)
        except (ValueError, TypeError):
            array = np.zeros(0, dtype=np.float32)
        if array.ndim != 2 or array.shape[1] == 0:
            raise LabError(f"{self._where()} returned vectors of unequal length, or none: check the model.")
        return array

    def _ollama(self, texts: Sequence[str]) -> Any:
        if not self._old_ollama:
            answer = self._post("/api/embed", {"model": self.model, "input": list(texts)}, missing_ok=True)
            if answer is not None:
                return answer.get("embeddings") if isinstance(answer, dict) else None
            self._old_ollama = True
        rows = []
        for text in texts:
            answer = self._post("/api/embeddings", {"model": self.model, "prompt": text})
            rows.append(answer.get("embedding") if isinstance(answer, dict) else None)
        return rows

    def _where(self) -> str:
        return f"the embedding server at {redact(self.url)}"

    def _get(self, path: str) -> dict[str, Any]:
        """What the server tells of itself; nothing where it does not."""
        try:
            response = self._client.get(self.url + path)
            answer = response.json() if response.status_code == 200 else {}
        except Exception:  # any failure here is one of the request that follows, and said there
            return {}
        return answer if isinstance(answer, dict) else {}

    def _post(self, path: str, body: dict[str, Any], *, missing_ok: bool = False) -> Any:
        """The JSON answer. With `missing_ok`, None where the server knows no such path."""
        import httpx

        said, wait = "", 0.0
        for attempt in range(_TRIES):
            time.sleep(wait)
            wait = _PAUSE * 2**attempt
            try:
                response = self._client.post(self.url + path, json=body)
            except httpx.HTTPError as error:
                said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
                continue
            text = response.text[:200].strip()
            if response.status_code == 429 or response.status_code >= 500:
                said = f"status {response.status_code} {text}"
                after = response.headers.get("retry-after", "")
                wait = max(wait, min(float(after), 30.0)) if after.isdigit() else wait
                continue
            if response.status_code == 404 and missing_ok and "model" not in text.lower():
                return None
            if response.status_code in {401, 403}:
                raise UsageError(f"{self._where()} refuses the key (status {response.status_code}): set LAB_EMBED_KEY.")
            if response.status_code != 200:
                raise LabError(
                    f"{self._where()} refused {path} (status {response.status_code} {redact(text)}): check the model's name {self.model!r}."
                )
            try:
                return response.json()
            except ValueError:
                raise LabError(f"{self._where()} answered {path} with something else than JSON: check LAB_EMBED_URL.") from None
        raise ServerError(f"{self._where()} did not answer after {_TRIES} tries ({redact(said)}): check that it runs, and LAB_EMBED_URL.")
