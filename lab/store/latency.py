"""What settings cost, as timed passes measured it. Entered once, never changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lab.store.connect import Store


def enter(store: Store, name: str, figures: Mapping[str, tuple[float, float, int]]) -> None:
    """One pass: run → (p50, p95 in milliseconds, questions)."""
    with store.connection() as connection, connection.cursor() as cursor:
        cursor.executemany(
            "insert into lab.latency (run_id, pass, questions, p50_ms, p95_ms) values (%s, %s, %s, %s, %s)",
            [(run, name, questions, p50, p95) for run, (p50, p95, questions) in figures.items()],
        )


def together(store: Store, run_ids: Sequence[str]) -> dict[str, tuple[float, float, int]]:
    """Run → (p50, p95 in milliseconds, questions) of the newest pass in which all these runs took turns; nothing where there is none."""
    rows = store.rows(
        "with whole as (select pass from lab.latency where run_id = any(%(ids)s) group by pass having count(distinct run_id) = %(n)s order by max(latency_id) desc limit 1) "
        "select run_id, p50_ms, p95_ms, questions from lab.latency where run_id = any(%(ids)s) and pass in (select pass from whole) order by run_id",
        {"ids": list(run_ids), "n": len(set(run_ids))},
    )
    return {str(run): (float(p50), float(p95), int(questions)) for run, p50, p95, questions in rows}
