"""Before a run: what the questions of a gold set can show, and how often a gate on equal systems could not judge."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lab.errors import CannotJudge, UsageError
from lab.evaluation.compare import PRIMARY, SHARES, check_alpha, codes_of, columns, unit_of
from lab.evaluation.measures import parse
from lab.evaluation.recorded import Run, of_rows
from lab.evaluation.shown import Shown
from lab.evaluation.statistics import power
from lab.evaluation.statistics.paired import ALPHA, design_effect
from lab.gold.clusters import clusters
from lab.records import GoldSet
from lab.store import runs
from lab.store.connect import Store

ASSUMED_ICC = 0.2  # where no run tells: on our gold sets it was 0.00 to 0.25
CHANGED = 0.1  # share of the questions that a change of settings usually flips
_LOOK = 20  # newest runs that are looked at


@dataclass(frozen=True, slots=True, repr=False)
class Power(Shown):
    """`smallest`: measure → smallest true difference (in its own unit) that is found with a chance of 0.8; None where none would be. `needed`, `cannot_judge` and `least_margin`
    belong to a gate with `margin`; `basis` says where the likeness within clusters comes from."""

    gold: str
    questions: int
    clusters: int
    n_eff: float
    changed: float
    effects: int
    alpha: float
    smallest: Mapping[str, float | None]
    margin: float
    least_margin: float
    needed: int | None
    cannot_judge: float
    basis: str

    def to_frame(self) -> Any:
        """One row a measure with the smallest difference that is found with a chance of 0.8, in its own unit (pandas)."""
        import pandas as pd

        return pd.DataFrame(
            [
                {"measure": m, "smallest": v, "questions": self.questions, "clusters": self.clusters, "n_eff": self.n_eff}
                for m, v in self.smallest.items()
            ]
        )

    def to_json(self) -> dict[str, Any]:
        """The object of `lab power --json`; `mde` in points for measures from 0 to 1."""
        points = {m: None if v is None else round(100 * v if unit_of(m) == 1 else v, 2) for m, v in self.smallest.items()}
        return {
            "schema_version": 1, "gold": self.gold, "questions": self.questions, "clusters": self.clusters, "n_eff": round(self.n_eff, 1), "changed": self.changed,
            "effects": self.effects, "alpha": self.alpha, "mde": points, "basis": self.basis,
            "gate": {"margin": self.margin, "least_margin": round(self.least_margin, 4), "needed_questions": self.needed, "cannot_judge_rate": round(self.cannot_judge, 3)},
        }  # fmt: skip


def plan(
    store: Store | None,
    gold: GoldSet,
    *,
    measure: str = PRIMARY,
    changed: float = CHANGED,
    effects: int = 1,
    alpha: float = ALPHA,
    margin: float = 0.05,
) -> Power:
    """What a gold set can show. With a store the newest runs on it tell how alike the questions of a cluster are, and how much other measures than shares vary.

    Raises UsageError for numbers that are none, CannotJudge for a set without a judged question.
    """
    check_alpha(alpha)
    for name, value in (("changed", changed), ("margin", margin)):
        if not 0 < value <= 1:
            raise UsageError(f"--{name} {value} is no share: above 0, up to 1.")
    if effects < 1:
        raise UsageError(f"--effects {effects} is too few: at least 1.")
    judged = {j.question_id for j in gold.judgments}
    asked = [q for q in gold.questions if q.answerable and q.question_id in judged]
    if not asked:
        raise CannotJudge(f"gold set {gold.name!r} holds no answerable question with a judgment: nothing can be shown.")
    known = clusters(gold.questions, gold.judgments)
    names = [known[q.question_id] for q in asked]
    sizes = np.unique(names, return_counts=True)[1]
    recorded = _recorded(store, gold) if store is not None else []
    main = str(parse(measure))
    deff, basis = _design_effect(recorded, main, sizes, len(asked))
    n_eff = len(asked) / deff
    level = alpha / effects
    smallest: dict[str, float | None] = {}
    if parse(main).name in SHARES:
        smallest[main] = power.smallest_effect(n_eff, changed, level)
    for name, error in _errors(recorded).items():
        if parse(name).name not in SHARES:
            smallest[name] = power.smallest_mean_effect(error, level)
    needed = power.gate_questions(changed, margin, alpha)
    return Power(
        gold.name, len(asked), len(sizes), n_eff, changed, effects, alpha, smallest, margin, power.least_margin(n_eff, alpha),
        None if needed is None else int(np.ceil(needed * deff)), 1 - power.gate_passes(n_eff, changed, margin, alpha), basis,
    )  # fmt: skip


def _recorded(store: Store, gold: GoldSet) -> list[Run]:
    rows = [row for row in runs.runs(store, limit=500) if row.gold_digest == gold.digest and row.status == "ok"]
    rows = [row for row in rows if row.split == str(gold.metadata.get("split", "all"))][:_LOOK]
    return of_rows(store, rows)


def _design_effect(recorded: list[Run], measure: str, sizes: np.ndarray, n: int) -> tuple[float, str]:
    if sizes.max() == 1:
        return 1.0, "every question is about its own document"
    for run in recorded:
        if measure in run.scores:
            questions, tables = columns([run], [measure])
            scores = tables[run.run_id][:, 0]
            kept = ~np.isnan(scores)
            return design_effect(
                scores[kept], np.unique(codes_of(run, questions)[kept], return_inverse=True)[1]
            ), f"clusters as alike as in run {run.run_id}"
    return max(1.0, 1 + (n / len(sizes) - 1) * ASSUMED_ICC), f"no run on these questions yet: an intraclass correlation of {ASSUMED_ICC} is assumed"


def _errors(recorded: list[Run]) -> dict[str, float]:
    """Measure → the median standard error of a paired mean difference between neighbouring runs."""
    found: dict[str, list[float]] = {}
    for a, b in itertools.pairwise(recorded):
        if set(a.by_question) != set(b.by_question):
            continue
        measures = [m for m in a.scores if m in b.scores]
        questions, tables = columns([a, b], measures)
        codes = np.unique(codes_of(a, questions), return_inverse=True)[1]
        for i, measure in enumerate(measures):
            d = tables[b.run_id][:, i] - tables[a.run_id][:, i]
            if not np.isnan(d).any() and d.any():
                sums = np.bincount(codes, weights=d)
                found.setdefault(measure, []).append(float(np.sqrt(((sums - sums.mean()) ** 2).sum()) / len(d)))
    return {measure: float(np.median(errors)) for measure, errors in found.items()}
