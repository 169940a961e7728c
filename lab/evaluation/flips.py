"""From one run to another: what differs in the inputs, which questions flipped, and the stage that lost each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.errors import CannotJudge, UsageError, unknown
from lab.evaluation.compare import LOWER, PRIMARY, differing_flags, differing_inputs, not_comparable
from lab.evaluation.losses import WORDS, in_words
from lab.evaluation.measures import parse
from lab.evaluation.recorded import of_rows
from lab.evaluation.shown import Shown
from lab.store import runs
from lab.store.connect import Store


@dataclass(frozen=True, slots=True)
class Flip:
    """A question whose score differs. `stage`: of a lost one the stage that lost its answer in `b`, of a won one the stage that had lost it in `a`; empty where the answer is
    among the first k in both, at another rank."""

    question: str
    text: str
    kind: str
    direction: str  # won, lost
    before: float
    after: float
    stage: str


@dataclass(frozen=True, slots=True, repr=False)
class Diff(Shown):
    """`b` against `a`. `lost`, `won`: stage → questions."""

    a: str
    b: str
    measure: str
    questions: int
    flags_that_differ: Mapping[str, tuple[Any, Any]]
    inputs_that_differ: Mapping[str, tuple[Any, Any]]
    flips: Sequence[Flip]
    k: int = 0  # below which rank an answer counts as lost

    def by_stage(self, direction: str) -> dict[str, int]:
        """Stage → questions that were won (lost in `a` there), or lost there in `b`; in the order of execution."""
        counts: dict[str, int] = {}
        for flip in self.flips:
            if flip.direction == direction:
                counts[flip.stage] = counts.get(flip.stage, 0) + 1
        return {stage: counts[stage] for stage in (*WORDS, *sorted(counts.keys() - WORDS.keys())) if stage in counts}

    @property
    def words(self) -> str:
        """`of 14 questions lost, 9 were demoted by the reranker, 5 fused out; of 3 won, …`"""
        said = []
        for direction in ("lost", "won"):
            counts = self.by_stage(direction)
            total = sum(counts.values())
            causes = ", ".join(f"{count} {in_words(stage) if stage else 'only moved in rank'}" for stage, count in counts.items())
            before = "" if direction == "lost" else "had been "
            said.append(f"{total} {direction}" + (f" ({before}{causes})" if total else ""))
        return f"{self.measure}: of {self.questions} questions " + ", ".join(said)

    def to_frame(self) -> Any:
        """One row a flipped question (pandas)."""
        import pandas as pd

        return pd.DataFrame(self.to_json()["flips"], columns=["question", "text", "kind", "direction", "before", "after", "stage"])

    def to_json(self) -> dict[str, Any]:
        """The object of `lab diff --json`."""
        return {
            "schema_version": 1, "a": self.a, "b": self.b, "measure": self.measure, "questions": self.questions,
            "flags_that_differ": [{"flag": name, "a": a, "b": b} for name, (a, b) in self.flags_that_differ.items()],
            "inputs_that_differ": [{"input": name, "a": a, "b": b} for name, (a, b) in self.inputs_that_differ.items()],
            "flips": [
                {"question": f.question, "text": f.text, "kind": f.kind, "direction": f.direction, "before": f.before, "after": f.after, "stage": f.stage or None}
                for f in self.flips
            ],
            "lost": self.by_stage("lost"), "won": self.by_stage("won"), "words": self.words,
        }  # fmt: skip


def diff(store: Store, a: str, b: str, *, measure: str = PRIMARY) -> Diff:
    """What changed from run `a` to run `b`. UsageError for an unknown run or measure, CannotJudge where the runs cannot be paired."""
    first, second = runs.get_run(store, a), runs.get_run(store, b)
    if a == b:
        raise UsageError(f"{a} is compared with itself: name two runs.")
    if reasons := not_comparable(first, second):
        raise CannotJudge("the runs cannot be paired: " + "; ".join(reasons) + ".")
    name = str(parse(measure))
    one, two = of_rows(store, [first, second])
    if name not in one.scores or name not in two.scores:
        raise unknown("measure of both runs", name, [m for m in one.scores if m in two.scores])
    texts = {q.question_id: q for q in runs.questions(store, first.gold_digest)}
    flips = []
    for question in sorted(one.by_question.keys() & two.by_question.keys()):
        before, after = one.by_question[question].get(name), two.by_question[question].get(name)
        if before is None or after is None or abs(before - after) < 1e-12:
            continue
        won = (after > before) != (parse(name).name in LOWER)
        stage = one.lost.get(question, "") if won else two.lost.get(question, "")
        flips.append(
            Flip(
                question,
                texts[question].text,
                texts[question].kind,
                "won" if won else "lost",
                before,
                after,
                stage,
            )
        )
    flips.sort(key=lambda f: (f.direction, f.stage, f.question))
    return Diff(
        a, b, name, len(one.by_question), differing_flags(first, second), differing_inputs(first, second), flips, int(second.health.get("k", 0))
    )
