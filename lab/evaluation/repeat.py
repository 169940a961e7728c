"""Runs again: `replay` repeats one and says what is no longer the same; `bisect` walks from one run to another, an input at a time, and names the one that moved the measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.errors import CannotJudge, UsageError, unknown
from lab.evaluation.compare import PRIMARY, differing_flags, differing_inputs, paired_scores
from lab.evaluation.measures import of_rankings, parse
from lab.evaluation.recorded import Run, of_rows
from lab.evaluation.run import execute, new_id
from lab.evaluation.statistics.paired import Paired
from lab.gold.check import fit
from lab.gold.files import load_gold
from lab.records import GoldSet
from lab.retrieval.search import open_corpus
from lab.settings import Settings
from lab.store import collections, recording, runs
from lab.store.connect import Store


@dataclass(frozen=True, slots=True)
class Replay:
    """`lists_that_differ`: questions whose first k are not the same, in the same order. `differs`: input → (then, now)."""

    run_id: str
    replayed: str
    questions: int
    lists_that_differ: Sequence[str]
    flips: Sequence[str]
    differs: Mapping[str, tuple[Any, Any]]
    measure: str

    @property
    def words(self) -> str:
        """What became of it in a sentence, with what can be promised for these settings."""
        if not self.lists_that_differ:
            return f"the same {self.questions} lists as in {self.run_id}"
        causes = (
            ", ".join(self.differs)
            or "nothing that is recorded: with dense=hnsw a graph built anew may answer otherwise, with dense=exact it may not"
        )
        return f"{len(self.lists_that_differ)} of {self.questions} lists differ from {self.run_id}, {len(self.flips)} questions flip at {self.measure}; what differs: {causes}"

    def to_json(self) -> dict[str, Any]:
        """The object of `lab replay --json`."""
        return {
            "schema_version": 1, "run_id": self.run_id, "replayed": self.replayed, "questions": self.questions, "identical": not self.lists_that_differ,
            "lists_that_differ": list(self.lists_that_differ), "flips": list(self.flips), "measure": self.measure,
            "differs": [{"input": name, "then": a, "now": b} for name, (a, b) in self.differs.items()], "words": self.words,
        }  # fmt: skip


def replay(store: Store, run_id: str, *, measure: str = PRIMARY, gold: str | None = None) -> Replay:
    """Runs the recorded settings again on the collection as it is now. `gold` says where the gold set is now, if its name does not. UsageError for an unknown run, one of a TREC
    file, and a measure that it was not scored by; CannotJudge where the gold set has changed."""
    row = runs.get_run(store, run_id)
    name = str(of_rankings(measure))
    known = sorted({m for _, _, m, _ in runs.scores(store, [run_id])})
    if name not in known:
        raise unknown("measure of that run", name, known)
    settings = Settings(**row.settings)
    if settings.external_arm.startswith("trec:"):
        raise UsageError(f"{run_id} scored a TREC run: score that file again with `lab run {row.collection} --gold {row.gold} --from-trec FILE`.")
    corpus = open_corpus(store, row.collection)
    again = execute(corpus, gold_of(store, row, gold), [(dict(row.passed), settings)], measures=[m for m in map(parse, known) if m.k])[0]
    now = runs.get_run(store, again.run_id)
    before, after = runs.listed(store, run_id), runs.listed(store, again.run_id)
    old = of_rows(store, [row])[0]
    lists = sorted(q for q in before.keys() | after.keys() if before.get(q) != after.get(q))
    flips = sorted(q for q in old.by_question if old.by_question[q].get(name) != again.by_question.get(q, {}).get(name))
    return Replay(run_id, again.run_id, again.questions, lists, flips, differing_inputs(row, now), name)


def gold_of(store: Store, row: runs.RunRow, gold: str | None = None) -> GoldSet:
    """The gold set of a run, with the run's split; CannotJudge where it is no longer what the run was scored with."""
    split, _, by = row.split.partition(" by ")
    found = load_gold(gold or row.gold, split=None if split == "all" else split, split_by=by or "component")
    if fit(store, collections.get(store, row.collection), found).gold.digest != row.gold_digest:
        raise CannotJudge(
            f"gold set {found.name!r} is no longer what {row.run_id} was scored with: name the right one behind --gold, or make the run anew."
        )
    return found


@dataclass(frozen=True, slots=True)
class Step:
    """One input changed: what it did to the measure while everything before it had been changed already."""

    name: str
    before: Any
    after: Any
    run_id: str
    paired: Paired


@dataclass(frozen=True, slots=True)
class Bisection:
    """`steps` from `a` to `b`. `moved` is the input whose step moved the measure most, None where none moved it; `cannot_change` are inputs that no run here can have
    otherwise (code, database)."""

    a: str
    b: str
    measure: str
    experiment_id: str
    steps: Sequence[Step]
    cannot_change: Mapping[str, tuple[Any, Any]]

    @property
    def moved(self) -> Step | None:
        largest = max(self.steps, key=lambda s: abs(s.paired.delta), default=None)
        return largest if largest is not None and abs(largest.paired.delta) > 0 else None

    def to_json(self) -> dict[str, Any]:
        """The object of `lab bisect --json`."""
        return {
            "schema_version": 1, "a": self.a, "b": self.b, "measure": self.measure, "experiment_id": self.experiment_id, "moved": self.moved.name if self.moved else None,
            "steps": [{"input": s.name, "from": s.before, "to": s.after, "run_id": s.run_id, **{k: v for k, v in s.paired.to_json().items() if k != "p_adjusted"}} for s in self.steps],
            "cannot_change": [{"input": name, "a": a, "b": b} for name, (a, b) in self.cannot_change.items()],
        }  # fmt: skip


def bisect(store: Store, a: str, b: str, *, measure: str = PRIMARY, gold: str | None = None, command: str = "") -> Bisection:
    """Runs `a` again, then with one input after the other as in `b`: the collection first, then flags in the order of their stages.

    UsageError for unknown runs and for two that differ in nothing that can be changed; CannotJudge for other gold sets.
    """
    first, second = runs.get_run(store, a), runs.get_run(store, b)
    if first.gold_digest != second.gold_digest or first.split != second.split:
        raise CannotJudge(f"{a} and {b} were scored with other gold sets or splits: bisect two runs of one.")
    asked, name = gold_of(store, first, gold), str(of_rankings(measure))
    settings = Settings(**first.settings)
    differing = differing_flags(first, second)
    flags = [flag for flag in Settings.flags() if flag in differing]
    inputs = differing_inputs(first, second)
    moves = inputs.pop("collection", None) is not None
    if not flags and not moves:
        raise UsageError(
            f"{a} and {b} differ in no flag and no collection: {', '.join(inputs) or 'nothing else'} cannot be changed one at a time here; see `lab replay {a}`."
        )
    experiment_id = new_id("e")
    factors = {"step": ["a", *(["collection"] if moves else []), *flags]}
    recording.begin_experiment(store, experiment_id, first.collection, first.gold, first.gold_digest, factors, command)
    chain: list[tuple[str, Any, Any, Settings]] = []
    for flag in flags:
        settings = _changed(settings, flag, second.settings[flag], chain)
        chain.append((flag, first.settings[flag], second.settings[flag], settings))
    start = Settings(**first.settings)
    members = [({"step": "a"}, start), *(({"step": flag}, after) for flag, _, _, after in chain)]
    wanted = [parse(name)]
    done: list[Run] = []
    if moves:
        done += execute(open_corpus(store, first.collection), asked, [({"step": "a"}, start)], measures=wanted, experiment_id=experiment_id)
        members[0] = ({"step": "collection"}, start)
    done += execute(
        open_corpus(store, second.collection if moves else first.collection), asked, members, measures=wanted, experiment_id=experiment_id
    )
    recording.finish_experiment(store, experiment_id)
    if any(set(run.by_question) != set(done[0].by_question) or name not in run.scores for run in done):
        raise CannotJudge(f"the steps were not scored on the same questions, or {name} is about none of them: compare the runs instead.")
    named = [("collection", first.collection, second.collection)] if moves else []
    named += [(flag, before, after) for flag, before, after, _ in chain]
    steps = [
        Step(what, before, after, done[i + 1].run_id, paired_scores(done[i], done[i + 1], [name])[name])
        for i, (what, before, after) in enumerate(named)
    ]
    return Bisection(
        a,
        b,
        name,
        experiment_id,
        steps,
        {key: value for key, value in inputs.items() if not moves or not key.startswith(("ingest.", "corpus", "link", "index"))},
    )


def _changed(settings: Settings, flag: str, value: Any, chain: Sequence[Any]) -> Settings:
    import dataclasses

    try:
        return dataclasses.replace(settings, **{flag: value})
    except UsageError as error:
        raise UsageError(
            f"{flag} cannot be changed alone after {', '.join(step[0] for step in chain) or 'nothing'} ({error}): compare the runs instead."
        ) from None
