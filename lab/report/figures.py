"""Figures of an experiment as matplotlib axes and PNG files. Okabe–Ito colours, told apart by marker too; titles, units and alt text for each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.evaluation.compare import PRIMARY, amount
from lab.evaluation.experiment import Experiment
from lab.evaluation.statistics.paired import ALPHA
from lab.report.forest import BLUE, ORANGE, Line, forest


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
    title = f"What each factor did to {measure}"
    lines = [
        Line(
            f"{e.name}   all" if e.overall else e.kind or f"({e.band})", e.paired,
            f"{amount(measure, e.paired.delta)}  ({e.paired.wins} won, {e.paired.losses} lost of {e.paired.questions})",
            BLUE if e.overall else ORANGE, "o" if e.overall else "D", e.overall, e.overall and at > 0,
        )
        for at, e in enumerate(rows)
    ]  # fmt: skip
    forest(lines, measure, title, f", with {100 * (1 - ALPHA):.0f} % intervals (corrected for all factors where blue)", axes)
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
    for run, colour, marker in ((worst, ORANGE, "s"), (best, BLUE, "o")):
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
