"""Effects of a grid, from per-question differences: main effects of every factor, and two-way interactions.

Main effect of a factor: per question the mean over all settings of the other factors of (score at its other value − score at its first value). Interaction of two: the main effect
of the one while the other has its other value, less that while it has its first. One family is corrected together (Holm): the main effects on the primary measure.
Everything else (other measures, interactions, kinds, bands) is exploratory, and its p is not corrected.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lab.evaluation.compare import PRIMARY, SHARES, codes_of, columns, in_words, oriented, unit_of, verdict_of
from lab.evaluation.measures import parse
from lab.evaluation.recorded import Run
from lab.evaluation.statistics.families import holm, levels
from lab.evaluation.statistics.paired import ALPHA, Paired, PairedTests
from lab.text import BANDS

Pairs = Sequence[tuple[Run, Run]]


@dataclass(frozen=True, slots=True)
class Effect:
    """What one factor (or two together) did to one measure, over all questions, those of one kind, or those of one band. `changes` are (first value, other value), a pair a
    factor. `paired.before` and `paired.after` are the means at both values; of an interaction the effect of the first factor at both values of the second."""

    factors: tuple[str, ...]
    changes: tuple[tuple[str, str], ...]
    measure: str
    kind: str
    band: str
    paired: Paired
    inert: bool = False

    @property
    def confirmatory(self) -> bool:
        """Is it one of the family that was corrected together?"""
        return self.paired.p_adjusted is not None

    @property
    def overall(self) -> bool:
        return not self.kind and not self.band

    @property
    def verdict(self) -> str:
        """better, worse, nothing_changed, cannot_tell; inert where no ranking changed."""
        return "inert" if self.inert else verdict_of(self.measure, self.paired)

    @property
    def name(self) -> str:
        """`defines off → question`, or two of these with × between."""
        return " × ".join(f"{factor} {low} → {high}" for factor, (low, high) in zip(self.factors, self.changes, strict=True))

    @property
    def words(self) -> str:
        """What it did in a sentence; of an inert factor that nothing can be said."""
        if self.inert:
            return f"{self.measure}: it changed no ranking of any question, so nothing can be said of its worth."
        return in_words(self.measure, self.paired)

    def to_json(self) -> dict[str, Any]:
        """One entry of `effects` in `lab ablate --json`."""
        told = self.paired.to_json()
        before, after = told.pop("a"), told.pop("b")
        return {
            "factors": list(self.factors), "changes": [list(change) for change in self.changes], "measure": self.measure, "kind": self.kind, "band": self.band,
            "before": before, "after": after, **told, "inert": self.inert, "confirmatory": self.confirmatory, "verdict": self.verdict,
        }  # fmt: skip


def effects(
    factors: Mapping[str, Sequence[str]], runs: Sequence[Run], inert: Sequence[str], *, primary: str = PRIMARY, alpha: float = ALPHA
) -> list[Effect]:
    """All effects of a grid, for every measure: over all questions, then per kind and per band (main effects only). Members that lack their counterpart (a grid that is not full) are
    left out of a pair; an effect without any pair is not listed."""
    if len(runs) < 2:
        return []
    measures = [m for m in runs[0].scores if all(m in run.scores for run in runs)]
    contrasts = list(_contrasts(factors, runs))
    mains = [contrast for contrast in contrasts if len(contrast.factors) == 1]
    questions, tables = columns(runs, measures)
    clusters = codes_of(runs[0], questions)
    kinds = np.array([runs[0].kinds.get(q, "") for q in questions])
    bands = np.array([runs[0].bands.get(q, "") for q in questions])
    found = _group(contrasts, tables, runs, measures, np.ones(len(questions), dtype=bool), clusters, "", "", inert, primary, alpha)
    for kind in sorted(set(kinds) - {""}):
        found += _group(mains, tables, runs, measures, kinds == kind, clusters, str(kind), "", inert, "", alpha)
    for band in BANDS:
        if (bands == band).any():
            found += _group(mains, tables, runs, measures, bands == band, clusters, "", band, inert, "", alpha)
    return found


def apart(
    factor: str, change: tuple[str, str], pair: Sequence[Run], measure: str, of: Mapping[str, str], by: str, alpha: float = ALPHA
) -> list[Effect]:
    """The effect between two runs per group of questions (`of`: question → its kind, or band), as a family of their own: p after Holm over the groups, intervals at Holm's levels."""
    questions, tables = columns(pair, [measure])
    before, after = (tables[run.run_id][:, 0] for run in pair)
    codes = codes_of(pair[0], questions)
    names = np.array([of.get(q, "") for q in questions])
    shares = [parse(measure).name in SHARES]
    tests: dict[str, PairedTests] = {}
    for name in sorted(set(names) - {""}):
        chosen = (names == name) & ~np.isnan(before) & ~np.isnan(after)
        if chosen.any():
            tests[str(name)] = PairedTests(before[chosen, None], after[chosen, None], codes[chosen], shares, [unit_of(measure)])
    p = [test.p(0) for test in tests.values()]
    found = []
    for (name, test), level, adjusted in zip(tests.items(), levels(p, alpha), holm(p), strict=True):
        paired = replace(oriented(measure, test.result(0, level=level, alpha=alpha, effects=len(tests))), p_adjusted=adjusted)
        found.append(Effect((factor,), (change,), measure, name if by == "kind" else "", name if by == "band" else "", paired))
    return found


@dataclass(frozen=True, slots=True)
class _Contrast:
    """Runs whose mean is the score before, and after; of an interaction four groups: (b before, b after, a before, a after)."""

    factors: tuple[str, ...]
    changes: tuple[tuple[str, str], ...]
    groups: tuple[tuple[int, ...], ...]


def _contrasts(factors: Mapping[str, Sequence[str]], runs: Sequence[Run]) -> Iterator[_Contrast]:
    place = {_key(run, factors): i for i, run in enumerate(runs)}
    for factor, values in factors.items():
        for high in values[1:]:
            pairs = [(i, place[other]) for key, i in place.items() if key[factor] == values[0] and (other := key.with_value(factor, high)) in place]
            groups: tuple[tuple[int, ...], ...] = (tuple(a for a, _ in pairs), tuple(b for _, b in pairs))
            if not pairs:  # a part of a grid in which no two members differ in this factor alone
                groups = tuple(tuple(i for key, i in place.items() if key[factor] == value) for value in (values[0], high))
            if all(groups):
                yield _Contrast((factor,), ((values[0], high),), groups)
    for one, two in itertools.combinations(factors, 2):
        for first, second in itertools.product(factors[one][1:], factors[two][1:]):
            squares = []
            for key, i in place.items():
                if key[one] == factors[one][0] and key[two] == factors[two][0]:
                    corners = (key.with_value(one, first), key.with_value(two, second), key.with_value(one, first).with_value(two, second))
                    if all(corner in place for corner in corners):
                        squares.append((i, *(place[corner] for corner in corners)))
            if squares:
                groups = tuple(tuple(square[at] for square in squares) for at in range(4))
                yield _Contrast((one, two), ((factors[one][0], first), (factors[two][0], second)), groups)


class _Key(tuple[tuple[str, str], ...]):
    """A member's place in the grid, as a value that can be looked up."""

    def __getitem__(self, factor: object) -> Any:
        return dict(self)[str(factor)]

    def with_value(self, factor: str, value: str) -> _Key:
        return _Key((name, value if name == factor else known) for name, known in self)


def _key(run: Run, factors: Mapping[str, Sequence[str]]) -> _Key:
    return _Key((name, run.passed[name]) for name in factors)


def _group(
    contrasts: Sequence[_Contrast],
    tables: Mapping[str, np.ndarray],
    runs: Sequence[Run],
    measures: Sequence[str],
    chosen: np.ndarray,
    clusters: np.ndarray,
    kind: str,
    band: str,
    inert: Sequence[str],
    primary: str,
    alpha: float,
) -> list[Effect]:
    """The effects over some questions. Where `primary` is named, its main effects are the family."""
    scores = [tables[run.run_id] for run in runs]
    where = {m: i for i, m in enumerate(measures)}
    found: list[Effect] = []
    by_about: dict[bytes, tuple[np.ndarray, list[tuple[_Contrast, str]]]] = {}
    for measure in measures:
        about = chosen & ~np.any([np.isnan(s[:, where[measure]]) for s in scores], axis=0)
        if about.any():
            by_about.setdefault(about.tobytes(), (about, []))[1].extend((contrast, measure) for contrast in contrasts)
    for about, wanted in by_about.values():
        both = [_before_after(contrast, scores, where[measure], about) for contrast, measure in wanted]
        single = len(runs) == 2
        tests = PairedTests(
            np.stack([b for b, _ in both], axis=1), np.stack([a for _, a in both], axis=1), clusters[about],
            [single and parse(measure).name in SHARES for _, measure in wanted], [unit_of(measure) * len(contrast.factors) for contrast, measure in wanted],
            np.stack([np.mean([scores[i][about, where[measure]] for i in contrast.groups[0]], axis=0) for contrast, measure in wanted], axis=1),
        )  # fmt: skip
        family = [i for i, (contrast, measure) in enumerate(wanted) if measure == primary and len(contrast.factors) == 1]
        p = [tests.p(i) for i in family]
        level_of = dict(zip(family, levels(p, alpha), strict=True))
        adjusted = dict(zip(family, holm(p), strict=True))
        for i, (contrast, measure) in enumerate(wanted):
            effects_in = len(family) if i in adjusted else 1
            paired = oriented(measure, tests.result(i, level=level_of.get(i, 1 - alpha), alpha=alpha, effects=effects_in))
            if i in adjusted:
                paired = replace(paired, p_adjusted=adjusted[i])
            still = any(factor in inert for factor in contrast.factors)
            found.append(Effect(contrast.factors, contrast.changes, measure, kind, band, paired, still))
    order = {(contrast.factors, contrast.changes): i for i, contrast in enumerate(contrasts)}
    return sorted(found, key=lambda e: (measures.index(e.measure), order[e.factors, e.changes]))


def _before_after(contrast: _Contrast, scores: Sequence[np.ndarray], column: int, about: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    means = [np.mean([scores[i][about, column] for i in group], axis=0) for group in contrast.groups]
    if len(means) == 2:
        return means[0], means[1]
    base, one, two, both = means
    return one - base, both - two
