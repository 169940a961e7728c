"""Commands about runs and experiments."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from lab.cli.output import line, print_json, print_table
from lab.cli.server import Json
from lab.cli.words import SearchFlags, passed
from lab.errors import UsageError, redact
from lab.progress import say

Gold = Annotated[str, Parameter(help="name or folder of the gold set")]
Split = Annotated[str | None, Parameter(help="only the questions of this split")]
SplitBy = Annotated[
    str, Parameter(name="--split-by", help="component: questions that share a document stay together; question: where one component is too large")
]
Named = Annotated[str, Parameter(name="--settings", help="named settings or a TOML file; flags override")]
Measures = Annotated[
    list[str] | None, Parameter(name="--measure", negative=(), help="measure to compute in place of the usual ones, as hit@5; may be repeated")
]


def run(
    collection: str, *, gold: Gold, split: Split = None,
    split_by: SplitBy = "component", settings: Named = "default", measures: Measures = None, json: Json = False,
    from_trec: Annotated[Path | None, Parameter(help="score this TREC run in place of a search; documents are chunks (guide.md::3) or sources")] = None,
    smoke: Annotated[int | None, Parameter(help="ask only so many questions, look at health alone, and record nothing")] = None,
    answers: Annotated[str | None, Parameter(help="answer every question too, and score the answers: extractive, or chat (the model of LAB_CHAT_URL)")] = None,
    judge: Annotated[str, Parameter(help="of the answers: proxy (words and cosines), or chat")] = "proxy",
    stuff: Annotated[bool, Parameter(negative=(), help="answer from the whole collection, without a search")] = False,
    budget: Annotated[int, Parameter(help="tokens that an answer's context may have")] = 3000,
    answers_to: Annotated[Path | None, Parameter(name="--answers-to", help="write every answer with its scores to this file, a JSON object a line")] = None, flags: SearchFlags = None,
) -> int:  # fmt: skip
    """Search every question of a gold set once, and record rankings, ledger and scores."""
    from lab.evaluation.answering import Answering
    from lab.evaluation.measures import DEFAULT
    from lab.evaluation.run import run as execute
    from lab.gold.files import load_gold

    if answers is None and (stuff or answers_to is not None or judge != "proxy"):
        raise UsageError("--stuff, --judge and --answers-to are about answers: say --answers extractive, or chat.")
    if answers is not None and (smoke is not None or from_trec is not None):
        raise UsageError("--answers needs a search of its own: leave --smoke and --from-trec out.")
    if smoke is not None:
        if from_trec is not None or measures:
            raise UsageError("--smoke scores nothing: leave --measure and --from-trec out.")
        return _smoke(collection, load_gold(gold, split=split, split_by=split_by), smoke, settings, json, passed(flags))
    done = execute(
        collection,
        load_gold(gold, split=split, split_by=split_by),
        settings=settings,
        measures=measures or DEFAULT,
        from_trec=from_trec,
        answering=None if answers is None else Answering(answers, judge, stuff, budget, to=answers_to),
        **passed(flags),
    )
    if json:
        print_json(done.to_json())
    else:
        line(f"run {done.run_id}: {done.status}, {done.questions} questions of {done.gold} on {done.collection}")
        print_table(("measure", "mean"), [(name, f"{value:.4f}") for name, value in done.scores.items()], numeric=(False, True))
        print_groups(done)
        print_health(done.health)
        print_answers(done.health.get("answers") or {})
        for note in done.notes:
            say(f"note: {note}")
    return 0 if done.status == "ok" else 3


def _smoke(collection: str, gold: Any, many: int, settings: str, json: bool, flags: dict[str, Any]) -> int:
    from lab.evaluation.smoke import smoke

    found = smoke(collection, gold, many, settings=settings, **flags)
    if json:
        print_json(found.to_json())
    else:
        kinds = ", ".join(f"{count} {kind}" for kind, count in found.kinds.items())
        line(
            f"{found.outcome.replace('_', ' ')}: {found.questions} questions of {found.gold} on {found.collection} ({kinds}); no score, nothing recorded"
        )
        for code, said in found.found.items():
            line(f"  {code}: {said}")
    return 3 if found.found else 0


def print_groups(done: Any) -> None:
    """Means per kind of question and per copying band, where there is more than one."""
    from lab.report.tables import groups

    table = groups(done)
    if len(table.rows) > 1:
        line("")
        print_table(table.heads, table.rows, numeric=(False, False, *([True] * (len(table.heads) - 2))))


def print_health(health: Mapping[str, Any]) -> None:
    """Each arm alone beside what is returned, and what every stage rescued and harmed."""
    if not health:
        return
    line("")
    rows = [({"fuse": "fused"}.get(name, name if name == "returned" else f"{name} alone"), f"{value:.4f}") for name, value in health["alone"].items()]
    print_table(("list", f"hit@{health['k']}"), rows, numeric=(False, True))
    if health.get("lost"):
        from lab.evaluation.losses import in_words

        line("")
        cells = [(stage, str(count), in_words(stage)) for stage, count in health["lost"].items()]
        print_table(("lost at", "questions", f"no answer among the first {health['k']}"), cells, numeric=(False, True, False))
    if abstain := health.get("abstain"):
        passing = next((point for point in abstain["curve"] if point[1] <= 0.95), None)
        said = (
            f"; a floor of {passing[0]:.3f} lets {100 * passing[1]:.0f} % of the former pass and {100 * passing[2]:.0f} % of the latter"
            if passing
            else ""
        )
        line("")
        line(
            f"abstain: AUROC {abstain['auroc']:.3f} over {abstain['answerable']} answerable and {abstain['unanswerable']} unanswerable questions{said}"
        )
    changed = list(dict.fromkeys([*health["rescued"], *health["harmed"], *health["first_lost"]]))
    if changed:
        line("")
        cells = [(s, *(str(health[part].get(s, 0)) for part in ("rescued", "harmed", "first_lost"))) for s in changed]
        heads = ("stage", f"brought into the first {health['k']}", "pushed out", "first rank lost")
        print_table(heads, cells, numeric=(False, True, True, True))


def print_answers(found: Mapping[str, Any]) -> None:
    """How the questions were answered: the measures beside their targets, abstention, and how far the judge agrees with people."""
    if not found:
        return
    from lab.evaluation.judging import in_words

    line("")
    named = f"by {found['judge']}"
    rows = [
        (
            name,
            f"{value:.3f}",
            f"> {found['target']:.2f}" if name in {"faithfulness", "relevance"} else "",
            named if name in {"faithfulness", "relevance"} else "",
        )
        for name, value in found["means"].items()
    ]
    print_table((f"answers: {found['answerer']}", "mean", "target", ""), rows, numeric=(False, True, True, False))
    line(
        f"{found['answered']} of {found['answerable']} answerable questions were answered, and {found['false_answers']} of {found['unanswerable']} that have no answer"
    )
    line(in_words(found["agreement"]))


def ablate(
    collection: str,
    *,
    gold: Gold,
    factor: Annotated[
        list[str] | None, Parameter(negative=(), help="a flag and its values, as defines=off,question; the first is what others are compared with")
    ] = None,
    split: Split = None,
    split_by: SplitBy = "component",
    settings: Named = "default",
    measures: Measures = None,
    design: Annotated[
        str, Parameter(help="full: every combination; oat: one factor at a time; half: half of the combinations of two-valued factors")
    ] = "full",
    jobs: Annotated[int, Parameter(help="how many search at once; the result is the same")] = 1,
    dry_run: Annotated[bool, Parameter(name="--dry-run", negative=(), help="say what it would take, and record nothing")] = False,
    json: Json = False,
    flags: SearchFlags = None,
) -> int:
    """Run the combinations of the factors' values, and record each as a run of one experiment. Several --settings (a,b,c) are a factor too, and so is an ingest flag
    (chunker=heading,fixed): a derived collection is made for each of its values."""
    from lab.evaluation.experiment import ablate as execute
    from lab.evaluation.experiment import estimate
    from lab.evaluation.measures import DEFAULT
    from lab.gold.files import load_gold
    from lab.grids import split_factors
    from lab.store.connect import connect

    if jobs < 1:
        raise UsageError(f"--jobs {jobs} is too few: at least 1.")
    factors = parse_factors(factor or [])
    split_factors(factors)
    if dry_run:
        with connect() as store:
            said = estimate(
                collection, load_gold(gold, split=split, split_by=split_by), factors, store=store, settings=settings, design=design, **passed(flags)
            )
        if json:
            print_json(said.to_json())
        else:
            line(
                f"{said.members} runs on {said.collections} collections, {said.questions} questions each: {said.members * said.questions} searches, at most {said.pairs} pairs to rerank, "
                f"about {said.seconds:.0f} seconds"
            )
        return 0
    done = execute(
        collection,
        load_gold(gold, split=split, split_by=split_by),
        factors,
        settings=settings,
        measures=measures or DEFAULT,
        design=design,
        jobs=jobs,
        command=command_line(),
        **passed(flags),
    )
    if json:
        print_json(done.to_json())
    else:
        print_experiment(done, measures or [])
        line(f"report: lab report {done.experiment_id}")
    return worst(done)


def worst(done: Any) -> int:
    """0, or 3 when a run of the experiment is not `ok`."""
    bad = [run.run_id for run in done.runs if run.status != "ok"]
    for run_id in bad:
        say(f"run {run_id} is degraded: see `lab runs show {run_id}`")
    return 3 if bad else 0


def parse_factors(words: list[str]) -> dict[str, list[str]]:
    """`["defines=off,question"]` → {"defines": ["off", "question"]}."""
    factors: dict[str, list[str]] = {}
    for word in words:
        name, sign, values = word.partition("=")
        if not sign or not name.strip():
            raise UsageError(f"--factor {word!r} must look like defines=off,question.")
        key = name.strip().lstrip("-").replace("-", "_")
        if key in factors:
            raise UsageError(f"--factor {key} is given twice: list its values behind one --factor.")
        factors[key] = [value for value in values.split(",") if value.strip()]
    return factors


def command_line() -> str:
    """The command as typed, for the record, without secrets; the program's path is left out."""
    return redact(shlex.join(["lab", *sys.argv[1:]]))


def print_experiment(done: Any, measures: Sequence[str] = ()) -> None:
    """The tables of an experiment: effects on the measures named, else on the primary one."""
    from lab.evaluation.compare import PRIMARY
    from lab.evaluation.measures import parse
    from lab.report import tables

    named = [str(parse(measure)) for measure in measures] or [PRIMARY]
    for table in (
        tables.members(done),
        *(
            t
            for measure in named
            for t in (
                tables.effects(done, measure),
                tables.interactions(done, measure),
                tables.by_kind(done, measure),
                tables.by_band(done, measure),
            )
        ),
    ):
        if table.rows:
            print_table(table.heads, table.rows, table.title, tables.numeric_columns(table))
            line("")
    for warning in done.warnings:
        say(f"warning: {warning}")
    for factor in done.inert:
        say(f"note: {factor} changed no ranking, so nothing can be said of its worth")


def report(
    names: Annotated[list[str], Parameter(name="RUN|EXPERIMENT", negative=(), help="an experiment, a run, or several runs: the first is what the others are compared with")], /, *,
    to: Annotated[Path | None, Parameter(help="folder to write; default: reports/ID here")] = None,
    timing: Annotated[bool | None, Parameter(help="time runs that were never timed; default: where there are at most 16")] = None, json: Json = False,
) -> int:  # fmt: skip
    """Write a report: Markdown, one self-contained HTML page, figures, data.json, LaTeX tables."""
    from lab.report.page import write_report

    folder = write_report(names, to=to, timing=timing)
    if json:
        from json import loads

        told = loads((folder / "data.json").read_text(encoding="utf-8"))
        print_json(
            {
                "schema_version": 1,
                "experiment_id": told["experiment_id"],
                "runs": [run["run_id"] for run in told["runs"]],
                "report": str(folder / "report.html"),
            }
        )
    else:
        line(str(folder / "report.html"))
    return 0


def list_runs(*, limit: Annotated[int, Parameter(help="how many")] = 30, json: Json = False) -> int:
    """The newest runs first."""
    from lab.store import runs
    from lab.store.connect import connect

    if not 1 <= limit <= 100_000:
        raise UsageError(f"--limit cannot be {limit}: it takes a whole number from 1 to 100000.")
    with connect() as store:
        found = runs.runs(store, limit=limit)
    if json:
        print_json(
            {
                "schema_version": 1,
                "runs": [
                    {"run_id": r.run_id, "experiment_id": r.experiment_id, "collection": r.collection, "gold": r.gold, "status": r.status,
                     "questions": r.questions, "passed": r.passed, "created_at": r.created_at.isoformat()}
                    for r in found
                ],
            }
        )  # fmt: skip
    else:
        rows = [
            (r.run_id, r.experiment_id or "–", r.collection, r.gold, r.status, str(r.questions), " ".join(f"{k}={v}" for k, v in r.passed.items()))
            for r in found
        ]
        print_table(("run", "experiment", "collection", "gold", "status", "questions", "passed"), rows, numeric=(*[False] * 5, True))
    return 0


def show_run(run_id: str, *, json: Json = False) -> int:
    """Everything recorded of a run but its rankings."""
    import dataclasses

    from lab.store import runs
    from lab.store.connect import connect

    with connect() as store:
        row = runs.get_run(store, run_id)
        means = store.rows("select measure, mean from lab.run_scores where run_id = %(r)s order by measure", {"r": run_id})
    answer = {"schema_version": 1, **dataclasses.asdict(row), "scores": {str(m): float(v) for m, v in means}}
    if json:
        print_json(answer)
    else:
        print_table(("name", "value"), [(name, str(value)) for name, value in answer.items()])
    return 0
