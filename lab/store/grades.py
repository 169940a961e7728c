"""Grades of documents' claims, and the status of claims that follows from them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from psycopg import sql
from psycopg.types.json import Jsonb

from lab.store.claims import Claim
from lab.store.collections import Collection
from lab.store.connect import Store


@dataclass(frozen=True, slots=True)
class Waiting:
    """A document with claims of a chat model that hold in its present state. `key` is of the ids of those claims: a grade counts for them alone."""

    source: str
    title: str
    content_hash: bytes
    claims: Sequence[Claim]
    key: str


@dataclass(frozen=True, slots=True)
class Grade:
    """What a grader thinks of them: `score` from 0 to 1, whether they pass, and why. `grader`: person:NAME or chat:MODEL."""

    source: str
    grader: str
    score: float
    passed: bool
    feedback: str = ""


def waiting(store: Store, collection: Collection, grader: str | None = None, rejected_by: str | None = None) -> list[Waiting]:
    """The documents with candidates, or with claims that a grade made verified, by source; of `grader` only those that it has not graded as they are. With the claims that the person
    `rejected_by` has rejected, who may think otherwise now."""
    schema = sql.Identifier(collection.schema)
    rows = store.rows(
        sql.SQL(
            'select f.title, f.content_hash, c.claim_id, c.statement, c.subject, c.kind, c.confidence, c.status, f.authority, c.source_id, c.n, c.start, c."end", c.quote, c.extractor, c.chunk_key '
            "from {0}.claims c join {0}.files f on f.source = c.source_id where c.extractor not like 'rules-%%' and (c.status in ('candidate', 'verified') or (c.status = 'rejected' and c.reason = %(reason)s)) "
            'order by c.source_id, c.start, c."end", c.claim_id'
        ).format(schema),
        {"reason": None if rejected_by is None else reason_of(rejected_by)},
    )
    by_source: dict[str, list[Any]] = {}
    for row in rows:
        by_source.setdefault(str(row[9]), []).append(row)
    known = {
        (str(source), bytes(content), str(key))
        for source, content, key in store.rows(
            sql.SQL("select source_id, content_hash, claims from {}.claim_grades where grader = %(grader)s").format(schema), {"grader": grader}
        )
    }
    found = []
    for source, group in by_source.items():
        claims = [Claim(*row[2:]) for row in group]
        one = Waiting(source, str(group[0][0]), bytes(group[0][1]), claims, key_of([c.claim_id for c in claims]))
        if (source, one.content_hash, one.key) not in known:
            found.append(one)
    return found


def key_of(claim_ids: Sequence[str]) -> str:
    """What names a set of claims."""
    return hashlib.md5(" ".join(sorted(claim_ids)).encode(), usedforsecurity=False).hexdigest()


def reason_of(who: str) -> str:
    """Why a claim is rejected that a person rejected."""
    return f"rejected by {who}"


def enter(
    store: Store,
    collection: Collection,
    graded: Waiting,
    grade: Grade,
    rejected: Mapping[str, str] = MappingProxyType({}),
    cost: Mapping[str, Any] | None = None,
) -> bool:
    """Keeps a grade, and gives the claims the status that follows, in one transaction: rejected ones (id → reason) first; of the others verified where the document passes. A person's grade
    of the same claims outweighs a model's. False where the document has changed meanwhile: nothing is kept."""
    schema = sql.Identifier(collection.schema)
    left = [c.claim_id for c in graded.claims if c.claim_id not in rejected]
    key = key_of(left)
    with store.connection() as connection:
        row = connection.execute(sql.SQL("select content_hash from {}.files where source = %s for share").format(schema), [graded.source]).fetchone()
        if row is None or bytes(row[0]) != graded.content_hash:
            return False
        connection.execute(
            sql.SQL(
                "insert into {}.claim_grades (source_id, grader, content_hash, claims, score, passed, feedback, cost) values (%s, %s, %s, %s, %s, %s, %s, %s) on conflict (source_id, grader) do update "
                "set content_hash = excluded.content_hash, claims = excluded.claims, score = excluded.score, passed = excluded.passed, feedback = excluded.feedback, cost = excluded.cost, "
                "at = clock_timestamp()"
            ).format(schema),
            [graded.source, grade.grader, graded.content_hash, key, grade.score, grade.passed, grade.feedback, Jsonb(dict(cost or {}))],
        )
        best = connection.execute(
            sql.SQL(
                "select passed from {}.claim_grades where source_id = %s and content_hash = %s and claims = %s order by (grader like 'person:%%') desc, at desc limit 1"
            ).format(schema),
            [graded.source, graded.content_hash, key],
        ).fetchone()
        for claim_id, reason in rejected.items():
            connection.execute(
                sql.SQL(
                    "update {}.claims set status = 'rejected', reason = %s, updated_at = clock_timestamp() where claim_id = %s and status <> 'stale'"
                ).format(schema),
                [reason, claim_id],
            )
        connection.execute(
            sql.SQL(
                "update {}.claims set status = %s, reason = null, updated_at = clock_timestamp() where claim_id = any(%s) and status <> 'stale' and extractor not like 'rules-%%'"
            ).format(schema),
            ["verified" if best and best[0] else "candidate", left],
        )
    return True


def counts(store: Store, collection: Collection) -> tuple[int, int]:
    """(documents that pass, documents that do not), by their newest grade, a person's before a model's."""
    row = store.rows(
        sql.SQL(
            "select count(*) filter (where passed), count(*) filter (where not passed) from (select distinct on (source_id) source_id, passed from {0}.claim_grades g join {0}.files f on f.source = g.source_id "
            "and f.content_hash = g.content_hash and f.status in ('indexed', 'missing') order by source_id, (grader like 'person:%%') desc, at desc) as newest"
        ).format(sql.Identifier(collection.schema))
    )[0]
    return int(row[0]), int(row[1])
