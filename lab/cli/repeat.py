"""Commands that run again: replay, bisect, noise, tune, validate; and runs as files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lab.cli.evaluate import Gold, Named, Split, SplitBy, command_line, parse_factors
from lab.cli.output import line, print_json, print_table
from lab.cli.server import Json
from lab.cli.words import SearchFlags, passed
from lab.errors import UsageError
from lab.groups import evenly
from lab.scratch import writable

Where = Annotated[str | None, Parameter(name="--gold", help="where the run's gold set is now, if its name does not say")]
Measured = Annotated[str, Parameter(name="--measure", help="the measure that is looked at")]


def export_run(
    run_id: str, *, to: Annotated[Path, Parameter(help="the file (trec: the new folder) to write")],
    format: Annotated[str, Parameter(help="json: taken back by `lab runs import`; trec: run.txt and qrels.txt")] = "json", gold: Where = None, json: Json = False,
) -> int:  # fmt: skip
    """Write a run as a file: for another database, or for trec_eval."""
    from lab.evaluation.exchange import export_run, export_trec, to_json
    from lab.store.connect import connect

    if format not in {"json", "trec"}:
        raise UsageError(f"--format cannot be {format!r}: it takes json or trec.")
    with connect() as store:
        questions = export_run(store, run_id, to) if format == "json" else export_trec(store, run_id, to, gold)
    if json:
        print_json(to_json(run_id, to, questions))
    else:
        line(f"{run_id}: {questions} questions in {to}")
    return 0


def import_run(file: Path, *, json: Json = False) -> int:
    """Take an exported run into this database, under its own id."""
    from lab.evaluation.exchange import import_run
    from lab.store.connect import connect

    with connect() as store:
        run_id, new = import_run(store, file)
    if json:
        print_json({"schema_version": 1, "run_id": run_id, "new": new})
    else:
        line(f"{run_id}: {'imported' if new else 'was here already'}")
    return 0


def replay(run_id: str, *, measure: Measured = "hit@5", gold: Where = None, json: Json = False) -> int:
    """Run the recorded settings again, and say what is no longer the same."""
    from lab.evaluation.repeat import replay as run_replay
    from lab.store.connect import connect

    with connect() as store:
        found = run_replay(store, run_id, measure=measure, gold=gold)
    if json:
        print_json(found.to_json())
        return 0
    line(found.words)
    for name, (then, now) in found.differs.items():
        line(f"  {name}: {then} → {now}")
    line(f"replayed as {found.replayed}")
    return 0


def bisect(a: str, b: str, *, measure: Measured = "hit@5", gold: Where = None, json: Json = False) -> int:
    """Change one input after the other from run A to run B, and name the one that moved the measure."""
    from lab.evaluation.compare import amount
    from lab.evaluation.repeat import bisect as run_bisect
    from lab.store.connect import connect

    with connect() as store:
        found = run_bisect(store, a, b, measure=measure, gold=gold, command=command_line())
    if json:
        print_json(found.to_json())
        return 0
    if found.moved is None:
        line(f"nothing moved {found.measure}")
    else:
        chance = ", which may be chance" if found.moved.paired.verdict == "cannot_tell" else ""
        line(f"{found.moved.name} moved {found.measure} most: {amount(found.measure, found.moved.paired.delta)}{chance}")
    rows = [
        (s.name, str(s.before), str(s.after), f"{s.paired.after:.3f}", amount(found.measure, s.paired.delta), f"{amount(found.measure, s.paired.low)} to {amount(found.measure, s.paired.high)}",
         str(s.paired.wins), str(s.paired.losses), s.run_id)
        for s in found.steps
    ]  # fmt: skip
    print_table(
        ("input", "from", "to", found.measure, "change", "interval", "won", "lost", "run"),
        rows,
        numeric=(False, False, False, True, True, False, True, True, False),
    )
    for name, (before, after) in found.cannot_change.items():
        line(f"cannot be changed here: {name} ({before} → {after})")
    return 0


def noise(
    collection: str, *, gold: Gold, split: Split = None, split_by: SplitBy = "component", settings: Named = "default", measure: Measured = "hit@5",
    ways: Annotated[str, Parameter(help="again, shuffled, threads, rebuilt: how the run is repeated")] = "again,shuffled,threads,rebuilt", json: Json = False, flags: SearchFlags = None,
) -> int:  # fmt: skip
    """The noise floor: how many questions flip between runs that should be the same."""
    from lab.evaluation.compare import amount, unit_word
    from lab.evaluation.noise import noise as run_noise
    from lab.gold.files import load_gold

    wanted = [way.strip() for way in ways.split(",") if way.strip()]
    found = run_noise(collection, load_gold(gold, split=split, split_by=split_by), settings=settings, ways=wanted, measure=measure, **passed(flags))
    if json:
        print_json(found.to_json())
        return 0
    line(
        f"noise floor of {found.measure} on {found.collection}: {amount(found.measure, found.floor, sign=False)} {unit_word(found.measure)} over {found.questions} questions"
    )
    rows = [(r.way, str(r.lists), str(len(r.flips)), amount(found.measure, r.delta), ", ".join(r.flips[:5])) for r in found.repeats]
    print_table(("repeated", "lists that differ", "questions that flip", "change", ""), rows, numeric=(False, True, True, True, False))
    return 0


def tune(
    collection: str, *, gold: Gold, factor: Annotated[list[str] | None, Parameter(negative=(), help="a flag and the values to try, as rrf_k=5,10,60; may be repeated")] = None,
    split: Annotated[str, Parameter(help="the questions that choose; never test")] = "dev", split_by: SplitBy = "component", folds: Annotated[int, Parameter(help="parts that are held out in turn, by document")] = 5,
    false_answers: Annotated[float | None, Parameter(help="choose a floor too: the share of unanswerable questions that may pass it")] = None,
    settings: Named = "default", measure: Measured = "hit@5", json: Json = False, flags: SearchFlags = None,
) -> int:  # fmt: skip
    """Choose among settings on one split, and say what the choice is worth on questions that did not choose it."""
    from lab.evaluation.compare import amount
    from lab.evaluation.tuning import tune as run_tune
    from lab.gold.files import load_gold

    found = run_tune(
        collection, load_gold(gold, split_by=split_by), parse_factors(factor or []), settings=settings, split=split, measure=measure, folds=folds, false_answers=false_answers, command=command_line(),
        **passed(flags),
    )  # fmt: skip
    if json:
        print_json(found.to_json())
        return 0
    words = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in found.chosen.items())
    if found.chosen:
        line(f"chosen on {found.questions} questions of {found.split}: {words}")
        line(
            f"{found.measure}: {found.apparent:.3f} on these questions, {found.held_out:.3f} held out (optimism {amount(found.measure, found.optimism)}); {found.before:.3f} before"
        )
        rows = [
            (str(i), str(size), " ".join(f"{k}={v}" for k, v in chosen.items()), f"{score:.3f}")
            for i, (chosen, score, size) in enumerate(found.folds, 1)
        ]
        print_table(("fold", "questions", "the others chose", "held out"), rows, numeric=(True, True, False, True))
    if found.floor is not None:
        f = found.floor
        line(
            f"--floor {f.value:.6f} lets at most {100 * f.wanted:.3g} % of the {f.unanswerable} unanswerable questions pass; held out it was {100 * f.false_answers:.1f} %, and "
            f"{100 * f.coverage:.1f} % of the {f.answerable} answerable ones passed"
        )
    return 0


def tune_floor(
    collection: str, *, gold: Gold, max_false_answers: Annotated[float, Parameter(name="--max-false-answers", help="the share of unanswerable questions that may pass, with 95 % confidence")] = 0.05,
    split: Annotated[str, Parameter(help="the questions that choose; never test")] = "dev", report: Annotated[str, Parameter(help="the questions it is told on; none for no such")] = "test",
    split_by: SplitBy = "component", settings: Named = "default",
    plot: Annotated[Path | None, Parameter(help="write the risk–coverage curve to this PNG")] = None, json: Json = False, flags: SearchFlags = None,
) -> int:  # fmt: skip
    """Choose the lowest --floor that keeps a promise about false answers, and say on other questions what it is worth and what it costs."""
    from lab.evaluation.floors import tune_floor as run_tune
    from lab.gold.files import load_gold

    if plot is not None:
        if plot.suffix.lower() != ".png":
            raise UsageError(f"--plot {plot} is no PNG: name a file that ends in .png.")
        writable(plot, "the plot")
    found = run_tune(
        collection,
        load_gold(gold, split_by=split_by),
        max_false_answers,
        settings=settings,
        split=split,
        report=None if report == "none" else report,
        **passed(flags),
    )
    if plot is not None:
        from lab.report.canvas import save
        from lab.report.floor_plots import risk_coverage

        save(risk_coverage(found), plot)
    if json:
        print_json(found.to_json())
        return 0
    line(found.words)
    line("AUROC " + ", ".join(f"{value:.3f} on {split}" for split, value in found.auroc.items()))
    line("")
    rows = [(split, *(f"{value:.3f}" for value in point)) for split, curve in found.curves.items() for point in evenly(curve, 11)]
    print_table(("split", "floor", "coverage", "false answers"), rows, numeric=(False, True, True, True))
    return 0


def validate(
    *, data: Annotated[Path, Parameter(help="the folder that holds scifact, xquad, cranfield in BEIR layout")],
    sets: Annotated[str | None, Parameter(help="only these, as in scifact,cranfield")] = None,
    lexical: Annotated[bool, Parameter(negative=(), help="only what needs no vectors: seconds in place of minutes")] = False, json: Json = False,
) -> int:  # fmt: skip
    """Reproduce published references on public sets. The first call embeds them; later ones take the cached vectors."""
    from lab.evaluation.validation import validate as run_validate
    from lab.store.connect import connect

    with connect() as store:
        found = run_validate(store, data, [s.strip() for s in (sets or "").split(",") if s.strip()], vectors=not lexical)
    bad = [v for v in found if v.agrees is False]
    if json:
        print_json({"schema_version": 1, "references": [v.to_json() for v in found], "agrees": not bad})
        return 3 if bad else 0
    rows = [
        (v.reference.data, v.reference.what, v.reference.measure, str(v.questions), f"{v.value:.4f}", "–" if v.reference.published is None else f"{v.reference.published:.3f} ± {v.reference.tolerance:g}",
         {True: "agrees", False: "differs", None: "–"}[v.agrees], v.reference.source)
        for v in found
    ]  # fmt: skip
    print_table(
        ("set", "settings", "measure", "questions", "lab", "published", "", "by"),
        rows,
        numeric=(False, False, False, True, True, False, False, False),
    )
    return 3 if bad else 0
