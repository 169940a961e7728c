"""Experiments: the runs of one grid."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.corpus.variants import variant
from lab.errors import CannotJudge, UsageError
from lab.evaluation.compare import PRIMARY
from lab.evaluation.effects import Effect, effects
from lab.evaluation.measures import DEFAULT, of_rankings
from lab.evaluation.recorded import Run, of_rows
from lab.evaluation.run import answerable, as_gold, execute, new_id
from lab.evaluation.shown import draw
from lab.gold.check import circular, fit
from lab.grids import combinations, split_factors
from lab.groups import evenly
from lab.records import GoldSet
from lab.retrieval.context import Corpus
from lab.retrieval.search import Shared, check_runnable, open_corpus, question_vectors, rank
from lab.settings import IngestSettings, Settings, named
from lab.store import recording
from lab.store import runs as store_runs
from lab.store.connect import Store, connect


@dataclass(frozen=True, slots=True, repr=False)
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

    def effects_frame(self) -> Any:
        """Tidy: one row an effect and measure (pandas), with interval, p, wins, losses, ties."""
        import pandas as pd

        return pd.DataFrame([{"effect": e.name, "order": len(e.factors), **e.to_json()} for e in self.effects]).drop(
            columns=["factors", "changes"], errors="ignore"
        )

    def __repr__(self) -> str:
        return f"Experiment {self.experiment_id}: {len(self.runs)} runs of {', '.join(self.factors)} on {self.collection}"

    def _repr_html_(self) -> str:
        return str(self.table().round(3).to_html(index=False))

    def plot_effects(self, measure: str = PRIMARY) -> Any:
        """Forest plot of the main effects; matplotlib axes."""
        return draw("effect_plots", "effects", self, measure)

    def plot_interactions(self, measure: str = PRIMARY) -> Any:
        """A panel a pair of factors; an array of axes."""
        return draw("effect_plots", "interactions", self, measure)

    def plot_kinds(self, measure: str = PRIMARY) -> Any:
        """Small multiples of the effects by kind of question; an array of axes."""
        return draw("effect_plots", "small_multiples", self, "kind", measure)

    def plot_bands(self, measure: str = PRIMARY) -> Any:
        """Small multiples of the effects by copying band; an array of axes."""
        return draw("effect_plots", "small_multiples", self, "band", measure)

    def plot_hit_at_k(self) -> Any:
        """hit@k of the runs, with the band of differences that would not have shown; axes."""
        return draw("run_plots", "hit_at_k", self.runs)

    def plot_losses(self) -> Any:
        """Where answers were lost in the first run and the one that differs most from it; an array of axes."""
        return draw("run_plots", "first_losses", self.runs)


def ablate(
    collection: str, gold: str | GoldSet, factors: Mapping[str, Sequence[str | float]], *, store: Store | None = None, settings: Settings | str | None = None,
    split: str | None = None, measures: Sequence[str] = DEFAULT, design: str = "full", jobs: int = 1, command: str = "", **flags: str | float,
) -> Experiment:  # fmt: skip
    """Runs the combinations of the factors' values and records each as a run of one experiment.

    The first value of a factor is what the others are compared with. Several named settings (`settings="default,dense-only"`) are a factor too, whose first is
    what the others are compared with. A factor may be an ingest flag (`chunker`): a derived collection is made for each of its levels from the stored documents, and kept.
    `design`: full, oat, half (`lab.grids.combinations`). `jobs` searchers work at once; the result is the same. `flags` are held fixed. Raises UsageError for unknown
    names and values.
    """
    if store is None:
        with connect() as opened:
            return ablate(
                collection, gold, factors, store=opened, settings=settings, split=split, measures=measures, design=design, jobs=jobs, command=command, **flags
            )  # fmt: skip
    start = time.monotonic()
    planned = _plan(store, collection, factors, settings, design, flags)
    wanted = [of_rankings(m) for m in dict.fromkeys([*measures, PRIMARY])]
    loaded = as_gold(gold, split)
    fitted = fit(store, planned[0].corpus.collection, loaded).gold  # the runs score what fits, and are recorded with its digest
    words = planned[0].factors
    experiment_id = new_id("e")
    recording.begin_experiment(store, experiment_id, collection, loaded.name, fitted.digest, words, command)
    done: list[Run] = []
    with contextlib.ExitStack() as journals:  # of all collections, until the last has ended
        for group in planned:
            done += execute(group.corpus, loaded, group.members, measures=wanted, experiment_id=experiment_id, jobs=jobs, journals=journals)
    recording.finish_experiment(store, experiment_id)
    still = inert(store, words, done)
    return Experiment(
        experiment_id, collection, loaded.name, fitted.digest, words, done, effects(words, done, still), still,
        time.monotonic() - start, _warnings(loaded, words, design),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Group:
    """The members that search one collection (of the levels of the ingest factors), in the order of the grid."""

    corpus: Corpus
    members: list[tuple[dict[str, str], Settings]]
    factors: dict[str, list[str]]


def _plan(
    store: Store,
    collection: str,
    factors: Mapping[str, Sequence[str | float]],
    settings: Settings | str | None,
    design: str,
    flags: Mapping[str, str | float],
    make: bool = True,
) -> list[_Group]:
    """Everything is checked before a derived collection is made or anything recorded. Without `make` none is: the collection itself stands in for each."""
    names = _names(settings)
    fixed = {Settings.flag(name).name: str(value) for name, value in flags.items()}
    ingest, search = split_factors(factors)
    words: dict[str, list[str]] = {**ingest, **({"settings": names} if names else {}), **search}
    if not words:
        raise UsageError("an ablation needs at least one --factor, as in --factor defines=off,question, or several --settings.")
    both = sorted(set(fixed) & set(search))
    if both:
        raise UsageError(f"{both[0]} is both a factor and held fixed: give it once.")
    base = named(settings) if isinstance(settings, str) and not names else settings if isinstance(settings, Settings) else Settings()
    whole = open_corpus(store, collection)
    groups: dict[tuple[str, ...], list[tuple[dict[str, str], Settings]]] = {}
    for member in combinations(words, design):
        start = named(member["settings"]) if names else base
        passed = {**fixed, **{name: member[name] for name in search}}
        told = {**{name: member[name] for name in ingest}, **({"settings": member["settings"]} if names else {}), **passed}
        groups.setdefault(tuple(member[name] for name in ingest), []).append((told, start.with_words(passed)))
    if not ingest:
        for _, member_settings in groups[()]:
            check_runnable(whole, member_settings)
        return [_Group(whole, groups[()], words)]
    for levels, members in groups.items():  # before anything is made
        level = whole.collection.ingest.with_words(dict(zip(ingest, levels, strict=True)))
        if level.embedder == "none" and any(member.dense_arm != "none" for _, member in members):
            raise UsageError("--factor embedder with none has no vectors to search: hold --dense none.")
    if not make:
        return [_Group(whole, members, words) for members in groups.values()]
    found = []
    for levels, members in groups.items():
        made = variant(store, whole.collection, dict(zip(ingest, levels, strict=True)))
        corpus = open_corpus(store, made.name)
        for _, member_settings in members:
            check_runnable(corpus, member_settings)
        found.append(_Group(corpus, members, words))
    return found


def _warnings(gold: GoldSet, factors: Mapping[str, Sequence[str]], design: str) -> list[str]:
    said = circular(gold.name, gold.questions, factors)
    return [*said, _HALF] if design == "half" else said


_HALF = "half of the grid was run: each main effect is mixed up with the interaction of all the other factors"


def _confounded(factors: Mapping[str, Sequence[str]], done: Sequence[Run]) -> list[str]:
    """The same warning from what was run: no two members differ in one factor alone."""
    paired = any(_pairs(factor, values[0], high, factors, done) for factor, values in factors.items() for high in values[1:])
    return [_HALF] if len(factors) > 1 and not paired else []


@dataclass(frozen=True, slots=True)
class Estimate:
    """What an ablation would take: members, questions, searches, pairs for a reranker at most, and seconds by a few questions that were tried."""

    members: int
    collections: int
    questions: int
    pairs: int
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """The object of `lab ablate --dry-run --json`."""
        return {
            "schema_version": 1, "members": self.members, "collections": self.collections, "questions": self.questions, "searches": self.members * self.questions,
            "pairs": self.pairs, "seconds": round(self.seconds, 1),
        }  # fmt: skip


_TRIED = 5  # questions


def estimate(
    collection: str, gold: str | GoldSet, factors: Mapping[str, Sequence[str | float]], *, store: Store, settings: Settings | str | None = None, split: str | None = None,
    design: str = "full", **flags: str | float,
) -> Estimate:  # fmt: skip
    """Tries five questions with every member and records nothing. Derived collections are not made: the seconds are those of searching the collection itself, as often."""
    planned = _plan(store, collection, factors, settings, design, flags, make=False)
    loaded = as_gold(gold, split)
    asked = answerable(fit(store, planned[0].corpus.collection, loaded).gold)
    tried = evenly(asked, _TRIED)
    seconds, pairs = 0.0, 0
    for group in planned:
        dense = any(member.dense_arm != "none" for _, member in group.members)
        vectors = question_vectors(group.corpus, [q.text for q in tried]) if dense else [None] * len(tried)
        begin = time.monotonic()
        with store.held():
            for question, vector in zip(tried, vectors, strict=True):
                shared = Shared(group.corpus, question.text, vector)
                for _, member in group.members:
                    rank(shared, member, texts=False)
        seconds += (time.monotonic() - begin) / max(len(tried), 1) * len(asked)
        depths = [member.rerank_depth for _, member in group.members if member.reranker not in {"none", "maxsim"}]
        pairs += (min(sum(depths), 2 * max(depths)) if depths else 0) * len(asked)
    return Estimate(sum(len(group.members) for group in planned), len(planned), len(asked), pairs, seconds)


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
    known = (*IngestSettings.flags(), "settings", *Settings.flags())
    order = {name: factors[name] for name in (*known, *sorted(factors.keys() - set(known))) if name in factors}
    still = inert(store, order, done)
    seconds = max(row.finished_at or row.created_at for row in rows) - min(row.created_at for row in rows)
    return Experiment(
        experiment_id, entry["collection"], entry["gold"], entry["gold_digest"], order, done, effects(order, done, still), still,
        seconds.total_seconds(), [*circular(entry["gold"], asked, order), *_confounded(order, done)],
    )  # fmt: skip


def _pairs(factor: str, low: str, high: str, factors: Mapping[str, Sequence[str]], runs: Sequence[Run]) -> list[tuple[Run, Run]]:
    """Pairs of runs that differ in one factor only: low → high, as far as the grid is full."""
    others = [name for name in factors if name != factor]
    table = {(r.passed[factor], *(r.passed[name] for name in others)): r for r in runs}
    return [(run, table[(high, *key[1:])]) for key, run in table.items() if key[0] == low and (high, *key[1:]) in table]


def inert(store: Store, factors: Mapping[str, Sequence[str]], runs: Sequence[Run]) -> list[str]:
    """The factors that changed no ranking of any question in any pair of runs: nothing can be said of them from these runs."""
    rankings: Mapping[str, Any] = store_runs.rankings(store, [r.run_id for r in runs])
    if len({r.collection for r in runs}) > 1:  # passages have ids of their own in each
        rankings = {r.run_id: store_runs.listed(store, r.run_id) for r in runs}
    still = []
    for factor, values in factors.items():
        pairs = [pair for high in values[1:] for pair in _pairs(factor, values[0], high, factors, runs)]
        if pairs and all(rankings.get(a.run_id) == rankings.get(b.run_id) for a, b in pairs):
            still.append(factor)
    return still
