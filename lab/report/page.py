"""Reports: `report.md`, one self-contained `report.html`, `data.json`, `tables.tex` and the figures, in one folder."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.config import home
from lab.errors import ServerError, UsageError
from lab.evaluation.compare import shared_measure
from lab.evaluation.experiment import Experiment, load
from lab.evaluation.latency import Cost, costs, time_runs
from lab.evaluation.recorded import Run
from lab.evaluation.side_by_side import of_runs
from lab.report import canvas, figures, flipped, tables
from lab.report.facts import facts
from lab.store import runs
from lab.store.connect import Store, connect

_READING = (
    "“before” and “after” are means over all scored questions and over all settings of the other factors; a question wins when its own score is higher after the "
    "change. The interval holds the differences that these questions do not rule out; where it holds 0, they cannot tell. Questions about one document are no independent evidence, and "
    "are tested as clusters. Main effects on hit@5 are one family and corrected together (Holm); everything else is exploratory: with many looks, some will seem to show "
    "something. A raised letter behind a value names a run that it beats, all pairs corrected together. A factor that changed no ranking says nothing about its worth. Times are those of a separate "
    "pass in which the runs took turns and shared nothing."
)
_MOST_TIMED = 16  # runs of a report that are timed without being asked to


def write_report(
    what: Experiment | Run | str | Sequence[str], *, store: Store | None = None, to: str | Path | None = None, timing: bool | None = None
) -> Path:
    """Writes the report of an experiment (or its id), of a run, or of several runs side by side (the first is what the others are compared with), and returns its folder: `to`, else
    `./reports/<id>`, else (where that cannot be written) under LAB_HOME.

    `timing`: whether runs that were never timed are timed now, where their settings can run here (None: up to 16 runs are).
    """
    if store is None:
        with connect() as opened:
            return write_report(what, store=opened, to=to, timing=timing)
    shown = _loaded(store, what)
    folder = _folder(shown.experiment_id, to)
    ids = [run.run_id for run in shown.runs]
    measured = costs(store, ids)
    if not measured and (timing if timing is not None else len(ids) <= _MOST_TIMED):
        measured = time_runs(store, ids)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_all(store, shown, folder, measured)
    except OSError as error:
        raise ServerError(f"the report cannot be written to {folder} ({error.strerror}): name another folder behind --to.") from None
    return folder


def _loaded(store: Store, what: Experiment | Run | str | Sequence[str]) -> Experiment:
    if isinstance(what, Experiment):
        return what
    if isinstance(what, Run):
        return of_runs(store, [what.run_id])
    names = [what] if isinstance(what, str) else list(what)
    if not names:
        raise UsageError("name an experiment, a run, or several runs.")
    if len(names) == 1 and not runs.is_run(store, names[0]):
        return load(store, names[0])
    grids = [name for name in names if not runs.is_run(store, name) and runs.is_experiment(store, name)]
    if grids:
        raise UsageError(f"{grids[0]} is an experiment: name one alone, or several runs.")
    return of_runs(store, names)


def _write_all(store: Store, shown: Experiment, folder: Path, measured: Mapping[str, Cost]) -> None:
    ids = [run.run_id for run in shown.runs]
    drawn = figures.write(shown, folder, runs.first_relevant(store, ids), measured)
    measure = shared_measure(shown.runs)
    wins = tables.significant_wins(shown, measure)
    told = [
        tables.effects(shown, measure), tables.members(shown, measured, wins, measure), tables.interactions(shown, measure), tables.by_kind(shown, measure), tables.by_band(shown, measure),
        *([tables.groups(shown.runs[0])] if len(shown.runs) == 1 else []),
    ]  # fmt: skip
    told = [table for table in told if table.rows]
    pairs, left_out = flipped.pairs(store, shown, measure)
    known = facts(store, shown)
    common = {
        "title": _title(shown), "lead": _lead(shown), "verdicts": [f"{e.name}: {e.words}" for e in shown.main(measure)] if len(shown.runs) > 1 else [], "warnings": [*shown.warnings, *(f"{f} changed no ranking: nothing can be said of its worth" for f in shown.inert)],
        "reading": _READING, "facts": known, "pairs": pairs, "pairs_left_out": left_out,
    }  # fmt: skip
    _write(folder / "report.md", "report.md.j2", common | {
        "tables": [{"title": t.title, "text": tables.markdown(t)} for t in told],
        "figures": [{"title": f.title, "alt": f.alt, "file": f.path.name} for f in drawn],
    })  # fmt: skip
    _write(folder / "report.html", "report.html.j2", common | {
        "tables": [{"title": t.title, "heads": t.heads, "rows": t.rows, "numeric": tables.numeric_columns(t)} for t in told],
        "figures": [{"title": f.title, "alt": f.alt, "width": _width(f.path), "data": base64.b64encode(f.path.read_bytes()).decode()} for f in drawn],
    })  # fmt: skip
    (folder / "tables.tex").write_text(tables.latex(told), encoding="utf-8")
    data = shown.to_json() | {
        "facts": dict(known), "figures": {f.path.name: {"title": f.title, "alt": f.alt} for f in drawn}, "wins": wins,
        "latency": {run: {"p50_ms": cost.p50, "p95_ms": cost.p95, "questions": cost.questions} for run, cost in measured.items()},
        "losses": {run.run_id: dict(run.health.get("lost", {})) for run in shown.runs}, "pairs": [pair.to_json() for pair in pairs],
    }  # fmt: skip
    (folder / "data.json").write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _title(shown: Experiment) -> str:
    if len(shown.runs) == 1:
        return f"Run {shown.runs[0].run_id} on {shown.collection}"
    if list(shown.factors) == ["run"]:
        return f"{len(shown.runs)} runs on {shown.collection}"
    return f"Ablation of {', '.join(shown.factors)} on {shown.collection}"


def _lead(shown: Experiment) -> str:
    count = len(shown.runs)
    first = shown.runs[0]
    said = f"{count} run{'s' if count > 1 else ''} over {first.questions} questions of the gold set {shown.gold}."
    if count == 1:
        named = [m for m in tables.SHOWN if m in first.scores][:4]
        return said + " " + ", ".join(f"{m} {first.scores[m]:.3f}" for m in named) + "."
    return said


def _width(path: Path) -> int:
    """The width at which a figure is shown, in CSS pixels: its own, at the dots an inch it was drawn with. From the header of the PNG file."""
    return round(int.from_bytes(path.read_bytes()[16:20]) * 96 / canvas.DPI)


def _folder(name: str, to: str | Path | None) -> Path:
    if to is not None:
        return Path(to)
    return Path("reports") / name if os.access(".", os.W_OK) else home() / "reports" / name


def _write(path: Path, template: str, values: dict[str, Any]) -> None:
    path.write_text(render(template, values), encoding="utf-8")


def render(template: str, values: Mapping[str, Any]) -> str:
    """A template of this package with these values; what goes into HTML is escaped."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"), autoescape=template.endswith(".html.j2"), trim_blocks=False,
        keep_trailing_newline=True, undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    environment.filters["plain"] = tables.plain
    return environment.get_template(template).render(values)
