"""A LlamaIndex retriever over a collection: `LabRetriever("handbook", k=6).retrieve("…")`."""

from __future__ import annotations

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from lab.serving.adapters.source import Source, metadata
from lab.settings import Settings
from lab.store.connect import Store


class LabRetriever(BaseRetriever):  # type: ignore[misc]
    """`settings` and `flags` as in `lab.search`. Nodes come best first; their score is the search's own, which orders one list and compares with no other."""

    def __init__(
        self, collection: str, *, k: int = 6, settings: Settings | str | None = None, store: Store | None = None, **flags: str | float
    ) -> None:
        super().__init__()
        self._source = Source(collection, settings, store, {**flags, "k": k})

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [
            NodeWithScore(node=TextNode(id_=r.chunk_id, text=r.text, metadata=metadata(r), start_char_idx=r.start, end_char_idx=r.end), score=r.score)
            for r in self._source.find(query_bundle.query_str)
        ]

    def close(self) -> None:
        """Closes the store that was opened for this retriever."""
        self._source.close()
