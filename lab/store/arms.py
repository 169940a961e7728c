"""What arms share: rows best first, ties broken by (source, n), enough of them, within the filters. The dense arm; what the stages ask for."""

from __future__ import annotations

import datetime as dt
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from pgvector import HalfVector
from psycopg.sql import SQL, Composed

from lab.records import ArmList, Hit
from lab.store.collections import Collection, statement
from lab.store.connect import Connection, Store
from lab.text import indexable

EXACT_BELOW = 2_000  # chunks; below, comparing all vectors is both right and fast
_COMPARED = 20_000  # passages that pass a filter; below, comparing their vectors takes less time than walking on through the index
_CAP = 20  # an arm asks for at most this many times `candidates` rows
Fetch = Callable[[int], tuple[list[Hit], bool]]  # rows wanted → (rows, whether there are no more)


@dataclass(frozen=True, slots=True)
class Passage:
    """What is shown of a chunk; `reading` is the window `[window_start, window_end)` around a sentence."""

    text: str
    context: str
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


@dataclass(frozen=True, slots=True)
class Restriction:
    """The passages that pass the filters. `sparse`: so few that each is scored; `few`: so few that each vector is compared; else an index is searched further."""

    keys: frozenset[int]

    @property
    def sparse(self) -> bool:
        return len(self.keys) <= EXACT_BELOW

    @property
    def few(self) -> bool:
        return len(self.keys) <= _COMPARED

    @property
    def listed(self) -> list[int]:
        return sorted(self.keys)


def dense(
    store: Store, collection: Collection, vector: np.ndarray | None, *, engine: str, ef_search: int, candidates: int, by_class: bool, chunks: int,
    lacks: Callable[[str], bool] = lambda index: False, restriction: Restriction | None = None,
) -> ArmList:  # fmt: skip
    """The dense arm. `engine` is hnsw or exact; hnsw runs exact at ≤ 2,000 chunks (or ≤ 20,000 that pass the filters), and where its index is missing.

    A question without a vector abstains. Where the index search ends before `candidates` passages passed the filters, those that pass are compared exactly.
    """
    if vector is None:
        return ArmList(
            "dense", engine, (), (), candidates, 0, "abstained", "the question has no vector: it is empty, or the model knows no word of it"
        )
    wanted = dense_engine(engine, chunks)
    fallback = without("HNSW", collection, "all vectors were compared") if wanted == "hnsw" and lacks("chunks_hnsw") else None
    used = "exact" if fallback or (restriction is not None and restriction.few) else wanted
    value = HalfVector(vector)
    settings = {"hnsw.ef_search": str(ef_search), "hnsw.iterative_scan": "strict_order"} if used == "hnsw" else {}
    start = time.perf_counter()
    with store.pipelined() as connection:
        server = set_here(connection, settings)

        def fetch(limit: int) -> tuple[list[Hit], bool]:
            if restriction is not None and used == "exact":
                rows = statement(collection, "dense_exact_of")
                hits = hits_of(connection.execute(rows, {"vector": value, "limit": limit, "keys": restriction.listed}))
                return hits, len(hits) < limit
            hits = hits_of(connection.execute(statement(collection, f"dense_{used}"), {"vector": value, "limit": limit}))
            return [hit for hit in hits if restriction is None or hit.key in restriction.keys], len(hits) < limit

        share = 1.0 if restriction is None or used == "exact" else len(restriction.keys) / max(chunks, 1)
        found = enough("dense", used, fetch, candidates, by_class, server, start, fallback, share=share)
        if restriction is not None and used == "hnsw" and found.stopped != "enough":
            used = "exact"
            found = enough("dense", used, fetch, candidates, by_class, server, start, fallback)
        return found


def dense_engine(engine: str, chunks: int) -> str:
    """Exact is right and fast on few rows."""
    return "exact" if engine == "exact" or chunks <= EXACT_BELOW else "hnsw"


def without(index: str, collection: Collection, instead: str) -> str:
    return f"the {index} index of {collection.name} is missing or invalid, so {instead}: run `lab index {collection.name}`"


def set_here(connection: Connection, settings: dict[str, str]) -> Callable[[], dict[str, str]]:
    """Sets parameters for this transaction only; what is returned reads them back from it: outside of a transaction they would silently stay as they were.

    Sent at once with what follows; the answer is looked at afterwards.
    """
    if not settings:
        return dict
    for name, value in settings.items():
        connection.execute("select set_config(%s, %s, true)", [name, value])
    read = connection.execute("select name, current_setting(name) from unnest(%s::text[]) as name", [list(settings)])
    return lambda: {str(name): str(value) for name, value in read}


def hits_of(rows: Iterable[Sequence[Any]]) -> list[Hit]:
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


def enough(
    arm: str,
    engine: str,
    fetch: Fetch,
    candidates: int,
    by_class: bool,
    server: Callable[[], dict[str, str]],
    start: float,
    fallback: str | None = None,
    share: float = 1.0,
) -> ArmList:
    """Asks for more rows until `candidates` classes are there and no tie is cut, the arm is exhausted, or the cap is reached.

    `share` is the part of the rows that pass the filters: so many more are asked for.

    Where the last row wanted ties with rows beyond the limit, which of them comes is an accident of the index: so the whole tie group is fetched.
    """
    limit = math.ceil((candidates + 16) / share)
    most = math.ceil((_CAP * candidates + 16) / share)
    stopped: Literal["enough", "exhausted", "limit"]
    while True:
        hits, exhausted = fetch(limit)
        places = ranks(hits, by_class)
        last = next((i for i, rank in enumerate(places) if rank == candidates), None)
        if exhausted:
            stopped = "exhausted"
            break
        if last is not None and hits[-1].score != hits[last].score:
            stopped = "enough"
            break
        if limit >= most:
            stopped = "limit"
            break
        limit = min(limit * 2, most)
    if last is not None:
        hits = [hit for hit, rank in zip(hits, places, strict=True) if rank <= candidates]
        places = [rank for rank in places if rank <= candidates]
        if stopped == "exhausted":
            stopped = "enough"
    got = max(places, default=0)
    return ArmList(arm, engine, tuple(hits), tuple(places), candidates, got, stopped, None, server(), time.perf_counter() - start, fallback)


def ranks(hits: Sequence[Hit], by_class: bool) -> list[int]:
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
        for hit in hits_of(store.rows(statement(collection, "classes"), {"classes": list(ids)})):
            found.setdefault(hit.class_id, []).append(hit)
    return found


def hits(store: Store, collection: Collection, keys: Sequence[int]) -> dict[int, Hit]:
    """Key → the passage as a row of an arm, score 0."""
    if not keys:
        return {}
    return {hit.key: hit for hit in hits_of(store.rows(statement(collection, "hits"), {"keys": list(keys)}))}


def texts(store: Store, collection: Collection, keys: Sequence[int]) -> dict[int, Passage]:
    """Key → the passage."""
    if not keys:
        return {}
    rows = store.rows(statement(collection, "texts"), {"keys": list(keys)})
    return {int(row[0]): Passage(*row[1:]) for row in rows}


def vectors(store: Store, collection: Collection, keys: Sequence[int]) -> dict[int, np.ndarray]:
    """Key → float32 vector `(dim,)`; keys without a vector are absent."""
    if not keys:
        return {}
    with store.single() as connection:  # as bytes: the text of 384 numbers takes ten times as long to read
        rows = connection.execute(statement(collection, "vectors"), {"keys": list(keys)}, binary=True).fetchall()
    return {int(key): np.asarray(vector.to_numpy(), dtype=np.float32) for key, vector in rows}


def defined(store: Store, collection: Collection, terms: Sequence[str]) -> list[tuple[str, str, Hit]]:
    """(term, term as written, passage that defines it)."""
    if not terms:
        return []
    rows = store.rows(statement(collection, "defined"), {"terms": list(terms)})
    return [(str(row[0]), str(row[1]), hit) for row, hit in zip(rows, hits_of(row[2:] for row in rows), strict=True)]


def cited(store: Store, collection: Collection, parents: Sequence[int]) -> list[tuple[int, Hit, int]]:
    """(key of the citing chunk, cited passage, number of chunks that cite it), in the order of `parents`, then of the text."""
    if not parents:
        return []
    rows = store.rows(statement(collection, "cited"), {"parents": list(parents)})
    return [(int(row[0]), hit, int(row[10])) for row, hit in zip(rows, hits_of(row[1:10] for row in rows), strict=True)]


def term_users(store: Store, collection: Collection, term: str, cap: int) -> int:
    """How many chunks use `term`, counted up to `cap`."""
    rows = store.rows(statement(collection, "term_users"), {"language": collection.language, "term": indexable(term), "cap": cap})
    return int(rows[0][0])


def uses_index(store: Store, collection: Collection, vector: np.ndarray, ef_search: int, limit: int) -> bool:
    """Whether the planner answers the dense arm from the HNSW index."""
    with store.pipelined() as connection:
        set_here(connection, {"hnsw.ef_search": str(ef_search), "hnsw.iterative_scan": "strict_order"})
        statement_ = Composed([SQL("explain "), statement(collection, "dense_hnsw")])
        plan = connection.execute(statement_, {"vector": HalfVector(vector), "limit": limit}).fetchall()
    return any("chunks_hnsw" in str(row[0]) for row in plan)


def metadata_values(store: Store, collection: Collection) -> dict[str, list[str]]:
    """Key of the metadata → its values as text, of keys with at most 200."""
    found: dict[str, list[str]] = {}
    for key, value in store.rows(statement(collection, "metadata_values")):
        found.setdefault(str(key), []).append(str(value))
    return found


def metadata_keys(store: Store, collection: Collection) -> list[str]:
    """The names under which any document has a value."""
    return [str(row[0]) for row in store.rows(statement(collection, "metadata_keys"))]


def passing(store: Store, collection: Collection, paths: Sequence[str]) -> Restriction:
    """The passages whose document meets every condition."""
    return Restriction(frozenset(int(row[0]) for row in store.rows(statement(collection, "filtered"), {"paths": list(paths)})))
