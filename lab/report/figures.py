"""All figures of a report, drawn into a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.evaluation.compare import shared_measure
from lab.evaluation.experiment import Experiment
from lab.evaluation.latency import Cost
from lab.report import effect_plots, run_plots
from lab.report.canvas import Drawn, save


@dataclass(frozen=True, slots=True)
class Figure:
    """A written figure."""

    path: Path
    title: str
    alt: str


def write(experiment: Experiment, folder: Path, ranks: Mapping[str, Mapping[str, int | None]], costs: Mapping[str, Cost]) -> list[Figure]:
    """Draws what an experiment can show into `folder`. `ranks`: run → question → rank of its first answer; `costs`: run → what a search takes."""
    runs = experiment.runs
    measure = shared_measure(runs)
    wanted: list[tuple[str, bool, Callable[[], Drawn]]] = [
        ("effects", bool(experiment.main(measure)), lambda: effect_plots.effects(experiment, measure)),
        (
            "interactions",
            len(experiment.factors) > 1 and bool(experiment.interactions(measure)),
            lambda: effect_plots.interactions(experiment, measure),
        ),
        ("kinds", bool(experiment.main(measure, "kind")), lambda: effect_plots.small_multiples(experiment, "kind", measure)),
        ("bands", bool(experiment.main(measure, "band")), lambda: effect_plots.small_multiples(experiment, "band", measure)),
        ("hit-at-k", bool(run_plots.cutoffs(runs)), lambda: run_plots.hit_at_k(runs)),
        ("losses", any(run.health.get("lost") for run in runs), lambda: run_plots.first_losses(runs)),
        ("ranks", len(runs) > 1, lambda: run_plots.shift(runs, ranks)),
        ("latency", len(costs) > 1, lambda: run_plots.frontier(runs, {run: cost.p50 for run, cost in costs.items()})),
    ]
    figures = []
    for name, there, draw in wanted:
        if there:
            drawn = draw()
            save(drawn, folder / f"{name}.png")
            figures.append(Figure(folder / f"{name}.png", drawn.title, drawn.alt))
    return figures
