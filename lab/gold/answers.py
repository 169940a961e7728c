"""Labelled answers of a gold set, `answers.jsonl`: questions with a reference answer, the passages that an answer may rest on, and answers that people called good or bad.

    {"_id", "question", "reference", "passages": [{"source", "start", "end", "text"}], "answers": [{"text", "label": "good" | "bad", "faithful", "relevant", "fault"}]}

The numbers in brackets of an answer count the passages from 1. An answer is good that is faithful (every sentence is said by the passages which it cites) and relevant (it answers the question).
They say how far a judge of answers can be trusted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.errors import UsageError
from lab.records import GoldSet
from lab.resources import folder

FILE = "answers.jsonl"
FAULTS = ("invented", "negated", "number", "off_topic", "swapped", "uncited", "wrong_citation")


@dataclass(frozen=True, slots=True)
class Labelled:
    """One answer with what a person said of it. `passages`: number → text. `fault` of a bad one, as `number` or `off_topic`."""

    question_id: str
    question: str
    reference: str
    passages: Mapping[int, str]
    text: str
    good: bool
    fault: str = ""


def labels_of(gold: GoldSet | None = None) -> tuple[Path, list[Labelled]]:
    """The labelled answers of a gold set; where it has none, those of the built-in handbook: (file, answers)."""
    own = Path(str(gold.metadata["path"])) / FILE if gold is not None and gold.metadata.get("path") else None
    path = own if own is not None and own.is_file() else folder("gold") / "handbook" / FILE
    return path, read(path)


def read(path: Path) -> list[Labelled]:
    """The answers of a file in its order. UsageError naming the line that cannot be read."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read ({error}).") from None
    found = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                found += _answers(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError):
                raise UsageError(
                    f"{path} line {number} is no labelled question: it needs _id, question, reference, passages (each with text) and answers (each with text, and a label good or bad)."
                ) from None
    return found


def _answers(row: Any) -> list[Labelled]:
    passages = {n: str(p["text"]) for n, p in enumerate(row["passages"], 1)}
    found = []
    for answer in row["answers"]:
        if answer["label"] not in {"good", "bad"} or not str(answer["text"]).strip():
            raise ValueError(answer)
        found.append(
            Labelled(
                str(row["_id"]), str(row["question"]), str(row["reference"]), passages, str(answer["text"]), answer["label"] == "good", str(answer.get("fault", ""))
            )
        )  # fmt: skip
    return found
