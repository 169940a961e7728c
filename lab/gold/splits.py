"""Splits: `dev` and `test`, 50/50, so that no document and no paraphrase has a foot in both."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from lab.errors import UsageError, unknown
from lab.groups import Groups
from lab.records import Judgment, Question

LARGEST = 0.2  # share of the questions that one component may hold


def components(questions: Sequence[Question], judgments: Sequence[Judgment]) -> list[list[str]]:
    """Question ids that hang together: by a judged document they share, or by `metadata.parent` (a paraphrase's original).

    Each component sorted, components in the order of the hash of their first id, which has nothing to do with what they are about.
    """
    parts = Groups()
    for question in questions:
        parts.find("q:" + question.question_id)
        if question.metadata.get("parent"):
            parts.join("q:" + question.question_id, "q:" + str(question.metadata["parent"]))
    for judgment in judgments:
        parts.join("q:" + judgment.question_id, "d:" + judgment.source)
    groups: dict[str, list[str]] = {}
    for question in questions:
        groups.setdefault(parts.find("q:" + question.question_id), []).append(question.question_id)
    found = [sorted(group) for group in groups.values()]
    return sorted(found, key=lambda group: hashlib.sha256(group[0].encode()).hexdigest())


def assign(questions: Sequence[Question], judgments: Sequence[Judgment], *, by: str = "component") -> list[Question]:
    """The questions with a split each. Those that name one keep it; if none does, components (`by` "question": single questions) go in hash order to the
    smaller split. UsageError for another `by`."""
    if by not in {"component", "question"}:
        raise unknown("way to split", by, ["component", "question"])
    if any(question.split for question in questions):
        return [question if question.split else replace(question, split="none") for question in questions]
    answerable = {question.question_id for question in questions if question.answerable}
    sizes = {"dev": [0, 0], "test": [0, 0]}  # answerable and unanswerable questions apart: both halves need both
    split_of: dict[str, str] = {}
    for group in components(questions, judgments if by == "component" else ()):
        kind = 0 if group[0] in answerable else 1
        chosen = min(("dev", "test"), key=lambda name: (sizes[name][kind], name))
        sizes[chosen][kind] += len(group)
        split_of.update(dict.fromkeys(group, chosen))
    return [replace(question, split=split_of[question.question_id]) for question in questions]


def may_learn(split: str, judged_on: str | None = None) -> str:
    """The split, where something may be trained or tuned on it: `train`, `dev` or another, but never `test`, nor what it is judged on (UsageError)."""
    if split.startswith("test") or (judged_on is not None and judged_on == split):
        raise UsageError(f"--split {split} is what it is judged on at the end: learn from another one, as train or dev.")
    return split


def largest_share(questions: Sequence[Question], judgments: Sequence[Judgment]) -> float:
    """The share of the questions that the largest component holds, 0 to 1."""
    return max((len(group) for group in components(questions, judgments)), default=0) / max(len(questions), 1)
