"""What a reader needs to repeat an experiment: command, commit, versions, digests."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence

from lab.errors import redact
from lab.evaluation.experiment import Experiment
from lab.store import runs
from lab.store.connect import Store


def facts(store: Store, experiment: Experiment) -> list[tuple[str, str]]:
    """(name, value), from the rows of its runs."""
    rows = [runs.get_run(store, run.run_id) for run in experiment.runs]
    first = rows[0]
    grid = list(experiment.factors) != ["run"] and first.experiment_id == experiment.experiment_id
    command = (redact(runs.experiment(store, experiment.experiment_id)["command"]) or "through the Python API") if grid else ""
    ended = max(row.finished_at or row.created_at for row in rows)
    told = [
        ("experiment", experiment.experiment_id if grid else ""),
        ("command", command),
        ("lab", _distinct(rows, lambda row: f"{row.environment['lab']}, commit {_commit(row)}")),
        ("Python", _distinct(rows, lambda row: row.environment["python"])),
        ("PostgreSQL", _distinct(rows, lambda row: f"{row.environment['postgres']}, " + ", ".join(f"{k} {v}" for k, v in row.environment["extensions"].items() if k != "plpgsql"))),
        ("gold", f"{experiment.gold}, digest {experiment.gold_digest}, split {first.split}"),
        ("collection", _distinct(rows, lambda row: f"{row.collection}, {row.inputs['chunks']} chunks, corpus digest {row.inputs['corpus_digest']}, link digest {row.inputs['link_digest']}")),
        ("ingest", _distinct(rows, lambda row: ", ".join(f"{k} {v}" for k, v in row.inputs["ingest"].items()))),
        ("embedder", _distinct(rows, lambda row: f"{row.inputs['embedder']}, {row.inputs['model_digest']}")),
        ("engines", _distinct(rows, lambda row: ", ".join(f"{arm} {'/'.join(sorted(used['engines']))}" for arm, used in sorted(row.engines.items())))),
        ("seed", _distinct(rows, lambda row: str(row.seed))),
        ("finished", f"{ended.astimezone(dt.UTC):%Y-%m-%d %H:%M} UTC"),
        ("runs", ", ".join(row.run_id for row in rows)),
    ]  # fmt: skip
    return [(name, value) for name, value in told if value]


def _commit(row: runs.RunRow) -> str:
    if not row.environment["commit"]:
        return "none (installed package)"
    return f"{row.environment['commit']}{' with uncommitted changes' if row.environment['dirty'] else ''}"


def _distinct(rows: Sequence[runs.RunRow], value: Callable[[runs.RunRow], str]) -> str:
    """What holds for all runs; where it differs, each value with the number of runs that it holds for."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[value(row)] = counts.get(value(row), 0) + 1
    if len(counts) == 1:
        return next(iter(counts))
    return "; ".join(f"{said} ({count} run{'s' if count > 1 else ''})" for said, count in counts.items() if said)
