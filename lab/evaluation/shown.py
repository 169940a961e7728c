"""What every result object offers to notebooks: `_repr_html_` from its words and its frame, and drawings."""

from __future__ import annotations

import html
import importlib
from typing import Any


class Shown:
    """An object with `to_frame()`, and perhaps `words`: a table under a sentence where a notebook shows it."""

    __slots__ = ()

    def to_frame(self) -> Any:
        raise NotImplementedError

    def __repr__(self) -> str:
        said = getattr(self, "words", "")
        return f"{type(self).__name__}: {said}" if said else f"{type(self).__name__}\n{self.to_frame().round(4).to_string(index=False)}"

    def _repr_html_(self) -> str:
        said = getattr(self, "words", "")
        return (f"<p>{html.escape(said)}</p>" if said else "") + str(self.to_frame().round(4).to_html(index=False))


def draw(plots: str, name: str, *arguments: Any, **more: Any) -> Any:
    """Calls a drawing function of `lab.report` and returns its axes. Found by name when something is drawn, as pandas finds its plotting backend: results know that they can be
    drawn, and import nothing of how."""
    return getattr(importlib.import_module(f"lab.report.{plots}"), name)(*arguments, **more).axes
