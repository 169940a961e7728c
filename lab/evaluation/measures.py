"""Measures of one ranking, named as the literature writes them: `hit@5`, `R@10`, `RR@10`, `nDCG@10`, `distinct@10`, `sources@10`, `short@10`.
`primary_first@10`: of the questions whose answer is quoted by passages of lower authority, and of which the answer or a quotation is among the first 10, is
the answer above all of them? `judged@10`: the share of the first 10 that anybody has judged, as relevant or not (coverage counts, as everywhere). `all_hit@10`: of the
questions that need several passages (`metadata.needs: all`), are all of them among the first 10?

`R`, `RR` and `nDCG` agree with ir_measures (trec_eval) on the ranking in which every result stands for the judgment it newly covers; tests hold
them together. A question without results scores 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lab.errors import unknown
from lab.evaluation.coverage import Credit
from lab.evaluation.primary import Quoted

DEFAULT = ("hit@1", "hit@3", "hit@5", "hit@10", "R@5", "R@10", "RR@10", "nDCG@10", "distinct@10", "sources@10", "short@10", "judged@10")
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
    "judged": "judged",
    "all_hit": "all_hit",
}


@dataclass(frozen=True, slots=True, order=True)
class Measure:
    """A measure and its cutoff; prints and parses as itself."""

    name: str
    k: int

    def __str__(self) -> str:
        return f"{self.name}@{self.k}"


def parse(text: str) -> Measure:
    """`hit@5` → Measure("hit", 5). Raises UsageError naming the nearest measure."""
    match = re.fullmatch(r"\s*([A-Za-z_]+)@(\d+)\s*", text)
    if match is None or match[1].lower() not in _NAMES or not 1 <= int(match[2]) <= 1000:
        raise unknown("measure", text, (*DEFAULT, "primary_first@10", "all_hit@10"))
    return Measure(_NAMES[match[1].lower()], int(match[2]))


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


def score(measure: Measure, ranking: Ranking) -> float | None:
    """The value of one measure for one question, ≥ 0; all but `distinct`, `sources` ≤ 1. None where the question is not one that the measure is about."""
    top = ranking.credits[: measure.k]
    if measure.name == "hit":
        return float(any(c.newly for c in top))
    if measure.name == "R":
        return sum(len(c.newly) for c in top) / len(ranking.grades) if ranking.grades else 0.0
    if measure.name == "RR":
        return next((1.0 / rank for rank, c in enumerate(top, 1) if c.newly), 0.0)
    if measure.name == "nDCG":
        return _ndcg(top, ranking.grades, measure.k)
    if measure.name == "distinct":
        return float(len(set(ranking.near[: measure.k])))
    if measure.name == "primary_first":
        return _primary_first(ranking.classes[: measure.k], ranking.quoted)
    if measure.name == "judged":
        return sum(ranking.judged[: measure.k]) / len(ranking.judged[: measure.k]) if ranking.judged else None
    if measure.name == "all_hit":
        return float(sum(len(c.newly) for c in top) == len(ranking.grades)) if ranking.needs_all else None
    if measure.name == "sources":
        return float(len(set(ranking.sources[: measure.k])))
    return float(len(ranking.credits) < measure.k)


def _ndcg(top: Sequence[Credit], grades: Sequence[int], k: int) -> float:
    """Gain = grade, discount log2(rank + 1), as trec_eval has it. A result that newly covers several judgments counts for the highest grade; the
    others can earn nothing any more and are struck from this question's ideal, so that a perfect ranking of large chunks reaches 1."""
    gain = sum(c.grade / math.log2(rank + 1) for rank, c in enumerate(top, 1) if c.newly)
    struck = {i for c in top for i in c.newly[1:]}
    ideal = sorted((grade for i, grade in enumerate(grades) if i not in struck), reverse=True)[:k]
    best = sum(grade / math.log2(rank + 1) for rank, grade in enumerate(ideal, 1))
    return gain / best if best > 0 else 0.0


def _primary_first(classes: Sequence[bytes], quoted: Quoted | None) -> float | None:
    if quoted is None:
        return None
    first = next((name for name in classes if name in quoted.primary or name in quoted.quoting), None)
    return None if first is None else float(first in quoted.primary)


def score_all(measures: Sequence[Measure], ranking: Ranking) -> dict[str, float]:
    """Measure → value, of those that are about this question."""
    return {str(measure): value for measure in measures if (value := score(measure, ranking)) is not None}


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
