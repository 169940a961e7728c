"""The gate, and the baselines that it compares with."""

from __future__ import annotations

import getpass
import re
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lab.cli.evidence import Alpha
from lab.cli.output import line, print_json, print_table
from lab.cli.server import Json
from lab.errors import CannotJudge, UsageError
from lab.progress import say


def gate(
    *, baseline: Annotated[str, Parameter(help="name of the baseline (see lab runs promote), or the JSON file of an exported run")],
    run: Annotated[str, Parameter(help="the run to judge; latest: the last finished one with the baseline's collection and gold set")] = "latest",
    measure: Annotated[str, Parameter(help="what must not get worse")] = "hit@5", margin: Annotated[float, Parameter(help="by so much")] = 0.05, alpha: Alpha = 0.05,
    kinds: Annotated[str | None, Parameter(help="only questions of these kinds, as in fact,section")] = None,
    policy: Annotated[Path | None, Parameter(help="a TOML file with several rules, in place of --measure, --margin, --kinds")] = None,
    junit: Annotated[Path | None, Parameter(help="write JUnit XML to this file, a case a rule")] = None,
    markdown: Annotated[Path | None, Parameter(help="write Markdown for a pull request to this file")] = None, json: Json = False,
) -> int:  # fmt: skip
    """Is a run worse than the baseline? Exit 0 pass, 1 regression, 3 could not judge."""
    from lab.evaluation.gate import gate as run_gate
    from lab.evaluation.gate import in_text
    from lab.evaluation.policy import Policy, Rule, read_policy
    from lab.report import gate as report
    from lab.scratch import whole_file

    if policy is not None and (kinds is not None or measure != "hit@5" or margin != 0.05):
        raise UsageError("--policy holds the rules: leave --measure, --margin and --kinds out.")
    chosen = tuple(kind.strip() for kind in (kinds or "").split(",") if kind.strip())
    rules = read_policy(policy) if policy is not None else Policy((Rule(measure, margin, chosen),), alpha)
    verdict = run_gate(baseline, run, rules)
    if junit is not None:
        whole_file(junit, report.junit(verdict))
    if markdown is not None:
        whole_file(markdown, report.markdown(verdict))
    for annotation in report.to_github(verdict):
        print(annotation, file=sys.stderr)
    if json:
        print_json(verdict.to_json())
    else:
        for text in in_text(verdict):
            line(text)
    return verdict.exit_code


def promote(
    run_id: str, *, as_: Annotated[str, Parameter(name="--as", help="name of the baseline")], note: Annotated[str, Parameter(help="why this run")] = "", json: Json = False
) -> int:  # fmt: skip
    """Make a run the baseline of a name. Who did it, when and why stays on record."""
    from lab.store import baselines, runs
    from lab.store.connect import connect

    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._/-]*", as_) or as_ == "latest":
        raise UsageError(f"{as_!r} cannot name a baseline: use letters, digits, dots, slashes, - and _.")
    with connect() as store:
        row = runs.get_run(store, run_id)
        if row.status != "ok":
            raise CannotJudge(f"{run_id} is {row.status}: only a run that is ok can be a baseline.")
        baselines.promote(store, as_, run_id, note, getpass.getuser())
    if json:
        print_json({"schema_version": 1, "baseline": as_, "run_id": run_id})
    else:
        line(f"{as_} is {run_id} now ({row.questions} questions of {row.gold} on {row.collection})")
    if not note:
        say("say --note next time: why a baseline was moved is what people ask later")
    return 0


def list_baselines(*, json: Json = False) -> int:
    """Every promotion, the newest first."""
    from lab.store import baselines
    from lab.store.connect import connect

    with connect() as store:
        found = baselines.history(store)
    if json:
        names = ("baseline", "run_id", "note", "who", "at")
        print_json({"schema_version": 1, "promotions": [dict(zip(names, row, strict=True)) for row in found]})
    else:
        print_table(("baseline", "run", "note", "who", "at"), found)
    return 0
