"""A knowledge base in three calls, for notebooks and tutorials: texts go in under a name, a question brings passages with their cosine.

    kb = KnowledgeBase(embed=keyword_embed)
    kb.add_document("kyoto-guide", "Kyoto in autumn is famous for …")
    kb.search("When do autumn leaves peak in Kyoto?", k=3)      # [("kyoto-guide", "Kyoto in …", 0.187), …]

It is an ordinary collection, cut by paragraphs of at most 40 words and searched by vectors alone, exactly: with `collection=NAME` it stays, and everything else of the lab
(`lab run NAME`, `lab search NAME`) works on it. Where `embed` is a function of your own, only this process has it: elsewhere open the knowledge base by the same function first, or search with
`--dense none`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import tempfile
import threading
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from lab.corpus.ingest import ingest
from lab.errors import LabError, UsageError
from lab.models.embedders import check_vectors, embedder, register, unregister
from lab.retrieval.search import open_corpus, search
from lab.serving.adapters.source import check_question
from lab.store import collections
from lab.store.connect import Store, connect

Embed = Callable[[str], Sequence[float]]
WORDS = 40  # of a passage at most
MOST = 1000  # passages of one search


class Embedding:
    """An embedder of the lab as a function from a text to its vector: `keyword_embed("red leaves")` gives 1,024 numbers."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, text: str) -> list[float]:
        return [float(x) for x in embedder(self.name).encode([text])[0]]

    def __repr__(self) -> str:
        return f"Embedding({self.name!r})"


keyword_embed = Embedding("keyword")
minilm_embed = Embedding("minilm")


class KnowledgeBase:
    """`embed` is the name of an embedder (`minilm`, `keyword`, any that `lab ingest --embedder` takes), one of the two above, or any function from a text to a vector of one length.

    Without `collection` it lives as long as this object: `close()`, the end of a `with` block, or that of the process removes it. Raises UsageError where that collection was made otherwise,
    and for an embedder that makes no vectors.
    """

    def __init__(self, embed: Embed | str = keyword_embed, *, collection: str | None = None, store: Store | None = None) -> None:
        if collection is not None and not str(collection).strip():
            raise UsageError("the collection's name is empty: name one, or leave it out.")
        self.embedder = _named(embed, collection)
        self.collection = collection or f"kb_{secrets.token_hex(6)}"
        self._lock = threading.RLock()  # any thread may ask
        self._texts: dict[str, str] = {}
        self._fresh = False
        self._held = _Held(store, None if collection else self.collection, self.embedder)
        self._end = weakref.finalize(self, self._held.close)

    @property
    def store(self) -> Store:
        """The store, opened where it is not open yet. UsageError after `close()`."""
        if not self._end.alive:
            raise UsageError("this knowledge base is closed: make another one.")
        with self._lock:
            if self._held.store is None:
                self._held.store = connect()
            return self._held.store

    def add_document(self, source: str, text: str) -> None:
        """Takes a text under a name; the same name again replaces it. It is cut and embedded before the next search. UsageError for a name or a text that is empty."""
        for what, value in (("its name", source), ("its text", text)):
            if not isinstance(value, str):
                raise UsageError(f"a document needs a name and a text: {what} cannot be {str(value)[:40]!r}.")
            if not value.strip():
                raise UsageError(f"a document needs a name and a text: {what} is empty.")
        if any(sign in source for sign in "\0\n\r") or source != source.encode("utf-8", "replace").decode("utf-8"):
            raise UsageError(f"{source!r} cannot name a document: leave line ends, NUL and half characters out of it.")
        with self._lock:
            self._fresh = self._fresh or self._texts.get(source) != text
            self._texts[source] = text

    def search(self, query: str, k: int = 3) -> list[tuple[str, str, float]]:
        """(source, text, cosine rounded to three decimals) of the `k` nearest passages, nearest first; only those above 0."""
        check_question(query)
        if not isinstance(k, int) or not 1 <= k <= MOST:
            raise UsageError(f"k cannot be {k!r}: a whole number from 1 to {MOST}.")
        if not self._ready():
            return []
        found = search(
            open_corpus(self.store, self.collection),
            query,
            settings="dense-only",
            dense="exact",
            dedup="off",
            authority_weight="0",
            k=k,
            candidates=max(k, 100),
        )
        rounded = [(r.source, r.text, round(r.similarity or 0.0, 3)) for r in found.results]
        return [entry for entry in rounded if entry[2] > 0]

    def __len__(self) -> int:
        """How many passages it holds."""
        return open_corpus(self.store, self.collection).chunks if self._ready() else 0

    def _ready(self) -> bool:
        """Brings what was added into the collection; whether there is one."""
        with self._lock:
            return self._brought()

    def _brought(self) -> bool:
        there = next((c for c in collections.all_collections(self.store) if c.name == self.collection), None)
        if there is not None and there.embedder != self.embedder:
            raise UsageError(
                f"collection {self.collection!r} was made with embedder {there.embedder}, and not {self.embedder}: name another collection, or the same embedder."
            )
        if self._fresh:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "corpus.jsonl"
                lines = [json.dumps({"_id": source, "title": "", "text": text}) for source, text in self._texts.items()]
                path.write_text("\n".join(lines) + "\n", encoding="utf-8")
                ingest(
                    path, self.collection, store=self.store, format="beir", root="knowledge-base", embedder=self.embedder, chunker="paragraph", chunk_size=WORDS,
                    context="off",
                )  # fmt: skip
            self._fresh = False
            return True
        return there is not None

    def close(self) -> None:
        """Removes a collection that was not named, and closes a store that was opened here."""
        self._end()

    def __enter__(self) -> KnowledgeBase:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class _Held:
    """What a knowledge base leaves behind: a store that it opened, a collection that goes with it (None: it stays)."""

    def __init__(self, store: Store | None, passing: str | None, embedder: str) -> None:
        self.store, self._own, self._passing, self._embedder = store, store is None, passing, embedder

    def close(self) -> None:
        if self._passing is not None and self._embedder.startswith("function:"):
            unregister(self._embedder)
        if self.store is None:
            return
        with contextlib.suppress(LabError, OSError):  # at the end of a process the server may be gone before
            if self._passing is not None and any(c.name == self._passing for c in collections.all_collections(self.store)):
                collections.drop(self.store, self._passing)
        if self._own:
            self.store.close()


_PROBES = (
    "a small probe", "When do leaves fall?", "42", "zzz", "The pump must not run dry.", "Kyoto in autumn", "ÄÖÜ ß 日本", "one two three four five six seven", "A B C", "https://example.org/x?y=1",
)  # fmt: skip
_MOST_NUMBERS = 4_000  # of a vector: what an index of half-precision vectors holds


class _Function:
    """A function as an embedder. It is named by what it makes of ten texts, so that a collection knows it again in another process, but what it gives is kept nowhere: two functions may
    agree on any ten texts, and so the name is for one collection (None: for one object)."""

    limit: int | None = None
    remembered = False

    def __init__(self, function: Embed, collection: str | None) -> None:
        self._function = function
        rows = [self._row(text) for text in _PROBES]
        other = next((row.size for row in rows if row.size != rows[0].size), None)
        if other is not None:
            raise UsageError(f"embed gave vectors of {rows[0].size} and of {other} numbers: they must all be of one length.")
        if rows[0].size > _MOST_NUMBERS:
            raise UsageError(f"embed gave a vector of {rows[0].size:,} numbers: an index holds {_MOST_NUMBERS:,} at most.")
        self.dim: int | None = rows[0].size
        self.digest = f"function-{hashlib.sha256(np.stack(rows).tobytes()).hexdigest()[:24]}"
        self.name = f"function:{self.digest[9:21]}" + f"-{collection or secrets.token_hex(6)}"

    def _row(self, text: str) -> np.ndarray:
        given: Any = self._function(text)  # what it raises is its own
        try:
            if isinstance(given, str | bytes | dict | set):
                raise TypeError
            row = np.asarray(given, dtype=np.float64)
        except (ValueError, TypeError, OverflowError):
            raise UsageError(f"embed gave no vector for {text[:40]!r}: it must give a list of numbers.") from None
        if row.ndim != 1 or not row.size:
            raise UsageError(f"embed gave something of shape {row.shape} for {text[:40]!r}: it must give one vector, a list of numbers.")
        if not np.isfinite(row).all():
            raise UsageError(f"embed gave NaN or infinity for {text[:40]!r}: it must give a list of numbers.")
        most = float(np.abs(row).max())
        return (row / most if most > 1e15 or 0 < most < 1e-15 else row).astype(np.float32)  # only its direction counts, and its length would not fit

    def count_tokens(self, text: str) -> int:
        return round(len(text.split()) * 1.3)

    def encode(self, texts: Sequence[str], on_batch: Callable[[int], None] | None = None) -> np.ndarray:
        rows = [self._row(text) for text in texts]
        wrong = next((row.size for row in rows if row.size != self.dim), None)
        if wrong is not None:
            raise UsageError(f"embed gave vectors of {self.dim} and of {wrong} numbers: they must all be of one length.")
        found = check_vectors(np.stack(rows), self.name, len(texts), self.dim or 0) if rows else np.zeros((0, self.dim or 0), dtype=np.float32)
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        unit = np.divide(found, lengths, out=np.zeros_like(found), where=lengths > 0)
        if on_batch is not None:
            on_batch(len(texts))
        return np.asarray(unit)

    def token_vectors(self, texts: Sequence[str]) -> list[np.ndarray]:
        raise UsageError("a function of yours makes no token vectors: use another reranker than maxsim.")


def _named(embed: Any, collection: str | None) -> str:
    """The embedder's name in the registry; that of a function is for the collection, or the object, alone."""
    if isinstance(embed, Embedding):
        return embed.name
    if isinstance(embed, str):
        known = embedder(embed)
        if known.dim is None:
            raise UsageError(f"embedder {embed} makes no vectors, and a knowledge base is searched by nothing else: name minilm, keyword or another.")
        return known.name
    if not callable(embed):
        raise UsageError(f"embed cannot be {embed!r}: it takes a function from a text to a vector, or the name of an embedder.")
    made = _Function(embed, collection)
    register(made)
    return made.name
