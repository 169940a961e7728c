"""Speed on this machine. Figures belong here and in README, not in timed tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lab.cli.output import line, print_json
from lab.cli.server import Json


def bench(
    what: Annotated[
        str,
        Parameter(
            help="help: start-up of the command line; search: the arms at 10,000 chunks, or on a collection of yours; growth: on parts of it; ingest: chunks a second; embed: ingest against the model alone; measures: measures and tests; grid: 8 and 64 members beside one"
        ),
    ] = "help",
    path: Annotated[
        Path | None, Parameter(help="ingest: a BEIR corpus to read in place of a made one; search, growth: the name of a collection")
    ] = None,
    *,
    json: Json = False,
) -> int:
    """Measure speed on this machine: medians over many runs, machine noise included."""
    from lab.errors import UsageError, unknown
    from lab.report import bench as measure
    from lab.report import bench_grid, bench_ingest, bench_measures, bench_search

    known: dict[str, Callable[[], dict[str, float]]] = {
        "help": measure.start_up,
        "search": lambda: bench_search.collection_speed(str(path)) if path is not None else measure.search_speed(),
        "growth": lambda: bench_search.growth(str(path)),
        "ingest": lambda: bench_ingest.ingest_speed(path),
        "embed": bench_ingest.embedding_share,
        "measures": bench_measures.measure_speed,
        "grid": bench_grid.grid_speed,
    }
    if what not in known:
        raise unknown("benchmark", what, known)
    if path is None and what == "growth":
        raise UsageError("name a collection: `lab bench growth NAME`.")
    if path is not None and what not in {"search", "growth"} and (what != "ingest" or not path.exists()):
        raise UsageError(f"{path} does not exist: name a BEIR corpus." if what == "ingest" else f"lab bench {what} takes no path.")
    figures = known[what]()
    if json:
        print_json({"schema_version": 1, "benchmark": what, "figures": figures})
    else:
        for name, value in figures.items():
            line(f"{name:<58} {value:,.4g}")
    return 0
