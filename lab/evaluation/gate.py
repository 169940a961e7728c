"""The gate: is a run worse than the baseline? One verdict for text, JSON, JUnit, Markdown and the exit code.

Health first: a run that is degraded, was scored with other gold or other documents, or whose vector index or list lengths are past their limits cannot be judged. Then each rule:

pass           no ranking changed, or a loss as large as the margin is ruled out one-sided (a loss that is also significant is `loss_within_margin`)
regression     else, if a difference of 0 or more is rejected one-sided (Holm over the rules)
cannot_judge   else; `needed` says about how many questions would decide

Any regression: regression. Else any rule that cannot be judged: cannot_judge. Else pass: that needs every rule, each at α, uncorrected (intersection–union; Berger 1982).
"""

from __future__ import annotations

import contextlib
import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lab.errors import CannotJudge, UsageError, unknown
from lab.evaluation.compare import LOWER, PRIMARY, amount, check_alpha, differing_inputs, paired_scores, unit_of, unit_word
from lab.evaluation.exchange import import_run
from lab.evaluation.flips import diff
from lab.evaluation.latency import timed
from lab.evaluation.measures import parse
from lab.evaluation.policy import Policy, Rule, checked
from lab.evaluation.recorded import Run, load, of_rows
from lab.evaluation.run import answerable, new_id
from lab.evaluation.statistics import power
from lab.evaluation.statistics.families import holm
from lab.evaluation.statistics.paired import Paired
from lab.records import GoldSet, Question
from lab.retrieval.search import check_runnable, open_corpus
from lab.settings import Settings
from lab.store import baselines, runs
from lab.store.connect import Store, connect
from lab.store.noise import Repeated, newest

EXIT = {"pass": 0, "regression": 1, "cannot_judge": 3}


@dataclass(frozen=True, slots=True)
class Ruled:
    """One rule and what became of it. `paired` is at level 1 − 2·alpha (None for p95, or where there is nothing to compare)."""

    rule: Rule
    outcome: str
    reason: str
    paired: Paired | None = None
    value: float | None = None  # p95: the ratio
    needed: int | None = None

    def to_json(self) -> dict[str, Any]:
        p = self.paired
        low, high = _oriented(self.rule, p) if p is not None else (None, None)
        delta = None if p is None else -p.delta if parse(self.rule.measure).name in LOWER else p.delta
        return {
            "measure": self.rule.measure, "kinds": list(self.rule.kinds), "margin": self.rule.margin, "delta": delta if p is not None else self.value, "low": low, "high": high,
            "outcome": self.outcome, "reason": self.reason, "p": p.p if p is not None else None, "questions": p.questions if p is not None else None,
            "wins": p.wins if p is not None else None, "losses": p.losses if p is not None else None, "needed_questions": self.needed,
        }  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False)
class Verdict:
    """`reasons` are codes of what could not be judged, or got worse; `flipped` the questions whose first rule's measure changed, with the stage that lost each; `differs` inputs
    that are not the same, which is what a gate is for."""

    verdict_id: str
    baseline: str
    a: str
    b: str
    outcome: str
    reasons: Sequence[str]
    rules: Sequence[Ruled]
    flipped: Sequence[Mapping[str, Any]]
    differs: Mapping[str, tuple[Any, Any]]

    def __str__(self) -> str:
        return "\n".join(in_text(self))

    __repr__ = __str__

    def to_frame(self) -> Any:
        """One row a rule (pandas)."""
        import pandas as pd

        return pd.DataFrame([r.to_json() for r in self.rules])

    def _repr_html_(self) -> str:
        head, *rest = (html.escape(text) for text in in_text(self))
        return f"<p><b>{head}</b></p>" + "".join(f"<p>{text}</p>" for text in rest)

    @property
    def exit_code(self) -> int:
        return EXIT[self.outcome]

    def to_json(self) -> dict[str, Any]:
        """The object of `lab gate --json`."""
        return {
            "schema_version": 1, "verdict_id": self.verdict_id, "outcome": self.outcome, "reasons": list(self.reasons), "rules": [r.to_json() for r in self.rules],
            "flipped": [dict(f) for f in self.flipped], "baseline": {"name": self.baseline, "run_id": self.a}, "run_id": self.b,
            "differs": [{"input": name, "baseline": a, "run": b} for name, (a, b) in self.differs.items()], "exit_code": self.exit_code,
        }  # fmt: skip


def gate(baseline: str, run: str = "latest", policy: Policy | None = None, *, store: Store | None = None) -> Verdict:
    """Judges a run (its id, or `latest`: the last finished run with the baseline's collection and gold set) against a baseline: its name, the JSON file of an exported run, or a run's id.
    The verdict is recorded.

    UsageError for an unknown baseline, run or measure, and for a margin that is none.
    """
    if store is None:
        with connect() as opened:
            return gate(baseline, run, policy, store=opened)
    policy = policy or Policy()
    check_alpha(policy.alpha)
    rules = tuple(checked(rule) for rule in policy.rules)
    first = runs.get_run(store, _baseline(store, baseline))
    chosen = baselines.latest_run(store, first.collection, first.gold) if run == "latest" else run
    if chosen == first.run_id:
        newest_one = "the last finished run is the baseline itself" if run == "latest" else f"{chosen} is the baseline itself"
        raise CannotJudge(f"{newest_one}: run anew what is to be judged.")
    if chosen is None:
        raise UsageError(
            f"no finished run on {first.collection} with {first.gold} beside the baseline: make one by `lab run {first.collection} --gold {first.gold}`."
        )
    second = runs.get_run(store, chosen)
    reasons = _health(first, second, policy)
    one, two = of_rows(store, [first, second])
    if not reasons and set(one.by_question) != set(two.by_question):
        reasons.append("other_questions")
    if not reasons and not one.by_question:
        reasons.append("empty_gold")
    known = sorted({kind for kind in one.kinds.values() if kind})
    for kind in (kind for rule in rules for kind in rule.kinds):
        if kind not in known:
            raise unknown("kind of question", kind, known, mend="this gold set names no kinds.")
    ruled: list[Ruled] = []
    flipped: list[Mapping[str, Any]] = []
    if not reasons:
        same = runs.listed(store, first.run_id) == runs.listed(store, second.run_id)
        if same and any(_differ(one, two, rule.measure) for rule in rules if rule.measure != "p95"):
            reasons.append(
                "scores_disagree"
            )  # equal rankings, equal gold, other scores: one of the runs was scored by other code, or changed by hand
        short = two.scores.get(f"short@{second.settings.get('k', 10)}", 0.0) - one.scores.get(f"short@{first.settings.get('k', 10)}", 0.0)
        if short > policy.short_more:
            reasons.append("short_lists")
        noise = newest(
            store, second.collection, second.gold_digest, [first.settings_digest, second.settings_digest], str(second.inputs.get("corpus_digest"))
        )
        ruled = _judge(store, one, two, first, second, rules, policy.alpha, same, noise)
        reasons += [f"{r.outcome}:{r.rule.name}" for r in ruled if r.outcome != "pass"]
        measure = next((rule.measure for rule in rules if rule.measure != "p95"), PRIMARY)
        if measure in one.scores and measure in two.scores and first.run_id != second.run_id:
            flipped = [
                {"question": f.question, "direction": f.direction, "stage": f.stage or None, "text": f.text, "kind": f.kind} for f in diff(store, first.run_id, second.run_id, measure=measure).flips
            ]  # fmt: skip
    outcome = "regression" if any(r.outcome == "regression" for r in ruled) and not _unfit(reasons) else "cannot_judge" if reasons else "pass"
    verdict = Verdict(new_id("v"), baseline, first.run_id, second.run_id, outcome, reasons, ruled, flipped, differing_inputs(first, second))
    baselines.enter_verdict(store, verdict.verdict_id, baseline, first.run_id, second.run_id, outcome, verdict.to_json())
    return verdict


def _baseline(store: Store, name: str) -> str:
    """The run of a baseline's name, or of the file of an exported run, which is imported where it is not here yet: so CI gates with an empty database; or a run by its id."""
    if name.endswith(".json"):
        return import_run(store, Path(name))[0]
    try:
        return baselines.current(store, name)
    except UsageError:
        with contextlib.suppress(UsageError):
            return runs.get_run(store, name).run_id
        raise


def _unfit(reasons: Sequence[str]) -> bool:
    """Is there a reason that is not one of a rule's?"""
    return any(not reason.startswith(("regression:", "cannot_judge:")) for reason in reasons)


def _health(a: runs.RunRow, b: runs.RunRow, policy: Policy) -> list[str]:
    """Codes of what keeps the run from being judged at all."""
    found = []
    for row, whose in ((a, "baseline"), (b, "run")):
        if row.status != "ok":
            found.append(f"{whose}_{row.status}")
    if a.gold_digest != b.gold_digest or a.split != b.split:
        found.append("other_gold")
    if a.inputs.get("corpus_digest") != b.inputs.get("corpus_digest"):
        found.append("other_documents")
    recall = b.health.get("ann_recall")
    if recall is not None and recall < policy.ann_recall:
        found.append("ann_recall")
    return found


def _judge(
    store: Store, a: Run, b: Run, first: runs.RunRow, second: runs.RunRow, rules: Sequence[Rule], alpha: float, same: bool, noise: Sequence[Repeated]
) -> list[Ruled]:
    tested: list[tuple[Rule, Paired | None]] = [(rule, None if rule.measure == "p95" else _paired(a, b, rule, alpha)) for rule in rules]
    one_sided = [1.0 if p is None else _one_sided(rule, p) for rule, p in tested]
    adjusted = holm([p for p, (rule, _) in zip(one_sided, tested, strict=True) if rule.measure != "p95"])
    corrected = iter(adjusted)
    ruled = []
    for (rule, paired), single in zip(tested, one_sided, strict=True):
        if rule.measure == "p95":
            ruled.append(_latency(store, first, second, rule, a))
            continue
        together = next(corrected)
        one = _ruled(rule, paired, single, together, alpha, same, _floor(store, rule, noise))
        undecided = one.outcome == "cannot_judge" and paired is not None and not one.reason.startswith(("unattainable", "noise_floor"))
        ruled.append(replace(one, needed=_needed(rule, paired, alpha)) if undecided and paired is not None else one)
    return ruled


def _ruled(rule: Rule, paired: Paired | None, single: float, together: float, alpha: float, same: bool, noise: float = 0.0) -> Ruled:
    if paired is None:
        return Ruled(rule, "cannot_judge", f"{rule.measure} was not computed in both runs, or is about none of these questions")
    if same:
        return Ruled(rule, "pass", "no ranking changed", paired)
    least = power.least_margin(paired.n_eff, alpha) * unit_of(rule.measure)
    low, _ = _oriented(rule, paired)
    if rule.margin < least:
        return Ruled(
            rule,
            "cannot_judge",
            f"unattainable: {paired.questions} questions, worth {paired.n_eff:.0f}, can meet no margin below {least:.4f}",
            paired,
        )
    if rule.margin < noise:
        return Ruled(
            rule,
            "cannot_judge",
            f"noise_floor: runs that should be the same differ by {amount(rule.measure, noise, sign=False)} {unit_word(rule.measure)} (lab noise)",
            paired,
        )
    if low > -rule.margin:
        return Ruled(rule, "pass", "loss_within_margin" if single < alpha else "a loss of the margin is ruled out", paired)
    if together < alpha:
        return Ruled(
            rule, "regression", f"a loss is shown, p = {max(together, 1e-4):.2g} one-sided" + (" after Holm" if together != single else ""), paired
        )
    return Ruled(rule, "cannot_judge", "neither a loss is shown, nor one of the margin ruled out", paired)


def _floor(store: Store, rule: Rule, noise: Sequence[Repeated]) -> float:
    """How far runs that should be the same lay apart at most: over all questions, or those of the rule's kinds."""
    repeats = [one for one in noise if one.measure == rule.measure]
    if not rule.kinds:
        return max((one.floor for one in repeats), default=0.0)
    found = 0.0
    for one in repeats:
        a, b = load(store, [one.a, one.b])
        asked = [
            q
            for q in a.by_question
            if a.kinds.get(q, "") in rule.kinds and rule.measure in a.by_question[q] and rule.measure in b.by_question.get(q, {})
        ]
        if asked:
            found = max(found, abs(sum(b.by_question[q][rule.measure] - a.by_question[q][rule.measure] for q in asked)) / len(asked))
    return found


def _differ(a: Run, b: Run, measure: str) -> bool:
    return any(abs(values.get(measure, 0.0) - b.by_question[q].get(measure, 0.0)) > 1e-9 for q, values in a.by_question.items())


def _oriented(rule: Rule, paired: Paired) -> tuple[float, float]:
    """[low, high] with more meaning better."""
    return (-paired.high, -paired.low) if parse(rule.measure).name in LOWER else (paired.low, paired.high)


def _one_sided(rule: Rule, paired: Paired) -> float:
    """p of a difference of 0 or more: the half of the two-sided one where it points to a loss (both tests are symmetric), else not below ½."""
    delta = -paired.delta if parse(rule.measure).name in LOWER else paired.delta
    return paired.p / 2 if delta < 0 else 1 - paired.p / 2 if delta > 0 else 1.0


def _paired(a: Run, b: Run, rule: Rule, alpha: float) -> Paired | None:
    known = {q for q in a.by_question if not rule.kinds or a.kinds.get(q, "") in rule.kinds}
    ours, theirs = (replace(run, by_question={q: v for q, v in run.by_question.items() if q in known}) for run in (a, b))
    if not known or rule.measure not in a.scores or rule.measure not in b.scores:
        return None
    return paired_scores(ours, theirs, [rule.measure], alpha=alpha, level=1 - 2 * alpha).get(rule.measure)


def _needed(rule: Rule, paired: Paired, alpha: float) -> int | None:
    """About how many questions would decide, if differences and share of changes are what they seem."""
    unit = unit_of(rule.measure)
    delta = (-paired.delta if parse(rule.measure).name in LOWER else paired.delta) / unit
    changed = max((paired.wins + paired.losses) / max(paired.questions, 1), abs(delta))
    margin = rule.margin / unit
    if delta > -margin:
        found = power.least(lambda n: power.gate_passes(n, changed, margin, alpha, delta) >= power.POWER, 20_000)
    else:
        found = power.questions_for(delta, changed, 2 * alpha, most=20_000)
    return None if found is None else max(math.ceil(found * paired.questions / paired.n_eff), paired.questions + 1)


def _latency(store: Store, a: runs.RunRow, b: runs.RunRow, rule: Rule, run: Run) -> Ruled:
    """The ratio of p95 measured now, both settings in turn on the collection of the run."""
    try:
        corpus = open_corpus(store, b.collection)
        before, after = Settings(**a.settings), Settings(**b.settings)
        for settings in (before, after):
            check_runnable(corpus, settings)
    except (UsageError, TypeError) as error:
        return Ruled(rule, "cannot_judge", f"both settings cannot run here ({error})")
    asked: Sequence[Question] = runs.questions(store, b.gold_digest)
    texts = [q.text for q in answerable(GoldSet(b.gold, tuple(asked), (), "")) or asked if q.question_id in run.by_question]
    ratio = timed(corpus, texts, before, after).ratio_p95
    said = f"p95 is {ratio:.2f} times the baseline's, measured now"
    return Ruled(rule, "pass" if ratio <= rule.margin else "regression", said, value=ratio)


def in_text(verdict: Verdict) -> list[str]:
    """The verdict as lines for people."""
    head = {"pass": "pass: not worse than the baseline", "regression": "regression", "cannot_judge": "could not judge"}[verdict.outcome]
    lines = [f"{head} ({verdict.b} against {verdict.baseline}, {verdict.a})"]
    lines += [f"  {reason}" for reason in verdict.reasons if not reason.startswith(("regression:", "cannot_judge:"))]
    for r in verdict.rules:
        lines.append(f"  {r.rule.name}, margin {r.rule.margin:g}: {r.outcome.replace('_', ' ')}: {r.reason}{told(r)}")
    won, lost = (sum(f["direction"] == d for f in verdict.flipped) for d in ("won", "lost"))
    lines.append(f"  {won} questions won, {lost} lost")
    return lines


def told(r: Ruled) -> str:
    """The numbers of a rule in brackets."""
    if r.paired is None:
        return ""
    low, high = _oriented(r.rule, r.paired)
    needed = f"; about {r.needed} questions would decide" if r.needed is not None else ""
    delta = -r.paired.delta if parse(r.rule.measure).name in LOWER else r.paired.delta
    return f" ({amount(r.rule.measure, delta)} {unit_word(r.rule.measure)}, {amount(r.rule.measure, low)} to {amount(r.rule.measure, high)}, {r.paired.wins} won, {r.paired.losses} lost{needed})"
