"""Baselines by name and the verdicts of gates: entered once, never changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psycopg.types.json import Jsonb

from lab.errors import unknown
from lab.store.connect import Store


def promote(store: Store, name: str, run_id: str, note: str, who: str) -> None:
    """Makes a run the baseline of that name; earlier ones stay on record."""
    with store.connection() as connection:
        connection.execute("insert into lab.baselines (name, run_id, note, who) values (%s, %s, %s, %s)", [name, run_id, note, who])


def current(store: Store, name: str) -> str:
    """The run that was last promoted under a name; UsageError for an unknown one."""
    rows = store.rows("select run_id from lab.baselines where name = %(n)s order by baseline_id desc limit 1", {"n": name})
    if not rows:
        known = [str(n) for (n,) in store.rows("select distinct name from lab.baselines order by 1")]
        raise unknown("baseline", name, known, mend="make one by `lab runs promote RUN --as NAME`.")
    return str(rows[0][0])


def history(store: Store) -> list[tuple[str, str, str, str, str]]:
    """(name, run, note, who, when) of every promotion, the newest first."""
    rows = store.rows("select name, run_id, note, who, at from lab.baselines order by baseline_id desc")
    return [(str(name), str(run), str(note), str(who), at.isoformat(timespec="seconds")) for name, run, note, who, at in rows]


def enter_verdict(store: Store, verdict_id: str, baseline: str, a: str, b: str, outcome: str, verdict: Mapping[str, Any]) -> None:
    with store.connection() as connection:
        connection.execute(
            "insert into lab.verdicts (verdict_id, baseline, a, b, outcome, verdict) values (%s, %s, %s, %s, %s, %s)",
            [verdict_id, baseline, a, b, outcome, Jsonb(dict(verdict))],
        )


def latest_run(store: Store, collection: str, gold: str) -> str | None:
    """The run on a collection with a gold set that ended last, of those that were made here (imported ones have no ledger)."""
    rows = store.rows(
        "select run_id from lab.runs r where collection = %(c)s and gold = %(g)s and status <> 'incomplete' "
        "and exists (select from lab.ledger l where l.run_id = r.run_id and cardinality(l.passages) > 0) order by finished_at desc, created_at desc, run_id desc limit 1",
        {"c": collection, "g": gold},
    )
    return str(rows[0][0]) if rows else None
