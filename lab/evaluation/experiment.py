"""Experiments: the runs of one grid."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.errors import CannotJudge, UsageError
from lab.evaluation.compare import PRIMARY
from lab.evaluation.effects import Effect, effects
from lab.evaluation.measures import DEFAULT, parse
from lab.evaluation.recorded import Run, of_rows
from lab.evaluation.run import as_gold, execute, new_id
from lab.gold.check import circular, fit
from lab.records import GoldSet
from lab.retrieval.search import check_runnable, open_corpus
from lab.settings import Settings, clean_factors, grid, named
from lab.store import runs as store_runs
from lab.store.connect import Store, connect


@dataclass(frozen=True, slots=True)
class Experiment:
    """A finished grid."""

    experiment_id: str
    collection: str
    gold: str
    gold_digest: str
    factors: Mapping[str, Sequence[str]]
    runs: Sequence[Run]
    effects: Sequence[Effect]
    inert: Sequence[str]
    seconds: float
    warnings: Sequence[str] = ()  # what speaks against reading the effects as they stand

    def main(self, measure: str = PRIMARY, by: str = "") -> list[Effect]:
        """The main effects on a measure: over all questions, or (`by` kind, band) those apart."""
        return [e for e in self.effects if len(e.factors) == 1 and e.measure == measure and (bool(getattr(e, by)) if by else e.overall)]

    def order(self, effect: Effect) -> tuple[int, int]:
        """Where an effect's factor and value stand among those of the grid."""
        factor, (_, high) = effect.factors[0], effect.changes[0]
        return list(self.factors).index(factor), list(self.factors[factor]).index(high)

    def interactions(self, measure: str = PRIMARY) -> list[Effect]:
        """The two-way interactions over all questions."""
        return [e for e in self.effects if len(e.factors) == 2 and e.measure == measure and e.overall]

    def to_json(self) -> dict[str, Any]:
        """The object of `lab ablate --json`."""
        return {
            "schema_version": 1,
            "experiment_id": self.experiment_id,
            "collection": self.collection,
            "gold": self.gold,
            "factors": {name: list(values) for name, values in self.factors.items()},
            "runs": [
                {"run_id": r.run_id, "status": r.status, "questions": r.questions, "passed": dict(r.passed), "scores": dict(r.scores)} for r in self.runs
            ],
            "differences": [
                {
                    "factor": e.factors[0], "from": e.changes[0][0], "to": e.changes[0][1], "measure": e.measure, "kind": e.kind, "band": e.band,
                    "before": e.paired.before, "after": e.paired.after, "delta": e.paired.delta, "wins": e.paired.wins, "losses": e.paired.losses, "ties": e.paired.ties,
                }
                for e in self.effects
                if len(e.factors) == 1
            ],
            "effects": [effect.to_json() for effect in self.effects],
            "inert": list(self.inert),
            "warnings": list(self.warnings),
            "seconds": round(self.seconds, 3),
        }  # fmt: skip

    def to_frame(self) -> Any:
        """Tidy: one row a run, question and measure (pandas), with a column a factor."""
        import pandas as pd

        frames = []
        for run in self.runs:
            frame = run.to_frame()
            for name, value in run.passed.items():
                frame[name] = value
            frames.append(frame)
        return pd.concat(frames, ignore_index=True)

    def table(self) -> Any:
        """One row a run: the factors' values and the means (pandas)."""
        import pandas as pd

        return pd.DataFrame([{"run_id": r.run_id, **r.passed, **r.scores} for r in self.runs])

    def _repr_html_(self) -> str:
        return str(self.table().round(3).to_html(index=False))


def ablate(
    collection: str,
    gold: str | GoldSet,
    factors: Mapping[str, Sequence[str | float]],
    *,
    store: Store | None = None,
    settings: Settings | str | None = None,
    split: str | None = None,
    measures: Sequence[str] = DEFAULT,
    command: str = "",
    **flags: str | float,
) -> Experiment:
    """Runs every combination of the factors' values and records each as a run of one experiment.

    The first value of a factor is what the others are compared with. Several named settings (`settings="default,dense-only"`) are a factor too, whose first is
    what the others are compared with. `flags` are held fixed. Raises UsageError for unknown names and values.
    """
    if store is None:
        with connect() as opened:
            return ablate(collection, gold, factors, store=opened, settings=settings, split=split, measures=measures, command=command, **flags)
    start = time.monotonic()
    names = _names(settings)
    fixed = {Settings.flag(name).name: str(value) for name, value in flags.items()}
    words = clean_factors(factors)
    if not words and not names:
        raise UsageError("an ablation needs at least one --factor, as in --factor defines=off,question, or several --settings.")
    both = sorted(set(fixed) & set(words))
    if both:
        raise UsageError(f"{both[0]} is both a factor and held fixed: give it once.")
    wanted = [parse(m) for m in dict.fromkeys([*measures, PRIMARY])]
    corpus = open_corpus(store, collection)
    loaded = as_gold(gold, split)
    bases = {name: named(name) for name in names} or {"": named(settings) if isinstance(settings, str) else settings or Settings()}
    members = [
        ({**({"settings": name} if names else {}), **fixed, **passed}, member)
        for name, base in bases.items()
        for passed, member in grid(words, base.with_words(fixed))
    ]
    for _, member in members:
        check_runnable(corpus, member)
    words = {**({"settings": names} if names else {}), **words}
    fitted = fit(corpus.store, corpus.collection, loaded).gold  # the runs score what fits, and are recorded with its digest
    experiment_id = new_id("e")
    store_runs.begin_experiment(store, experiment_id, collection, loaded.name, fitted.digest, words, command)
    done = execute(corpus, loaded, members, measures=wanted, experiment_id=experiment_id)
    store_runs.finish_experiment(store, experiment_id)
    still = inert(store, words, done)
    return Experiment(
        experiment_id, collection, loaded.name, fitted.digest, words, done, effects(words, done, still), still,
        time.monotonic() - start, circular(loaded.name, loaded.questions, words),
    )  # fmt: skip


def _names(settings: Settings | str | None) -> list[str]:
    """The named settings of `a,b,c`, which are a factor then; none for a single one."""
    listed = [name.strip() for name in settings.split(",")] if isinstance(settings, str) else []
    if len(listed) < 2:
        return []
    if len(set(listed)) < len(listed) or not all(listed):
        raise UsageError(f"--settings {settings} must name each settings once, as in default,dense-only.")
    return listed


def load(store: Store, experiment_id: str) -> Experiment:
    """An experiment from what is recorded; raises UsageError for an unknown id."""
    rows = store_runs.experiment_runs(store, experiment_id)
    unfinished = [row.run_id for row in rows if row.status == "incomplete"]
    if unfinished:
        raise CannotJudge(f"{len(unfinished)} of {len(rows)} runs of {experiment_id} are incomplete ({unfinished[0]} …): run the experiment again.")
    entry = store_runs.experiment(store, experiment_id)
    asked = store_runs.questions(store, entry["gold_digest"])
    done = of_rows(store, rows)
    factors = entry["factors"]
    order = {name: factors[name] for name in ("settings", *Settings.flags()) if name in factors}
    still = inert(store, order, done)
    seconds = max(row.finished_at or row.created_at for row in rows) - min(row.created_at for row in rows)
    return Experiment(
        experiment_id, entry["collection"], entry["gold"], entry["gold_digest"], order, done, effects(order, done, still), still,
        seconds.total_seconds(), circular(entry["gold"], asked, order),
    )  # fmt: skip


def _pairs(factor: str, low: str, high: str, factors: Mapping[str, Sequence[str]], runs: Sequence[Run]) -> list[tuple[Run, Run]]:
    """Pairs of runs that differ in one factor only: low → high, as far as the grid is full."""
    others = [name for name in factors if name != factor]
    table = {(r.passed[factor], *(r.passed[name] for name in others)): r for r in runs}
    return [(run, table[(high, *key[1:])]) for key, run in table.items() if key[0] == low and (high, *key[1:]) in table]


def inert(store: Store, factors: Mapping[str, Sequence[str]], runs: Sequence[Run]) -> list[str]:
    """The factors that changed no ranking of any question in any pair of runs: nothing can be said of them from these runs."""
    rankings = store_runs.rankings(store, [r.run_id for r in runs])
    return [
        factor
        for factor, values in factors.items()
        if all(rankings.get(a.run_id) == rankings.get(b.run_id) for high in values[1:] for a, b in _pairs(factor, values[0], high, factors, runs))
    ]
