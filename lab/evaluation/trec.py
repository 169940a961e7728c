"""TREC runs as lists to be scored: `question Q0 document rank score tag`, a line a result.

Order is by falling score, equals in the order of the file's ranks; a document is a chunk (`guide.md::3`) or a source, whose first chunk stands for it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.errors import UsageError
from lab.models.external import Found
from lab.records import Question
from lab.store.arms import sanitise


def read(path: Path) -> tuple[str, dict[str, list[Found]]]:
    """(name of the file's content, question id → its list). Raises UsageError with the line that is wrong; a document twice in one list is wrong too."""
    try:
        data = path.read_bytes()
        text = data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read ({error}): name a TREC run.") from None
    lists: dict[str, list[tuple[float, int, str]]] = {}
    seen: set[tuple[str, str]] = set()
    for number, line in enumerate(text.splitlines(), 1):
        parts = line.split()
        if not parts:
            continue
        try:
            question, _, document, rank, score, _ = parts
            row = (float(score), int(rank), document)
        except ValueError:
            raise UsageError(f"line {number} of {path} must be `question Q0 document rank score tag`, not {line[:80]!r}.") from None
        if not math.isfinite(row[0]):
            raise UsageError(f"line {number} of {path} has the score {score}: it must be a number.")
        if (question, document) in seen:
            raise UsageError(f"line {number} of {path} lists {document} for question {question} a second time.")
        seen.add((question, document))
        lists.setdefault(question, []).append(row)
    if not lists:
        raise UsageError(f"{path} holds no result: name a TREC run.")
    ordered = {
        question: [_found(document, score) for score, _, document in sorted(rows, key=lambda row: (-row[0], row[1]))]
        for question, rows in lists.items()
    }
    return f"trec:{hashlib.sha256(data).hexdigest()[:12]}", ordered


def _found(document: str, score: float) -> Found:
    source, sign, number = document.rpartition("::")
    return (
        Found(source, int(number), 0, 0, score)
        if sign and number.isascii() and number.isdecimal() and len(number) < 10
        else Found(document, None, 0, 1, score)
    )


def by_text(lists: Mapping[str, Sequence[Found]], questions: Sequence[Question]) -> dict[str, Sequence[Found]]:
    """Question's text → its list, empty where the run has none. Raises UsageError where the run knows none of the questions."""
    if not any(q.question_id in lists for q in questions):
        raise UsageError(f"the TREC run holds none of the {len(questions)} questions of the gold set: its first column must be their ids.")
    found: dict[str, Sequence[Found]] = {}
    for question in questions:
        text, mine = sanitise(question.text), lists.get(question.question_id, ())
        if text in found and list(found[text]) != list(mine):
            raise UsageError(f"two questions have the text {text[:60]!r} and different lists: they cannot be told apart.")
        found[text] = mine
    return found
