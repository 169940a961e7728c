"""Runs as they are recorded: what every comparison, table and plot is made of. Reading them back needs neither models nor a collection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lab.evaluation.measures import DEFAULT, means
from lab.evaluation.shown import draw
from lab.settings import Settings
from lab.store import runs
from lab.store.connect import Store


@dataclass(frozen=True, slots=True, repr=False)
class Run:
    """A finished run: means and per-question scores. `status` is ok, degraded or incomplete."""

    run_id: str
    collection: str
    gold: str
    status: str
    questions: int
    passed: Mapping[str, str]
    settings: Settings
    scores: Mapping[str, float]
    by_question: Mapping[str, Mapping[str, float]]
    kinds: Mapping[str, str]
    notes: Sequence[str] = ()
    rankings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # question → chunk ids, best first
    health: Mapping[str, Any] = field(default_factory=dict)  # see lab.evaluation.health
    bands: Mapping[str, str] = field(default_factory=dict)  # question → how much it copies: copied, natural, paraphrased
    clusters: Mapping[str, str] = field(default_factory=dict)  # question → its cluster, see lab.gold.clusters
    lost: Mapping[str, str] = field(default_factory=dict)  # question → the stage that lost what answers it, see lab.evaluation.losses

    def to_json(self) -> dict[str, Any]:
        """The object of `lab run --json`."""
        return {
            "schema_version": 1,
            "run_id": self.run_id,
            "status": self.status,
            "collection": self.collection,
            "gold": self.gold,
            "questions": self.questions,
            "passed": dict(self.passed),
            "scores": dict(self.scores),
            "kinds": self.grouped("kind"),
            "bands": self.grouped("band"),
            "macro": {by: self.macro(by) for by in ("kind", "cluster")},
            "health": dict(self.health),
            "notes": list(self.notes),
        }

    def grouped(self, by: str) -> dict[str, dict[str, float]]:
        """Group → measure → mean, by `kind`, `band` or `cluster` (the document a question is about, or the question that it says in other words)."""
        of = {"kind": self.kinds, "band": self.bands, "cluster": self.clusters}[by]
        groups: dict[str, dict[str, Mapping[str, float]]] = {}
        for question, values in self.by_question.items():
            groups.setdefault(of.get(question, ""), {})[question] = values
        return {name: means(groups[name], self.scores) for name in sorted(groups) if name}

    def macro(self, by: str) -> dict[str, float]:
        """Measure → mean of the groups' means: every kind, or every document, counts alike, however many questions it has."""
        return means(self.grouped(by), self.scores)

    def to_frame(self) -> Any:
        """Tidy: one row a question and measure (pandas): run_id, question, kind, band, cluster, measure, value."""
        import pandas as pd

        rows = [
            (self.run_id, question, self.kinds.get(question, ""), self.bands.get(question, ""), self.clusters.get(question, ""), measure, value)
            for question, values in self.by_question.items()
            for measure, value in values.items()
        ]
        return pd.DataFrame(rows, columns=["run_id", "question", "kind", "band", "cluster", "measure", "value"])

    def plot_losses(self) -> Any:
        """Waterfall of where answers were lost; an array of axes."""
        return draw("run_plots", "losses", [self])

    def plot_hit_at_k(self) -> Any:
        """Share of questions answered within the first k; matplotlib axes."""
        return draw("run_plots", "hit_at_k", [self])

    def __repr__(self) -> str:
        told = ", ".join(f"{m} {v:.3f}" for m, v in list(self.scores.items())[:5])
        return f"Run {self.run_id}: {self.status}, {self.questions} questions of {self.gold} on {self.collection}; {told}"

    def _repr_html_(self) -> str:
        import pandas as pd

        return str(pd.DataFrame([self.scores], index=[self.run_id]).round(3).to_html())


def load(store: Store, run_ids: Sequence[str]) -> list[Run]:
    """The runs, in the order given, without their rankings. UsageError for an unknown one."""
    rows = [runs.get_run(store, run_id) for run_id in run_ids]
    return of_rows(store, rows)


def of_rows(store: Store, rows: Sequence[runs.RunRow]) -> list[Run]:
    """The same from rows that were read already."""
    asked = {digest: runs.questions(store, digest) for digest in {row.gold_digest for row in rows}}
    tables: dict[str, dict[str, dict[str, float]]] = {row.run_id: {} for row in rows}
    for run_id, question, measure, value in runs.scores(store, [row.run_id for row in rows]):
        tables[run_id].setdefault(question, {})[measure] = value
    gone = runs.losses(store, [row.run_id for row in rows])
    found = []
    for row in rows:
        by_question, known = tables[row.run_id], asked[row.gold_digest]
        measures = sorted(
            {m for values in by_question.values() for m in values}, key=lambda m: (DEFAULT.index(m) if m in DEFAULT else len(DEFAULT), m)
        )
        found.append(
            Run(
                row.run_id, row.collection, row.gold, row.status, row.questions, row.passed, Settings(**row.settings), means(by_question, measures), by_question,
                {q.question_id: q.kind for q in known}, row.notes, {}, row.health,
                {q.question_id: str(q.metadata["band"]) for q in known if "band" in q.metadata},
                {q.question_id: str(q.metadata.get("cluster", f"question {q.question_id}")) for q in known}, gone[row.run_id],
            )
        )  # fmt: skip
    return found
