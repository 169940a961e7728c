"""Experiments: the runs of one grid, and what each factor did to each question."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.errors import CannotJudge, UsageError
from lab.evaluation.measures import DEFAULT, mean, means, parse
from lab.evaluation.run import Run, as_gold, execute, new_id
from lab.gold.check import circular, fit
from lab.records import GoldSet
from lab.retrieval.search import check_runnable, open_corpus
from lab.settings import Settings, clean_factors, grid, named
from lab.store import runs as store_runs
from lab.store.connect import Store, connect
from lab.text import BANDS

PRIMARY = "hit@5"


@dataclass(frozen=True, slots=True)
class Difference:
    """What changing one factor from its first value to another did to one measure: per question the mean over all settings of the other factors.

    `wins`, `losses` and `ties` count questions.
    """

    factor: str
    low: str
    high: str
    measure: str
    kind: str
    before: float
    after: float
    delta: float
    wins: int
    losses: int
    ties: int
    band: str = ""  # how much the questions copy, where they are those of one band

    @property
    def overall(self) -> bool:
        """Over all questions, neither of one kind nor of one band."""
        return not self.kind and not self.band

    @property
    def questions(self) -> int:
        return self.wins + self.losses + self.ties


@dataclass(frozen=True, slots=True)
class Experiment:
    """A finished grid."""

    experiment_id: str
    collection: str
    gold: str
    gold_digest: str
    factors: Mapping[str, Sequence[str]]
    runs: Sequence[Run]
    differences: Sequence[Difference]
    inert: Sequence[str]
    seconds: float
    warnings: Sequence[str] = ()  # what speaks against reading the differences as they stand

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
                    "factor": d.factor, "from": d.low, "to": d.high, "measure": d.measure, "kind": d.kind, "band": d.band, "before": d.before, "after": d.after,
                    "delta": d.delta, "wins": d.wins, "losses": d.losses, "ties": d.ties,
                }
                for d in self.differences
            ],
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
    return Experiment(
        experiment_id, collection, loaded.name, fitted.digest, words, done, differences(words, done), inert(store, words, done),
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
    kinds = {q.question_id: q.kind for q in asked}
    bands = {q.question_id: str(q.metadata["band"]) for q in asked if "band" in q.metadata}
    tables: dict[str, dict[str, dict[str, float]]] = {row.run_id: {} for row in rows}
    for run_id, question, measure, value in store_runs.scores(store, [row.run_id for row in rows]):
        tables[run_id].setdefault(question, {})[measure] = value
    done = []
    for row in rows:
        by_question = tables[row.run_id]
        measures = sorted(
            {m for values in by_question.values() for m in values}, key=lambda m: (DEFAULT.index(m) if m in DEFAULT else len(DEFAULT), m)
        )
        scores = means(by_question, measures)
        done.append(
            Run(
                row.run_id,
                row.collection,
                row.gold,
                row.status,
                row.questions,
                row.passed,
                Settings(**row.settings),
                scores,
                by_question,
                kinds,
                row.notes,
                health=row.health,
                bands=bands,
            )
        )
    factors = entry["factors"]
    order = {name: factors[name] for name in ("settings", *Settings.flags()) if name in factors}
    seconds = max(row.finished_at or row.created_at for row in rows) - min(row.created_at for row in rows)
    return Experiment(
        experiment_id, entry["collection"], entry["gold"], entry["gold_digest"], order, done, differences(order, done), inert(store, order, done),
        seconds.total_seconds(), circular(entry["gold"], asked, order),
    )  # fmt: skip


def differences(factors: Mapping[str, Sequence[str]], runs: Sequence[Run]) -> list[Difference]:
    """For each factor and each of its values but the first: overall, per kind and per copying band, for every measure."""
    found = []
    for factor, values in factors.items():
        for high in values[1:]:
            pairs = _pairs(factor, values[0], high, factors, runs)
            for measure in runs[0].scores:
                rows = {
                    question: (
                        mean({str(i): a.by_question[question][measure] for i, (a, _) in enumerate(pairs)}),
                        mean({str(i): b.by_question[question][measure] for i, (_, b) in enumerate(pairs)}),
                    )
                    for question in sorted(runs[0].by_question)
                    if all(measure in run.by_question[question] for both in pairs for run in both)
                }
                of_kind, of_band = runs[0].kinds, runs[0].bands
                kinds = sorted({of_kind[q] for q in rows if of_kind[q]})
                present = [band for band in BANDS if band in {of_band.get(q) for q in rows}]
                for kind, band in [("", ""), *((kind, "") for kind in kinds), *(("", band) for band in present)]:
                    chosen = {q: v for q, v in rows.items() if (not kind or of_kind[q] == kind) and (not band or of_band.get(q) == band)}
                    before, after = mean({q: v[0] for q, v in chosen.items()}), mean({q: v[1] for q, v in chosen.items()})
                    changes = [round(b - a, 12) for a, b in chosen.values()]
                    found.append(
                        Difference(
                            factor,
                            values[0],
                            high,
                            measure,
                            kind,
                            before,
                            after,
                            after - before,
                            sum(c > 0 for c in changes),
                            sum(c < 0 for c in changes),
                            sum(c == 0 for c in changes),
                            band,
                        )
                    )
    return found


def _pairs(factor: str, low: str, high: str, factors: Mapping[str, Sequence[str]], runs: Sequence[Run]) -> list[tuple[Run, Run]]:
    """Pairs of runs that differ in one factor only: low → high."""
    others = [name for name in factors if name != factor]
    table = {(r.passed[factor], *(r.passed[name] for name in others)): r for r in runs}
    return [(run, table[(high, *key[1:])]) for key, run in table.items() if key[0] == low]


def inert(store: Store, factors: Mapping[str, Sequence[str]], runs: Sequence[Run]) -> list[str]:
    """The factors that changed no ranking of any question in any pair of runs: nothing can be said of them from these runs."""
    rankings = store_runs.rankings(store, [r.run_id for r in runs])
    return [
        factor
        for factor, values in factors.items()
        if all(rankings.get(a.run_id) == rankings.get(b.run_id) for high in values[1:] for a, b in _pairs(factor, values[0], high, factors, runs))
    ]
