"""Speed on this machine. Figures belong here and in README, not in timed tests."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from lab.cli.output import line, print_json
from lab.cli.server import Json


def bench(
    what: Annotated[str, Parameter(help="help: start-up of the command line; search: the arms at 10,000 chunks")] = "help", *, json: Json = False
) -> int:
    """Measure speed on this machine: medians over many runs, machine noise included."""
    from lab.errors import unknown
    from lab.report import bench as measure

    known = {"help": measure.start_up, "search": measure.search_speed}
    if what not in known:
        raise unknown("benchmark", what, known)
    figures = known[what]()
    if json:
        print_json({"schema_version": 1, "benchmark": what, "figures": figures})
    else:
        for name, value in figures.items():
            line(f"{name:<58} {value:,.4g}")
    return 0
