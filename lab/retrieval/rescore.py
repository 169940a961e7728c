"""Scores of rerankers through a cache: by model digest, question and text, so that a re-run asks no model again."""

from __future__ import annotations

from collections.abc import Sequence

from lab.corpus import vectors
from lab.models import rerankers
from lab.models.embedders import embedder
from lab.models.rerankers import MaxSim, Reranker
from lab.retrieval.context import Corpus
from lab.settings import Settings
from lab.store import embeddings
from lab.store.connect import Store
from lab.text import text_hash


class Cached:
    """A reranker that asks its model for what no earlier call has scored. NaN and infinity are not kept."""

    def __init__(self, store: Store, inner: Reranker) -> None:
        self.store = store
        self.inner = inner
        self.name = inner.name

    @property
    def digest(self) -> str:
        return self.inner.digest

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        asked, hashes = text_hash(question), [text_hash(text) for text in passages]
        known = embeddings.cached_scores(self.store, self.digest, asked, sorted(set(hashes)))
        missing = {key: text for key, text in zip(hashes, passages, strict=True) if key not in known}
        if missing:
            fresh = dict(zip(missing, self.inner.score(question, list(missing.values())), strict=True))
            embeddings.store_scores(self.store, self.digest, asked, fresh)
            known |= fresh
        return [known[key] for key in hashes]


def reranker(corpus: Corpus, settings: Settings) -> Reranker | None:
    """The reranker that the settings name; weights load on first use."""
    if settings.reranker == "none":
        return None
    if settings.reranker == "maxsim":
        model = embedder(corpus.collection.embedder)
        return MaxSim(model, vectors.tokens(corpus.store, model))
    return Cached(corpus.store, rerankers.named(settings.reranker))
