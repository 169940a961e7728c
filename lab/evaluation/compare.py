"""Two runs, paired by question: what differs between them, what that did to each measure, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lab.errors import CannotJudge, UsageError, unknown
from lab.evaluation.measures import parse
from lab.evaluation.recorded import Run, of_rows
from lab.evaluation.shown import Shown, draw
from lab.evaluation.statistics.exact import least_changed
from lab.evaluation.statistics.paired import ALPHA, Paired, PairedTests, equivalent, non_inferior
from lab.settings import Settings
from lab.store import runs
from lab.store.connect import Store, connect

PRIMARY = "hit@5"
SHARES = frozenset({"hit", "short", "primary_first", "all_hit", "answered"})  # measures that are 0 or 1 for a question
LOWER = frozenset({"short"})  # of which less is better
_INPUTS = (
    "corpus_digest",
    "link_digest",
    "link_extractor",
    "embedder",
    "model_digest",
    "language",
    "index_build",
    "authority",
    "reranker_digest",
    "claims_digest",
)


@dataclass(frozen=True, slots=True)
class Margin:
    """Whether a loss as large as `margin` is ruled out (non-inferior), and differences as large both ways (equivalent: two one-sided tests); `[low, high]` at level 1 − 2·alpha."""

    margin: float
    low: float
    high: float
    level: float
    non_inferior: bool
    equivalent: bool

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Shown):
    """`b` against `a`. `flags_that_differ`, `inputs_that_differ`: name → (in a, in b). `verdict` is that of the primary measure: better, worse, nothing_changed, cannot_tell, or
    not_comparable (`reasons` say why, and `measures` is empty)."""

    a: str
    b: str
    questions: int
    flags_that_differ: Mapping[str, tuple[Any, Any]]
    inputs_that_differ: Mapping[str, tuple[Any, Any]]
    measures: Mapping[str, Paired]
    primary: str
    verdict: str
    reasons: Sequence[str] = ()
    warnings: Sequence[str] = ()
    margin: Margin | None = None

    def to_json(self) -> dict[str, Any]:
        """The object of `lab compare --json`."""
        return {
            "schema_version": 1, "a": self.a, "b": self.b, "questions": self.questions,
            "flags_that_differ": [{"flag": name, "a": a, "b": b} for name, (a, b) in self.flags_that_differ.items()],
            "inputs_that_differ": [{"input": name, "a": a, "b": b} for name, (a, b) in self.inputs_that_differ.items()],
            "measures": {name: {key: value for key, value in paired.to_json().items() if key != "p_adjusted"} for name, paired in self.measures.items()},
            "primary": self.primary, "verdict": self.verdict, "reasons": list(self.reasons), "warnings": list(self.warnings), "words": self.words,
            "margin": self.margin.to_json() if self.margin is not None else None,
        }  # fmt: skip

    @property
    def words(self) -> str:
        """The verdict in a sentence or two."""
        if self.verdict == "not_comparable":
            return "not comparable: " + "; ".join(self.reasons)
        said = in_words(self.primary, self.measures[self.primary])
        count = len(self.flags_that_differ) + len(self.inputs_that_differ)
        return f"{said} {count} flags differ, so this is no effect of one of them." if len(self.flags_that_differ) > 1 else said

    def plot_measures(self) -> Any:
        """Forest plot of the measures that lie between 0 and 1; matplotlib axes."""
        return draw("effect_plots", "measures", self)

    def to_frame(self) -> Any:
        """One row a measure (pandas)."""
        import pandas as pd

        return pd.DataFrame([{"measure": name, **paired.to_json()} for name, paired in self.measures.items()])


def compare(
    a: str | Run,
    b: str | Run,
    *,
    store: Store | None = None,
    measures: Sequence[str] = (),
    primary: str = PRIMARY,
    alpha: float = ALPHA,
    margin: float | None = None,
) -> Comparison:
    """Compares two recorded runs by their ids; with `margin` (in the unit of the primary measure) also whether `b` is not worse by as much. Raises UsageError for an unknown run or measure, or the same run twice."""
    if store is None:
        with connect() as opened:
            return compare(a, b, store=opened, measures=measures, primary=primary, alpha=alpha, margin=margin)
    check_alpha(alpha)
    if margin is not None and not 0 < margin <= unit_of(primary):
        raise UsageError(f"--margin {margin} is no difference of {primary}: above 0, up to {unit_of(primary):g}.")
    first, second = (runs.get_run(store, run if isinstance(run, str) else run.run_id) for run in (a, b))
    if first.run_id == second.run_id:
        raise UsageError(f"{first.run_id} is compared with itself: name two runs.")
    flags = differing_flags(first, second)
    inputs = differing_inputs(first, second)
    reasons = not_comparable(first, second)
    main = str(parse(primary))
    if reasons:
        return Comparison(first.run_id, second.run_id, 0, flags, inputs, {}, main, "not_comparable", reasons)
    one, two = of_rows(store, [first, second])
    if set(one.by_question) != set(two.by_question):
        lacking = sorted(set(one.by_question) ^ set(two.by_question))
        reasons = [f"{len(lacking)} questions were scored in one run only, as {lacking[0]}"]
        return Comparison(first.run_id, second.run_id, 0, flags, inputs, {}, main, "not_comparable", reasons)
    wanted = [str(parse(m)) for m in measures] or [m for m in one.scores if m in two.scores]
    for measure in (main, *wanted):
        if measure not in one.scores or measure not in two.scores:
            raise unknown("measure of both runs", measure, [m for m in one.scores if m in two.scores])
    found = paired_scores(one, two, list(dict.fromkeys([main, *wanted])), alpha=alpha)
    if main not in found:
        reasons = [f"{main} is about no question that both runs share"]
        return Comparison(first.run_id, second.run_id, 0, flags, inputs, {}, main, "not_comparable", reasons)
    warnings = [f"{run.run_id} is {run.status}: {'; '.join(run.notes[:3])}" for run in (one, two) if run.status != "ok"]
    if len(flags) > 1:
        warnings.append(f"{len(flags)} flags differ ({', '.join(flags)}): no effect of a single flag is claimed")
    return Comparison(
        one.run_id, two.run_id, len(one.by_question), flags, inputs, found, main, verdict_of(main, found[main]), (), warnings,
        _margin(one, two, main, margin, alpha) if margin is not None else None
    )  # fmt: skip


def _margin(a: Run, b: Run, measure: str, margin: float, alpha: float) -> Margin:
    found = paired_scores(a, b, [measure], alpha=alpha, level=1 - 2 * alpha)[measure]
    low, high = (-found.high, -found.low) if parse(measure).name in LOWER else (found.low, found.high)
    return Margin(margin, low, high, 1 - 2 * alpha, non_inferior(low, margin), equivalent(low, high, margin))


def shared_measure(scored: Sequence[Run], wanted: str = PRIMARY) -> str:
    """`wanted` where every run has it, else the first measure that all have. CannotJudge where they have none in common."""
    common = [m for m in scored[0].scores if all(m in run.scores for run in scored)]
    if not common:
        raise CannotJudge("the runs have no measure in common: score them by the same, as with --measure hit@5.")
    return wanted if wanted in common else common[0]


def check_alpha(alpha: float) -> None:
    """UsageError for an α that is none."""
    if not 0 < alpha < 0.5:
        raise UsageError(f"--alpha {alpha} is no level of significance: between 0 and 0.5, as 0.05.")


def not_comparable(a: runs.RunRow, b: runs.RunRow) -> list[str]:
    """Why two runs cannot be paired; empty where they can."""
    reasons = [f"{row.run_id} is incomplete: run it again" for row in (a, b) if row.status == "incomplete"]
    if a.gold_digest != b.gold_digest:
        reasons.append(f"they were scored with other gold: {a.gold} {a.gold_digest} and {b.gold} {b.gold_digest}")
    elif a.split != b.split:
        reasons.append(f"they were scored on other splits: {a.split} and {b.split}")
    return reasons


def differing_flags(a: runs.RunRow, b: runs.RunRow) -> dict[str, tuple[Any, Any]]:
    """Flag → (in a, in b), of those that differ."""
    usual = Settings().as_dict()  # of flags that an older run did not know
    ours, theirs = ({**usual, **row.settings} for row in (a, b))
    return {name: (ours.get(name), value) for name, value in theirs.items() if ours.get(name) != value}


def differing_inputs(a: runs.RunRow, b: runs.RunRow) -> dict[str, tuple[Any, Any]]:
    """What differs between two runs beside their flags: ingest flags, digests, code."""
    found: dict[str, tuple[Any, Any]] = {}
    if a.collection != b.collection:
        found["collection"] = (a.collection, b.collection)
    ours, theirs = a.inputs.get("ingest", {}), b.inputs.get("ingest", {})
    found |= {f"ingest.{name}": (ours.get(name), theirs.get(name)) for name in sorted({*ours, *theirs}) if ours.get(name) != theirs.get(name)}
    found |= {name: (a.inputs.get(name), b.inputs.get(name)) for name in _INPUTS if a.inputs.get(name) != b.inputs.get(name)}
    for name in ("lab", "commit", "postgres"):
        if a.environment.get(name) != b.environment.get(name):
            found[name] = (a.environment.get(name), b.environment.get(name))
    return found


def columns(scored: Sequence[Run], measures: Sequence[str]) -> tuple[list[str], dict[str, np.ndarray]]:
    """(questions in order, run → `(questions, measures)`), NaN where a question is not one that a measure is about. All runs must have the same questions."""
    questions = sorted(scored[0].by_question)
    nan = float("nan")
    return questions, {run.run_id: np.array([[run.by_question[q].get(m, nan) for m in measures] for q in questions]) for run in scored}


def codes_of(run: Run, questions: Sequence[str]) -> np.ndarray:
    """The cluster of each question as a number."""
    names: dict[str, int] = {}
    return np.array([names.setdefault(run.clusters.get(q, f"question {q}"), len(names)) for q in questions], dtype=np.int64)


def unit_of(measure: str) -> float:
    """The range of a measure's values: k for `distinct@k` and `sources@k`, else 1."""
    known = parse(measure)
    return float(known.k) if known.name in {"distinct", "sources"} else 1.0


def paired_scores(a: Run, b: Run, measures: Sequence[str], *, alpha: float = ALPHA, level: float | None = None) -> dict[str, Paired]:
    """Measure → its comparison over the questions that it is about."""
    questions, tables = columns([a, b], measures)
    before, after, clusters = tables[a.run_id], tables[b.run_id], codes_of(a, questions)
    about = ~np.isnan(before) & ~np.isnan(after)
    found: dict[str, Paired] = {}
    whole = [i for i in range(len(measures)) if about[:, i].all()]
    groups = [whole] if whole else []
    groups += [[i] for i in range(len(measures)) if i not in whole and about[:, i].any()]
    for group in groups:
        kept = about[:, group[0]]
        shares, units = [parse(measures[i]).name in SHARES for i in group], [unit_of(measures[i]) for i in group]
        tests = PairedTests(before[kept][:, group], after[kept][:, group], clusters[kept], shares, units)
        for at, i in enumerate(group):
            found[measures[i]] = oriented(measures[i], tests.result(at, level=level or 1 - alpha, alpha=alpha))
    return {m: found[m] for m in measures if m in found}


def oriented(measure: str, paired: Paired) -> Paired:
    """The same with wins and losses as a reader means them: where less is better, a question wins when its score falls."""
    return replace(paired, wins=paired.losses, losses=paired.wins) if parse(measure).name in LOWER else paired


def verdict_of(measure: str, paired: Paired) -> str:
    """better, worse, nothing_changed or cannot_tell."""
    said = paired.verdict
    if said in {"higher", "lower"}:
        return "better" if (said == "higher") != (parse(measure).name in LOWER) else "worse"
    return said


def amount(measure: str, value: float, *, sign: bool = True) -> str:
    """A difference in words: points for measures from 0 to 1, as it is for counts."""
    text = f"{value:{'+' if sign else ''}.2f}" if unit_of(measure) > 1 else f"{100 * value:{'+' if sign else ''}.1f}"
    text = text.replace("-", "−")
    return text.lstrip("+−") if text.strip("+−0.") == "" else text


def unit_word(measure: str) -> str:
    """What a difference is counted in."""
    return "points" if unit_of(measure) == 1 else "a question"


def in_words(measure: str, paired: Paired) -> str:
    """A sentence for people without statistics, with the numbers behind it."""
    verdict = verdict_of(measure, paired)
    unit = unit_word(measure)
    span = f"{amount(measure, paired.low)} to {amount(measure, paired.high)} {unit} at {100 * paired.level:.3g} %"
    counted = f"{paired.wins} questions won, {paired.losses} lost, {paired.ties} as they were; {paired.test}"
    if verdict == "nothing_changed":
        return f"{measure}: nothing changed in {paired.questions} questions (a true difference is at most {amount(measure, paired.high, sign=False)} {unit})."
    p = f"p = {max(paired.p if paired.p_adjusted is None else paired.p_adjusted, 1e-4):.2g}" + (
        " after Holm" if paired.p_adjusted is not None and paired.effects > 1 else ""
    )
    if verdict == "cannot_tell" and paired.changed < (needed := least_changed(paired.alpha, paired.effects)):
        changed = f"{paired.changed} {'clusters of questions ' if paired.clusters < paired.questions else ''}changed"
        threshold = f"{paired.alpha / paired.effects:.3g}".lstrip("0")
        return f"{measure}: cannot tell: {changed}, at least {needed} needed for p < {threshold} ({amount(measure, paired.delta)} {unit}, {span}; {counted})."
    if verdict == "cannot_tell":
        least = (
            f" With so many changes, {amount(measure, paired.smallest, sign=False)} {unit} would have shown with a chance of 0.8."
            if paired.smallest is not None
            else ""
        )
        return f"{measure}: cannot tell: {amount(measure, paired.delta)} {unit} ({span}; {counted}, {p}).{least}"
    return f"{measure}: {verdict} by {amount(measure, abs(paired.delta), sign=False)} {unit} ({span}; {counted}, {p})."
