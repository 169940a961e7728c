"""What `lab ui` shows: lists of runs, one question across runs, one passage with its links."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import sql

from lab.errors import unknown
from lab.store.collections import Collection
from lab.store.connect import Store


@dataclass(frozen=True, slots=True)
class Line:
    """A run in a list; `hit` is its mean hit@5, None where it was not computed."""

    run_id: str
    collection: str
    gold: str
    status: str
    questions: int
    passed: Mapping[str, Any]
    hit: float | None


def run_lines(store: Store, *, collection: str = "", gold: str = "", limit: int = 50, offset: int = 0) -> list[Line]:
    """The newest first; of one collection or gold set where these are named."""
    rows = store.rows(
        "select r.run_id, r.collection, r.gold, r.status, r.questions, r.passed, (select avg(s.value) from lab.scores s where s.run_id = r.run_id and s.measure = 'hit@5') "
        "from lab.runs r where (%(c)s = '' or r.collection = %(c)s) and (%(g)s = '' or r.gold = %(g)s) order by r.created_at desc, r.run_id desc limit %(n)s offset %(o)s",
        {"c": collection, "g": gold, "n": limit, "o": offset},
    )
    return [Line(*row) for row in rows]


def names(store: Store) -> tuple[list[str], list[str]]:
    """(collections, gold sets) that have runs."""
    found = store.rows("select distinct collection, gold from lab.runs")
    return sorted({str(c) for c, _ in found}), sorted({str(g) for _, g in found})


def experiments(store: Store, limit: int = 200) -> list[tuple[str, str, str, int, Mapping[str, Sequence[str]], str]]:
    """(experiment, collection, gold set, runs, factors, command), the newest first."""
    rows = store.rows(
        "select e.experiment_id, e.collection, e.gold, (select count(*) from lab.runs r where r.experiment_id = e.experiment_id), e.factors, e.command "
        "from lab.experiments e order by e.created_at desc, 1 desc limit %(n)s",
        {"n": limit},
    )
    return [(str(e), str(c), str(g), int(n), factors, str(command)) for e, c, g, n, factors, command in rows]


def verdicts(store: Store, limit: int = 200) -> list[tuple[dt.datetime, str, str, str, str, list[str]]]:
    """(at, outcome, baseline, a, b, reasons), the newest first."""
    rows = store.rows("select at, outcome, baseline, a, b, verdict from lab.verdicts order by at desc, verdict_id desc limit %(n)s", {"n": limit})
    return [(at, str(outcome), str(name), str(a), str(b), [str(r) for r in verdict.get("reasons", [])]) for at, outcome, name, a, b, verdict in rows]


@dataclass(frozen=True, slots=True)
class Across:
    """One question in one run; `rank` of the first result that answers."""

    run_id: str
    collection: str
    passed: Mapping[str, Any]
    hit: float | None
    rank: int | None
    lost: str | None


def across_runs(store: Store, gold_digest: str, question: str, limit: int = 50) -> list[Across]:
    """The newest runs that scored a question."""
    rows = store.rows(
        "select r.run_id, r.collection, r.passed, (select value from lab.scores s where s.run_id = r.run_id and s.question_id = %(q)s and s.measure = 'hit@5'), "
        "(select min(x.rank) from lab.results x where x.run_id = r.run_id and x.question_id = %(q)s and x.grade > 0), "
        "(select lost from lab.ledger l where l.run_id = r.run_id and l.question_id = %(q)s) "
        "from lab.runs r where r.gold_digest = %(g)s and exists (select from lab.scores s where s.run_id = r.run_id and s.question_id = %(q)s) "
        "order by r.created_at desc, r.run_id desc limit %(n)s",
        {"g": gold_digest, "q": question, "n": limit},
    )
    return [Across(*row) for row in rows]


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk as it is stored, with its exact twins, and its links: (as written, chunk id) of what it cites, what cites it, and (term, its own id) of what it defines."""

    chunk_id: str
    source: str
    n: int
    start: int
    end: int
    context: str
    page: int | None
    text: str
    twins: Sequence[str]
    cites: Sequence[tuple[str, str]]
    cited_by: Sequence[tuple[str, str]]
    defines: Sequence[tuple[str, str]]
    last: int  # the highest n of its document


def passage(store: Store, collection: Collection, chunk_id: str) -> Passage:
    """UsageError for an id that the collection does not hold."""
    schema = sql.Identifier(collection.schema)
    source, _, number = chunk_id.rpartition("::")
    n = int(number) if number.isascii() and number.isdigit() and len(number) < 9 else -1
    rows = store.rows(
        sql.SQL(
            'select key, start, "end", context, page, text, class_id, (select max(n) from {schema}.chunks where source = %(s)s) from {schema}.chunks where source = %(s)s and n = %(n)s'
        ).format(schema=schema),
        {"s": source, "n": n},
    )
    if not rows:
        raise unknown("passage", chunk_id, [], f"{collection.name!r} holds no passage of that id.")
    key, start, end, context, page, text, class_id, last = rows[0]
    twins = store.rows(
        sql.SQL("select source || '::' || n from {}.chunks where class_id = %(c)s and key <> %(k)s order by source, n limit 50").format(schema),
        {"c": class_id, "k": key},
    )
    joined = "select distinct l.label, c.source || '::' || c.n from {schema}.links l join {schema}.chunks c on c.key = l.{other} where l.{this} = %(k)s and l.relation = 'cites' order by 2, 1 limit 200"
    cites, cited_by = (
        [
            (str(label), str(name))
            for label, name in store.rows(sql.SQL(joined).format(schema=schema, this=sql.Identifier(this), other=sql.Identifier(other)), {"k": key})
        ]
        for this, other in (("from_id", "to_id"), ("to_id", "from_id"))
    )
    defines = store.rows(
        sql.SQL("select distinct label, %(id)s from {}.links where to_id = %(k)s and relation = 'defines' order by 1 limit 200").format(schema),
        {"k": key, "id": chunk_id},
    )
    return Passage(
        chunk_id, source, n, int(start), int(end), str(context), page, str(text), [str(name) for (name,) in twins], cites, cited_by,
        [(str(label), str(name)) for label, name in defines], int(last),
    )  # fmt: skip
