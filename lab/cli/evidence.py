"""Commands about what runs show: compare, diff, lost, decide, power."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lab.cli.evaluate import Gold, Measures, Named, Split, SplitBy, command_line
from lab.cli.output import line, print_json, print_table
from lab.cli.server import Json
from lab.cli.words import SearchFlags, passed
from lab.progress import say

Alpha = Annotated[float, Parameter(help="level of significance")]
Primary = Annotated[str, Parameter(name="--primary", help="the measure that the verdict is about")]


def compare(
    a: str, b: str, *, measures: Measures = None, primary: Primary = "hit@5", alpha: Alpha = 0.05,
    margin: Annotated[float | None, Parameter(help="also: is B not worse by as much, and are both alike within it?")] = None, json: Json = False,
) -> int:  # fmt: skip
    """Compare two runs, paired by question: what differs, what it did to each measure, and how sure that is."""
    from lab.evaluation.compare import amount, unit_of, verdict_of
    from lab.evaluation.compare import compare as run_compare
    from lab.store.connect import connect

    with connect() as store:
        found = run_compare(a, b, store=store, measures=measures or (), primary=primary, alpha=alpha, margin=margin)
    if json:
        print_json(found.to_json())
        return 0 if found.verdict != "not_comparable" else 3
    line(found.words)
    if found.margin is not None:
        m = found.margin
        line(
            f"not worse by {m.margin:g}: {'yes' if m.non_inferior else 'not shown'}; alike within {m.margin:g}: {'yes' if m.equivalent else 'not shown'} "
            f"({m.low:+.4f} to {m.high:+.4f} at {100 * m.level:.3g} %)"
        )
    for kind, differing in (("flag", found.flags_that_differ), ("input", found.inputs_that_differ)):
        for name, (before, after) in differing.items():
            line(f"  {kind} {name}: {before} → {after}")
    if found.measures:
        line("")
        rows = [
            (
                name, f"{p.before:.3f}", f"{p.after:.3f}", amount(name, p.delta), f"{amount(name, p.low)} to {amount(name, p.high)}", f"{max(p.p, 1e-4):.2g}", str(p.wins), str(p.losses),
                str(p.ties), "–" if p.smallest is None else amount(name, p.smallest, sign=False), verdict_of(name, p).replace("_", " "),
            )
            for name, p in found.measures.items()
        ]  # fmt: skip
        heads = ("measure", "a", "b", "change", "interval", "p", "won", "lost", "tied", "smallest shown", "verdict")
        print_table(heads, rows, numeric=(False, True, True, True, False, True, True, True, True, True, False))
        first = next(iter(found.measures.values()))
        line("")
        line(
            f"changes in points where a measure lies between 0 and 1 ({', '.join(n for n in found.measures if unit_of(n) > 1) or 'all'} as counted); {first.clusters} clusters of {first.questions} questions, worth {first.n_eff:.0f} independent ones; only {found.primary} decides, the others are exploratory"
        )
    for warning in found.warnings:
        say(f"warning: {warning}")
    return 0 if found.verdict != "not_comparable" else 3


def diff(a: str, b: str, *, measure: Annotated[str, Parameter(help="whose flips are listed")] = "hit@5", json: Json = False) -> int:
    """From one run to another: what differs in the inputs, which questions flipped, and the stage that lost each."""
    from lab.evaluation.flips import diff as run_diff
    from lab.evaluation.losses import in_words
    from lab.store.connect import connect

    with connect() as store:
        found = run_diff(store, a, b, measure=measure)
    if json:
        print_json(found.to_json())
        return 0
    for kind, differing in (("flag", found.flags_that_differ), ("input", found.inputs_that_differ)):
        for name, (before, after) in differing.items():
            line(f"{kind} {name}: {before} → {after}")
    line(found.words)
    if found.k:
        line(f"an answer counts as lost where it is below rank {found.k}")
    if found.flips:
        line("")
        rows = [(f.direction, f.question, f.kind or "–", in_words(f.stage) if f.stage else "another rank", f.text) for f in found.flips]
        print_table(("", "question", "kind", "where its answer was lost", "text"), rows)
    return 0


def lost(
    run_id: str, *, exact: Annotated[bool, Parameter(negative=(), help="search again for how far the arms were from what no arm brought")] = False, gold: Annotated[str | None, Parameter(help="where the run\'s gold set is now, if its name does not say")] = None, json: Json = False
) -> int:  # fmt: skip
    """Where was it lost: the questions of a run whose answer is not among the first k, each with the stage that lost it."""
    from lab.evaluation.losses import in_words
    from lab.evaluation.lost import lost_questions
    from lab.store.connect import connect

    with connect() as store:
        found = lost_questions(store, run_id, exact=exact, gold=gold)
    if json:
        print_json(found.to_json())
        return 0
    line(f"{len(found.questions)} of {found.scored} questions have no answer among the first {found.k}")
    print_table(
        ("stage", "questions", ""), [(stage, str(count), in_words(stage)) for stage, count in found.by_stage.items()], numeric=(False, True, False)
    )
    line("")
    rows = [
        (q.stage, str(q.rank or "–"), *(str(q.exact.get(arm) or "–") for arm in found.arms), q.question, q.kind or "–", q.text)
        for q in found.questions
    ]
    print_table(
        ("stage", "rank before", *(f"{arm} rank" for arm in found.arms), "question", "kind", "text"),
        rows,
        numeric=(False, True, *([True] * len(found.arms)), False, False, False),
    )
    return 0


def decide(
    collection: str, *, gold: Gold, factor: Annotated[str, Parameter(help="the flag, as defines, or two of its values, as defines=off,question")],
    split: Split = None, split_by: SplitBy = "component", settings: Named = "default", primary: Primary = "hit@5",
    beside: Annotated[str | None, Parameter(name="--with", help="other flags that it is looked at together with, as dedup,cites; none: alone")] = None,
    worth: Annotated[float, Parameter(help="the smallest gain that is worth a flag")] = 0.01, alpha: Alpha = 0.05,
    plot: Annotated[Path | None, Parameter(help="file of the plot; default: reports/decide-ID.png here")] = None, json: Json = False, flags: SearchFlags = None,
) -> int:  # fmt: skip
    """Keep a flag, drop it, keep it for some kinds of question, or cannot tell: with the evidence in a paragraph, a table and a plot."""
    from lab.evaluation.decision import decide as run_decide
    from lab.gold.files import load_gold
    from lab.report.decision import draw, table

    companions = None if beside is None else [word.strip() for word in beside.split(",") if word.strip() and word.strip() != "none"]
    found = run_decide(
        collection, load_gold(gold, split=split, split_by=split_by), factor, settings=settings, measure=primary, companions=companions, worth=worth, alpha=alpha,
        command=command_line(), **passed(flags),
    )  # fmt: skip
    path = draw(found, plot)
    if json:
        print_json(found.to_json() | {"plot": str(path)})
        return 0
    line(found.words)
    line("")
    shown = table(found)
    print_table(shown.heads, shown.rows, shown.title, (False, *([True] * 4), False, True, True, True, True, False, True))
    line("")
    line(f"plot: {path}; the runs: lab report {found.experiment_id}")
    return 0


def power(
    gold: str, *, split: Split = None, split_by: SplitBy = "component", primary: Primary = "hit@5",
    changed: Annotated[float, Parameter(help="share of the questions that the change is expected to flip")] = 0.1,
    effects: Annotated[int, Parameter(help="how many main effects are tested together")] = 1, alpha: Alpha = 0.05,
    margin: Annotated[float, Parameter(help="gate: the loss that is tolerated")] = 0.05,
    gate: Annotated[bool, Parameter(negative=(), help="say what a gate with that margin needs")] = False, json: Json = False,
) -> int:  # fmt: skip
    """What a gold set can show: the smallest effect, and how often a gate could not judge."""
    from lab.evaluation.compare import amount
    from lab.evaluation.measures import parse
    from lab.evaluation.planning import plan
    from lab.gold.files import load_gold
    from lab.store.connect import connect

    loaded = load_gold(gold, split=split, split_by=split_by)
    with connect() as store:
        found = plan(store, loaded, measure=primary, changed=changed, effects=effects, alpha=alpha, margin=margin)
    if json:
        print_json(found.to_json())
        return 0
    line(f"{found.gold}: {found.questions} questions in {found.clusters} clusters, worth {found.n_eff:.0f} independent ones ({found.basis})")
    if str(parse(primary)) not in found.smallest:
        line(f"  {primary}: no two runs on this gold set tell yet how much it varies")
    for name, value in found.smallest.items():
        shown = (
            "no effect at all"
            if value is None
            else f"an effect from {amount(name, value, sign=False)} {'points' if value <= 1 and name.partition('@')[0] not in {'distinct', 'sources'} else 'a question'}"
        )
        condition = f" where {100 * found.changed:.3g} % of the questions change" if name == primary else ""
        line(f"  {name}: {shown} is found with a chance of 0.8{condition}{f' (one of {effects}, corrected)' if effects > 1 else ''}")
    if gate:
        enough = (
            f"{found.needed} questions like these pass equal systems with a chance of 0.8"
            if found.needed is not None
            else "more than 20,000 questions are needed"
        )
        line(f"  a gate with margin {found.margin:g}: {100 * found.cannot_judge:.0f} % of the runs on equal systems could not be judged; {enough}")
        if found.margin < found.least_margin:
            line(f"  no margin below {found.least_margin:.3f} can be met with these questions, whatever the runs")
    return 0
