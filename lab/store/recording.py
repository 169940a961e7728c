"""Entering experiments, questions, runs and what they found: written once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg.types.json import Jsonb

from lab.records import Question
from lab.store.connect import Store
from lab.store.runs import RunRow, StoredResult


@dataclass(frozen=True, slots=True)
class NewRun:
    """What is known of a run before it starts."""

    run_id: str
    experiment_id: str | None
    collection: str
    gold: str
    gold_digest: str
    split: str
    settings: Mapping[str, Any]
    settings_digest: str
    passed: Mapping[str, Any]
    inputs: Mapping[str, Any]
    environment: Mapping[str, Any]
    seed: int
    unjudged: Sequence[str]


@dataclass(frozen=True, slots=True)
class ResultRow:
    question_id: str
    rank: int
    passage: int  # index into the passages of the same call
    score: float
    similarity: float | None
    grade: int
    by_twin: bool
    linked_by: str | None


@dataclass(frozen=True, slots=True)
class LedgerRow:
    question_id: str
    passages: Sequence[int]
    ranks: Sequence[int]
    seconds: Mapping[str, float]
    notes: Sequence[str]
    grades: Sequence[int] = ()
    lost: str | None = None
    lost_rank: int | None = None


Passage = tuple[str, str, int, int, bytes]  # chunk_id, source, start, end, class


def begin_experiment(
    store: Store, experiment_id: str, collection: str, gold: str, gold_digest: str, factors: Mapping[str, Any], command: str
) -> None:
    with store.connection() as connection:
        connection.execute(
            "insert into lab.experiments (experiment_id, collection, gold, gold_digest, factors, command) values (%s, %s, %s, %s, %s, %s)",
            [experiment_id, collection, gold, gold_digest, Jsonb(dict(factors)), command],
        )


def record_questions(store: Store, gold_digest: str, questions: Sequence[Question]) -> None:
    """Enters the questions of a gold set once."""
    with store.connection() as connection, connection.cursor() as cursor:
        cursor.execute("create temporary table asked (like lab.questions) on commit drop")
        with cursor.copy("copy asked from stdin") as copy:
            for q in questions:
                copy.write_row((gold_digest, q.question_id, q.text, q.kind, q.split, q.answerable, Jsonb(dict(q.metadata))))
        cursor.execute(
            "insert into lab.questions select * from asked order by question_id on conflict (gold_digest, question_id) "
            "do update set metadata = questions.metadata || excluded.metadata where not questions.metadata ? 'cluster'"
        )


def finish_experiment(store: Store, experiment_id: str) -> None:
    with store.connection() as connection:
        connection.execute("update lab.experiments set finished_at = now() where experiment_id = %s", [experiment_id])


def begin_run(store: Store, run: NewRun) -> None:
    """Enters the run as `incomplete`: what a killed process leaves is seen as what it is."""
    with store.connection() as connection:
        connection.execute(
            "insert into lab.runs (run_id, experiment_id, collection, gold, gold_digest, split, status, settings, settings_digest, passed, inputs, "
            "environment, seed, questions, unjudged) values (%s, %s, %s, %s, %s, %s, 'incomplete', %s, %s, %s, %s, %s, %s, 0, %s)",
            [
                run.run_id, run.experiment_id, run.collection, run.gold, run.gold_digest, run.split, Jsonb(dict(run.settings)), run.settings_digest,
                Jsonb(dict(run.passed)), Jsonb(dict(run.inputs)), Jsonb(dict(run.environment)), run.seed, Jsonb(list(run.unjudged)),
            ],
        )  # fmt: skip


def intern_passages(store: Store, collection: str, passages: Sequence[Passage]) -> list[int]:
    """The ids of the passages, in the order given; unknown ones are entered."""
    if not passages:
        return []
    with store.connection() as connection, connection.cursor() as cursor:
        cursor.execute('create temporary table seen (chunk_id text, source text, start int, "end" int, class_id bytea, position int) on commit drop')
        with cursor.copy("copy seen from stdin") as copy:
            for position, passage in enumerate(passages):
                copy.write_row((*passage, position))
        cursor.execute(
            'insert into lab.passages (collection, chunk_id, source, start, "end", class_id) '
            'select distinct %s, chunk_id, source, start, "end", class_id from seen order by 2, 3, 4, 5, 6 on conflict do nothing',
            [collection],
        )
        cursor.execute(
            "select p.passage_id from seen s join lab.passages p on p.collection = %s and p.chunk_id = s.chunk_id and p.start = s.start "
            'and p."end" = s."end" and p.class_id = s.class_id order by s.position',
            [collection],
        )
        return [int(row[0]) for row in cursor.fetchall()]


def finish_run(
    store: Store,
    run_id: str,
    *,
    status: str,
    questions: int,
    scores: Iterable[tuple[str, str, float]],
    results: Iterable[ResultRow],
    ledger: Iterable[LedgerRow],
    passages: Sequence[int],
    stages: Sequence[str],
    server: Mapping[str, Any],
    engines: Mapping[str, Any],
    notes: Sequence[str],
    timings: Mapping[str, Any],
    health: Mapping[str, Any],
) -> None:
    """Writes everything a run found and closes it, in one transaction."""
    with store.connection() as connection, connection.cursor() as cursor:
        with cursor.copy("copy lab.scores (run_id, question_id, measure, value) from stdin") as copy:
            for question_id, measure, value in scores:
                copy.write_row((run_id, question_id, measure, value))
        with cursor.copy("copy lab.results (run_id, question_id, rank, passage_id, score, similarity, grade, by_twin, linked_by) from stdin") as copy:
            for r in results:
                copy.write_row((run_id, r.question_id, r.rank, passages[r.passage], r.score, r.similarity, r.grade, r.by_twin, r.linked_by))
        with cursor.copy("copy lab.ledger (run_id, question_id, passages, ranks, seconds, notes, grades, lost, lost_rank) from stdin") as copy:
            for row in ledger:
                # array literals written here: the driver's own dumper takes ten times as long for lists of this length
                ids = "{" + ",".join([str(passages[i]) for i in row.passages]) + "}"
                ranks = "{" + ",".join(map(str, row.ranks)) + "}"
                copy.write_row(
                    (
                        run_id,
                        row.question_id,
                        ids,
                        ranks,
                        Jsonb(dict(row.seconds)),
                        list(row.notes),
                        "{" + ",".join(map(str, row.grades)) + "}",
                        row.lost,
                        row.lost_rank,
                    )
                )
        cursor.execute(
            "update lab.runs set status = %s, questions = %s, stages = %s, server = %s, engines = %s, notes = %s, timings = %s, health = %s, finished_at = now() "
            "where run_id = %s and finished_at is null",
            [
                status,
                questions,
                list(stages),
                Jsonb(dict(server)),
                Jsonb(dict(engines)),
                Jsonb(list(notes)),
                Jsonb(dict(timings)),
                Jsonb(dict(health)),
                run_id,
            ],
        )


def enter_run(
    store: Store, row: RunRow, scores: Sequence[tuple[str, str, float]], results: Sequence[StoredResult], lost: Sequence[tuple[str, str, int]]
) -> None:
    """Enters a run that was made elsewhere, as it was; without its experiment and its ledger, of which only the losses are known."""
    listed = [(r.chunk_id, r.source, r.start, r.end, bytes.fromhex(r.class_id)) for r in results]
    ids = intern_passages(store, row.collection, listed)
    with store.connection() as connection, connection.cursor() as cursor:
        cursor.execute(
            "insert into lab.runs (run_id, collection, gold, gold_digest, split, status, settings, settings_digest, passed, inputs, environment, server, engines, seed, questions, "
            "unjudged, notes, timings, stages, created_at, finished_at, health) "
            "values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            [
                row.run_id, row.collection, row.gold, row.gold_digest, row.split, row.status, Jsonb(row.settings), row.settings_digest, Jsonb(row.passed), Jsonb(row.inputs),
                Jsonb(row.environment), Jsonb(row.server), Jsonb(row.engines), row.seed, row.questions, Jsonb(row.unjudged), Jsonb(row.notes), Jsonb(row.timings), list(row.stages),
                row.created_at, row.finished_at, Jsonb(row.health),
            ],
        )  # fmt: skip
        with cursor.copy("copy lab.scores (run_id, question_id, measure, value) from stdin") as copy:
            for question_id, measure, value in scores:
                copy.write_row((row.run_id, question_id, measure, value))
        with cursor.copy("copy lab.results (run_id, question_id, rank, passage_id, score, similarity, grade, by_twin, linked_by) from stdin") as copy:
            for r, passage in zip(results, ids, strict=True):
                copy.write_row((row.run_id, r.question_id, r.rank, passage, r.score, r.similarity, r.grade, r.by_twin, r.linked_by))
        with cursor.copy("copy lab.ledger (run_id, question_id, passages, ranks, seconds, lost, lost_rank) from stdin") as copy:
            for question_id, stage, rank in lost:
                copy.write_row((row.run_id, question_id, [], [], Jsonb({}), stage, rank))
