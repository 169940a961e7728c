"""The questions that flipped, each with what decides it: the passages that answer and their ranks from arm to arm and stage to stage in both runs, and the first results of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.errors import CannotJudge, UsageError
from lab.evaluation.compare import PRIMARY
from lab.evaluation.experiment import Experiment
from lab.evaluation.flips import Diff, diff
from lab.evaluation.losses import in_words
from lab.evaluation.recorded import Run
from lab.store import chunks, collections, runs
from lab.store.connect import Store

PAIRS, EACH = 6, 25  # pairs of runs that are shown, and flipped questions of each
_FIRST = 5
_EXCERPT = 600


@dataclass(frozen=True, slots=True)
class Answer:
    """A passage that answers: its ranks by arm and stage in both runs (None: not in that list), and its text where the collection still has it."""

    chunk_id: str
    text: str
    before: Mapping[str, int | None]
    after: Mapping[str, int | None]

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys([*self.before, *self.after]))


@dataclass(frozen=True, slots=True)
class Shown:
    """A result as it stood: `answers` tells whether it does, `linked_by` which link brought it."""

    rank: int
    chunk_id: str
    answers: bool
    linked_by: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Flipped:
    """One question. `stage` in words: what lost its answer, or had lost it."""

    question: str
    text: str
    kind: str
    direction: str
    stage: str
    answers: Sequence[Answer]
    before: Sequence[Shown]
    after: Sequence[Shown]

    def to_json(self) -> dict[str, Any]:
        return {
            "question": self.question, "text": self.text, "kind": self.kind, "direction": self.direction, "stage": self.stage,
            "answers": [{"chunk_id": a.chunk_id, "before": dict(a.before), "after": dict(a.after)} for a in self.answers],
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pair:
    """Two runs that differ in one thing, and the questions that flipped between them (`left_out` more are counted)."""

    name: str
    a: str
    b: str
    diff: Diff
    flipped: Sequence[Flipped]
    bare: Sequence[str] = ()  # runs that were imported, without their ledgers

    @property
    def left_out(self) -> int:
        return len(self.diff.flips) - len(self.flipped)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name, "a": self.a, "b": self.b, "measure": self.diff.measure, "won": self.diff.by_stage("won"), "lost": self.diff.by_stage("lost"),
            "flipped": [f.to_json() for f in self.flipped], "left_out": self.left_out,
        }  # fmt: skip


def pairs(store: Store, experiment: Experiment, measure: str = PRIMARY) -> tuple[list[Pair], int]:
    """For each factor and each of its other values the first run beside the one that differs in it alone; how many more pairs there are. A grid of which half was run has none."""
    base = experiment.runs[0]
    found: list[Pair] = []
    left_out = 0
    for factor, values in experiment.factors.items():
        for value in values[1:]:
            wanted = {**base.passed, factor: value}
            other = next((run for run in experiment.runs if dict(run.passed) == wanted), None)
            if other is not None and len(found) >= PAIRS:
                left_out += 1
            elif other is not None:
                name = f"{factor} {base.passed[factor]} → {value}"
                found.append(_pair(store, name, base, other, measure))
    return found, left_out


def _pair(store: Store, name: str, a: Run, b: Run, measure: str) -> Pair:
    told = diff(store, a.run_id, b.run_id, measure=measure)
    chosen = _spread(told, EACH)
    questions = [f.question for f in chosen]
    ranks = {run.run_id: runs.answering_ranks(store, run.run_id, questions) for run in (a, b)}
    lists = {run.run_id: _first_results(store, run.run_id, questions) for run in (a, b)}
    texts: dict[str, dict[str, str]] = {}
    for run in (a, b):
        ids = {r.chunk_id for results in lists[run.run_id].values() for r in results} | {c for q in ranks[run.run_id].values() for c in q}
        texts[run.run_id] = excerpts(store, run, sorted(ids))
    flipped = []
    for f in chosen:
        ours, theirs = ranks[a.run_id].get(f.question, {}), ranks[b.run_id].get(f.question, {})
        answers = [
            Answer(chunk, texts[b.run_id].get(chunk) or texts[a.run_id].get(chunk, ""), ours.get(chunk, {}), theirs.get(chunk, {}))
            for chunk in sorted({*ours, *theirs})
        ]
        shown = [
            [
                Shown(r.rank, r.chunk_id, r.grade > 0, r.linked_by, texts[run.run_id].get(r.chunk_id, ""))
                for r in lists[run.run_id].get(f.question, [])
            ]
            for run in (a, b)
        ]
        flipped.append(Flipped(f.question, f.text, f.kind, f.direction, in_words(f.stage) if f.stage else "another rank", answers, *shown))
    return Pair(name, a.run_id, b.run_id, told, flipped, [run.run_id for run in (a, b) if not runs.has_ledger(store, run.run_id)])


def _spread(told: Diff, most: int) -> list[Any]:
    """At most so many flips, of both directions as many as there are: a page of losses alone would mislead."""
    lost, won = ([f for f in told.flips if f.direction == d] for d in ("lost", "won"))
    half = most // 2
    kept = max(half, most - len(won))
    return [*lost[:kept], *won[: most - min(len(lost), kept)]]


def _first_results(store: Store, run_id: str, questions: Sequence[str]) -> dict[str, list[runs.StoredResult]]:
    wanted = set(questions)
    found: dict[str, list[runs.StoredResult]] = {}
    for result in runs.results(store, run_id):
        if result.question_id in wanted and result.rank <= _FIRST:
            found.setdefault(result.question_id, []).append(result)
    return found


def excerpts(store: Store, run: Run, chunk_ids: Sequence[str]) -> dict[str, str]:
    """Chunk → the beginning of its text, where the collection still is what the run saw; else nothing."""
    try:
        collection = collections.get(store, run.collection)
    except (UsageError, CannotJudge):
        return {}
    if collection.corpus_digest != runs.get_run(store, run.run_id).inputs.get("corpus_digest"):
        return {}
    found = chunks.chunks_named(store, collection, chunk_ids)
    return {name: text if len(text) <= _EXCERPT else text[:_EXCERPT].rstrip() + " …" for name, text in found.items()}
