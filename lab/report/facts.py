"""What a reader needs to repeat an experiment: command, commit, versions, digests."""

from __future__ import annotations

import datetime as dt

from lab.errors import redact
from lab.evaluation.experiment import Experiment
from lab.store import runs
from lab.store.connect import Store


def facts(store: Store, experiment: Experiment) -> list[tuple[str, str]]:
    """(name, value), from the rows of its first and last run."""
    row = runs.get_run(store, experiment.runs[0].run_id)
    last = runs.get_run(store, experiment.runs[-1].run_id)
    grid = list(experiment.factors) != ["run"] and row.experiment_id == experiment.experiment_id
    command = (redact(runs.experiment(store, experiment.experiment_id)["command"]) or "through the Python API") if grid else ""
    environment, inputs = row.environment, row.inputs
    commit = (
        f"{environment['commit']}{' with uncommitted changes' if environment['dirty'] else ''}"
        if environment["commit"]
        else "none (installed package)"
    )
    told = [
        ("experiment", experiment.experiment_id if grid else ""),
        ("command", command),
        ("lab", f"{environment['lab']}, commit {commit}"),
        ("Python", environment["python"]),
        ("PostgreSQL", f"{environment['postgres']}, " + ", ".join(f"{k} {v}" for k, v in environment["extensions"].items() if k != "plpgsql")),
        ("gold", f"{experiment.gold}, digest {experiment.gold_digest}, split {row.split}"),
        (
            "collection",
            f"{experiment.collection}, {inputs['chunks']} chunks, corpus digest {inputs['corpus_digest']}, link digest {inputs['link_digest']}",
        ),
        ("ingest", ", ".join(f"{k} {v}" for k, v in inputs["ingest"].items())),
        ("embedder", f"{inputs['embedder']}, {inputs['model_digest']}"),
        ("engines", ", ".join(f"{arm} {'/'.join(sorted(used['engines']))}" for arm, used in sorted(last.engines.items()))),
        ("seed", str(row.seed)),
        ("finished", f"{(row.finished_at or row.created_at).astimezone(dt.UTC):%Y-%m-%d %H:%M} UTC"),
        ("runs", ", ".join(r.run_id for r in experiment.runs)),
    ]
    return [(name, value) for name, value in told if value]
