"""What settings cost, as timed passes measured it. Entered once, never changed."""

from __future__ import annotations

from collections.abc import Sequence

from lab.store.connect import Store


def enter(store: Store, run_id: str, questions: int, p50_ms: float, p95_ms: float) -> None:
    with store.connection() as connection:
        connection.execute("insert into lab.latency (run_id, questions, p50_ms, p95_ms) values (%s, %s, %s, %s)", [run_id, questions, p50_ms, p95_ms])


def last(store: Store, run_ids: Sequence[str]) -> dict[str, tuple[float, float, int]]:
    """Run → (p50, p95 in milliseconds, questions) of its newest timed pass."""
    rows = store.rows(
        "select distinct on (run_id) run_id, p50_ms, p95_ms, questions from lab.latency where run_id = any(%(ids)s) order by run_id, latency_id desc",
        {"ids": list(run_ids)},
    )
    return {str(run): (float(p50), float(p95), int(questions)) for run, p50, p95, questions in rows}
