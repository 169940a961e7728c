"""The demo command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lab.cli.evaluate import command_line, print_experiment, worst
from lab.cli.output import line, print_json
from lab.cli.server import Json


def demo(*, to: Annotated[Path | None, Parameter(help="folder of the report; default: reports/ID here")] = None, json: Json = False) -> int:
    """The whole loop on the built-in collection `handbook`: ingest, check the gold set, run 2 × 2 × 2 settings, show the table, write the report."""
    from lab.report.demo import demo as run_demo
    from lab.report.tables import what_next
    from lab.store.connect import connect

    with connect() as store:
        experiment, folder = run_demo(store, to=to, command=command_line())
    if json:
        print_json(experiment.to_json() | {"report": str(folder / "report.html")})
        return worst(experiment)
    print_experiment(experiment)
    line(f"report  {folder / 'report.html'}")
    line(f"next    {what_next(experiment)}")
    return worst(experiment)
