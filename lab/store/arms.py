"""The two arms as queries: rows best first, ties broken by (source, n), and enough of them."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import psycopg
from pgvector import HalfVector

from lab.errors import ServerError
from lab.records import ArmList, Hit
from lab.store.collections import Collection, statement
from lab.store.connect import Connection, Store
from lab.store.queries import call_with, ddl, query

EXACT_BELOW = 2_000  # chunks; below, comparing all vectors is both right and fast
_CAP = 20  # an arm asks for at most this many times `candidates` rows
Fetch = Callable[[int], list[Hit]]


@dataclass(frozen=True, slots=True)
class Passage:
    """What is shown of a chunk. `body` is what was embedded and indexed; `reading` the window `[window_start, window_end)` around a sentence."""

    text: str
    context: str
    body: str
    page: int | None
    title: str
    source_url: str
    document_version: str
    last_updated: dt.date | None
    metadata: Mapping[str, Any]
    window_start: int | None
    window_end: int | None
    reading: str | None


def sanitise(question: str) -> str:
    """The question as Postgres and every output can take it: NUL becomes a space, a lone surrogate `?`; at most 100,000 characters."""
    return question[:100_000].replace("\0", " ").encode("utf-8", "replace").decode("utf-8")


def dense(
    store: Store, collection: Collection, vector: np.ndarray | None, *, engine: str, ef_search: int, candidates: int, by_class: bool, chunks: int,
    lacks_index: bool = False,
) -> ArmList:  # fmt: skip
    """The dense arm. `engine` is hnsw or exact; hnsw runs exact at ≤ 2,000 chunks, and where its index is missing. A question without a vector abstains."""
    if vector is None:
        return ArmList("dense", engine, (), (), candidates, 0, "abstained", "the question's vector is zero")
    wanted = _dense_engine(store, engine, chunks)
    fallback = _without("HNSW", collection, "all vectors were compared") if wanted == "hnsw" and lacks_index else None
    used = "exact" if fallback else wanted
    rows = statement(store, collection, f"dense_{used}")
    value = HalfVector(vector)
    settings = {"hnsw.ef_search": str(ef_search), "hnsw.iterative_scan": "strict_order"} if used == "hnsw" else {}
    start = time.perf_counter()
    with store.pipelined() as connection:
        server = _set(connection, settings)

        def fetch(limit: int) -> list[Hit]:
            return _hits(connection.execute(rows, {"vector": value, "limit": limit}))

        return _enough("dense", used, fetch, candidates, by_class, server, start, fallback)


def lexical(
    store: Store, collection: Collection, question: str, *, ranker: str, mode: str, candidates: int, by_class: bool, lacks_index: bool = False
) -> ArmList:
    """The lexical arm. A question of stop words only abstains. Where the BM25 index is missing, and for a tenant, the same formula runs in plain SQL."""
    text = sanitise(question)
    start = time.perf_counter()
    own = store.tenant is not None and ranker == "bm25"
    fallback = _without("BM25", collection, "the scores were computed from the rows") if ranker == "bm25" and lacks_index and not own else None
    plain = own or fallback is not None
    from_index = ranker == "bm25" and mode == "any" and not plain
    name = "lexical_bm25_plain" if plain else "lexical_bm25" if from_index else "lexical_bm25_filtered" if ranker == "bm25" else f"lexical_{ranker}"
    rows = statement(store, collection, name)
    # Where the planner scans a small table instead of the index, the extension has no score to give, only that of its last search.
    settings = {"enable_seqscan": "off", "enable_sort": "off"} if from_index else {}
    with store.pipelined() as connection:
        server = _set(connection, settings)
        row = connection.execute(query("search/tsquery"), {"language": collection.language, "question": text, "mode": mode}).fetchone()
        tsquery = str(row[0]) if row and row[0] else ""
        if not tsquery:
            why = "the question holds no word that the index knows, only stop words or signs"
            return ArmList("lexical", ranker, (), (), candidates, 0, "abstained", why, seconds=time.perf_counter() - start)
        parameters: dict[str, Any] = {"question": text, "index": collection.bm25_index, "tsquery": tsquery, "language": collection.language}

        def fetch(limit: int) -> list[Hit]:
            try:
                return tied(_hits(connection.execute(rows, {**parameters, "limit": limit})))
            except psycopg.errors.UndefinedObject:
                raise ServerError(f"collection {collection.name!r} has no BM25 index yet, or no more: run `lab index {collection.name}`.") from None

        return _enough("lexical", "bm25_plain" if plain else ranker, fetch, candidates, by_class, server, start, fallback)


def _dense_engine(store: Store, engine: str, chunks: int) -> str:
    """Exact is right and fast on few rows. A tenant's rows are always compared exactly: what an index shared with others skips on the way tells of theirs."""
    return "exact" if engine == "exact" or chunks <= EXACT_BELOW or store.tenant is not None else "hnsw"


def _without(index: str, collection: Collection, instead: str) -> str:
    return f"the {index} index of {collection.name} is missing or invalid, so {instead}: run `lab index {collection.name}`"


def _set(connection: Connection, settings: dict[str, str]) -> Callable[[], dict[str, str]]:
    """Sets parameters for this transaction only; what is returned reads them back from it: outside of a transaction they would silently stay as they were.

    Sent at once with what follows; the answer is looked at afterwards.
    """
    if not settings:
        return dict
    for name, value in settings.items():
        connection.execute("select set_config(%s, %s, true)", [name, value])
    read = connection.execute("select name, current_setting(name) from unnest(%s::text[]) as name", [list(settings)])
    return lambda: {str(name): str(value) for name, value in read}


def _hits(rows: Iterable[Sequence[Any]]) -> list[Hit]:
    return [Hit(key, source, n, start, end, bytes(cls), tier, float(score), twins) for key, source, n, start, end, cls, tier, score, twins in rows]


def tied(hits: Sequence[Hit], tolerance: float = 2e-6) -> list[Hit]:
    """Best first, with scores that differ by less than `tolerance` (relative) made one and their rows put in the order (source, n).

    The BM25 index adds up a passage's words in an order that depends on how the index was built, so that equal scores differ in their last bits from
    one build to the next.
    """
    groups: list[list[Hit]] = []
    for hit in sorted(hits, key=lambda hit: (-hit.score, hit.source, hit.n)):
        if groups and groups[-1][-1].score - hit.score <= tolerance * abs(hit.score):
            groups[-1].append(hit)
        else:
            groups.append([hit])
    return [
        hit if hit.score == group[0].score else replace(hit, score=group[0].score)
        for group in groups
        for hit in (sorted(group, key=lambda hit: (hit.source, hit.n)) if len(group) > 1 else group)
    ]


def _enough(
    arm: str,
    engine: str,
    fetch: Fetch,
    candidates: int,
    by_class: bool,
    server: Callable[[], dict[str, str]],
    start: float,
    fallback: str | None = None,
) -> ArmList:
    """Asks for more rows until `candidates` classes are there and no tie is cut, the arm is exhausted, or the cap is reached.

    Where the last row wanted ties with rows beyond the limit, which of them comes is an accident of the index: so the whole tie group is fetched.
    """
    limit = candidates + 16
    stopped: Literal["enough", "exhausted", "limit"]
    while True:
        hits = fetch(limit)
        ranks = _ranks(hits, by_class)
        last = next((i for i, rank in enumerate(ranks) if rank == candidates), None)
        if len(hits) < limit:
            stopped = "exhausted"
            break
        if last is not None and hits[-1].score != hits[last].score:
            stopped = "enough"
            break
        if limit >= _CAP * candidates + 16:
            stopped = "limit"
            break
        limit = min(limit * 2, _CAP * candidates + 16)
    if last is not None:
        hits = [hit for hit, rank in zip(hits, ranks, strict=True) if rank <= candidates]
        ranks = [rank for rank in ranks if rank <= candidates]
        if stopped == "exhausted":
            stopped = "enough"
    got = max(ranks, default=0)
    return ArmList(arm, engine, tuple(hits), tuple(ranks), candidates, got, stopped, None, server(), time.perf_counter() - start, fallback)


def _ranks(hits: Sequence[Hit], by_class: bool) -> list[int]:
    """Rank of each row, from 1. By class, a copy has the rank of its class's first row, and copies take no rank of their own."""
    if not by_class:
        return list(range(1, len(hits) + 1))
    first: dict[bytes, int] = {}
    return [first.setdefault(hit.class_id, len(first) + 1) for hit in hits]


# ── what the stages ask for ──────────────────────────────────────────────────────────────────────────────────────────────────────


def classes(store: Store, collection: Collection, ids: Sequence[bytes]) -> dict[bytes, list[Hit]]:
    """The members of those classes that have more than one, the copy that speaks for the class first."""
    found: dict[bytes, list[Hit]] = {}
    if ids:
        for hit in _hits(store.rows(statement(store, collection, "classes"), {"classes": list(ids)})):
            found.setdefault(hit.class_id, []).append(hit)
    return found


def texts(store: Store, collection: Collection, keys: Sequence[int]) -> dict[int, Passage]:
    """Key → the passage."""
    if not keys:
        return {}
    rows = store.rows(statement(store, collection, "texts"), {"keys": list(keys)})
    return {int(row[0]): Passage(*row[1:]) for row in rows}


def vectors(store: Store, collection: Collection, keys: Sequence[int]) -> dict[int, np.ndarray]:
    """Key → float32 vector `(dim,)`; keys without a vector are absent."""
    if not keys:
        return {}
    rows = store.rows(statement(store, collection, "vectors"), {"keys": list(keys)})
    return {int(key): np.asarray(vector.to_numpy(), dtype=np.float32) for key, vector in rows}


def defined(store: Store, collection: Collection, terms: Sequence[str]) -> list[tuple[str, str, Hit]]:
    """(term, term as written, passage that defines it)."""
    if not terms:
        return []
    rows = store.rows(statement(store, collection, "defined"), {"terms": list(terms)})
    return [(str(row[0]), str(row[1]), hit) for row, hit in zip(rows, _hits(row[2:] for row in rows), strict=True)]


def cited(store: Store, collection: Collection, parents: Sequence[int]) -> list[tuple[int, Hit, int]]:
    """(key of the citing chunk, cited passage, number of chunks that cite it), in the order of `parents`, then of the text."""
    if not parents:
        return []
    rows = store.rows(statement(store, collection, "cited"), {"parents": list(parents)})
    return [(int(row[0]), hit, int(row[10])) for row, hit in zip(rows, _hits(row[1:10] for row in rows), strict=True)]


def term_users(store: Store, collection: Collection, term: str, cap: int) -> int:
    """How many chunks use `term`, counted up to `cap`."""
    rows = store.rows(statement(store, collection, "term_users"), {"language": collection.language, "term": term, "cap": cap})
    return int(rows[0][0])


def statements(
    store: Store, collection: Collection, question: str, vector: np.ndarray | None, *, engine: str, chunks: int, ef_search: int, ranker: str, mode: str,
    candidates: int,
) -> str:  # fmt: skip
    """What the arms send, with all values written out: runnable in psql as it stands. The fusion is not SQL."""
    parts = []
    if engine != "none" and vector is not None:
        used = _dense_engine(store, engine, chunks)
        literal = "[" + ",".join(f"{float(x):.7g}" for x in vector) + "]"
        text = _written(store, collection, f"dense_{used}", {"vector": literal, "limit": candidates})
        if used == "hnsw":
            text = f"begin;\nset local hnsw.ef_search = {ef_search};\nset local hnsw.iterative_scan = strict_order;\n{text}\ncommit;"
        parts.append(text)
    if ranker != "none":
        text = sanitise(question)
        row = store.rows(query("search/tsquery"), {"language": collection.language, "question": text, "mode": mode})
        tsquery = str(row[0][0] or "")
        values = {"question": text, "index": collection.bm25_index, "tsquery": tsquery, "limit": candidates, "language": collection.language}
        if ranker == "bm25" and store.tenant is not None:
            parts.append(_written(store, collection, "lexical_bm25_plain", values))
        elif ranker == "bm25" and mode == "any":
            settings = "set local enable_seqscan = off;\nset local enable_sort = off;"
            parts.append(f"begin;\n{settings}\n{_written(store, collection, 'lexical_bm25', values)}\ncommit;")
        else:
            parts.append(_written(store, collection, "lexical_bm25_filtered" if ranker == "bm25" else f"lexical_{ranker}", values))
    return "\n\n".join(part.strip() for part in parts)


def _written(store: Store, collection: Collection, name: str, values: dict[str, object]) -> str:
    if store.tenant is not None:
        return call_with(f"search/{name}", collection.functions, values).as_string() + ";"
    return ddl(f"search/{name}", {"schema": collection.schema}, values).as_string()
