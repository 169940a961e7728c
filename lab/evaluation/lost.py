"""The lost questions of a recorded run, and, where it is asked for, how far the arms were from what none of them brought."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lab.errors import CannotJudge
from lab.evaluation.losses import Loss, waterfall
from lab.evaluation.repeat import gold_of
from lab.evaluation.run import answerable, targets_of
from lab.evaluation.shown import Shown
from lab.gold.check import fit
from lab.progress import Progress
from lab.records import Question
from lab.retrieval.search import open_corpus
from lab.retrieval.why import arm_ranks
from lab.settings import Settings
from lab.store import runs
from lab.store.connect import Store


@dataclass(frozen=True, slots=True)
class LostQuestion:
    """`rank` is the best one right before the stage that lost it; `exact`: arm → rank in its whole list, of what no arm brought."""

    question: str
    text: str
    kind: str
    stage: str
    rank: int
    exact: Mapping[str, int | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, repr=False)
class Lost(Shown):
    """The lost questions of one run, by stage in the order of execution."""

    run_id: str
    k: int
    scored: int
    by_stage: Mapping[str, int]
    questions: Sequence[LostQuestion]
    arms: Sequence[str] = ()  # of which exact ranks were asked for

    def to_frame(self) -> Any:
        """One row a lost question (pandas); with exact ranks a column an arm."""
        import pandas as pd

        rows = [
            {
                "question": q.question,
                "kind": q.kind,
                "stage": q.stage,
                "rank": q.rank or None,
                **{f"{a} rank": q.exact.get(a) for a in self.arms},
                "text": q.text,
            }
            for q in self.questions
        ]
        return pd.DataFrame(rows)

    def to_json(self) -> dict[str, Any]:
        """The object of `lab runs lost --json`."""
        return {
            "schema_version": 1, "run_id": self.run_id, "k": self.k, "questions": self.scored, "lost": dict(self.by_stage),
            "list": [
                {"question": q.question, "text": q.text, "kind": q.kind, "stage": q.stage, "rank": q.rank or None, **({"exact": dict(q.exact)} if q.exact else {})}
                for q in self.questions
            ],
        }  # fmt: skip


def lost_questions(store: Store, run_id: str, *, exact: bool = False, gold: str | None = None) -> Lost:
    """Raises UsageError for an unknown run; with `exact` CannotJudge where collection or gold set are not what the run saw."""
    row = runs.get_run(store, run_id)
    if row.status == "incomplete":
        raise CannotJudge(f"{run_id} is incomplete: run it again.")
    known = {q.question_id: q for q in runs.questions(store, row.gold_digest)}
    gone = runs.lost_at(store, run_id)
    order = list(waterfall({question: Loss(stage, rank) for question, stage, rank in gone}).items())
    place = {stage: i for i, (stage, _) in enumerate(order)}
    ranks = _exact(store, row, [question for question, stage, _ in gone if stage == "no_arm"], gold) if exact else {}
    questions = [
        LostQuestion(question, known[question].text, known[question].kind, stage, rank, ranks.get(question, {}))
        for question, stage, rank in sorted(gone, key=lambda g: (place[g[1]], g[0]))
    ]
    arms = sorted({arm for found in ranks.values() for arm in found})
    return Lost(run_id, int(row.health.get("k", 0)), row.questions, dict(order), questions, arms)


def _exact(store: Store, row: runs.RunRow, wanted: Sequence[str], named: str | None) -> dict[str, dict[str, int | None]]:
    corpus = open_corpus(store, row.collection)
    if corpus.collection.corpus_digest != row.inputs.get("corpus_digest"):
        raise CannotJudge(f"collection {row.collection!r} is no longer what {row.run_id} saw: run it again, and ask for that run.")
    gold = fit(store, corpus.collection, gold_of(store, row, named)).gold
    asked: list[Question] = [q for q in answerable(gold) if q.question_id in set(wanted)]
    targets = targets_of(corpus, gold, asked)
    settings = Settings(**row.settings)
    found = {}
    with store.held(), Progress(f"exact ranks in {row.collection}", len(asked), "questions") as bar:
        for question in asked:
            keys = {key for target in targets[question.question_id] for key in target.keys}
            found[question.question_id] = arm_ranks(corpus, question.text, settings, keys)
            bar.advance()
    return found
