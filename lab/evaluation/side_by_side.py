"""Recorded runs side by side, as an experiment whose one factor is the run: the first is what the others are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lab.errors import CannotJudge, UsageError
from lab.evaluation.compare import differing_flags, not_comparable
from lab.evaluation.effects import effects
from lab.evaluation.experiment import Experiment, inert
from lab.evaluation.recorded import of_rows
from lab.gold.check import circular
from lab.store import runs
from lab.store.connect import Store
from lab.text import digest

FACTOR = "run"
_NAMED = 3  # flags that a name can hold


def of_runs(store: Store, run_ids: Sequence[str]) -> Experiment:
    """The runs as an experiment. UsageError for an unknown run or one named twice, CannotJudge where they cannot be paired."""
    if len(set(run_ids)) < len(run_ids):
        raise UsageError("a run is named twice: name each once, the one that the others are compared with first.")
    rows = [runs.get_run(store, run_id) for run_id in run_ids]
    for row in rows:
        if reasons := not_comparable(rows[0], row):
            raise CannotJudge("the runs cannot be put side by side: " + "; ".join(reasons) + ".")
    done = of_rows(store, rows)
    if any(set(run.by_question) != set(done[0].by_question) for run in done):
        raise CannotJudge("the runs were not scored on the same questions: run them again on one gold set.")
    names = _names(rows)
    done = [replace(run, passed={FACTOR: name}) for run, name in zip(done, names, strict=True)]
    factors = {FACTOR: names} if len(done) > 1 else {}
    still = [FACTOR] if len(done) > 1 and inert(store, factors, done) else []
    varied = {flag for row in rows[1:] for flag in differing_flags(rows[0], row)}
    notes = [f"{row.run_id} is {row.status}" for row in rows if row.status != "ok"]
    collections = list(dict.fromkeys(row.collection for row in rows))
    name = rows[0].run_id if len(rows) == 1 else f"{len(rows)}-runs-{digest(list(run_ids))[:8]}"
    seconds = sum(float(row.timings.get("seconds", 0.0)) for row in rows)
    return Experiment(
        name, ", ".join(collections), rows[0].gold, rows[0].gold_digest, factors, done, effects(factors, done, still), still, seconds,
        [*circular(rows[0].gold, runs.questions(store, rows[0].gold_digest), sorted(varied)), *notes],
    )  # fmt: skip


def _names(rows: Sequence[runs.RunRow]) -> list[str]:
    """What each run differs in from the first; its id where that says too much, or nothing, or the same twice."""
    names = [rows[0].run_id]
    for row in rows[1:]:
        flags = differing_flags(rows[0], row)
        told = ", ".join(f"{flag} {value}" for flag, (_, value) in flags.items())
        names.append(told if 0 < len(flags) <= _NAMED and told not in names else row.run_id)
    return names
