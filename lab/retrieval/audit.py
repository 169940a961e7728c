"""How good the vector index is: its list against the exact one, on questions; whether the planner uses it; how long both take."""

from __future__ import annotations

import hashlib
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from lab.errors import UsageError
from lab.progress import Progress
from lab.retrieval.context import Corpus
from lab.retrieval.search import question_vectors
from lab.store import arms, chunks


@dataclass(frozen=True, slots=True)
class Audit:
    """`recall`: mean share of the exact first `k` that the index brings, ties at the cut counted as the same. Times in milliseconds, as the client sees them."""

    questions: int
    chunks: int
    k: int
    ef_search: int
    recall: float
    worst: float
    index_p50: float
    exact_p50: float
    index_used: bool

    @property
    def small(self) -> bool:
        """Whether search compares all vectors anyway."""
        return self.chunks <= arms.EXACT_BELOW

    def to_json(self) -> dict[str, object]:
        return {
            "questions": self.questions, "chunks": self.chunks, "k": self.k, "ef_search": self.ef_search, "recall": self.recall, "worst": self.worst,
            "hnsw_p50_ms": self.index_p50, "exact_p50_ms": self.exact_p50, "plan": "index" if self.index_used else "scan",
        }  # fmt: skip


def sample(corpus: Corpus, many: int) -> list[str]:
    """Questions where none are given: the first twelve words of passages, drawn by the hash of their text."""
    texts = chunks.chunk_texts(corpus.store, corpus.collection)
    drawn = sorted(texts, key=lambda text: hashlib.sha256(text.encode()).digest())[:many]
    return [" ".join(text.split()[:12]) for text in drawn]


def audit(corpus: Corpus, questions: Sequence[str], *, k: int = 100, ef_search: int = 200) -> Audit:
    """Compares both on every question. Raises UsageError for a collection without vectors or without its index."""
    c = corpus.collection
    if c.dim is None:
        raise UsageError(f"collection {c.name!r} was ingested with --embedder none: there is no vector index to audit.")
    if corpus.lacks("chunks_hnsw"):
        raise UsageError(f"the HNSW index of {c.name} is missing or invalid: run `lab index {c.name}` first.")
    recalls, fast, slow = [], [], []
    vectors = [vector for vector in question_vectors(corpus, questions) if vector is not None]
    with corpus.store.held(), Progress(f"audit {c.name}", len(vectors), "questions") as bar:
        for vector in vectors:
            lists = [
                arms.dense(corpus.store, c, vector, engine=engine, ef_search=ef_search, candidates=k, by_class=False, chunks=10**9)
                for engine in ("hnsw", "exact")
            ]
            index, exact = lists
            least = exact.hits[-1].score if exact.hits else 0.0
            found = sum(hit.score >= least - 1e-6 for hit in index.hits)
            recalls.append(min(1.0, found / max(1, len(exact.hits))))
            fast.append(1000 * index.seconds)
            slow.append(1000 * exact.seconds)
            bar.advance()
        used = bool(vectors) and arms.uses_index(corpus.store, c, vectors[0], ef_search, k)
    if not recalls:
        raise UsageError("no question has a vector: name a gold set with questions that the embedder understands.")
    return Audit(
        len(recalls), corpus.chunks, k, ef_search, statistics.mean(recalls), min(recalls), statistics.median(fast), statistics.median(slow), used
    )
