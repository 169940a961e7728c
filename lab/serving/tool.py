"""`search_knowledge_base` and its kin: validated arguments in, one JSON object out, for function calling and MCP alike.

The passages come from the one search function of the lab. What a caller may see is held by the `Scope`, and by the login of the database, never by a prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lab.config import trace
from lab.errors import UsageError, unknown
from lab.models.embedders import counter
from lab.records import Result, SearchResult
from lab.retrieval.recall import recall
from lab.retrieval.search import open_corpus, search
from lab.serving import answers
from lab.settings import Settings
from lab.store import chunks, collections, traces
from lab.store.connect import Store

NAME = "search_knowledge_base"
DESCRIPTION = (
    "Search a collection of documents and get the passages that answer a question, best first, each with its source and position. "
    "An empty list comes with a diagnostic that says why. Cite passages by their passage_id."
)
TOP_K, MOST = 6, 50
MAX_TOKENS = 4_000


@dataclass(frozen=True, slots=True)
class Scope:
    """What a caller may see: these collections, or (None) all that the database login can read."""

    collections: tuple[str, ...] | None = None

    def names(self, store: Store) -> list[str]:
        return [c.name for c in collections.all_collections(store) if self.collections is None or c.name in self.collections]

    def check(self, store: Store, name: Any) -> str:
        """The name of a collection in scope. One outside of it is as unknown as one that does not exist."""
        names = self.names(store)
        if not isinstance(name, str) or name not in names:
            raise unknown("collection", str(name)[:100], names, mend="call list_collections.")
        return name


EVERYTHING = Scope()


_QUERY = {"type": "string", "minLength": 1, "description": "the question, in words"}


def _many(what: str) -> dict[str, Any]:
    return {"type": "integer", "minimum": 1, "maximum": MOST, "default": TOP_K, "description": f"how many {what} at most"}


def _function(name: str, description: str, collections: list[str], properties: dict[str, Any]) -> dict[str, Any]:
    where = {"collection": {"type": "string", "enum": collections, "description": "where to search"}}
    parameters = {"type": "object", "properties": where | properties, "required": ["collection", "query"], "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def function_schema(store: Store, scope: Scope = EVERYTHING) -> dict[str, Any]:
    """The tool in the schema of function calling (OpenAI, Ollama, vLLM …), collections as an enum."""
    return _function(NAME, DESCRIPTION, scope.names(store), {"query": _QUERY, "top_k": _many("passages")})


def search_knowledge_base(
    store: Store, collection: Any, query: Any, top_k: Any = TOP_K, *, settings: Settings | None = None, max_tokens: int = MAX_TOKENS,
    scope: Scope = EVERYTHING,
) -> dict[str, Any]:  # fmt: skip
    """At most `top_k` passages of together at most `max_tokens` tokens, counted by the embedder's tokenizer, best first.

    Raises UsageError, one sentence that a model can act on, for an argument that is wrong. An empty list is no error: `diagnostic` names the filter, floor or
    arm that emptied it. `left_out` counts passages that did not fit.
    """
    name = scope.check(store, collection)
    _check(query, top_k)
    chosen = (settings or Settings()).with_words({"k": str(top_k)})
    corpus = open_corpus(store, name)
    if corpus.collection.dim is None and chosen.dense != "none":
        chosen = chosen.with_words({"dense": "none"})
    found = search(corpus, query, settings=chosen)
    _trace(store, name, query, chosen, found)
    passages, left_out = _fitting(found.results, max_tokens, counter(corpus.collection.embedder))
    return {
        "schema_version": 1,
        "collection": name,
        "query": query,
        "passages": passages,
        "left_out": left_out,
        "diagnostic": None if found.diagnostic is None else {"stage": found.diagnostic.stage, "message": found.diagnostic.message},
    }


CLAIMS_NAME = "recall_claims"
CLAIMS_DESCRIPTION = (
    "Recall single facts (definitions, requirements, limits) that answer a question, each with the passage that says it: one line where a passage is too much. "
    "The passage is the authority: cite its passage_id. An empty list comes with a diagnostic that says why."
)


def claims_schema(store: Store, scope: Scope = EVERYTHING) -> dict[str, Any]:
    """`recall_claims` in the same schema."""
    return _function(
        CLAIMS_NAME,
        CLAIMS_DESCRIPTION,
        scope.names(store),
        {
            "query": _QUERY,
            "top_k": _many("claims"),
            "kind": {"type": "string", "description": "only claims of this kind, as definition, requirement or limit"},
        },
    )


def recall_claims(store: Store, collection: Any, query: Any, top_k: Any = TOP_K, kind: Any = None, *, scope: Scope = EVERYTHING) -> dict[str, Any]:
    """At most `top_k` verified claims by words, best first; no model is loaded. Raises UsageError, one sentence that a model can act on, for an argument that is wrong."""
    name = scope.check(store, collection)
    _check(query, top_k)
    if kind is not None and not isinstance(kind, str):
        raise UsageError(f"kind cannot be {str(kind)[:50]!r}: it takes a word, as definition.")
    found = recall(store, name, query, k=top_k, kinds=[kind] if kind else [])
    return {
        "schema_version": 1, "collection": name, "query": query,
        "claims": [
            {
                "claim_id": c.claim_id, "statement": c.statement, "kind": c.kind, "confidence": c.confidence, "authority": c.authority, "quote": c.quote, "passage_id": c.chunk_id,
                "source": c.source, "start": c.start, "end": c.end,
            }
            for c in found.claims
        ],
        "diagnostic": {"stage": "claims", "message": found.said} if found.said else None,
    }  # fmt: skip


ANSWER_NAME = "answer"
ANSWER_DESCRIPTION = (
    "Answer a question from a collection in sentences quoted from its passages, each with its source; or learn that the collection has no answer, and whom to ask. "
    "Nothing is added that the passages do not say."
)


def answer(store: Store, collection: Any, query: Any, *, settings: Settings | None = None, scope: Scope = EVERYTHING) -> dict[str, Any]:
    """An extractive answer, as `lab answer --json` gives it. Raises UsageError for an argument that is wrong."""
    name = scope.check(store, collection)
    _check(query, 1)
    return answers.answer(store, name, query, settings=settings).to_json()


def answer_schema(store: Store, scope: Scope = EVERYTHING) -> dict[str, Any]:
    """`answer` in the same schema."""
    return _function(ANSWER_NAME, ANSWER_DESCRIPTION, scope.names(store), {"query": _QUERY})


def _check(query: Any, top_k: Any) -> None:
    if not isinstance(query, str) or not query.strip():
        raise UsageError("query must be a text that is not empty: the question, in words.")
    if isinstance(top_k, bool) or not isinstance(top_k, int) or not 1 <= top_k <= MOST:
        raise UsageError(f"top_k cannot be {str(top_k)[:50]!r}: it takes a whole number from 1 to {MOST}.")


def get_passage(store: Store, collection: Any, passage_id: Any, neighbours: Any = 0, *, scope: Scope = EVERYTHING) -> dict[str, Any]:
    """One passage by its id, with up to 5 of the passages before and behind it in the same document."""
    name = scope.check(store, collection)
    source, sign, number = passage_id.rpartition("::") if isinstance(passage_id, str) else ("", "", "")
    if not sign or not (number.isascii() and number.isdecimal()) or len(number) > 9:
        raise UsageError(f"passage_id cannot be {str(passage_id)[:100]!r}: take one that {NAME} returned, as in guide.md::3.")
    if isinstance(neighbours, bool) or not isinstance(neighbours, int) or not 0 <= neighbours <= 5:
        raise UsageError(f"neighbours cannot be {str(neighbours)[:50]!r}: it takes a whole number from 0 to 5.")
    rows = chunks.passages(store, collections.get(store, name), source, int(number) - neighbours, int(number) + neighbours)
    if not any(row["passage_id"] == passage_id for row in rows):
        raise UsageError(f"there is no passage {passage_id[:100]!r} in {name}: take one that {NAME} returned.")
    return {"schema_version": 1, "collection": name, "passages": rows}


def list_collections(store: Store, scope: Scope = EVERYTHING) -> dict[str, Any]:
    """The collections in scope, with how much they hold."""
    found = [c for c in collections.all_collections(store) if scope.collections is None or c.name in scope.collections]
    return {
        "schema_version": 1,
        "collections": [
            {"name": c.name, "files": size.files, "passages": size.chunks, "language": c.language}
            for c in found
            for size in [collections.size(store, c)]
        ],
    }


def _fitting(results: Sequence[Result], max_tokens: int, count: Any) -> tuple[list[dict[str, Any]], int]:
    """Passages while they fit; of the first, where it is too long alone, as many words as fit."""
    passages: list[dict[str, Any]] = []
    spent = 0
    for at, r in enumerate(results):
        text = r.text
        tokens = count(text)
        if spent + tokens > max_tokens:
            if passages:
                return passages, len(results) - at
            low, high = 0, len(text)
            while low < high:  # the longest beginning that fits, to the end of a word where there is one
                middle = (low + high + 1) // 2
                low, high = (middle, high) if count(text[:middle]) <= max_tokens else (low, middle - 1)
            text, tokens = text[:low].rsplit(" ", 1)[0] if low < len(text) else text, max_tokens
        spent += tokens
        p = r.provenance
        passages.append(
            {
                "passage_id": r.chunk_id, "source": r.source, "start": r.start, "end": r.end, "section": r.context, "page": p.page if p else None,
                "url": p.source_url if p else None, "updated": p.last_updated if p else None, "text": text, "complete": text == r.text,
            }
        )  # fmt: skip
    return passages, 0


def _trace(store: Store, name: str, query: str, settings: Settings, found: SearchResult) -> None:
    said = trace()
    if said == "off":
        return
    arms = {arm: {"engine": a.engine, "asked": a.asked, "got": a.got, "stopped": a.stopped} for arm, a in found.arms.items()}
    traces.write(
        store, name, found.question, with_text=said == "on", settings_digest=settings.digest, arms=arms, results=[r.chunk_id for r in found.results],
        diagnostic=found.diagnostic.message if found.diagnostic else None, seconds=found.ledger.seconds,
    )  # fmt: skip
