"""Verbs of the Python API that are more than one function, or that take names where the function behind them takes a store. Each opens the store by itself, or takes one as `store=`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lab.corpus.ingest import ingest
from lab.evaluation import experiment as experiments
from lab.evaluation import flips, lost, planning, repeat
from lab.evaluation.compare import PRIMARY
from lab.evaluation.recorded import Run, load
from lab.evaluation.statistics.paired import ALPHA
from lab.gold.documents import write_documents
from lab.gold.files import load_gold
from lab.records import GoldSet
from lab.report.demo import COLLECTION, ROOT
from lab.resources import folder
from lab.store.connect import Store, connect


def handbook(*, store: Store | None = None) -> tuple[str, GoldSet]:
    """The built-in collection and its gold set: (name, gold). Ingested where it is not there yet, which takes half a minute the first time."""
    if store is None:
        with connect() as opened:
            return handbook(store=opened)
    documents, _ = write_documents(str(folder("gold") / COLLECTION))
    ingest(documents, COLLECTION, store=store, root=ROOT)
    return COLLECTION, load_gold(folder("gold") / COLLECTION)


def load_runs(*run_ids: str, store: Store | None = None) -> list[Run]:
    """Recorded runs, in the order named. UsageError for an unknown one."""
    if store is None:
        with connect() as opened:
            return load(opened, run_ids)
    return load(store, run_ids)


def load_experiment(experiment_id: str, *, store: Store | None = None) -> experiments.Experiment:
    """A recorded experiment with its effects. UsageError for an unknown one, CannotJudge where a run of it never ended."""
    if store is None:
        with connect() as opened:
            return experiments.load(opened, experiment_id)
    return experiments.load(store, experiment_id)


def diff(a: str | Run, b: str | Run, *, measure: str = PRIMARY, store: Store | None = None) -> flips.Diff:
    """Which questions flipped from run `a` to run `b`, and the stage that lost each."""
    if store is None:
        with connect() as opened:
            return diff(a, b, measure=measure, store=opened)
    return flips.diff(store, _id(a), _id(b), measure=measure)


def lost_questions(run: str | Run, *, exact: bool = False, store: Store | None = None) -> lost.Lost:
    """The questions of a run whose answer is not among the first k, each with the stage that lost it; with `exact` how far every arm was from what none of them had."""
    if store is None:
        with connect() as opened:
            return lost_questions(run, exact=exact, store=opened)
    return lost.lost_questions(store, _id(run), exact=exact)


def power(
    gold: str | GoldSet,
    *,
    measure: str = PRIMARY,
    changed: float = planning.CHANGED,
    effects: int = 1,
    alpha: float = ALPHA,
    margin: float = 0.05,
    store: Store | None = None,
) -> planning.Power:
    """What the questions of a gold set can show, before anything is run; recorded runs on it tell how alike its questions are."""
    if store is None:
        with connect() as opened:
            return power(gold, measure=measure, changed=changed, effects=effects, alpha=alpha, margin=margin, store=opened)
    loaded = load_gold(gold) if isinstance(gold, str) else gold
    return planning.plan(store, loaded, measure=measure, changed=changed, effects=effects, alpha=alpha, margin=margin)


def replay(run: str | Run, *, measure: str = PRIMARY, store: Store | None = None) -> repeat.Replay:
    """Runs the recorded settings again, and says what is no longer the same."""
    if store is None:
        with connect() as opened:
            return replay(run, measure=measure, store=opened)
    return repeat.replay(store, _id(run), measure=measure)


def frame(query: str, parameters: Mapping[str, Any] | None = None, *, store: Store | None = None) -> Any:
    """The rows of a query as a pandas frame; the views that are there for it are documented in `sql/views.sql`. One statement, for reading: the database refuses what it would write.

    >>> frame("select measure, mean from lab.run_scores where run_id = %(run)s", {"run": run_id})  # doctest: +SKIP
    """
    import pandas as pd

    if store is None:
        with connect() as opened:
            return frame(query, parameters, store=opened)
    with store.reading() as reading:
        names, rows = reading.table(query, parameters)
    return pd.DataFrame(rows, columns=names)


def _id(run: str | Run) -> str:
    return run if isinstance(run, str) else run.run_id
