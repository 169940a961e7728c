"""A LangChain retriever over a collection: `LabRetriever(collection="handbook", k=6).invoke("…")`."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field, PrivateAttr

from lab.errors import UsageError
from lab.serving.adapters.source import Source, metadata
from lab.settings import Settings


class LabRetriever(BaseRetriever):  # type: ignore[misc]
    """`settings` is a name or an object, `flags` what differs from them; both as in `lab.search`. Documents come best first, each with its chunk id and where it stands."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")  # a flag goes into `flags`: one beside it would change nothing, unsaid

    collection: str
    k: int = 6
    settings: Settings | str | None = None
    flags: dict[str, str | float] = Field(default_factory=dict)
    store: Any = Field(default=None, exclude=True, repr=False)
    _source: Source | None = PrivateAttr(default=None)

    def model_post_init(self, context: Any) -> None:
        super().model_post_init(context)
        self._now()

    def _now(self) -> Source:
        """The collection as the fields say now: they may be set, or changed in a copy."""
        if "k" in self.flags:
            raise UsageError("k is a field of its own: leave it out of flags.")
        wanted = Source(self.collection, self.settings, self.store, {**self.flags, "k": self.k})
        if self._source is None or (self._source.collection, self._source.settings, self._source.given) != (
            wanted.collection,
            wanted.settings,
            wanted.given,
        ):
            self._source = wanted
        return self._source

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return [Document(page_content=result.text, metadata=metadata(result), id=result.chunk_id) for result in self._now().find(query)]

    def close(self) -> None:
        """Closes the store that was opened for this retriever."""
        self._now().close()
