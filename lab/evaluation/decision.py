"""Keep a flag or drop it: the effect with its interval, overall and per kind of question, what it displaced, what it cost, and what speaks against reading it so.

keep          better over all questions, and worse for no kind
keep_for      better for some kinds only, or better for some and worse for others
drop          worse, or whatever it gains is less than what is worth having
cannot_tell   none of these; `needed` says about how many more questions would tell
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lab.errors import CannotJudge, UsageError
from lab.evaluation.compare import LOWER, PRIMARY, amount, check_alpha, in_words, paired_scores, unit_of, verdict_of
from lab.evaluation.effects import Effect, apart, effects
from lab.evaluation.experiment import inert as unchanged
from lab.evaluation.latency import Latency, timed
from lab.evaluation.measures import DEFAULT, of_rankings, parse
from lab.evaluation.recorded import Run
from lab.evaluation.run import answerable, as_gold, execute, new_id
from lab.evaluation.shown import Shown, draw
from lab.evaluation.statistics import power
from lab.evaluation.statistics.paired import ALPHA, Paired
from lab.gold.check import circular, fit
from lab.records import GoldSet
from lab.retrieval.search import check_runnable, open_corpus
from lab.settings import IngestSettings, Settings, resolved
from lab.store import recording
from lab.store import runs as store_runs
from lab.store.connect import Store, connect

COMPANIONS = ("codes", "authority_weight", "dedup", "cites", "defines")  # other flags that it is looked at together with, where nobody says which
WORTH = 0.01  # a gain below one point is not worth a flag
_MOST = 10_000


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of question (or copying band): its effect, p after Holm over the kinds, what follows, and how many questions of it would tell."""

    effect: Effect
    p_adjusted: float
    verdict: str
    needed: int | None

    def to_json(self) -> dict[str, Any]:
        return {**self.effect.to_json(), "p_adjusted": self.p_adjusted, "verdict": self.verdict, "needed_questions": self.needed}


@dataclass(frozen=True, slots=True, repr=False)
class Decision(Shown):
    """The verdict on one flag, with all that it is made of. `links`: passages that the flag's links brought into the results, and how many of them answer."""

    factor: str
    change: tuple[str, str]
    collection: str
    gold: str
    experiment_id: str
    measure: str
    verdict: str
    keep_for: Sequence[str]
    overall: Effect
    kinds: Mapping[str, Kind]
    bands: Mapping[str, Kind]
    interactions: Sequence[Effect]
    displaced: float  # results of the first k that others took the place of, a question
    links: tuple[int, int]
    latency: Latency
    needed: int | None
    warnings: Sequence[str]
    circular: Paired | None = None  # what it did to questions made from the links that it turns on: shown, and no part of the verdict

    def to_json(self) -> dict[str, Any]:
        """The object of `lab decide --json`."""
        return {
            "schema_version": 1, "factor": self.factor, "change": list(self.change), "collection": self.collection, "gold": self.gold, "experiment_id": self.experiment_id,
            "measure": self.measure, "verdict": self.verdict, "keep_for": list(self.keep_for), "overall": self.overall.to_json(),
            "kinds": {name: kind.to_json() for name, kind in self.kinds.items()}, "bands": {name: band.to_json() for name, band in self.bands.items()},
            "interactions": [e.to_json() for e in self.interactions], "displaced_results": round(self.displaced, 3),
            "links": {"returned": self.links[0], "relevant": self.links[1]}, "latency": self.latency.to_json(), "needed_questions": self.needed, "warnings": list(self.warnings),
            "circular": None if self.circular is None else self.circular.to_json(), "words": self.words,
        }  # fmt: skip

    @property
    def words(self) -> str:
        """One paragraph for people without statistics."""
        head = {
            "keep": f"Keep {self.factor} at {self.change[1]}.", "drop": f"Drop it: leave {self.factor} at {self.change[0]}.",
            "keep_for": f"Keep {self.factor} at {self.change[1]} only for {' and '.join(self.keep_for)} questions.",
            "cannot_tell": f"These questions cannot tell whether {self.factor} should be {self.change[0]} or {self.change[1]}.",
        }[self.verdict]  # fmt: skip
        said = [head]
        if self.overall.inert:
            said.append("It changed no ranking of any question, so nothing can be said of its worth: ask questions that it is made for.")
        else:
            said.append(f"Over all {self.overall.paired.questions} questions, {in_words(self.measure, self.overall.paired)}")
        for name, kind in self.kinds.items():
            if kind.verdict in {"better", "worse"}:
                p = kind.effect.paired
                said.append(
                    f"For {name} questions it is {kind.verdict} by {amount(self.measure, abs(p.delta), sign=False)} points ({p.wins} won, {p.losses} lost of {p.questions})."
                )
        if self.verdict == "cannot_tell" and self.needed is not None:
            most = min((kind for kind in self.kinds.items() if kind[1].needed), key=lambda item: (item[1].needed or _MOST, item[0]), default=None)
            also = f" (or {most[1].needed} of kind {most[0]})" if most is not None and (most[1].needed or _MOST) < self.needed else ""
            said.append(f"If the difference is what it seems, about {self.needed} questions{also} would tell.")
        if self.circular is not None:
            c = self.circular
            said.append(
                f"Left out are {c.questions} questions that were made from its own links: they would favour it ({c.wins} won, {c.losses} lost), whatever it is worth (the report of these runs counts them)."
            )
        if self.links[0]:
            said.append(f"Links brought {self.links[0]} passages into the results, {self.links[1]} of which answer.")
        if self.overall.inert:
            return " ".join([*said, *(f"But: {warning}." for warning in self.warnings)])
        said.append(
            f"It displaces {self.displaced:.2f} of the first results a question, and makes a search {self.latency.ratio:.2f} times as long ({self.latency.p50[0]:.1f} → {self.latency.p50[1]:.1f} ms)."
        )
        return " ".join([*said, *(f"But: {warning}." for warning in self.warnings)])

    def to_frame(self) -> Any:
        """One row for all questions, a kind, or a band each (pandas)."""
        import pandas as pd

        rows = [{"questions of": "all", **self.overall.paired.to_json(), "verdict": self.overall.verdict}]
        rows += [
            {"questions of": name, **k.effect.paired.to_json(), "p_adjusted": k.p_adjusted, "verdict": k.verdict}
            for name, k in (*self.kinds.items(), *self.bands.items())
        ]
        return pd.DataFrame(rows)

    def plot_effects(self) -> Any:
        """Forest plot over all questions, per kind and per band; matplotlib axes."""
        return draw("decision", "drawn", self)


def decide(
    collection: str, gold: str | GoldSet, factor: str, *, store: Store | None = None, settings: Settings | str | None = None, split: str | None = None,
    measure: str = PRIMARY, companions: Sequence[str] | None = None, worth: float = WORTH, alpha: float = ALPHA, command: str = "", **flags: str | float,
) -> Decision:  # fmt: skip
    """Runs the factor (`defines`, or `defines=off,question`) off and on, alone and beside each companion, and decides.

    `flags` are held fixed. Raises UsageError for unknown names, and for a factor that has no off value and names none.
    """
    if store is None:
        with connect() as opened:
            return decide(
                collection, gold, factor, store=opened, settings=settings, split=split, measure=measure, companions=companions, worth=worth, alpha=alpha, command=command, **flags
            )  # fmt: skip
    check_alpha(alpha)
    if not 0 <= worth < 1:
        raise UsageError(f"--worth {worth} is no share: from 0 to below 1, as 0.01 for a point.")
    name, low, high = change_of(factor)
    fixed = {Settings.flag(flag).name: str(value) for flag, value in flags.items()}
    if name in fixed:
        raise UsageError(f"{name} is both the factor and held fixed: give it once.")
    base = resolved(settings).with_words(fixed)
    others = {flag: _other_value(base, flag) for flag in (companions if companions is not None else COMPANIONS) if Settings.flag(flag).name != name}
    corpus = open_corpus(store, collection)
    loaded = as_gold(gold, split)
    wanted = [of_rankings(m) for m in dict.fromkeys([*DEFAULT, measure])]
    main = str(parse(measure))
    members: list[tuple[dict[str, str], Settings]] = []
    for extra in ({}, *({flag: value} for flag, value in others.items() if value is not None)):
        for value in (low, high):
            words = {name: value, **{flag: _word(base, flag) for flag in others}, **extra}
            try:
                member = base.with_words({**extra, name: value})
                check_runnable(corpus, member)
            except UsageError:
                if not extra:
                    raise
                continue  # a companion that cannot stand beside these settings, or that this collection cannot run
            members.append((words, member))
    runnable = [m for m in members if sum(all(m[0][f] == other[0][f] for f in others) for other in members) == 2]  # both values of the factor
    fitted = fit(store, corpus.collection, loaded).gold
    experiment_id = new_id("e")
    factors = {name: [low, high]} | {flag: [_word(base, flag), value] for flag, value in others.items() if value is not None}
    recording.begin_experiment(store, experiment_id, collection, loaded.name, fitted.digest, factors, command)
    done = execute(corpus, loaded, runnable, measures=wanted, experiment_id=experiment_id)
    recording.finish_experiment(store, experiment_id)
    whole = done[:2]
    still = unchanged(store, {name: [low, high]}, whole)
    done, apart_from_it = _independent(done, loaded, name)
    pair = done[:2]
    found = effects({name: [low, high]}, pair, still, primary=main, alpha=alpha)
    overall = next((e for e in found if e.measure == main and e.overall), None)
    if overall is None:
        raise CannotJudge(f"{main} is about none of the questions of {loaded.name!r}: name another measure behind --primary.")
    between = []
    for at in range(2, len(done), 2):
        four = [*pair, *done[at : at + 2]]
        flag = next(f for f in others if four[2].passed[f] != four[0].passed[f])
        grid = {name: [low, high], flag: [four[0].passed[flag], four[2].passed[flag]]}
        between += [e for e in effects(grid, four, [], primary=main, alpha=alpha) if e.measure == main and e.overall and len(e.factors) == 2]
    kinds = _kinds(apart(name, (low, high), pair, main, pair[0].kinds, "kind", alpha), "kind", alpha)
    bands = _kinds(apart(name, (low, high), pair, main, pair[0].bands, "band", alpha), "band", alpha)
    asked = [q.text for q in answerable(fitted)]
    cost = timed(corpus, asked, runnable[0][1], runnable[1][1])
    verdict, keep_for = _decided(overall, kinds, worth)
    all_made = apart_from_it is None and set(whole[0].by_question) <= _made(loaded, name)
    if all_made:
        verdict, keep_for = "cannot_tell", []  # there is nothing but evidence that it made itself
    warnings = [*(circular(loaded.name, loaded.questions, [name]) if all_made else []), *_warnings(pair)]
    needed = _needed(overall, alpha) if verdict == "cannot_tell" else None
    return Decision(
        name, (low, high), collection, loaded.name, experiment_id, main, verdict, keep_for, overall, kinds, bands, between, _displaced(pair),
        store_runs.links(store, pair[1].run_id, sorted(pair[1].by_question)), cost, needed, warnings, None if apart_from_it is None else paired_scores(*apart_from_it, [main]).get(main),
    )  # fmt: skip


def change_of(factor: str) -> tuple[str, str, str]:
    """(flag, first value, other value) of `defines` or `defines=off,question`."""
    name, sign, values = factor.partition("=")
    if name.strip().lstrip("-").replace("-", "_") in IngestSettings.flags():
        raise UsageError(f"{name} is an ingest flag: `lab ablate` takes it as a factor, and says what it does.")
    flag = Settings.flag(name.strip().lstrip("-").replace("-", "_"))
    if sign:
        words = [word.strip() for word in values.split(",") if word.strip()]
        if len(words) != 2 or flag.parse(words[0]) == flag.parse(words[1]):
            raise UsageError(f"--factor {factor} must name two different values, as in {flag.name}={flag.off},{flag.first_on}.")
        return flag.name, words[0], words[1]
    if flag.off is None or flag.first_on is None or flag.first_on == flag.off:
        raise UsageError(f"{flag.name} has no value that turns it off: name two, as in --factor {flag.name}={flag.default},….")
    return flag.name, str(flag.off), str(flag.first_on)


def _word(base: Settings, flag: str) -> str:
    return str(base.as_dict()[Settings.flag(flag).name])


def _other_value(base: Settings, name: str) -> str | None:
    """The value of a companion that the settings do not have: on where it is off, off where it is on."""
    flag = Settings.flag(name)
    if flag.off is None:
        return None
    value = flag.first_on if base.as_dict()[flag.name] == flag.off else flag.off
    return None if value is None else str(value)


def _kinds(found: Sequence[Effect], by: str, alpha: float) -> dict[str, Kind]:
    kinds = {}
    for effect in found:
        verdict = verdict_of(effect.measure, effect.paired)
        adjusted = effect.paired.p if effect.paired.p_adjusted is None else effect.paired.p_adjusted
        kinds[str(getattr(effect, by))] = Kind(effect, adjusted, verdict, _needed(effect, alpha / len(found)) if verdict == "cannot_tell" else None)
    return kinds


def _decided(overall: Effect, kinds: Mapping[str, Kind], worth: float) -> tuple[str, list[str]]:
    better = [name for name, kind in kinds.items() if kind.verdict == "better"]
    worse = [name for name, kind in kinds.items() if kind.verdict == "worse"]
    if overall.inert:
        return "cannot_tell", []
    if overall.verdict == "better" and not worse:
        return "keep", []
    if better and (worse or overall.verdict != "better"):
        return "keep_for", better
    if overall.verdict == "better":
        return "keep_for", [name for name in kinds if name not in worse]
    gain = -overall.paired.low if parse(overall.measure).name in LOWER else overall.paired.high
    if overall.verdict == "worse" or worse or gain < worth * unit_of(overall.measure):
        return "drop", []
    return "cannot_tell", []


def _independent(done: Sequence[Run], gold: GoldSet, name: str) -> tuple[list[Run], tuple[Run, Run] | None]:
    """The runs on the questions that were not made from the links which the flag turns on, and the first two on those that were; None where all are of one sort."""
    made = _made(gold, name)
    if not made & set(done[0].by_question) or set(done[0].by_question) <= made:
        return list(done), None

    def only(run: Run, inside: bool) -> Run:
        kept = {q: v for q, v in run.by_question.items() if (q in made) is inside}
        return replace(run, by_question=kept, rankings={q: run.rankings[q] for q in kept})

    return [only(run, False) for run in done], (only(done[0], True), only(done[1], True))


def _made(gold: GoldSet, name: str) -> set[str]:
    """The questions that were made from the links which the flag turns on."""
    return {q.question_id for q in gold.questions if q.metadata.get("derived_from") == name}


def _needed(effect: Effect, alpha: float) -> int | None:
    """About how many questions would tell, if difference and share of changes are what they seem."""
    p = effect.paired
    changed = (p.wins + p.losses) / max(p.questions, 1)
    found = power.questions_for(p.delta / unit_of(effect.measure), changed, alpha, most=_MOST) if p.delta else None
    return None if found is None else max(math.ceil(found * p.questions / p.n_eff), p.questions + 1)


def _displaced(pair: Sequence[Run]) -> float:
    """How many results of the first run are not among those of the second, a question."""
    before, after = pair[0].rankings, pair[1].rankings
    return sum(len(set(before[q]) - set(after[q])) for q in before) / max(len(before), 1)


def _warnings(pair: Sequence[Run]) -> list[str]:
    found = [f"run {run.run_id} is {run.status}" for run in pair if run.status != "ok"]
    notes = [note for run in pair for note in run.notes if "inert" in note or "cannot change" in note or "decided at rank" in note]
    return found + list(dict.fromkeys(notes))
