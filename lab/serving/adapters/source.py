"""What the adapters share: a collection that is asked through the lab's search, and its passages as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lab.errors import UsageError
from lab.records import Result
from lab.retrieval.search import open_corpus, search
from lab.settings import Settings, named
from lab.store.connect import Store, connect


class Source:
    """A collection with the settings it is asked by. Opens a store of its own at the first question, unless it is given one."""

    def __init__(self, collection: str, settings: Settings | str | None, store: Store | None, flags: Mapping[str, str | float]) -> None:
        base = named(settings) if isinstance(settings, str) else settings or Settings()
        self.collection = collection
        self.settings = base.with_words({name: str(value) for name, value in flags.items()})
        self._given, self._opened = store, None if store is None else store

    @property
    def store(self) -> Store:
        """The store, opened where it is not open yet."""
        if self._opened is None:
            self._opened = connect()
        return self._opened

    def find(self, question: str) -> Sequence[Result]:
        """The passages, best first. Raises UsageError for a blank question and an unknown collection."""
        if not question.strip():
            raise UsageError("the question is empty.")
        corpus = open_corpus(self.store, self.collection)
        settings = (
            self.settings if corpus.collection.dim is not None or self.settings.dense == "none" else self.settings.with_words({"dense": "none"})
        )
        return search(corpus, question, settings=settings).results

    def close(self) -> None:
        """Closes the store that was opened here."""
        if self._given is None and self._opened is not None:
            self._opened.close()
            self._opened = None


def metadata(result: Result) -> dict[str, Any]:
    """Where a passage stands and how it was found, as other libraries keep it beside the text: JSON values only."""
    p = result.provenance
    return {
        "chunk_id": result.chunk_id, "source": result.source, "start": result.start, "end": result.end, "section": result.context, "title": p.title if p else "",
        "page": p.page if p else None, "url": p.source_url if p else None, "updated": p.last_updated if p else None, "authority": result.authority, "rank": result.rank,
        "score": result.score, "similarity": result.similarity,
    }  # fmt: skip
