"""Tuning with a conscience: the best settings of a grid on one split, never `test`, with the figure that they reach on questions which did not choose them.

Folds hold whole clusters (questions about one document stay together). In each turn the best settings on the other folds are scored on the one left out (nested cross-validation;
Stone 1974): the mean over the folds is the held-out figure, and what the chosen settings score on all questions, less that, is the optimism.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lab.errors import CannotJudge, UsageError
from lab.evaluation.abstention import floor_for, signals
from lab.evaluation.compare import LOWER, PRIMARY, columns
from lab.evaluation.measures import DEFAULT, of_rankings, parse
from lab.evaluation.run import answerable, as_gold, execute, new_id
from lab.evaluation.shown import Shown
from lab.gold.clusters import clusters
from lab.gold.splits import may_learn
from lab.grids import clean_factors, grid
from lab.records import GoldSet
from lab.retrieval.search import check_runnable, open_corpus
from lab.settings import Settings, resolved
from lab.store import recording
from lab.store.connect import Store, connect

FOLDS = 5


@dataclass(frozen=True, slots=True)
class Floor:
    """The floor at which at most `wanted` of the unanswerable questions pass; `false_answers` and `coverage` (answerable questions that pass) are held-out figures."""

    value: float
    wanted: float
    false_answers: float
    coverage: float
    answerable: int
    unanswerable: int


@dataclass(frozen=True, slots=True, repr=False)
class Tuned(Shown):
    """`chosen`: flag → word. `apparent` is what it scores on the questions that chose it, `held_out` what the choice scores on others."""

    experiment_id: str
    split: str
    measure: str
    questions: int
    chosen: Mapping[str, str]
    before: float  # of the first member of the grid
    apparent: float
    held_out: float
    folds: Sequence[tuple[Mapping[str, str], float, int]]  # what the other folds chose, its score on this one, questions
    floor: Floor | None = None

    @property
    def optimism(self) -> float:
        return self.apparent - self.held_out

    def to_frame(self) -> Any:
        """One row a fold: what the other folds chose, and what it scored here (pandas)."""
        import pandas as pd

        return pd.DataFrame([{"fold": at, "questions": size, **chosen, "held_out": score} for at, (chosen, score, size) in enumerate(self.folds, 1)])

    def to_json(self) -> dict[str, Any]:
        """The object of `lab tune --json`."""
        found: dict[str, Any] = {
            "schema_version": 1, "experiment_id": self.experiment_id, "split": self.split, "measure": self.measure, "questions": self.questions, "chosen": dict(self.chosen),
            "before": self.before, "apparent": self.apparent, "held_out": self.held_out, "optimism": self.optimism,
            "folds": [{"chosen": dict(chosen), "held_out": score, "questions": size} for chosen, score, size in self.folds],
        }  # fmt: skip
        if self.floor is not None:
            f = self.floor
            found["floor"] = {
                "value": f.value, "wanted_false_answers": f.wanted, "held_out_false_answers": f.false_answers, "held_out_coverage": f.coverage, "answerable": f.answerable,
                "unanswerable": f.unanswerable,
            }  # fmt: skip
        return found


def tune(
    collection: str, gold: str | GoldSet, factors: Mapping[str, Sequence[str | float]], *, store: Store | None = None, settings: Settings | str | None = None, split: str = "dev",
    measure: str = PRIMARY, folds: int = FOLDS, false_answers: float | None = None, command: str = "", **flags: str | float,
) -> Tuned:  # fmt: skip
    """Runs the grid on `split` and chooses. With `false_answers` a floor is chosen too, by the signals of the unanswerable questions of the split.

    Raises UsageError for the split `test` and unknown names, CannotJudge where the split has fewer clusters than folds.
    """
    if store is None:
        with connect() as opened:
            return tune(
                collection, gold, factors, store=opened, settings=settings, split=split, measure=measure, folds=folds, false_answers=false_answers, command=command, **flags
            )  # fmt: skip
    may_learn(split)
    if folds < 2:
        raise UsageError(f"--folds {folds} holds nothing out: at least 2.")
    if false_answers is not None and not 0 <= false_answers < 1:
        raise UsageError(f"--false-answers {false_answers} is no share: from 0 to below 1.")
    name = str(of_rankings(measure))
    words = clean_factors(factors) if factors else {}
    if not words and false_answers is None:
        raise UsageError("name at least one --factor, as in --factor rrf_k=5,10,60, or a rate behind --false-answers.")
    loaded = as_gold(gold, split)
    base = resolved(settings).with_words({k: str(v) for k, v in flags.items()})
    corpus = open_corpus(store, collection)
    members = grid(words, base) if words else [({}, base)]
    for _, member in members:
        check_runnable(corpus, member)
    place = _places(loaded, folds)
    if len({place[q.question_id] for q in answerable(loaded)}) < folds:
        raise CannotJudge(f"the split {split} has questions about too few documents for {folds} folds: name fewer --folds, or a larger split.")
    experiment_id = new_id("e")
    recording.begin_experiment(store, experiment_id, collection, loaded.name, loaded.digest, words, command)
    done = execute(corpus, loaded, members, measures=[parse(m) for m in dict.fromkeys([*DEFAULT, name])], experiment_id=experiment_id)
    recording.finish_experiment(store, experiment_id)
    questions, tables = columns(done, [name])
    scores = np.stack([tables[run.run_id][:, 0] for run in done])  # (members, questions)
    about = ~np.isnan(scores).any(axis=0)
    at = np.array([place[q] for q in questions])
    if len(set(at[about])) < folds:
        raise CannotJudge(f"{name} is about too few questions of the split {split} for {folds} folds: name fewer --folds, or a larger split.")
    better = -scores if parse(name).name in LOWER else scores
    best = _best(better[:, about])
    turns = []
    held = np.zeros(len(questions))
    for fold in range(folds):
        inside = about & (at == fold)
        choice = _best(better[:, about & (at != fold)])
        held[inside] = scores[choice][inside]
        turns.append((dict(members[choice][0]), float(scores[choice][inside].mean()), int(inside.sum())))
    floor = None
    if false_answers is not None:
        floor = _floor(corpus, loaded, members[best][1], false_answers, folds, place)
    return Tuned(
        experiment_id, split, name, int(about.sum()), dict(members[best][0]), float(scores[0][about].mean()), float(scores[best][about].mean()), float(held[about].mean()), turns,
        floor,
    )  # fmt: skip


def _best(scores: np.ndarray) -> int:
    """The member with the highest mean; the first of equals, so that what stands first in the grid is kept unless something is better."""
    return int(np.argmax(scores.mean(axis=1).round(12)))


def _places(gold: GoldSet, folds: int) -> dict[str, int]:
    """Question → fold; answerable and unanswerable questions are spread apart, so that every fold has its share of both."""
    cluster = clusters(gold.questions, gold.judgments)
    scored = {q.question_id for q in answerable(gold)}
    return {
        **fold_of({q: name for q, name in cluster.items() if q in scored}, folds),
        **fold_of({q: name for q, name in cluster.items() if q not in scored}, folds),
    }


def fold_of(cluster: Mapping[str, str], folds: int) -> dict[str, int]:
    """Question → fold: clusters in the order of their hash go to the smallest fold."""
    members: dict[str, list[str]] = {}
    for question, name in cluster.items():
        members.setdefault(name, []).append(question)
    sizes = [0] * folds
    found = {}
    for name in sorted(members, key=lambda n: (-len(members[n]), hashlib.sha256(n.encode()).hexdigest())):
        fold = min(range(folds), key=lambda i: (sizes[i], i))
        sizes[fold] += len(members[name])
        found.update(dict.fromkeys(members[name], fold))
    return found


def _floor(corpus: Any, gold: GoldSet, settings: Settings, wanted: float, folds: int, place: Mapping[str, int]) -> Floor:
    if settings.dense_arm == "none":
        raise UsageError("a floor looks at the dense arm's cosine: tune it with a dense arm.")
    known = signals(corpus, gold.questions, [settings])[0]
    no = {q.question_id: known[q.question_id] for q in gold.questions if not q.answerable and q.question_id in known}
    yes = {q.question_id: known[q.question_id] for q in gold.questions if q.answerable and q.question_id in known}
    if len(no) < folds or not yes:
        raise CannotJudge(f"{len(no)} unanswerable questions are too few to choose a floor by: at least {folds}.")
    chosen = floor_for(list(no.values()), wanted)
    if math.isinf(chosen):
        always = sum(math.isinf(v) for v in no.values())
        raise CannotJudge(
            f"{always} of {len(no)} unanswerable questions name a code or section that the collection holds, and pass any floor: say --false-answers {math.ceil(100 * always / len(no)) / 100:.2f} "
            "or more."
        )
    passed_no = passed_yes = 0
    for fold in range(folds):
        value = floor_for([v for q, v in no.items() if place[q] != fold], wanted)
        passed_no += sum(v >= value for q, v in no.items() if place[q] == fold)
        passed_yes += sum(v >= value for q, v in yes.items() if place[q] == fold)
    chosen = math.ceil(chosen * 1e6) / 1e6  # as it is printed: rounded up, or what it shuts out would pass
    return Floor(chosen, wanted, passed_no / len(no), passed_yes / len(yes), len(yes), len(no))
