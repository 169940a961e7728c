"""Measures of one ranking, named as the literature writes them: `hit@5`, `R@10`, `RR@10`, `nDCG@10`, `distinct@10`, `sources@10`, `short@10`.
`primary_first@10`: of the questions whose answer is quoted by passages of lower authority, and of which the answer or a quotation is among the first 10, is
the answer above all of them? `judged@10`: the share of the first 10 that anybody has judged, as relevant or not (coverage counts, as everywhere). `all_hit@10`: of the
questions that need several passages (`metadata.needs: all`), are all of them among the first 10?

Measures of answers have no cutoff: `answered`, `citation_precision`, `citation_recall`, `faithfulness`, `relevance` (`lab.evaluation.answering` makes them).

`R`, `RR` and `nDCG` agree with ir_measures (trec_eval) on the ranking in which every result stands for the judgment it newly covers; tests hold
them together. A question without results scores 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lab.errors import UsageError, unknown
from lab.evaluation.coverage import Credit
from lab.evaluation.primary import Quoted

DEFAULT = ("hit@1", "hit@3", "hit@5", "hit@10", "R@5", "R@10", "RR@10", "nDCG@10", "distinct@10", "sources@10", "short@10", "judged@10")
ANSWERS = ("answered", "citation_precision", "citation_recall", "faithfulness", "relevance")
_NAMES = {
    "hit": "hit",
    "success": "hit",
    "r": "R",
    "recall": "R",
    "rr": "RR",
    "mrr": "RR",
    "ndcg": "nDCG",
    "distinct": "distinct",
    "sources": "sources",
    "short": "short",
    "primary_first": "primary_first",
    "p": "P",
    "precision": "P",
    "judged": "judged",
    "all_hit": "all_hit",
}


@dataclass(frozen=True, slots=True, order=True)
class Measure:
    """A measure and its cutoff, which is 0 for measures of answers; prints and parses as itself."""

    name: str
    k: int

    def __str__(self) -> str:
        return f"{self.name}@{self.k}" if self.k else self.name


def parse(text: str) -> Measure:
    """`hit@5` → Measure("hit", 5). Raises UsageError naming the nearest measure."""
    if text.strip().lower() in ANSWERS:
        return Measure(text.strip().lower(), 0)
    match = re.fullmatch(r"\s*([A-Za-z_]+)@(\d+)\s*", text)
    if match is None or match[1].lower() not in _NAMES or not 1 <= int(match[2]) <= 1000:
        raise unknown("measure", text, (*DEFAULT, "P@10", "primary_first@10", "all_hit@10", *ANSWERS))
    return Measure(_NAMES[match[1].lower()], int(match[2]))


def of_rankings(text: str) -> Measure:
    """The same for what is measured where nobody answers; UsageError for a measure of answers."""
    found = parse(text)
    if not found.k:
        raise UsageError(
            f"{found} is a measure of answers: `lab run` makes them, with --answers extractive or chat. Name one of rankings here, as hit@5."
        )
    return found


@dataclass(frozen=True, slots=True)
class Ranking:
    """What measures need of one question: per result its credit, near class and source; and the grades of all judgments of the question."""

    credits: Sequence[Credit]
    near: Sequence[str]
    sources: Sequence[str]
    grades: Sequence[int]
    classes: Sequence[bytes] = ()  # exact class of each result
    quoted: Quoted | None = None  # who quotes the answer, where anybody does
    judged: Sequence[bool] = ()  # of each result, whether anybody judged it
    needs_all: bool = False  # the question needs every passage that it was judged by


@dataclass(frozen=True, slots=True)
class Lists:
    """The rankings of many questions as arrays, `(questions, results)` where nothing else is said; 0 beyond a list's end.

    `newly` counts the judgments that a result newly covers, `grade` is the highest of them. `wanted` `(questions, judgments)` are the grades of all judgments, `struck` the rank at
    which one can earn nothing any more. `primary` is 1 for the answer, 2 for who quotes it.
    """

    newly: np.ndarray
    grade: np.ndarray
    length: np.ndarray  # (questions,)
    wanted: np.ndarray
    struck: np.ndarray
    near: np.ndarray  # whether its near class stands here first
    source: np.ndarray  # the same of its document
    judged: np.ndarray
    primary: np.ndarray
    needs_all: np.ndarray  # (questions,)
    quoted: np.ndarray  # (questions,)


def lists_of(rankings: Sequence[Ranking]) -> Lists:
    """The arrays of some rankings, in their order."""
    n, most = len(rankings), max((len(r.credits) for r in rankings), default=0)
    wide = max((len(r.grades) for r in rankings), default=0)
    newly, grade, near, source, primary = (np.zeros((n, most), dtype=np.int32) for _ in range(5))
    known = np.zeros((n, most), dtype=bool)
    wanted, struck = np.zeros((n, wide), dtype=np.int32), np.full((n, wide), np.iinfo(np.int32).max, dtype=np.int32)
    codes: dict[str, int] = {}
    for i, r in enumerate(rankings):
        size = len(r.credits)
        for at, c in enumerate(r.credits):
            if c.newly:
                newly[i, at], grade[i, at] = len(c.newly), c.grade
                for j in c.newly[1:]:
                    struck[i, j] = at + 1
        wanted[i, : len(r.grades)] = r.grades
        near[i, : len(r.near)] = [codes.setdefault(name, len(codes) + 1) for name in r.near]
        source[i, : len(r.sources)] = [codes.setdefault(name, len(codes) + 1) for name in r.sources]
        if r.judged:
            known[i, :size] = r.judged
        if r.quoted is not None:
            primary[i, :size] = [1 if name in r.quoted.primary else 2 if name in r.quoted.quoting else 0 for name in r.classes]
    return Lists(
        newly, grade, np.array([len(r.credits) for r in rankings], dtype=np.int32), wanted, struck, _first_of_row(near), _first_of_row(source), known, primary,
        np.array([r.needs_all for r in rankings], dtype=bool), np.array([r.quoted is not None for r in rankings], dtype=bool),
    )  # fmt: skip


def _first_of_row(codes: np.ndarray) -> np.ndarray:
    """Where a code stands in its row for the first time; 0 is no code."""
    order = np.argsort(codes, axis=1, kind="stable")
    ordered = np.take_along_axis(codes, order, axis=1)
    first = np.ones_like(codes, dtype=bool)
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    found = np.zeros_like(first)
    np.put_along_axis(found, order, first, axis=1)
    return np.asarray(found & (codes > 0))


def table(measures: Sequence[Measure], lists: Lists) -> np.ndarray:
    """The values, `(questions, measures)`, ≥ 0; all but `distinct`, `sources` ≤ 1. NaN where a question is not one that the measure is about."""
    return np.stack([_values(m, lists) for m in measures], axis=1) if measures else np.zeros((len(lists.length), 0))


def _values(measure: Measure, lists: Lists) -> np.ndarray:
    name, k = measure.name, measure.k
    newly = lists.newly[:, :k]
    if name == "hit":
        return (newly > 0).any(axis=1).astype(float)
    if name in {"R", "all_hit"}:
        judgments = (lists.wanted > 0).sum(axis=1)
        share = newly.sum(axis=1) / np.maximum(judgments, 1)
        return np.asarray(share if name == "R" else np.where(lists.needs_all, (share >= 1).astype(float), np.nan))
    if name == "P":  # by k, however few were returned
        return np.asarray((newly > 0).sum(axis=1) / k)
    if name == "RR":
        return _reciprocal(newly > 0)
    if name == "nDCG":
        return _ndcg(lists, k)
    if name in {"distinct", "sources"}:
        first: np.ndarray = (lists.near if name == "distinct" else lists.source)[:, :k].sum(axis=1)
        return first.astype(float)
    if name == "short":
        return (lists.length < k).astype(float)
    if name == "judged":
        shown = np.minimum(lists.length, k)
        return np.where(shown > 0, lists.judged[:, :k].sum(axis=1) / np.maximum(shown, 1), np.nan)
    there = lists.primary[:, :k]  # primary_first
    top = np.take_along_axis(there, np.argmax(there > 0, axis=1)[:, None], axis=1)[:, 0] if there.shape[1] else np.zeros(len(there))
    return np.where(lists.quoted & (top > 0), (top == 1).astype(float), np.nan)


def _reciprocal(relevant: np.ndarray) -> np.ndarray:
    if not relevant.shape[1]:
        return np.zeros(len(relevant))
    return np.where(relevant.any(axis=1), 1.0 / (1 + np.argmax(relevant, axis=1)), 0.0)


def _ndcg(lists: Lists, k: int) -> np.ndarray:
    """Gain = grade, discount log2(rank + 1), as trec_eval has it. A result that newly covers several judgments counts for the highest grade; the
    others can earn nothing any more and are struck from this question's ideal, so that a perfect ranking of large chunks reaches 1."""
    gain = _discounted(lists.grade[:, :k])
    ideal = np.where(lists.struck <= k, 0, lists.wanted)
    best = _discounted(-np.sort(-ideal, axis=1)[:, :k])
    return np.where(best > 0, gain / np.where(best > 0, best, 1.0), 0.0)


def _discounted(grades: np.ndarray) -> np.ndarray:
    """Σ grade/log2(rank + 1), added in the order of the ranks so that it is the same to the last bit whatever else is in the table."""
    total = np.zeros(len(grades))
    for at in range(grades.shape[1]):
        total += grades[:, at] / math.log2(at + 2)
    return total


def score(measure: Measure, ranking: Ranking) -> float | None:
    """The value of one measure for one question; None where the question is not one that the measure is about."""
    value = float(table([measure], lists_of([ranking]))[0, 0])
    return None if math.isnan(value) else value


def score_all(measures: Sequence[Measure], rankings: Mapping[str, Ranking]) -> dict[str, dict[str, float]]:
    """Question → measure → value, of those that are about the question."""
    values = table(measures, lists_of(list(rankings.values()))).tolist()
    names = [str(measure) for measure in measures]
    return {q: {name: v for name, v in zip(names, row, strict=True) if v == v} for q, row in zip(rankings, values, strict=True)}


def means(by_question: Mapping[str, Mapping[str, float]], measures: Iterable[str]) -> dict[str, float]:
    """Measure → its mean over the questions that it is about; a measure that is about none has no mean."""
    found = {}
    for measure in measures:
        values = {question: values[measure] for question, values in by_question.items() if measure in values}
        if values:
            found[measure] = mean(values)
    return found


def mean(values: Mapping[str, float]) -> float:
    """The mean over all questions, summed in the order of their ids so that it is the same to the last bit."""
    return math.fsum(values[key] for key in sorted(values)) / len(values) if values else 0.0
