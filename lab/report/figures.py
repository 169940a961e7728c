"""Figures of an experiment as matplotlib axes and PNG files. Okabe–Ito colours, told apart by marker too; titles, units and alt text for each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.evaluation.experiment import PRIMARY, Experiment
from lab.report.tables import points

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
    for name, draw in (("differences", plot_differences), ("hit-at-k", plot_hit_at_k)):
        axes, title, alt = draw(experiment)
        path = folder / f"{name}.png"
        axes.figure.savefig(path, dpi=150, bbox_inches="tight", metadata={"Software": None})
        plt.close(axes.figure)
        figures.append(Figure(path, title, alt))
    return figures


def plot_differences(experiment: Experiment, measure: str = PRIMARY, axes: Any = None) -> tuple[Any, str, str]:
    """Points of difference by factor: overall, per kind of question, and (in brackets) by how much it copies; returns (axes, title, alt text)."""
    rows = [d for d in experiment.differences if d.measure == measure]
    axes = axes if axes is not None else _axes(7.2, 1.2 + 0.3 * len(rows))
    title = f"What each factor did to {measure}"
    labels, tops = [], []
    for at, d in enumerate(rows):
        change = f"{d.factor} {d.low} → {d.high}"
        labels.append(f"{change}   all" if d.overall else d.kind or f"({d.band})")
        if d.overall and at:
            tops.append(at - 0.5)
        axes.plot([0, 100 * d.delta], [at, at], color=_GREY, linewidth=1, zorder=1)
        axes.scatter(
            [100 * d.delta], [at], color=_BLUE if d.overall else _ORANGE, marker="o" if d.overall else "D", s=46 if d.overall else 26, zorder=2
        )
        axes.annotate(
            f"{points(d.delta)}  ({d.wins} won, {d.losses} lost of {d.questions})", (1.01, at), xycoords=("axes fraction", "data"), va="center",
            fontsize=7.5, color=_GREY,
        )  # fmt: skip
    for top in tops:
        axes.axhline(top, color="#dddddd", linewidth=0.8)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(rows)), labels, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel(f"difference in {measure} (percentage points)")
    axes.set_title(title, loc="left", fontsize=11)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    said = "; ".join(f"{d.factor} {d.low} to {d.high}: {points(d.delta)} points" for d in rows if d.overall)
    return axes, title, f"Dot plot of differences in {measure}. {said}."


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
