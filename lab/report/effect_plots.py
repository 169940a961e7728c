"""Figures of effects: a forest of main effects, interactions, small multiples by kind and by copying band."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from lab.evaluation.compare import PRIMARY, Comparison, amount, unit_of
from lab.evaluation.effects import Effect
from lab.evaluation.experiment import Experiment
from lab.evaluation.statistics.paired import ALPHA
from lab.report.canvas import BLUE, GREY, ORANGE, SERIES, Drawn, axes, bare
from lab.report.forest import Line, forest

_MOST = 6  # panels of interactions


def effects(experiment: Experiment, measure: str = PRIMARY, on: Any = None) -> Drawn:
    """Forest plot: each main effect with its interval, overall, per kind of question, and (in brackets) by how much it copies."""
    rows = [
        e
        for main in experiment.main(measure)
        for e in (
            main,
            *(o for by in ("kind", "band") for o in experiment.main(measure, by) if (o.factors, o.changes) == (main.factors, main.changes)),
        )
    ]
    one = on if on is not None else axes(7.6, 1.4 + 0.3 * len(rows))
    title = f"What each factor did to {measure}"
    lines = [
        Line(
            f"{e.name}   all" if e.overall else e.kind or f"({e.band})", e.paired,
            f"{amount(measure, e.paired.delta)}  ({e.paired.wins} won, {e.paired.losses} lost of {e.paired.questions})",
            BLUE if e.overall else ORANGE, "o" if e.overall else "D", e.overall, e.overall and at > 0,
        )
        for at, e in enumerate(rows)
    ]  # fmt: skip
    forest(lines, measure, title, f", with {100 * (1 - ALPHA):.0f} % intervals (corrected for all factors where blue)", one)
    told = (
        f"{e.name}: {amount(measure, e.paired.delta)} ({amount(measure, e.paired.low)} to {amount(measure, e.paired.high)})"
        for e in rows
        if e.overall
    )
    return Drawn(one, title, f"Forest plot of effects on {measure}. {'; '.join(told)}.")


def measures(comparison: Comparison, on: Any = None) -> Drawn:
    """Forest plot of the measures from 0 to 1 of two runs; only the primary one (blue) decides."""
    rows = [(name, paired) for name, paired in comparison.measures.items() if unit_of(name) == 1]
    one = on if on is not None else axes(7.0, 1.2 + 0.3 * len(rows))
    lines = [
        Line(
            name, p, f"{amount(name, p.delta)}  ({p.wins} won, {p.losses} lost)", BLUE if name == comparison.primary else ORANGE,
            "o" if name == comparison.primary else "D", name == comparison.primary,
        )
        for name, p in rows
    ]  # fmt: skip
    title = f"{comparison.b} against {comparison.a}"
    forest(lines, comparison.primary, title, ", 95 % intervals; the primary measure is blue", one)
    return Drawn(one, title, comparison.words)


def interactions(experiment: Experiment, measure: str = PRIMARY) -> Drawn:
    """A panel a pair of factors: the mean at each value of the first, a line a value of the second. Lines that are not parallel interact. At most six pairs, those with the largest interactions first."""
    pairs = list(itertools.combinations(experiment.factors, 2))
    found: dict[tuple[str, ...], Effect] = {}
    for e in experiment.interactions(measure):  # of factors with more than two values the largest
        if e.factors not in found or abs(e.paired.delta) > abs(found[e.factors].paired.delta):
            found[e.factors] = e
    pairs.sort(key=lambda pair: -abs(found[pair].paired.delta) if pair in found else 1.0)
    pairs = pairs[:_MOST]
    columns = min(3, len(pairs))
    rows = -(-len(pairs) // columns)
    panels = axes(2.6 * columns + 0.6, 2.7 * rows + 0.5, rows, columns, sharey=True, squeeze=False)
    scale = 100 if unit_of(measure) == 1 else 1
    told = []
    for panel, (one, two) in zip(panels.flat, pairs, strict=False):
        levels = experiment.factors[one]
        for value, (colour, marker, style) in zip(experiment.factors[two], itertools.cycle(SERIES), strict=False):
            means = [scale * mean_of(experiment, measure, {one: level, two: value}) for level in levels]
            panel.plot(range(len(levels)), means, color=colour, marker=marker, linestyle=style, label=f"{two} {value}")
        panel.set_xticks(range(len(levels)), levels, fontsize=8)
        panel.set_xlabel(one, fontsize=8)
        panel.margins(x=0.25)
        panel.tick_params(axis="y", labelsize=8)
        panel.legend(fontsize=7, frameon=False, loc="best")
        bare(panel)
        if (one, two) in found:
            p = found[one, two].paired
            span = f"{amount(measure, p.delta)} ({amount(measure, p.low)} to {amount(measure, p.high)})"
            several = max(len(experiment.factors[one]), len(experiment.factors[two])) > 2
            of = f" of {' and '.join(high for _, high in found[one, two].changes)}" if several else ""
            panel.set_title(f"interaction{of} {span}", fontsize=8, loc="left", color=GREY)
            told.append(f"{found[one, two].name}: {span}" if several else f"{one} with {two}: {span}")
    for panel in list(panels.flat)[len(pairs) :]:
        panel.set_visible(False)
    for row in panels:
        row[0].set_ylabel(f"{measure} ({'%' if scale == 100 else 'mean'})", fontsize=8)
    title = f"Interactions in {measure}: parallel lines do not interact (exploratory)"
    panels.flat[0].figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return Drawn(panels, title, f"Interaction plots of {measure}. {'; '.join(told)}.")


def mean_of(experiment: Experiment, measure: str, values: dict[str, str]) -> float:
    """The mean of a measure over the runs with these values of some factors; NaN where there is none."""
    chosen = [run.scores[measure] for run in experiment.runs if all(run.passed[name] == value for name, value in values.items())]
    return float(np.mean(chosen)) if chosen else float("nan")


def small_multiples(experiment: Experiment, by: str, measure: str = PRIMARY) -> Drawn:
    """A panel a kind of question (`by` kind) or copying band (`by` band): each factor's effect with its interval, all on one scale."""
    found = experiment.main(measure, by)
    groups: dict[str, list[Effect]] = {}
    for e in found:
        groups.setdefault(getattr(e, by), []).append(e)
    columns = min(3, len(groups))
    rows = -(-len(groups) // columns)
    names = [e.name for e in experiment.main(measure)]
    panels = axes(2.4 * columns + 2.0, rows * (0.9 + 0.28 * len(names)) + 0.5, rows, columns, sharex=True, sharey=True, squeeze=False)
    scale = 100 if unit_of(measure) == 1 else 1
    for panel, (name, members) in zip(panels.flat, groups.items(), strict=False):
        _panel(panel, name, members, names, scale)
    for panel in list(panels.flat)[len(groups) :]:
        panel.set_visible(False)
    panels.flat[0].set_ylim(len(names) - 0.5, -0.5)
    unit = "percentage points" if scale == 100 else "a question"
    for column in range(columns):
        lowest = max(row for row in range(rows) if row * columns + column < len(groups))
        panels[lowest][column].set_xlabel(f"change ({unit})", fontsize=8)
        panels[lowest][column].tick_params(axis="x", labelbottom=True)
    title = f"Effects on {measure} {'by kind of question' if by == 'kind' else 'by how much the question copies'} (exploratory, 95 % intervals)"
    panels.flat[0].figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    told = "; ".join(f"{name}: " + ", ".join(f"{e.name} {amount(measure, e.paired.delta)}" for e in members) for name, members in groups.items())
    return Drawn(panels, title, f"Small multiples of effects. {told}.")


def _panel(panel: Any, name: str, members: Sequence[Effect], names: Sequence[str], scale: float) -> None:
    for e in members:
        at, p = names.index(e.name), e.paired
        colour, marker = {"better": (BLUE, "^"), "worse": (ORANGE, "v")}.get(e.verdict, (GREY, "o"))
        panel.plot([scale * p.low, scale * p.high], [at, at], color=colour, linewidth=1.5)
        panel.scatter([scale * p.delta], [at], color=colour, marker=marker, s=24, zorder=2)
    panel.axvline(0, color="black", linewidth=0.8)
    panel.set_yticks(range(len(names)), names, fontsize=8)
    panel.tick_params(axis="y", length=0)
    panel.tick_params(axis="x", labelsize=8)
    panel.set_title(f"{name} ({members[0].paired.questions} questions)", fontsize=8, loc="left")
    bare(panel, left=False)
