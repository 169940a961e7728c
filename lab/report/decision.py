"""A decision as a table and a plot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lab.errors import ServerError
from lab.evaluation.compare import amount
from lab.evaluation.decision import Decision
from lab.report.canvas import BLUE, GREY, ORANGE, Drawn, save
from lab.report.canvas import axes as new_axes
from lab.report.forest import Line, forest
from lab.report.tables import Table


def table(decision: Decision) -> Table:
    """One row for all questions, each kind, each band, each interaction."""
    rows = [_row("all questions", decision.overall, decision.overall.paired.p, decision.overall.verdict, decision.needed)]
    for named in (decision.kinds, decision.bands):
        rows += [_row(name if named is decision.kinds else f"({name})", k.effect, k.p_adjusted, k.verdict, k.needed) for name, k in named.items()]
    rows += [_row(f"× {e.factors[1]} {e.changes[1][0]} → {e.changes[1][1]}", e, e.paired.p, e.verdict, None) for e in decision.interactions]
    heads = ("", "questions", decision.change[0], decision.change[1], "change", "interval", "p", "won", "lost", "tied", "verdict", "would tell")
    return Table(f"{decision.factor} {decision.change[0]} → {decision.change[1]}: {decision.measure}", heads, tuple(rows))


def _row(name: str, effect: Any, p: float, verdict: str, needed: int | None) -> tuple[str, ...]:
    x, m = effect.paired, effect.measure
    means = (f"{x.before:.3f}", f"{x.after:.3f}") if len(effect.factors) == 1 else (amount(m, x.before), amount(m, x.after))
    return (
        name, str(x.questions), *means, amount(m, x.delta), f"{amount(m, x.low)} to {amount(m, x.high)}", f"{max(p, 1e-4):.2g}", str(x.wins), str(x.losses), str(x.ties),
        verdict.replace("_", " "), "–" if needed is None else str(needed),
    )  # fmt: skip


def plot(decision: Decision, axes: Any = None) -> Any:
    """Forest plot of the effect over all questions, per kind and per band; returns the axes."""
    rows = [("all questions", decision.overall, decision.overall.verdict)]
    rows += [(name, k.effect, k.verdict) for name, k in decision.kinds.items()] + [
        (f"({name})", k.effect, k.verdict) for name, k in decision.bands.items()
    ]
    axes = axes if axes is not None else new_axes(7.2, 1.5 + 0.32 * len(rows))
    lines = [
        Line(
            name, effect.paired, f"{effect.paired.wins} won, {effect.paired.losses} lost of {effect.paired.questions}",
            {"better": BLUE, "worse": ORANGE}.get(verdict, GREY), {"better": "^", "worse": "v"}.get(verdict, "o"),
        )
        for name, effect, verdict in rows
    ]  # fmt: skip
    title = f"{decision.factor}: {decision.change[0]} → {decision.change[1]} on {decision.collection}: {decision.verdict.replace('_', ' ')}"
    return forest(lines, decision.measure, title, " with its interval; ▲ better, ▼ worse, ● cannot tell", axes)


def drawn(decision: Decision) -> Drawn:
    """The plot with its title and words."""
    return Drawn(plot(decision), decision.factor, decision.words)


def draw(decision: Decision, to: Path | None = None) -> Path:
    """Writes the plot as PNG and returns the file. ServerError where it cannot be written."""
    path = to if to is not None else Path("reports") / f"decide-{decision.experiment_id}.png"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save(drawn(decision), path)
    except (OSError, ValueError) as error:
        raise ServerError(f"the plot cannot be written to {path} ({error}): name a .png file behind --plot.") from None
    return path
