"""The tables of an experiment as rows of strings: one source for terminal, Markdown and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lab.evaluation.experiment import PRIMARY, Difference, Experiment
from lab.evaluation.measures import DEFAULT, means
from lab.evaluation.run import Run
from lab.text import BANDS

SHOWN = ("hit@1", "hit@5", "hit@10", "R@5", "RR@10", "nDCG@10", "distinct@10", "sources@10", "short@10", "primary_first@10")


@dataclass(frozen=True, slots=True)
class Table:
    """A title, heads, and rows of cells."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def members(experiment: Experiment) -> Table:
    """One row a run: the factors' values and the mean of each measure over all scored questions."""
    known = {m: None for run in experiment.runs for m in run.scores}
    measures = [m for m in SHOWN if m in known] + [m for m in known if m not in SHOWN and m not in DEFAULT]
    rows = [
        (*(run.passed[name] for name in experiment.factors), *(_value(m, run.scores[m]) if m in run.scores else "–" for m in measures), run.run_id)
        for run in experiment.runs
    ]
    return Table(f"Runs ({experiment.runs[0].questions} questions)", (*experiment.factors, *measures, "run"), tuple(rows))


GROUPED = ("hit@1", "hit@5", "hit@10", "R@5", "RR@10", "nDCG@10")


def groups(run: Run) -> Table:
    """One row a kind of question and one a copying band: questions, and the mean of each measure over them."""
    measures = [m for m in GROUPED if m in run.scores] or list(run.scores)
    rows = []
    for name, of in (("kind", run.kinds), ("copying", run.bands)):
        known = {of.get(q, "") for q in run.by_question} - {""}
        for value in [band for band in BANDS if band in known] if name == "copying" else sorted(known):
            chosen = {q: values for q, values in run.by_question.items() if of.get(q) == value}
            scored = means(chosen, measures)
            rows.append((name, value, str(len(chosen)), *(_value(m, scored[m]) if m in scored else "–" for m in measures)))
    return Table("By kind and by how much the question copies", ("by", "value", "questions", *measures), tuple(rows))


def effects(experiment: Experiment, measure: str = PRIMARY) -> Table:
    """One row a factor and value: the mean at both values over all settings of the other factors, the difference in points, and how many questions
    won, lost and tied."""
    rows = [_row(experiment, d) for d in experiment.differences if d.measure == measure and d.overall]
    return Table(f"Differences in {measure}", ("factor", "from", "to", "before", "after", "points", "wins", "losses", "ties", ""), tuple(rows))


def by_kind(experiment: Experiment, measure: str = PRIMARY) -> Table:
    """The same differences per kind of question."""
    return _apart(experiment, measure, "kind", "by kind of question")


def by_band(experiment: Experiment, measure: str = PRIMARY) -> Table:
    """The same differences by how much the questions copy from the passages that answer them."""
    return _apart(experiment, measure, "band", "by how much the question copies")


def _apart(experiment: Experiment, measure: str, by: str, title: str) -> Table:
    rows = []
    for d in experiment.differences:
        if d.measure == measure and getattr(d, by):
            rows.append(
                (
                    d.factor,
                    f"{d.low} → {d.high}",
                    getattr(d, by),
                    str(d.questions),
                    f"{d.before:.3f}",
                    f"{d.after:.3f}",
                    points(d.delta),
                    str(d.wins),
                    str(d.losses),
                )
            )
    return Table(
        f"Differences in {measure} {title}",
        ("factor", "change", by, "questions", "before", "after", "points", "wins", "losses"),
        tuple(rows),
    )


def _row(experiment: Experiment, d: Difference) -> tuple[str, ...]:
    note = "changed no ranking" if d.factor in experiment.inert else ""
    return (d.factor, d.low, d.high, f"{d.before:.3f}", f"{d.after:.3f}", points(d.delta), str(d.wins), str(d.losses), str(d.ties), note)


def points(delta: float) -> str:
    """A difference of shares in percentage points with its sign: `+2.4`, `−0.8`, `0.0`."""
    text = f"{100 * delta:+.1f}".replace("-", "−")
    return "0.0" if text in {"+0.0", "−0.0"} else text


def _value(measure: str, value: float) -> str:
    return f"{value:.2f}" if measure.startswith(("distinct", "sources")) else f"{value:.3f}"


def markdown(table: Table) -> str:
    """GitHub-flavoured Markdown."""
    lines = ["| " + " | ".join(table.heads) + " |", "|" + " --- |" * len(table.heads)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in table.rows]
    return "\n".join(lines)


def numeric_columns(table: Table) -> list[bool]:
    """Which columns hold numbers only: they are set flush right."""
    return [all(_is_number(row[i]) for row in table.rows) and bool(table.rows) for i in range(len(table.heads))]


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace("−", "-").replace(",", ""))
    except ValueError:
        return False
    return True


def what_next(experiment: Experiment) -> str:
    """One line that says what to try next, from what the differences show. No verdict: that takes statistics."""
    primary = [d for d in experiment.differences if d.measure == PRIMARY]
    overall: Sequence[Difference] = [d for d in primary if d.overall]
    if not overall:
        return f'look at one question: lab search {experiment.collection} "…" --explain'
    largest = max(overall, key=lambda d: (abs(d.delta), d.factor))
    mixed = [d for d in primary if d.kind and d.wins and d.losses and d.factor == largest.factor]
    if mixed:
        d = max(mixed, key=lambda d: (min(d.wins, d.losses), d.kind))
        return (
            f"{largest.factor} moves {PRIMARY} most, and cuts both ways on {d.kind} questions ({d.wins} won, {d.losses} lost); see one of them with "
            f'lab search {experiment.collection} "…" --{largest.factor.replace("_", "-")} {d.high} --explain'
        )
    return f"{largest.factor} moves {PRIMARY} most ({points(largest.delta)} points); vary it further with lab ablate {experiment.collection} --gold {experiment.gold} --factor {largest.factor}=…"
