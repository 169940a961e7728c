"""Figures of runs: hit@k, where answers were lost, how ranks moved, quality against latency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lab.evaluation.compare import PRIMARY, paired_scores, shared_measure
from lab.evaluation.losses import in_words
from lab.evaluation.measures import parse
from lab.evaluation.recorded import Run
from lab.report.canvas import BLUE, GREY, ORANGE, PALE, SERIES, Drawn, axes, bare
from lab.report.tables import LETTERS


def named(run: Run) -> str:
    """What tells a run from its neighbours: the values passed, else its id."""
    return ", ".join(f"{n}={v}" for n, v in run.passed.items()) or run.run_id


def two(runs: Sequence[Run], measure: str = PRIMARY) -> list[Run]:
    """The first run and the one that differs most from it at a measure (the id decides between equals); one alone where there is no other."""
    base, name = runs[0], shared_measure(runs, measure)
    return [base, *sorted(runs[1:], key=lambda r: (-abs(r.scores[name] - base.scores[name]), r.run_id))[:1]]


def cutoffs(runs: Sequence[Run]) -> list[int]:
    """The k at which every run has hit@k."""
    return sorted(parse(m).k for m in runs[0].scores if parse(m).name == "hit" and all(m in run.scores for run in runs))


def hit_at_k(runs: Sequence[Run], on: Any = None) -> Drawn:
    """Share of questions with a judged passage among the first k results: the first run, the one that differs most from it, and all others; around the first the band of differences that these questions
    would not have shown (with a chance of 0.8)."""
    one = on if on is not None else axes(6.6, 4.0)
    ks = cutoffs(runs)
    base, best = two(runs)[0], two(runs)[-1]
    curve = [100 * base.scores[f"hit@{k}"] for k in ks]
    smallest = []
    if best is not base:
        found = paired_scores(base, best, [f"hit@{k}" for k in ks])
        smallest = [100 * value if (value := found[f"hit@{k}"].smallest) is not None else float("nan") for k in ks]
        if not np.isnan(smallest).all():
            low, high = np.subtract(curve, smallest), np.add(curve, smallest)
            one.fill_between(ks, low, high, color=PALE, alpha=0.5, linewidth=0, label="smaller differences would not have shown")
    for run in runs[1:]:
        if run is not best:
            one.plot(ks, [100 * run.scores[f"hit@{k}"] for k in ks], color=PALE, linewidth=1)
    for run, (colour, marker, style) in zip([base, best] if best is not base else [base], (SERIES[1], SERIES[0]), strict=False):
        one.plot(ks, [100 * run.scores[f"hit@{k}"] for k in ks], color=colour, marker=marker, linestyle=style, label=named(run))
    title = "Questions answered within the first k results"
    one.set_title(title, loc="left", fontsize=11)
    one.set_xlabel("k (results)")
    one.set_ylabel("questions with a judged passage (%)")
    one.set_xticks(ks)
    one.set_ylim(0, 100)
    one.grid(axis="y", color="#e6e6e6", linewidth=0.6)
    one.legend(fontsize=8, frameon=False, loc="lower right")
    bare(one)
    k = ks[-1]
    alt = f"Lines of hit@k. {named(base)}: {curve[-1]:.1f} % at k = {k}."
    if best is not base:
        alt += f" {named(best)}: {100 * best.scores[f'hit@{k}']:.1f} %."
        alt += (
            " What differences would have shown is not known: too little changed."
            if np.isnan(smallest[-1])
            else f" Differences below {smallest[-1]:.1f} points at k = {k} would not have shown."
        )
    return Drawn(one, title, alt)


def losses(runs: Sequence[Run], on: Any = None) -> Drawn:
    """Waterfall: from all questions down to those whose answer is among the first k, a step a stage that lost some; a panel a run."""
    stages = list(dict.fromkeys(stage for run in runs for stage in run.health.get("lost", {})))
    panels = on if on is not None else axes(7.2, 0.9 + 0.42 * (len(stages) + 2), 1, len(runs), sharey=True, squeeze=False)[0]
    ks = [int(run.health.get("k", 5)) for run in runs]
    first = f"the first {ks[0]} results" if len(set(ks)) == 1 else "the first results"
    title = f"Where the answers were lost (not among {first})"
    told = []
    for at, (one, run) in enumerate(zip(panels, runs, strict=True)):
        total, left = run.questions, run.questions
        one.barh(0, total, color=PALE)
        one.annotate(f"{total}", (total, 0), xytext=(3, 0), textcoords="offset points", va="center", fontsize=8)
        for row, stage in enumerate(stages, 1):
            gone = run.health.get("lost", {}).get(stage, 0)
            one.barh(row, gone, left=left - gone, color=ORANGE, hatch="//", edgecolor="white", linewidth=0)
            one.annotate(f"−{gone}" if gone else "0", (left, row), xytext=(3, 0), textcoords="offset points", va="center", fontsize=8)
            left -= gone
        one.barh(len(stages) + 1, left, color=BLUE)
        one.annotate(f"{left}", (left, len(stages) + 1), xytext=(3, 0), textcoords="offset points", va="center", fontsize=8)
        one.set_xlim(0, total * 1.14)
        one.set_xlabel("questions", fontsize=8)
        one.set_title(named(run) + ("" if len(set(ks)) == 1 else f" (first {ks[at]})"), fontsize=8, loc="left", color=GREY)
        one.tick_params(labelsize=8)
        if at == 0:
            one.set_yticks(range(len(stages) + 2), ["asked", *(in_words(stage) for stage in stages), "answered"], fontsize=8)
            one.invert_yaxis()
        bare(one, left=False)
        one.tick_params(axis="y", length=0)
        told.append(
            f"{named(run)}: of {total} questions "
            + ", ".join(f"{n} {in_words(s)}" for s, n in run.health.get("lost", {}).items())
            + f"; {left} answered"
        )
    panels[0].figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return Drawn(np.asarray(panels), title, ". ".join(told) + ".")


def first_losses(runs: Sequence[Run]) -> Drawn:
    """The waterfalls of the first run and the one that differs most from it."""
    return losses(two(runs))


_PLACES = ("1", "2", "3", "4", "5", "6–10", "none")


def place(rank: int | None) -> int:
    """The row of a rank in the plot of moves: 1 to 5, 6–10, later or not returned."""
    if rank is None or rank > 10:
        return len(_PLACES) - 1
    return rank - 1 if rank <= 5 else 5


def moves(before: Mapping[str, int | None], after: Mapping[str, int | None]) -> np.ndarray:
    """`(places, places)`: how many questions had their first answer at a place before (row) and have it at another now (column)."""
    counts = np.zeros((len(_PLACES), len(_PLACES)), dtype=int)
    for question, rank in before.items():
        counts[place(rank), place(after.get(question))] += 1
    return counts


def rank_shift(before: Mapping[str, int | None], after: Mapping[str, int | None], names: tuple[str, str], on: Any = None) -> Drawn:
    """Where the first answer of each question stood before and where it stands now: a table of counts. Below the diagonal it rose, above it fell."""
    one = on if on is not None else axes(5.4, 4.8)
    counts = moves(before, after)
    shown = np.log1p(counts)
    one.imshow(shown, cmap="Blues", aspect="equal", vmax=max(shown.max() * 1.25, 1e-9))
    for row in range(len(_PLACES)):
        for column in range(len(_PLACES)):
            if counts[row, column]:
                dark = shown[row, column] > 0.7 * shown.max()
                one.annotate(str(counts[row, column]), (column, row), ha="center", va="center", fontsize=8, color="white" if dark else "black")
    one.plot([-0.5, len(_PLACES) - 0.5], [-0.5, len(_PLACES) - 0.5], color=GREY, linewidth=0.8, linestyle=":")
    one.set_xticks(range(len(_PLACES)), _PLACES, fontsize=8)
    one.set_yticks(range(len(_PLACES)), _PLACES, fontsize=8)
    one.set_xlabel(f"rank of the first answer with {names[1]}", fontsize=8)
    one.set_ylabel(f"rank of the first answer with {names[0]}", fontsize=8)
    title = "How the first answers moved (questions)"
    one.set_title(title, loc="left", fontsize=11)
    rose, fell = int(np.tril(counts, -1).sum()), int(np.triu(counts, 1).sum())
    return Drawn(
        one,
        title,
        f"Table of ranks before and after. From {names[0]} to {names[1]} the first answer of {rose} questions rose, of {fell} fell, of {int(np.trace(counts))} stayed.",
    )


def frontier(runs: Sequence[Run], milliseconds: Mapping[str, float], measure: str = "", on: Any = None) -> Drawn:
    """Quality against the median time of a search; a line joins the runs that none beats in both."""
    one = on if on is not None else axes(6.4, 4.0)
    measure = measure or shared_measure(runs)
    letters = dict(zip([run.run_id for run in runs], LETTERS, strict=False)) if len(runs) <= len(LETTERS) else {}  # those of the table of runs
    known = [run for run in runs if run.run_id in milliseconds]
    best = pareto([(milliseconds[r.run_id], r.scores[measure]) for r in known])
    for at, run in enumerate(known):
        one.scatter(
            [milliseconds[run.run_id]], [100 * run.scores[measure]], color=BLUE if at in best else GREY, marker="o" if at in best else "x", zorder=2
        )
    one.plot([milliseconds[known[at].run_id] for at in best], [100 * known[at].scores[measure] for at in best], color=BLUE, linewidth=1, zorder=1)
    for run in known if letters else []:
        one.annotate(
            letters[run.run_id],
            (milliseconds[run.run_id], 100 * run.scores[measure]),
            xytext=(4, 4),
            textcoords="offset points",
            fontsize=8,
            color=GREY,
        )
    handles = [one.plot([], [], color=BLUE, marker="o", linestyle="")[0] for _ in best]
    labels = [(f"{letters[known[at].run_id]}: " if letters else "") + named(known[at]) for at in best]
    one.legend(
        handles,
        labels,
        fontsize=7,
        frameon=False,
        loc="upper left",
        bbox_to_anchor=(0, -0.16),
        title="none is better in both:",
        title_fontsize=8,
        alignment="left",
    )
    title = f"{measure} against the time of a search"
    one.set_title(title, loc="left", fontsize=11)
    one.set_xlabel("median of a search, timed apart, embedding of the question left out (ms)", fontsize=8)
    one.set_ylabel(f"{measure} (%)")
    one.margins(0.12)
    bare(one)
    told = "; ".join(f"{named(known[at])}: {milliseconds[known[at].run_id]:.1f} ms, {100 * known[at].scores[measure]:.1f} %" for at in best)
    return Drawn(one, title, f"Points of {len(known)} runs. None beats in both: {told}.")


def pareto(points: Sequence[tuple[float, float]]) -> list[int]:
    """The places of the points that no other beats in both (less cost, more worth), by cost.

    >>> pareto([(1.0, 0.5), (2.0, 0.4), (3.0, 0.7)])
    [0, 2]
    """
    found: list[int] = []
    for at in sorted(range(len(points)), key=lambda i: (points[i][0], -points[i][1], i)):
        if not found or points[at][1] > points[found[-1]][1]:
            found.append(at)
    return found


def shift(runs: Sequence[Run], ranks: Mapping[str, Mapping[str, int | None]]) -> Drawn:
    """The rank shift from the first run to the one that differs most at the primary measure."""
    base, other = two(runs)
    return rank_shift(ranks[base.run_id], ranks[other.run_id], (named(base), named(other)))
