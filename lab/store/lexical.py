"""The lexical arm: BM25 by index, by postings or from the rows, ts_rank and ts_rank_cd; side tokens for codes and numbers on top."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import psycopg

from lab.codes import VERSION, question_tokens, question_words
from lab.errors import ServerError
from lab.records import ArmList, Hit
from lab.store.arms import Restriction, enough, hits_of, sanitise, set_here, tied, without
from lab.store.collections import Collection, statement
from lab.store.connect import Connection, Store
from lab.store.queries import query
from lab.text import indexable

_SIDE_HITS = 1_000  # passages that come in by side tokens, at most


def engine_of(store: Store, ranker: str, lacks: Callable[[str], bool]) -> tuple[str, str | None]:
    """(engine, why it is not the one asked for) of a ranker: bm25 has three that share one formula."""
    if ranker != "bm25":
        return ranker, None
    if store.tenant is not None:
        return "bm25_postings", None
    if store.bm25:
        return ("bm25_plain", "BM25") if lacks("chunks_bm25") else ("bm25", None)
    return ("bm25_plain", "postings") if lacks("postings_pkey") else ("bm25_postings", None)


def lexical(
    store: Store, collection: Collection, question: str, *, ranker: str, mode: str, candidates: int, by_class: bool, chunks: int, codes: bool = False,
    lacks: Callable[[str], bool] = lambda index: False, restriction: Restriction | None = None,
) -> ArmList:  # fmt: skip
    """The lexical arm. A question of stop words and signs only abstains.

    With `codes` the score is BM25 + Σ idf of the side tokens (`lab.codes`) that a passage shares with the question, over the union of the BM25 top rows and
    at most 1,000 passages that share one. `restriction` holds what passes the filters.
    """
    text = sanitise(question)
    start = time.perf_counter()
    engine, missing = engine_of(store, ranker, lacks)
    fallback = without(missing, collection, "the scores were computed from the rows") if missing is not None else None
    codes = codes and ranker == "bm25" and mode == "any"  # the other modes say themselves what must match
    if codes and collection.codes != VERSION:
        codes, fallback = (
            False,
            fallback or f"the side tokens of {collection.name} are missing, so codes were not looked for: run `lab index {collection.name}`",
        )
    asked = indexable(question_words(text) if codes else text)
    flat = engine == "bm25" and mode == "any" and (restriction is None or not restriction.sparse)
    # Where the planner scans a small table instead of the index, the extension has no score to give, only that of its last search.
    settings = {"enable_seqscan": "off", "enable_sort": "off"} if flat else {}
    with store.pipelined() as connection:
        side = _side(connection, collection, question_tokens(text) if codes else [], chunks, restriction)
        whole = [token for token in question_tokens(text) if token[:2] in {"e=", "s="}] if side else []
        rarest = math.log(1 + (chunks - 0.5) / 1.5) * len(whole)
        coded = {key: hit.score / rarest for key, hit in _side(connection, collection, whole, chunks, restriction).items()} if rarest > 0 else {}
        tsquery = _tsquery(connection, collection, asked, mode)
        server = set_here(connection, settings)  # after what needs the planner as it is
        if not tsquery and not side:
            why = "the question holds no word that the index knows, only stop words or signs"
            return ArmList("lexical", engine, (), (), candidates, 0, "abstained", why, seconds=time.perf_counter() - start, fallback=fallback)
        rows = _Rows(store, connection, collection, engine, mode, asked, tsquery)

        def fetch(limit: int) -> tuple[list[Hit], bool]:
            if not tsquery:
                return tied(list(side.values())), True
            if restriction is not None and restriction.sparse:
                return tied(_with_side(rows.of(restriction.listed), side, rows)), True
            hits = rows.top(limit)
            exhausted = len(hits) < limit
            if side:
                # What the index did not bring is below its last row, unless side tokens lift it: those that do are all known.
                least = hits[-1].score if hits and not exhausted else float("-inf")
                hits = [hit for hit in _with_side(hits, side, rows) if hit.score >= least]
            kept = [hit for hit in hits if restriction is None or hit.key in restriction.keys]
            return tied(kept), exhausted

        share = 1.0 if restriction is None or restriction.sparse else len(restriction.keys) / max(chunks, 1)
        return replace(enough("lexical", engine, fetch, candidates, by_class, server, start, fallback, share=share), coded=coded)


class _Rows:
    """BM25, ts_rank or ts_rank_cd rows of one question by the engine chosen."""

    def __init__(self, store: Store, connection: Connection, collection: Collection, engine: str, mode: str, asked: str, tsquery: str) -> None:
        self.store, self.connection, self.collection, self.engine, self.mode = store, connection, collection, engine, mode
        self.parameters: dict[str, Any] = {
            "question": asked, "index": collection.bm25_index, "tsquery": tsquery, "language": collection.language, "mode": mode, "keys": None,
        }  # fmt: skip

    def top(self, limit: int) -> list[Hit]:
        """The best `limit` rows, best first."""
        name = "lexical_bm25_filtered" if self.engine == "bm25" and self.mode != "any" else f"lexical_{self.engine}"
        return tied(self._read(name, limit=limit))

    def of(self, keys: Sequence[int]) -> list[Hit]:
        """Those of some passages that match, scored."""
        keys = list(keys)
        if not keys:
            return []
        if self.engine == "bm25":
            return self._read("bm25_scores", keys=keys)
        if self.engine.startswith("bm25_"):
            return self._read(f"lexical_{self.engine}", keys=keys, limit=len(keys))
        wanted = set(keys)
        return [hit for hit in self._read(f"lexical_{self.engine}", limit=2_000_000) if hit.key in wanted]

    def _read(self, name: str, **more: Any) -> list[Hit]:
        try:
            return hits_of(self.connection.execute(statement(self.collection, name), {**self.parameters, **more}))
        except psycopg.errors.UndefinedObject:
            raise ServerError(
                f"collection {self.collection.name!r} has no BM25 index yet, or no more: run `lab index {self.collection.name}`."
            ) from None


def _tsquery(connection: Connection, collection: Collection, text: str, mode: str) -> str:
    row = connection.execute(query("search/tsquery"), {"language": collection.language, "question": text, "mode": mode}).fetchone()
    return str(row[0]) if row and row[0] else ""


def _side(connection: Connection, collection: Collection, tokens: list[str], chunks: int, restriction: Restriction | None) -> dict[int, Hit]:
    """Key → the passage with the sum of its side tokens' idf as score."""
    if not tokens:
        return {}
    keys = restriction.listed if restriction is not None and restriction.sparse else None
    rows = connection.execute(statement(collection, "codes"), {"tokens": tokens, "chunks": chunks, "limit": _SIDE_HITS, "keys": keys})
    return {hit.key: hit for hit in hits_of(rows) if restriction is None or hit.key in restriction.keys}


def _with_side(hits: Sequence[Hit], side: dict[int, Hit], rows: _Rows) -> list[Hit]:
    """The union of both: BM25 + side score; what only the side brought gets its BM25 score too."""
    if not side:
        return list(hits)
    have = {hit.key for hit in hits}
    missing = [key for key in side if key not in have]
    scored = {hit.key: hit.score for hit in rows.of(missing)} if missing else {}
    out = [replace(hit, score=hit.score + side[hit.key].score) if hit.key in side else hit for hit in hits]
    out += [replace(side[key], score=side[key].score + scored.get(key, 0.0)) for key in missing]
    return sorted(out, key=lambda hit: (-hit.score, hit.source, hit.n))
