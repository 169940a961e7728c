"""How well the floor's signal tells answerable questions from those that the collection cannot answer: AUROC, and the risk of false answers by coverage.

The signal is what `floor` looks at: the best cosine of the dense arm; a code or section that the question names, found as a whole, passes any floor (infinite).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lab.progress import Progress
from lab.records import ArmList, Question
from lab.retrieval.context import Corpus
from lab.retrieval.search import Shared, arm_key, question_vectors
from lab.settings import Settings

_POINTS = 20


def signal(arms: Mapping[str, ArmList]) -> float | None:
    """None where there is no dense arm, or it found nothing to compare with."""
    if "lexical" in arms and arms["lexical"].coded:
        return math.inf
    dense = arms.get("dense")
    return max((hit.score for hit in dense.hits), default=None) if dense is not None else None


def signals(corpus: Corpus, questions: Sequence[Question], members: Sequence[Settings]) -> list[dict[str, float]]:
    """For each settings question → signal, of those that have one; arms that settings share are asked once."""
    found: list[dict[str, float]] = [{} for _ in members]
    wanted = [i for i, settings in enumerate(members) if settings.dense_arm != "none"]
    if not wanted or not questions:
        return found
    vectors = question_vectors(corpus, [q.text for q in questions])
    with corpus.store.held(), Progress("questions without an answer", len(questions), "questions") as bar:
        for question, vector in zip(questions, vectors, strict=True):
            shared = Shared(corpus, question.text, vector)
            known: dict[Any, float | None] = {}
            for i in wanted:
                key = (arm_key(members[i], "dense"), arm_key(members[i], "lexical"))
                if key not in known:
                    known[key] = signal(shared.arms(members[i]))
                if known[key] is not None:
                    found[i][question.question_id] = float(known[key] or 0.0)
            bar.advance()
    return found


def auroc(answerable: Sequence[float], unanswerable: Sequence[float]) -> float:
    """The chance that an answerable question has the higher signal, ties half (Mann & Whitney 1947).

    >>> auroc([0.9, 0.5], [0.5, 0.1])
    0.875
    """
    a, b = np.asarray(answerable), np.sort(np.asarray(unanswerable))
    below = np.searchsorted(b, a, side="left") + np.searchsorted(b, a, side="right")
    return float(below.sum() / 2 / (len(a) * len(b)))


def abstention(answerable: Mapping[str, float], unanswerable: Mapping[str, float]) -> dict[str, Any]:
    """AUROC, and a curve of [floor, share of the answerable questions that pass it (coverage), share of the others that pass (false answers)]; empty where either is missing."""
    if not answerable or not unanswerable:
        return {}
    yes, no = np.sort(list(answerable.values())), np.sort(list(unanswerable.values()))
    curve = []
    finite = yes[np.isfinite(yes)]
    # Rounded down: the question whose signal it is passes it as it is printed.
    for floor in (
        dict.fromkeys((np.floor(np.quantile(finite, np.linspace(0, 1, _POINTS + 1), method="lower") * 1e4) / 1e4).tolist()) if len(finite) else ()
    ):
        curve.append([float(floor), float(np.mean(yes >= floor)), float(np.mean(no >= floor))])
    return {"auroc": auroc(list(yes), list(no)), "answerable": len(yes), "unanswerable": len(no), "curve": curve}


def floor_for(unanswerable: Sequence[float], false_answers: float) -> float:
    """The lowest floor at which at most this share of the unanswerable questions pass."""
    ordered = np.sort(np.asarray(unanswerable))[::-1]
    allowed = math.floor(false_answers * len(ordered) + 1e-9)
    if allowed >= len(ordered):
        return float(ordered[-1]) if len(ordered) else 0.0
    return above(float(ordered[allowed]))


def above(value: float) -> float:
    """The least number of six decimals, as floors are printed, that is more than `value`.

    >>> above(0.3), above(0.1234564), above(-0.0000005)
    (0.300001, 0.123457, 0.0)
    """
    if not math.isfinite(value):
        return value
    n = math.floor(value * 1e6) - 1
    while float(f"{n / 1e6:.6f}") <= value:
        n += 1
    return float(f"{n / 1e6:.6f}") + 0.0  # no -0.0
