"""The figure of a floor: what each share of answered questions costs in false answers."""

from __future__ import annotations

from typing import Any

from lab.evaluation.floors import TunedFloor
from lab.report.canvas import SERIES, Drawn, axes, bare


def risk_coverage(tuned: TunedFloor, on: Any = None) -> Drawn:
    """Coverage against false answers of each split, with the chosen floor marked on both and the promise as a line."""
    one = on if on is not None else axes(6.6, 4.0)
    for (split, curve), (colour, marker, style) in zip(tuned.curves.items(), SERIES, strict=False):
        one.plot([100 * c for _, c, _ in curve], [100 * f for _, _, f in curve], color=colour, linestyle=style, linewidth=1.4, label=split)
        rates = next((r for r in (tuned.chosen_on, tuned.reported_on) if r is not None and r.split == split), None)
        if rates is not None and rates.coverage is not None and rates.false_answers is not None:
            one.plot(
                [100 * rates.coverage],
                [100 * rates.false_answers],
                marker=marker,
                color=colour,
                markersize=8,
                linestyle="none",
                label=f"floor {tuned.value:.3f} on {split}",
            )
    one.axhline(100 * tuned.wanted, color="#595959", linewidth=0.8, linestyle=":", label=f"at most {100 * tuned.wanted:.3g} % asked for")
    title = "What answering more questions costs in false answers"
    one.set_title(title, loc="left", fontsize=11)
    one.set_xlabel("coverage: answerable questions that pass the floor (%)")
    one.set_ylabel("false answers: unanswerable ones that pass (%)")
    one.set_xlim(0, 100)
    one.set_ylim(0, 100)
    one.grid(color="#e6e6e6", linewidth=0.6)
    one.legend(fontsize=8, frameon=False, loc="upper left")
    bare(one)
    return Drawn(one, title, f"Risk–coverage curves. {tuned.words}")
