"""The claims of a collection: entered by content hash, stale with their passages (by triggers, in the same transaction), searched by words or by vector."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pgvector import HalfVector
from psycopg import sql
from psycopg.types.json import Jsonb

from lab.store.collections import Collection, statement
from lab.store.connect import Connection, Store

STATUSES = ("candidate", "verified", "rejected", "stale")


@dataclass(frozen=True, slots=True)
class NewClaim:
    """A claim to be entered. `n` is the number of the passage that holds most of `[start, end)`, `chunk_key` its key (None: there is none)."""

    source: str
    n: int
    chunk_key: int | None
    start: int
    end: int
    quote: str
    statement: str
    subject: str
    kind: str
    confidence: float
    status: str
    reason: str | None = None

    @property
    def content_hash(self) -> bytes:
        """32 bytes of what is said, and where: not of its place, so that a claim which moved is the same."""
        return hashlib.sha256(
            "\x1f".join((self.source, self.kind, self.subject, self.statement, self.quote)).encode("utf-8", "surrogatepass")
        ).digest()

    @property
    def claim_id(self) -> str:
        return "c" + self.content_hash.hex()[:20]


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim as stored. `similarity` is its cosine to the question, or None where it was found by words; `score` the value it was ranked by."""

    claim_id: str
    statement: str
    subject: str
    kind: str
    confidence: float
    status: str
    authority: int
    source: str
    n: int
    start: int
    end: int
    quote: str
    extractor: str
    chunk_key: int | None
    score: float = 0.0
    similarity: float | None = None
    reason: str | None = None  # why it was rejected, and when it was last touched, where that was read
    touched: dt.datetime | None = None

    @property
    def chunk_id(self) -> str:
        return f"{self.source}::{self.n}"


def documents(store: Store, collection: Collection) -> list[tuple[str, bytes]]:
    """(source, content hash) of the documents that are there, by source."""
    rows = store.rows(
        sql.SQL(
            "select source, content_hash from {}.files where status in ('indexed', 'missing') and text is not null and content_hash is not null order by source"
        ).format(sql.Identifier(collection.schema))
    )
    return [(str(source), bytes(content)) for source, content in rows]


def passes(store: Store, collection: Collection, extractor: str) -> dict[str, bytes]:
    """Source → the content hash from which this extractor last took its claims."""
    rows = store.rows(
        sql.SQL("select source_id, content_hash from {}.claim_passes where extractor = %(e)s").format(sql.Identifier(collection.schema)),
        {"e": extractor},
    )
    return {str(source): bytes(content) for source, content in rows}


def enter(
    store: Store,
    collection: Collection,
    source: str,
    content_hash: bytes,
    extractor: str,
    claims: Sequence[NewClaim],
    cost: Mapping[str, Any] | None = None,
) -> tuple[int, int]:
    """What an extractor took from one state of a document, in one transaction: (new claims, claims that were there and hold again). What it had taken from an earlier state and no
    longer finds stays, stale. Of two claims with the same content the first counts."""
    schema = sql.Identifier(collection.schema)
    unique = list({c.content_hash: c for c in reversed(claims)}.values())[::-1]
    with store.connection() as connection:
        row = connection.execute(sql.SQL("select content_hash from {}.files where source = %s for share").format(schema), [source]).fetchone()
        if row is None or bytes(row[0]) != content_hash:
            return 0, 0  # it changed while it was read: the next call takes the new state
        made = _upsert(connection, schema, collection.language, extractor, unique)
        _supersede(connection, schema, source, extractor, [c.content_hash for c in unique])
        connection.execute(
            sql.SQL(
                "insert into {}.claim_passes (source_id, extractor, content_hash, claims, rejected, cost) values (%s, %s, %s, %s, %s, %s) on conflict (source_id, extractor) "
                "do update set content_hash = excluded.content_hash, claims = excluded.claims, rejected = excluded.rejected, cost = excluded.cost, at = clock_timestamp()"
            ).format(schema),
            [
                source,
                extractor,
                content_hash,
                sum(c.status != "rejected" for c in unique),
                sum(c.status == "rejected" for c in unique),
                Jsonb(dict(cost or {})),
            ],
        )
    return made, len(unique) - made


def _upsert(connection: Connection, schema: sql.Identifier, language: str, extractor: str, claims: Iterable[NewClaim]) -> int:
    made = 0
    # What was stale, what is surer now, and what a machine rejected takes its new status; what a person rejected, or what is verified, keeps its own.
    again = (
        "(claims.status = 'stale' or (claims.status, excluded.status) = ('candidate', 'verified') "
        "or (claims.status = 'rejected' and excluded.status <> 'rejected' and coalesce(claims.reason, '') not like 'rejected by %%'))"
    )
    for c in claims:
        row = connection.execute(
            sql.SQL(
                "insert into {}.claims (claim_id, content_hash, source_id, n, chunk_key, start, \"end\", quote, statement, subject, kind, confidence, status, reason, extractor, words) "
                "values (%(id)s, %(hash)s, %(source)s, %(n)s, %(key)s, %(start)s, %(end)s, %(quote)s, %(statement)s, %(subject)s, %(kind)s, %(confidence)s, %(status)s, %(reason)s, %(extractor)s, "
                "(select coalesce(sum(cardinality(positions)), 0)::int from unnest(to_tsvector(%(language)s::regconfig, %(statement)s || E'\\n' || %(quote)s)))) "
                "on conflict (content_hash) do update set n = excluded.n, chunk_key = excluded.chunk_key, start = excluded.start, \"end\" = excluded.\"end\", "
                f"extractor = case when {again} then excluded.extractor else claims.extractor end, "
                f"status = case when {again} then excluded.status else claims.status end, "
                f"reason = case when {again} then excluded.reason else claims.reason end, updated_at = clock_timestamp() returning (xmax = 0)"
            ).format(schema),
            {
                "id": c.claim_id, "hash": c.content_hash, "source": c.source, "n": c.n, "key": c.chunk_key, "start": c.start, "end": c.end, "quote": c.quote, "statement": c.statement,
                "subject": c.subject, "kind": c.kind, "confidence": c.confidence, "status": c.status, "reason": c.reason, "extractor": extractor, "language": language,
            },
        ).fetchone()  # fmt: skip
        made += bool(row and row[0])
    return made


def _supersede(connection: Connection, schema: sql.Identifier, source: str, extractor: str, found: Sequence[bytes]) -> None:
    """What another version of this extractor took from the document, and this one does not find, is stale; its passes go."""
    family = "regexp_replace({}, '^([a-z]+)-[0-9]+', '\\1')"
    other = f"source_id = %(source)s and extractor <> %(extractor)s and {family.format('extractor')} = {family.format('%(extractor)s::text')}"
    connection.execute(
        sql.SQL(
            f"update {{}}.claims set status = 'stale', chunk_key = null, updated_at = clock_timestamp() where {other} and status in ('verified', 'candidate') and content_hash <> all(%(found)s)"
        ).format(schema),
        {"source": source, "extractor": extractor, "found": list(found)},
    )
    connection.execute(sql.SQL(f"delete from {{}}.claim_passes where {other}").format(schema), {"source": source, "extractor": extractor})


def without_vector(store: Store, collection: Collection) -> list[tuple[str, str]]:
    """(claim, statement) of the claims that are searched and have no vector yet, by id."""
    rows = store.rows(
        sql.SQL("select claim_id, statement from {}.claims where embedding is null and status in ('verified', 'candidate') order by claim_id").format(
            sql.Identifier(collection.schema)
        )
    )
    return [(str(name), str(text)) for name, text in rows]


def set_vectors(store: Store, collection: Collection, vectors: Mapping[str, np.ndarray]) -> None:
    """Claim → its float16 vector."""
    with store.connection() as connection, connection.cursor() as cursor:
        cursor.executemany(
            sql.SQL("update {}.claims set embedding = %s where claim_id = %s").format(sql.Identifier(collection.schema)),
            [(HalfVector(vector), name) for name, vector in vectors.items()],
        )


@dataclass(frozen=True, slots=True)
class Filter:
    """Which claims count: of these statuses, of these kinds (None: all), at least so sure, from documents of at least this authority."""

    statuses: tuple[str, ...] = ("verified",)
    kinds: tuple[str, ...] | None = None
    confidence: float = 0.0
    authority: int = 0

    def parameters(self) -> dict[str, Any]:
        return {
            "statuses": list(self.statuses), "kinds": None if self.kinds is None else list(self.kinds), "confidence": self.confidence, "authority": self.authority,
        }  # fmt: skip


def by_words(store: Store, collection: Collection, question: str, limit: int, chosen: Filter = Filter()) -> list[Claim]:
    """The best `limit` claims by BM25, best first; ties by confidence, then id. A question without a word that any claim has finds none."""
    rows = store.rows(
        statement(collection, "claims_bm25"), {"question": question, "language": collection.language, "limit": limit, **chosen.parameters()}
    )
    return [Claim(*row) for row in rows]


def by_vector(store: Store, collection: Collection, vector: np.ndarray, limit: int, floor: float, chosen: Filter = Filter()) -> list[Claim]:
    """The nearest `limit` claims with a cosine of at least `floor`, nearest first."""
    rows = store.rows(statement(collection, "claims_dense"), {"vector": HalfVector(vector), "floor": floor, "limit": limit, **chosen.parameters()})
    return [replace(Claim(*row), similarity=float(row[14])) for row in rows]


def there(store: Store, collection: Collection) -> bool:
    """Whether there is a verified claim."""
    return bool(store.rows(sql.SQL("select from {}.claims where status = 'verified' limit 1").format(sql.Identifier(collection.schema))))


def digest_of(store: Store, collection: Collection) -> str:
    """What the verified claims are: the same for the same claims at the same passages."""
    row = store.rows(
        sql.SQL("select md5(coalesce(string_agg(claim_id || ' ' || n, ',' order by claim_id), '')) from {}.claims where status = 'verified'").format(
            sql.Identifier(collection.schema)
        )
    )[0]
    return str(row[0])[:16]


def counts(store: Store, collection: Collection) -> list[tuple[str, str, int]]:
    """(kind, status, how many)."""
    rows = store.rows(sql.SQL("select kind, status, count(*) from {}.claims group by 1, 2 order by 1, 2").format(sql.Identifier(collection.schema)))
    return [(str(kind), str(status), int(count)) for kind, status, count in rows]


def kinds(store: Store, collection: Collection) -> list[str]:
    """The kinds that the collection has, by name: the list is open."""
    return [str(kind) for (kind,) in store.rows(sql.SQL("select distinct kind from {}.claims order by 1").format(sql.Identifier(collection.schema)))]
