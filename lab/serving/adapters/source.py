"""What the adapters share: a collection that is asked through the lab's search, and its passages as plain values."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from lab.errors import UsageError
from lab.records import Result
from lab.retrieval.search import open_corpus, search
from lab.settings import Settings, resolved
from lab.store.connect import Store, connect


class Source:
    """A collection with the settings it is asked by. Opens a store of its own at the first question, unless it is given one; that one is closed with it. Any thread may ask."""

    def __init__(self, collection: str, settings: Settings | str | None, store: Store | None, flags: Mapping[str, str | float]) -> None:
        base = resolved(settings)
        self.collection = collection
        self.settings = base.with_words({name: str(value) for name, value in flags.items()})
        self.given = store
        self._opened: list[Store] = []
        self._opening = threading.Lock()
        weakref.finalize(self, _close, self._opened)

    @property
    def store(self) -> Store:
        """The store, opened where it is not open yet."""
        if self.given is not None:
            return self.given
        with self._opening:
            if not self._opened:
                self._opened.append(connect())
            return self._opened[0]

    def find(self, question: str) -> Sequence[Result]:
        """The passages, best first. Raises UsageError for a blank question and an unknown collection."""
        check_question(question)
        corpus = open_corpus(self.store, self.collection)
        settings = (
            self.settings if corpus.collection.dim is not None or self.settings.dense == "none" else self.settings.with_words({"dense": "none"})
        )
        return search(corpus, question, settings=settings).results

    def __deepcopy__(self, memo: dict[int, Any]) -> Source:
        return Source(self.collection, self.settings, self.given, {})  # a copy opens a store of its own

    def __reduce__(self) -> tuple[Any, ...]:
        return Source, (self.collection, self.settings, self.given, {})

    def close(self) -> None:
        """Closes the store that was opened here."""
        with self._opening:
            _close(self._opened)


def _close(opened: list[Store]) -> None:
    while opened:
        opened.pop().close()


def check_question(question: Any) -> None:
    """UsageError for what is no question in words."""
    if not isinstance(question, str) or not question.strip():
        raise UsageError(f"the question {'is empty' if isinstance(question, str) else f'cannot be {question!r}'}: ask in words.")


def metadata(result: Result) -> dict[str, Any]:
    """Where a passage stands and how it was found, as other libraries keep it beside the text: JSON values only."""
    p = result.provenance
    return {
        "chunk_id": result.chunk_id, "source": result.source, "start": result.start, "end": result.end, "section": result.context, "title": p.title if p else "",
        "page": p.page if p else None, "url": p.source_url if p else None, "updated": p.last_updated if p else None, "authority": result.authority, "rank": result.rank,
        "score": result.score, "similarity": result.similarity,
    }  # fmt: skip
