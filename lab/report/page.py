"""Reports: `report.md`, one self-contained `report.html`, `data.json` and the figures, in one folder an experiment."""

from __future__ import annotations

import base64
import datetime as dt
import json
import os
from pathlib import Path
from typing import Any

from lab.config import home
from lab.errors import ServerError, redact
from lab.evaluation.compare import in_words
from lab.evaluation.experiment import Experiment, load
from lab.report import figures, tables
from lab.store import runs
from lab.store.connect import Store, connect

_READING = (
    "“before” and “after” are means over all scored questions and over all settings of the other factors; a question wins when its own score is higher after the "
    "change. The interval holds the differences that these questions do not rule out; where it holds 0, they cannot tell. Questions about one document are no independent evidence, and "
    "are tested as clusters. Main effects on hit@5 are one family and corrected together (Holm); everything else is exploratory: with many looks, some will seem to show "
    "something. A factor that changed no ranking says nothing about its worth."
)


def write_report(experiment: Experiment | str, *, store: Store | None = None, to: str | Path | None = None) -> Path:
    """Writes the report of an experiment and returns its folder: `to`, else `./reports/<id>`, else (where that cannot be written) under LAB_HOME."""
    if store is None:
        with connect() as opened:
            return write_report(experiment, store=opened, to=to)
    loaded = load(store, experiment) if isinstance(experiment, str) else experiment
    folder = _folder(loaded.experiment_id, to)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        drawn = figures.write(loaded, folder)
        shown = [tables.effects(loaded), tables.interactions(loaded), tables.by_kind(loaded), tables.by_band(loaded), tables.members(loaded)]
        shown = [table for table in shown if table.rows]
        facts = _facts(store, loaded)
        title = f"Ablation of {', '.join(loaded.factors)} on {loaded.collection}"
        lead = f"{len(loaded.runs)} runs over {loaded.runs[0].questions} questions of the gold set {loaded.gold}. " + " ".join(
            f"{e.name}: {in_words(e.measure, e.paired)}" for e in loaded.main()
        )
        common = {"title": title, "lead": lead, "reading": _READING, "facts": facts}
        _write(folder / "report.md", "report.md.j2", common | {
            "tables": [{"title": t.title, "text": tables.markdown(t)} for t in shown],
            "figures": [{"alt": f.alt, "file": f.path.name} for f in drawn],
        })  # fmt: skip
        _write(folder / "report.html", "report.html.j2", common | {
            "tables": [{"title": t.title, "heads": t.heads, "rows": t.rows, "numeric": tables.numeric_columns(t)} for t in shown],
            "figures": [{"alt": f.alt, "width": _width(f.path), "data": base64.b64encode(f.path.read_bytes()).decode()} for f in drawn],
        })  # fmt: skip
        text = json.dumps(loaded.to_json() | {"facts": dict(facts)}, ensure_ascii=False, indent=1)
        (folder / "data.json").write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise ServerError(f"the report cannot be written to {folder} ({error.strerror}): name another folder behind --to.") from None
    return folder


def _width(path: Path) -> int:
    """The width at which a figure is shown, in CSS pixels: its own, drawn at 150 dots an inch. From the header of the PNG file."""
    return round(int.from_bytes(path.read_bytes()[16:20]) * 96 / 150)


def _folder(name: str, to: str | Path | None) -> Path:
    if to is not None:
        return Path(to)
    return Path("reports") / name if os.access(".", os.W_OK) else home() / "reports" / name


def _write(path: Path, template: str, values: dict[str, Any]) -> None:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"), autoescape=template.endswith(".html.j2"), trim_blocks=False,
        keep_trailing_newline=True, undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    path.write_text(environment.get_template(template).render(values), encoding="utf-8")


def _facts(store: Store, experiment: Experiment) -> list[tuple[str, str]]:
    """What a reader needs to repeat it, from the first run's row."""
    row = runs.get_run(store, experiment.runs[0].run_id)
    entry = runs.experiment(store, experiment.experiment_id)
    environment, inputs = row.environment, row.inputs
    commit = (
        f"{environment['commit']}{' with uncommitted changes' if environment['dirty'] else ''}"
        if environment["commit"]
        else "none (installed package)"
    )
    return [
        ("experiment", experiment.experiment_id),
        ("command", redact(entry["command"]) or "through the Python API"),
        ("lab", f"{environment['lab']}, commit {commit}"),
        ("Python", environment["python"]),
        ("PostgreSQL", f"{environment['postgres']}, " + ", ".join(f"{k} {v}" for k, v in environment["extensions"].items() if k != "plpgsql")),
        ("gold", f"{experiment.gold}, digest {experiment.gold_digest}, split {row.split}"),
        (
            "collection",
            f"{experiment.collection}, {inputs['chunks']} chunks, corpus digest {inputs['corpus_digest']}, link digest {inputs['link_digest']}",
        ),
        ("ingest", ", ".join(f"{k} {v}" for k, v in inputs["ingest"].items())),
        ("embedder", f"{inputs['embedder']}, {inputs['model_digest']}"),
        (
            "engines",
            ", ".join(
                f"{arm} {'/'.join(sorted(used['engines']))}" for arm, used in sorted(runs.get_run(store, experiment.runs[-1].run_id).engines.items())
            ),
        ),
        ("seed", str(row.seed)),
        ("finished", f"{(row.finished_at or row.created_at).astimezone(dt.UTC):%Y-%m-%d %H:%M} UTC"),
        ("runs", ", ".join(r.run_id for r in experiment.runs)),
    ]
