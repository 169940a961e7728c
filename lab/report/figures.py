"""Figures of an experiment as matplotlib axes and PNG files. Okabe–Ito colours, told apart by marker too; titles, units and alt text for each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.evaluation.compare import PRIMARY, amount, unit_of
from lab.evaluation.experiment import Experiment
from lab.evaluation.statistics.paired import ALPHA

_BLUE, _ORANGE, _GREY = "#0072B2", "#D55E00", "#595959"


@dataclass(frozen=True, slots=True)
class Figure:
    """A written figure."""

    path: Path
    title: str
    alt: str


def write(experiment: Experiment, folder: Path) -> list[Figure]:
    """Draws all figures of an experiment into `folder`."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figures = []
    for name, draw in (("effects", plot_effects), ("hit-at-k", plot_hit_at_k)):
        axes, title, alt = draw(experiment)
        path = folder / f"{name}.png"
        axes.figure.savefig(path, dpi=150, bbox_inches="tight", metadata={"Software": None})
        plt.close(axes.figure)
        figures.append(Figure(path, title, alt))
    return figures


def plot_effects(experiment: Experiment, measure: str = PRIMARY, axes: Any = None) -> tuple[Any, str, str]:
    """Forest plot: each main effect with its interval, overall, per kind of question, and (in brackets) by how much it copies; returns (axes, title, alt text)."""
    rows = [
        e
        for main in experiment.main(measure)
        for e in (
            main,
            *(o for by in ("kind", "band") for o in experiment.main(measure, by) if (o.factors, o.changes) == (main.factors, main.changes)),
        )
    ]
    axes = axes if axes is not None else _axes(7.6, 1.4 + 0.3 * len(rows))
    scale = 100 if unit_of(measure) == 1 else 1
    title = f"What each factor did to {measure}"
    labels = []
    for at, e in enumerate(rows):
        p = e.paired
        labels.append(f"{e.name}   all" if e.overall else e.kind or f"({e.band})")
        if e.overall and at:
            axes.axhline(at - 0.5, color="#dddddd", linewidth=0.8)
        colour = _BLUE if e.overall else _ORANGE
        axes.plot([scale * p.low, scale * p.high], [at, at], color=colour if e.overall else _GREY, linewidth=2 if e.overall else 1, zorder=1)
        axes.scatter([scale * p.delta], [at], color=colour, marker="o" if e.overall else "D", s=46 if e.overall else 26, zorder=2)
        axes.annotate(
            f"{amount(measure, p.delta)}  ({p.wins} won, {p.losses} lost of {p.questions})", (1.01, at), xycoords=("axes fraction", "data"), va="center",
            fontsize=7.5, color=_GREY,
        )  # fmt: skip
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(rows)), labels, fontsize=8)
    axes.invert_yaxis()
    level = 100 * (1 - ALPHA)
    axes.set_xlabel(
        f"difference in {measure} ({'percentage points' if scale == 100 else 'a question'}), with {level:.0f} % intervals (corrected for all factors where blue)",
        fontsize=8,
    )
    axes.set_title(title, loc="left", fontsize=11)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    told = (
        f"{e.name}: {amount(measure, e.paired.delta)} ({amount(measure, e.paired.low)} to {amount(measure, e.paired.high)})"
        for e in rows
        if e.overall
    )
    return axes, title, f"Forest plot of effects on {measure}. {'; '.join(told)}."


def plot_hit_at_k(experiment: Experiment, axes: Any = None) -> tuple[Any, str, str]:
    """Share of questions with a judged passage among the first k results, for the best and the worst run at hit@5 and all between."""
    axes = axes if axes is not None else _axes(6.4, 3.8)
    ks = [int(m.split("@")[1]) for m in experiment.runs[0].scores if m.startswith("hit@")]
    ordered = sorted(experiment.runs, key=lambda r: (r.scores[PRIMARY], r.run_id))
    worst, best = ordered[0], ordered[-1]
    for run in ordered[1:-1]:
        axes.plot(ks, [100 * run.scores[f"hit@{k}"] for k in ks], color="#c9c9c9", linewidth=1)
    for run, colour, marker in ((worst, _ORANGE, "s"), (best, _BLUE, "o")):
        axes.plot(
            ks, [100 * run.scores[f"hit@{k}"] for k in ks], color=colour, marker=marker, label=", ".join(f"{n}={v}" for n, v in run.passed.items())
        )
    title = "Questions answered within the first k results"
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlabel("k (results)")
    axes.set_ylabel("questions with a judged passage (%)")
    axes.set_xticks(ks)
    axes.set_ylim(0, 100)
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.6)
    axes.legend(fontsize=8, frameon=False, loc="lower right", title="highest and lowest run at hit@5; grey: the others", title_fontsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    alt = f"Lines of hit@k. Highest run at k = {ks[-1]}: {100 * best.scores[f'hit@{ks[-1]}']:.0f} %, lowest: {100 * worst.scores[f'hit@{ks[-1]}']:.0f} %."
    return axes, title, alt


def _axes(width: float, height: float) -> Any:
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height))[1]
