"""Forest plots: an effect a line, with its interval. Okabe–Ito colours, told apart by marker too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lab.evaluation.compare import unit_of
from lab.evaluation.statistics.paired import Paired
from lab.report.canvas import GREY, bare


@dataclass(frozen=True, slots=True)
class Line:
    """One effect; `strong` ones are drawn thicker, `apart` ones under a rule."""

    label: str
    paired: Paired
    text: str  # beside it
    colour: str
    marker: str
    strong: bool = True
    apart: bool = False


def forest(lines: Sequence[Line], measure: str, title: str, legend: str, axes: Any) -> Any:
    """Draws the lines from top to bottom and returns the axes; points for measures from 0 to 1."""
    scale = 100 if unit_of(measure) == 1 else 1
    for at, one in enumerate(lines):
        p = one.paired
        if one.apart:
            axes.axhline(at - 0.5, color="#dddddd", linewidth=0.8)
        axes.plot([scale * p.low, scale * p.high], [at, at], color=one.colour if one.strong else GREY, linewidth=2 if one.strong else 1, zorder=1)
        axes.scatter([scale * p.delta], [at], color=one.colour, marker=one.marker, s=46 if one.strong else 26, zorder=2)
        axes.annotate(one.text, (1.01, at), xycoords=("axes fraction", "data"), va="center", fontsize=7.5, color=GREY)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(lines)), [one.label for one in lines], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel(f"difference in {measure} ({'percentage points' if scale == 100 else 'a question'}){legend}", fontsize=8)
    axes.set_title(title, loc="left", fontsize=11)
    bare(axes, left=False)
    axes.tick_params(axis="y", length=0)
    return axes
