"""Recorded runs, their scores, rankings and ledgers, as reports and comparisons read them (`lab.store.recording` enters them)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import sql

from lab.errors import UsageError, unknown
from lab.records import Question
from lab.store.connect import Store


def questions(store: Store, gold_digest: str) -> list[Question]:
    """The questions of a gold set as they were when it was run."""
    rows = store.rows(
        "select question_id, text, kind, split, answerable, metadata from lab.questions where gold_digest = %(d)s order by question_id",
        {"d": gold_digest},
    )
    return [Question(*row) for row in rows]


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run as recorded."""

    run_id: str
    experiment_id: str | None
    collection: str
    gold: str
    gold_digest: str
    split: str
    status: str
    settings: Mapping[str, Any]
    settings_digest: str
    passed: Mapping[str, Any]
    inputs: Mapping[str, Any]
    environment: Mapping[str, Any]
    server: Mapping[str, Any]
    engines: Mapping[str, Any]
    seed: int
    questions: int
    unjudged: Sequence[str]
    notes: Sequence[str]
    timings: Mapping[str, Any]
    stages: Sequence[str]
    created_at: dt.datetime
    finished_at: dt.datetime | None
    health: Mapping[str, Any]


_RUN = (
    "run_id, experiment_id, collection, gold, gold_digest, split, status, settings, settings_digest, passed, inputs, environment, server, engines, seed, "
    "questions, unjudged, notes, timings, stages, created_at, finished_at, health"
)


def runs(store: Store, *, limit: int = 50) -> list[RunRow]:
    """The newest runs first."""
    return [RunRow(*row) for row in store.rows(f"select {_RUN} from lab.runs order by created_at desc, run_id desc limit %(n)s", {"n": limit})]


def get_run(store: Store, run_id: str) -> RunRow:
    rows = store.rows(f"select {_RUN} from lab.runs where run_id = %(id)s", {"id": run_id})
    if not rows:
        raise unknown("run", run_id, [str(r[0]) for r in store.rows("select run_id from lab.runs order by created_at desc limit 200")])
    return RunRow(*rows[0])


def is_run(store: Store, name: str) -> bool:
    return bool(store.rows("select from lab.runs where run_id = %(n)s", {"n": name}))


def is_experiment(store: Store, name: str) -> bool:
    return bool(store.rows("select from lab.experiments where experiment_id = %(n)s", {"n": name}))


def experiment_runs(store: Store, experiment_id: str) -> list[RunRow]:
    """The runs of one experiment in the order in which they were made."""
    rows = store.rows(f"select {_RUN} from lab.runs where experiment_id = %(id)s order by created_at, run_id", {"id": experiment_id})
    if not rows:
        owner = store.rows("select experiment_id from lab.runs where run_id = %(id)s", {"id": experiment_id})
        if owner:
            whole = f"name its experiment {owner[0][0]}" if owner[0][0] else f"`lab report {experiment_id}` reports on it"
            raise UsageError(f"{experiment_id} is a single run: {whole}; `lab runs show {experiment_id}` shows the run.")
        known = [str(r[0]) for r in store.rows("select experiment_id from lab.experiments order by created_at desc limit 200")]
        raise unknown("experiment", experiment_id, known)
    return [RunRow(*row) for row in rows]


def experiment(store: Store, experiment_id: str) -> dict[str, Any]:
    row = store.rows(
        "select collection, gold, gold_digest, factors, command, created_at from lab.experiments where experiment_id = %(id)s", {"id": experiment_id}
    )[0]
    return dict(zip(("collection", "gold", "gold_digest", "factors", "command", "created_at"), row, strict=True))


def scores(store: Store, run_ids: Sequence[str]) -> list[tuple[str, str, str, float]]:
    """(run, question, measure, value), ordered."""
    rows = store.rows(
        "select run_id, question_id, measure, value from lab.scores where run_id = any(%(ids)s) order by run_id, question_id, measure",
        {"ids": list(run_ids)},
    )
    return [(str(a), str(b), str(c), float(d)) for a, b, c, d in rows]


@dataclass(frozen=True, slots=True)
class StoredResult:
    """A result as recorded, with its passage as the run saw it; `class_id` in hex."""

    question_id: str
    rank: int
    chunk_id: str
    source: str
    start: int
    end: int
    class_id: str
    score: float
    similarity: float | None
    grade: int
    by_twin: bool
    linked_by: str | None

    def __iter__(self) -> Iterator[Any]:
        return iter(getattr(self, name) for name in self.__slots__)


_RESULTS = (
    "select r.question_id, r.rank, p.chunk_id, p.source, p.start, p.\"end\", encode(p.class_id, 'hex'), r.score, r.similarity, r.grade, r.by_twin, r.linked_by "
    "from lab.results r join lab.passages p using (passage_id) where r.run_id = %(r)s"
)


def results_of(store: Store, run_id: str, question: str) -> list[StoredResult]:
    """The results of one question, by rank."""
    return [StoredResult(*row) for row in store.rows(_RESULTS + " and r.question_id = %(q)s order by 1, 2", {"r": run_id, "q": question})]


def results(store: Store, run_id: str) -> list[StoredResult]:
    """Every result of a run, by question and rank."""
    return [StoredResult(*row) for row in store.rows(_RESULTS + " order by 1, 2", {"r": run_id})]


def listed(store: Store, run_id: str) -> dict[str, tuple[str, ...]]:
    """Question → chunk ids, best first."""
    found: dict[str, list[str]] = {}
    for result in results(store, run_id):
        found.setdefault(result.question_id, []).append(f"{result.chunk_id}[{result.start},{result.end})")
    return {question: tuple(names) for question, names in found.items()}


def first_relevant(store: Store, run_ids: Sequence[str]) -> dict[str, dict[str, int | None]]:
    """Run → question → rank of the first result that answers; None where none of the results does."""
    rows = store.rows(
        "select l.run_id, l.question_id, (select min(r.rank) from lab.results r where r.run_id = l.run_id and r.question_id = l.question_id and r.grade > 0) "
        "from (select distinct run_id, question_id from lab.scores where run_id = any(%(ids)s)) l order by 1, 2",
        {"ids": list(run_ids)},
    )
    found: dict[str, dict[str, int | None]] = {run_id: {} for run_id in run_ids}
    for run, question, rank in rows:
        found[str(run)][str(question)] = None if rank is None else int(rank)
    return found


def answering_ranks(store: Store, run_id: str, questions: Sequence[str]) -> dict[str, dict[str, dict[str, int | None]]]:
    """Question → chunk that answers it → arm or stage → its rank there (None: not in that list); from the ledger, so only of chunks that some arm brought. Of an imported run, which
    came without its ledger, the rank among the results (`returned`)."""
    rows = store.rows(
        "select question_id, chunk_id, stage, rank from lab.ledger_rows where run_id = %(r)s and question_id = any(%(q)s) and grade > 0 order by question_id, chunk_id, position",
        {"r": run_id, "q": list(questions)},
    )
    found: dict[str, dict[str, dict[str, int | None]]] = {}
    for question, chunk, stage, rank in rows:
        found.setdefault(str(question), {}).setdefault(str(chunk), {})[str(stage)] = None if rank is None else int(rank)
    if not found and not has_ledger(store, run_id):
        listed = store.rows(
            "select r.question_id, p.chunk_id, r.rank from lab.results r join lab.passages p using (passage_id) where r.run_id = %(r)s and r.question_id = any(%(q)s) and r.grade > 0 order by 1, 3",
            {"r": run_id, "q": list(questions)},
        )
        for question, chunk, rank in listed:
            found.setdefault(str(question), {}).setdefault(str(chunk), {})["returned"] = int(rank)
    return found


def has_ledger(store: Store, run_id: str) -> bool:
    """Whether the ledger of a run is here: an imported run comes without."""
    return bool(store.rows("select from lab.ledger where run_id = %(r)s and cardinality(passages) > 0 limit 1", {"r": run_id}))


def chunk_names(store: Store, collection: Any, keys: Sequence[int]) -> dict[int, str]:
    """Key → chunk id of some chunks of a collection."""
    rows = store.rows(
        sql.SQL("select key, source || '::' || n from {}.chunks where key = any(%(keys)s)").format(sql.Identifier(collection.schema)),
        {"keys": list(keys)},
    )
    return {int(key): str(name) for key, name in rows}


def losses(store: Store, run_ids: Sequence[str]) -> dict[str, dict[str, str]]:
    """Run → question → the stage that lost what answers it; questions that lost nothing are left out."""
    found: dict[str, dict[str, str]] = {run_id: {} for run_id in run_ids}
    rows = store.rows(
        "select run_id, question_id, lost from lab.ledger where run_id = any(%(ids)s) and lost is not null order by 1, 2", {"ids": list(run_ids)}
    )
    for run_id, question, stage in rows:
        found[str(run_id)][str(question)] = str(stage)
    return found


def links(store: Store, run_id: str, questions: Sequence[str]) -> tuple[int, int]:
    """(passages that links brought into the results of some questions of a run, how many of them newly cover a judgment)."""
    row = store.rows(
        "select count(*), count(*) filter (where grade > 0) from lab.results where run_id = %(r)s and linked_by is not null and question_id = any(%(q)s)",
        {"r": run_id, "q": list(questions)},
    )[0]
    return int(row[0]), int(row[1])


def lost_at(store: Store, run_id: str) -> list[tuple[str, str, int]]:
    """(question, stage, best rank before it) of one run, by question."""
    rows = store.rows("select question_id, lost, lost_rank from lab.ledger where run_id = %(r)s and lost is not null order by 1", {"r": run_id})
    return [(str(question), str(stage), int(rank or 0)) for question, stage, rank in rows]


def returned(store: Store, run_ids: Sequence[str], depth: int) -> list[tuple[str, str, str, int, int, bytes]]:
    """(run, question, source, start, end, exact class) of the first `depth` results, in a total order."""
    rows = store.rows(
        'select r.run_id, r.question_id, p.source, p.start, p."end", p.class_id from lab.results r join lab.passages p using (passage_id) '
        "where r.run_id = any(%(ids)s) and r.rank <= %(depth)s order by r.question_id, r.run_id, r.rank",
        {"ids": list(run_ids), "depth": depth},
    )
    return [(str(run), str(question), str(source), int(start), int(end), bytes(cls)) for run, question, source, start, end, cls in rows]


def rankings(store: Store, run_ids: Sequence[str]) -> dict[str, dict[str, list[int]]]:
    """Run → question → passage ids, best first."""
    rows = store.rows(
        "select run_id, question_id, array_agg(passage_id order by rank) from lab.results where run_id = any(%(ids)s) group by 1, 2 order by 1, 2",
        {"ids": list(run_ids)},
    )
    found: dict[str, dict[str, list[int]]] = {}
    for run_id, question_id, passages in rows:
        found.setdefault(str(run_id), {})[str(question_id)] = [int(p) for p in passages]
    return found
