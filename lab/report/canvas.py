"""What all figures share: Okabe–Ito colours (told apart by marker or hatch too), axes without a frame, and the way to a file."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BLUE, ORANGE, GREEN, PURPLE, YELLOW, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
GREY, PALE = "#595959", "#c9c9c9"
SERIES = ((BLUE, "o", "-"), (ORANGE, "s", "--"), (GREEN, "^", "-."), (PURPLE, "D", ":"), (YELLOW, "v", "-"), (SKY, "P", "--"))
DPI = 150


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure: its axes (an array of them where it has several panels), and its title and description in words."""

    axes: Any
    title: str
    alt: str

    @property
    def figure(self) -> Any:
        first = self.axes.flat[0] if hasattr(self.axes, "flat") else self.axes
        return first.figure


def axes(width: float, height: float, rows: int = 1, columns: int = 1, **more: Any) -> Any:
    """New axes of so many inches; an array `(rows, columns)` where there are several."""
    headless()
    import matplotlib.pyplot as plt

    return plt.subplots(rows, columns, figsize=(width, height), layout="constrained" if rows * columns > 1 else None, **more)[1]


def headless() -> None:
    """No window where nobody asked for one: outside of notebooks, and before anybody drew."""
    if "MPLBACKEND" not in os.environ and "matplotlib.pyplot" not in sys.modules:
        import matplotlib

        matplotlib.use("Agg")


def bare(one: Any, *, left: bool = True) -> None:
    """Takes the frame away, but for the axes that carry a scale."""
    for side in ("top", "right", *(() if left else ("left",))):
        one.spines[side].set_visible(False)


def save(drawn: Drawn, path: Path) -> None:
    """Writes the figure as PNG, the same bytes each time, and closes it."""
    import matplotlib.pyplot as plt

    try:
        drawn.figure.savefig(path, dpi=DPI, bbox_inches="tight", metadata={"Software": None})
    finally:
        plt.close(drawn.figure)
