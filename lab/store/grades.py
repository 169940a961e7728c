"""Grades of documents' claims, and the status of claims that follows from them."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from psycopg import sql
from psycopg.types.json import Jsonb

from lab.store.claims import Claim
from lab.store.collections import Collection
from lab.store.connect import Connection, Store


@dataclass(frozen=True, slots=True)
class Waiting:
    """A document with claims of a chat model that hold in its present state. `key` is of the ids of those claims: a grade counts for them alone."""

    source: str
    title: str
    content_hash: bytes
    claims: Sequence[Claim]
    key: str

    def without(self, rejected: Iterable[str]) -> Waiting:
        """The same without some claims."""
        gone = set(rejected)
        left = [c for c in self.claims if c.claim_id not in gone]
        return Waiting(self.source, self.title, self.content_hash, left, key_of([c.claim_id for c in left]))

    def follows(self, passed: bool) -> bool:
        """Whether the claims have the status that follows from a grade."""
        return all(c.status == ("verified" if passed else "candidate") for c in self.claims)


@dataclass(frozen=True, slots=True)
class Grade:
    """What a grader thinks of them: `score` from 0 to 1, whether they pass, and why. `grader`: person:NAME or chat:MODEL."""

    source: str
    grader: str
    score: float
    passed: bool
    feedback: str = ""


@dataclass(frozen=True, slots=True)
class Kept:
    """A grade as stored: of which state of the document and of which claims, and when it was given."""

    grade: Grade
    content_hash: bytes
    key: str
    at: dt.datetime
    cost: Mapping[str, Any]

    def holds(self, one: Waiting) -> bool:
        """Whether it is of these claims in this state."""
        return (self.grade.source, self.content_hash, self.key) == (one.source, one.content_hash, one.key)


def waiting(store: Store, collection: Collection, *, people: bool = False) -> list[Waiting]:
    """The documents with claims of a chat model that stand in a passage, by source: candidates and those that a grade made verified. With those that a person rejected, for `people`, who may
    think otherwise; what a machine rejected is out."""
    schema = sql.Identifier(collection.schema)
    rows = store.rows(
        sql.SQL(
            'select f.title, f.content_hash, c.claim_id, c.statement, c.subject, c.kind, c.confidence, c.status, f.authority, c.source_id, c.n, c.start, c."end", c.quote, c.extractor, c.chunk_key, c.reason, c.updated_at '
            "from {0}.claims c join {0}.files f on f.source = c.source_id where c.extractor not like 'rules-%%' and c.chunk_key is not null and f.content_hash is not null "
            "and (c.status in ('candidate', 'verified') or (%(people)s and c.status = 'rejected' and c.reason like 'rejected by %%')) "
            'order by c.source_id, c.start, c."end", c.claim_id'
        ).format(schema),
        {"people": people},
    )
    by_source: dict[str, list[Any]] = {}
    for row in rows:
        by_source.setdefault(str(row[9]), []).append(row)
    found = []
    for source, group in by_source.items():
        claims = [replace(Claim(*row[2:16]), reason=row[16], touched=row[17]) for row in group]
        found.append(Waiting(source, str(group[0][0]), bytes(group[0][1]), claims, key_of([c.claim_id for c in claims])))
    return found


def kept(store: Store, collection: Collection) -> dict[str, list[Kept]]:
    """The grades by source, of each the one that counts most first: a person's before a model's, then the newest."""
    rows = store.rows(
        sql.SQL(
            "select source_id, grader, score, passed, feedback, content_hash, claims, at, cost from {}.claim_grades order by grader like 'person:%%' desc, at desc, grader desc"
        ).format(sql.Identifier(collection.schema))
    )
    found: dict[str, list[Kept]] = {}
    for row in rows:
        found.setdefault(str(row[0]), []).append(Kept(_grade(row), bytes(row[5]), str(row[6]), row[7], row[8]))
    return found


def _grade(row: Sequence[Any]) -> Grade:
    return Grade(str(row[0]), str(row[1]), round(float(row[2]), 6), bool(row[3]), str(row[4]))  # the score is stored in four bytes


def key_of(claim_ids: Sequence[str]) -> str:
    """What names a set of claims."""
    return hashlib.md5(" ".join(sorted(claim_ids)).encode(), usedforsecurity=False).hexdigest()


def reason_of(who: str) -> str:
    """Why a claim is rejected that a person rejected."""
    return f"rejected by {who}"


def enter(
    store: Store, collection: Collection, graded: Waiting, grade: Grade, *, cost: Mapping[str, Any] | None = None, at: dt.datetime | None = None
) -> Grade | None:
    """Keeps a grade, given `at` (None: now), and gives the claims the status that follows, in one transaction: verified where the document passes, else candidates. Returns the grade that
    counts: a person's of the same claims outweighs a model's, a newer one an older. None where the document has changed meanwhile: nothing is kept."""
    schema = sql.Identifier(collection.schema)
    with store.connection() as connection:
        if not _unchanged(connection, schema, graded):
            return None
        _keep(connection, schema, graded, grade, at, cost)
        return _settle(connection, schema, graded)


@dataclass(frozen=True, slots=True)
class Review:
    """What people decided about a document: `made`: their grades, each with the time of its last decision; `withdrawn`: graders whose grade goes; `rejected`: claim → reason; `restored`: claims
    that nobody rejects any more."""

    made: Sequence[tuple[Grade, dt.datetime]]
    withdrawn: Sequence[str]
    rejected: Mapping[str, str]
    restored: Sequence[str]


def review(store: Store, collection: Collection, one: Waiting, said: Review) -> Grade | None:
    """Enters what people decided, in one transaction, and returns the grade that counts for the claims that are left; None where there is none, or where the document has changed meanwhile
    (then nothing is kept). Without a grade, claims keep their status, but for restored ones and those whose grade was withdrawn, which become candidates."""
    schema = sql.Identifier(collection.schema)
    left = one.without(said.rejected)
    with store.connection() as connection:
        if not _unchanged(connection, schema, one):
            return None
        connection.execute(
            sql.SQL("delete from {}.claim_grades where source_id = %s and grader = any(%s)").format(schema), [one.source, list(said.withdrawn)]
        )
        for grade, at in said.made:
            _keep(connection, schema, left, grade, at, None)
        for claim_id, reason in said.rejected.items():
            connection.execute(
                sql.SQL(
                    "update {}.claims set status = 'rejected', reason = %s, updated_at = clock_timestamp() where claim_id = %s and status <> 'stale' and (status, reason) is distinct from ('rejected', %s)"
                ).format(schema),
                [reason, claim_id, reason],
            )
        best = _settle(connection, schema, left)
        if best is None:
            again = [c.claim_id for c in left.claims] if said.withdrawn else list(said.restored)
            _give(connection, schema, again, "candidate")
        return best


def _unchanged(connection: Connection, schema: sql.Identifier, one: Waiting) -> bool:
    row = connection.execute(sql.SQL("select content_hash from {}.files where source = %s for share").format(schema), [one.source]).fetchone()
    return row is not None and row[0] is not None and bytes(row[0]) == one.content_hash


def _keep(
    connection: Connection, schema: sql.Identifier, left: Waiting, grade: Grade, at: dt.datetime | None, cost: Mapping[str, Any] | None
) -> None:
    connection.execute(
        sql.SQL(
            "insert into {}.claim_grades (source_id, grader, content_hash, claims, score, passed, feedback, cost, at) values (%s, %s, %s, %s, %s, %s, %s, %s, coalesce(%s, clock_timestamp())) "
            "on conflict (source_id, grader) do update set content_hash = excluded.content_hash, claims = excluded.claims, score = excluded.score, passed = excluded.passed, "
            "feedback = excluded.feedback, cost = excluded.cost, at = excluded.at"
        ).format(schema),
        [left.source, grade.grader, left.content_hash, left.key, grade.score, grade.passed, grade.feedback, Jsonb(dict(cost or {})), at],
    )


def _settle(connection: Connection, schema: sql.Identifier, left: Waiting) -> Grade | None:
    """Gives the claims the status that follows from the grade that counts; None where there is none."""
    row = connection.execute(
        sql.SQL(
            "select source_id, grader, score, passed, feedback from {}.claim_grades where source_id = %s and content_hash = %s and claims = %s "
            "order by grader like 'person:%%' desc, at desc, grader desc limit 1"
        ).format(schema),
        [left.source, left.content_hash, left.key],
    ).fetchone()
    if row is None:
        return None
    best = _grade(row)
    _give(connection, schema, [c.claim_id for c in left.claims], "verified" if best.passed else "candidate")
    return best


def _give(connection: Connection, schema: sql.Identifier, claims: Sequence[str], status: str) -> None:
    connection.execute(
        sql.SQL(
            "update {}.claims set status = %s, reason = null, updated_at = clock_timestamp() where claim_id = any(%s) and status not in ('stale', %s) and extractor not like 'rules-%%'"
        ).format(schema),
        [status, list(claims), status],
    )


def counts(store: Store, collection: Collection) -> tuple[int, int]:
    """(documents that pass, documents that do not), by the grade that counts for the claims as they are; one whose claims wait for a grade is neither."""
    grades = kept(store, collection)
    passed = failed = 0
    for one in waiting(store, collection, people=True):
        left = one.without(c.claim_id for c in one.claims if c.status == "rejected")
        best = next((k.grade for k in grades.get(one.source, ()) if k.holds(left)), None)
        if best is not None and left.follows(best.passed):
            good = best.passed and bool(left.claims)
            passed, failed = passed + good, failed + (not good)
    return passed, failed
