"""The tables of an experiment as rows of strings: one source for terminal, Markdown and HTML."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lab.evaluation.compare import LOWER, PRIMARY, amount, paired_scores, unit_of
from lab.evaluation.effects import Effect
from lab.evaluation.experiment import Experiment
from lab.evaluation.latency import Cost
from lab.evaluation.measures import DEFAULT, means, parse
from lab.evaluation.recorded import Run
from lab.evaluation.statistics.families import holm
from lab.text import BANDS

SHOWN = ("hit@1", "hit@5", "hit@10", "R@5", "RR@10", "nDCG@10", "distinct@10", "sources@10", "short@10", "primary_first@10")


@dataclass(frozen=True, slots=True)
class Table:
    """A title, heads, and rows of cells."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def members(experiment: Experiment, costs: Mapping[str, Cost] | None = None, wins: Mapping[str, str] | None = None, measure: str = PRIMARY) -> Table:
    """One row a run: the factors' values and the mean of each measure over all scored questions; where it was timed, the median and 95th percentile of a search. `wins`: run → the letters
    of the runs that it beats (`significant_wins`); then each run has its letter."""
    known = {m: None for run in experiment.runs for m in run.scores}
    measures = [m for m in SHOWN if m in known] + [m for m in known if m not in SHOWN and m not in DEFAULT]
    rows = []
    for at, run in enumerate(experiment.runs):
        told = [_value(m, run.scores[m]) + (raised(wins[run.run_id]) if wins and m == measure else "") if m in run.scores else "–" for m in measures]
        timed = costs.get(run.run_id) if costs else None
        cost = ([f"{timed.p50:.1f}", f"{timed.p95:.1f}"] if timed else ["–", "–"]) if costs else []
        rows.append((*([LETTERS[at]] if wins else []), *(run.passed[name] for name in experiment.factors), *told, *cost, run.run_id))
    heads = (*([""] if wins else []), *experiment.factors, *measures, *(["p50 ms", "p95 ms"] if costs else []), "run")
    return Table(f"Runs ({experiment.runs[0].questions} questions)", heads, tuple(rows))


LETTERS = "abcdefghijkl"
_RAISED = dict(zip(LETTERS, "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡ", strict=True))


def raised(letters: str) -> str:
    """Letters as superscripts."""
    return "".join(_RAISED[letter] for letter in letters)


def significant_wins(experiment: Experiment, measure: str) -> dict[str, str]:
    """Run → letters of the runs that it beats at a measure, all pairs corrected together (Holm); empty for more runs than there are letters, or a single one. Exploratory: the family of
    an experiment is its main effects."""
    done = experiment.runs
    if not 1 < len(done) <= len(LETTERS):
        return {}
    pairs = list(itertools.combinations(range(len(done)), 2))
    found = [paired_scores(done[i], done[j], [measure])[measure] for i, j in pairs]
    wins = {run.run_id: "" for run in done}
    for (i, j), paired, p in zip(pairs, found, holm([f.p for f in found]), strict=True):
        if p < paired.alpha and paired.delta:
            better, worse = (j, i) if (paired.delta > 0) != (parse(measure).name in LOWER) else (i, j)
            wins[done[better].run_id] += LETTERS[worse]
    return {run: "".join(sorted(letters)) for run, letters in wins.items()}


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


HEADS = ("effect", "before", "after", "change", "interval", "p", "won", "lost", "tied", "verdict")


def effects(experiment: Experiment, measure: str = PRIMARY) -> Table:
    """One row a main effect: the means at both values over all settings of the other factors, the difference with its interval, the questions that won, lost and tied. On the
    primary measure p and interval are those of one family (Holm), on the others neither is corrected."""
    family = any(e.confirmatory for e in experiment.main(measure))
    unit = "percentage points" if unit_of(measure) == 1 else "as counted"
    note = "corrected together" if family else "exploratory"
    return Table(f"Main effects on {measure} ({unit}; {note})", HEADS, tuple(_row(e) for e in experiment.main(measure)))


def interactions(experiment: Experiment, measure: str = PRIMARY) -> Table:
    """One row a pair of factors: what the first did while the second had its first value, and its other one."""
    return Table(f"Interactions in {measure} (exploratory)", HEADS, tuple(_row(e) for e in experiment.interactions(measure)))


def by_kind(experiment: Experiment, measure: str = PRIMARY) -> Table:
    """The main effects per kind of question."""
    return _apart(experiment, measure, "kind", "by kind of question")


def by_band(experiment: Experiment, measure: str = PRIMARY) -> Table:
    """The main effects by how much the questions copy from the passages that answer them."""
    return _apart(experiment, measure, "band", "by how much the question copies")


def _apart(experiment: Experiment, measure: str, by: str, title: str) -> Table:
    found = sorted(experiment.main(measure, by), key=lambda e: experiment.order(e))
    rows = [(e.name, getattr(e, by), str(e.paired.questions), *_row(e)[1:]) for e in found]
    return Table(f"Main effects on {measure} {title} (exploratory)", ("effect", by, "questions", *HEADS[1:]), tuple(rows))


def _row(e: Effect) -> tuple[str, ...]:
    p = e.paired
    shown = p.p if p.p_adjusted is None else p.p_adjusted
    return (
        e.name, _mean(e, p.before), _mean(e, p.after), amount(e.measure, p.delta), f"{amount(e.measure, p.low)} to {amount(e.measure, p.high)}", f"{max(shown, 1e-4):.2g}",
        str(p.wins), str(p.losses), str(p.ties), "changed no ranking" if e.inert else e.verdict.replace("_", " "),
    )  # fmt: skip


def _mean(e: Effect, value: float) -> str:
    return _value(e.measure, value).replace("-", "−") if len(e.factors) == 1 else amount(e.measure, value)


def _value(measure: str, value: float) -> str:
    return f"{value:.2f}" if measure.startswith(("distinct", "sources")) else f"{value:.3f}"


def markdown(table: Table) -> str:
    """GitHub-flavoured Markdown."""
    lines = ["| " + " | ".join(map(plain, table.heads)) + " |", "|" + " --- |" * len(table.heads)]
    lines += ["| " + " | ".join(plain(cell) for cell in row) + " |" for row in table.rows]
    return "\n".join(lines)


def plain(text: str) -> str:
    """Words of others as Markdown that says them and does nothing: on one line, without links, markup and cells of its own."""
    return re.sub(r"([\\`*_\[\]<>|])", r"\\\1", " ".join(text.split()))


def latex(tables: Sequence[Table]) -> str:
    """The tables for a paper (package booktabs)."""
    import pandas as pd

    parts = ["% \\usepackage{booktabs}"]
    for table in tables:
        columns = "".join("r" if numeric else "l" for numeric in numeric_columns(table))
        rows = [[_for_latex(cell) for cell in row] for row in table.rows]
        frame = pd.DataFrame(rows, columns=[_for_latex(head) for head in table.heads])
        parts.append(str(frame.to_latex(index=False, escape=False, column_format=columns, caption=_for_latex(table.title), position="t")))
    return "\n".join(parts)


_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "−": "$-$", "→": r"$\rightarrow$", "×": r"$\times$", "–": "--",
}  # fmt: skip


def _for_latex(text: str) -> str:
    marks = {mark: letter for letter, mark in _RAISED.items()}
    found = "".join(rf"\textsuperscript{{{marks[c]}}}" if c in marks else _LATEX.get(c, c) for c in text)
    return found.replace(r"}\textsuperscript{", "")


def numeric_columns(table: Table) -> list[bool]:
    """Which columns hold numbers only: they are set flush right."""
    columns = [[row[i] for row in table.rows if row[i] != "–"] for i in range(len(table.heads))]
    return [bool(cells) and all(map(_is_number, cells)) for cells in columns]


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace("−", "-").replace(",", "").rstrip("".join(_RAISED.values())))
    except ValueError:
        return False
    return True


def what_next(experiment: Experiment) -> str:
    """One line that says what to try next."""
    mains = experiment.main()
    if not mains:
        return f'look at one question: lab search {experiment.collection} "…" --explain'
    largest = max(mains, key=lambda e: (abs(e.paired.delta), e.factors))
    factor, (_, high) = largest.factors[0], largest.changes[0]
    if largest.verdict in {"better", "worse"}:
        mixed = [e for e in experiment.main(by="kind") if e.factors == largest.factors and e.paired.wins and e.paired.losses]
        said = f"{factor} {high} is {largest.verdict} in {PRIMARY} by {amount(PRIMARY, abs(largest.paired.delta), sign=False)} points"
        if mixed:
            e = max(mixed, key=lambda e: (min(e.paired.wins, e.paired.losses), e.kind))
            said += f", and cuts both ways on {e.kind} questions ({e.paired.wins} won, {e.paired.losses} lost)"
        return f"{said}: lab decide {experiment.collection} --gold {experiment.gold} --factor {factor} says for which questions"
    return f"no factor moved {PRIMARY} beyond chance: lab power {experiment.gold} says what this many questions can show"
