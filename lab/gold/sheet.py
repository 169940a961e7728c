"""The review as one page for a person without Python: it needs no network, loads and saves a file of decisions, and knows the same keys as the terminal."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from lab.errors import UsageError
from lab.gold.review import ACTIONS, Decision, Item, append, parse, when
from lab.records import GoldSet

AROUND = 300  # signs of the document before and after the span


def page(gold: GoldSet, items: Sequence[Item], around: Callable[[Item], tuple[str, str]], command: str) -> str:
    """The page as HTML. `around` gives the text right before and right after an item's span; `command` takes what is saved there."""
    listed = []
    for item in items:
        before, after = around(item) if item.source else ("", "")
        listed.append(
            {
                "name": item.name, "question": item.question.question_id, "kind": item.question.kind or "question", "text": item.question.text, "source": item.source,
                "start": item.start, "end": item.end, "quote": item.quote, "why": item.why, "passage": item.is_passage, "claim": item.claim, "before": before, "after": after,
            }
        )  # fmt: skip
    data = json.dumps({"set": gold.name, "digest": gold.digest, "command": command, "items": listed}, ensure_ascii=False)
    safe = data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")  # nothing in it may end the script
    return (Path(__file__).parent / "templates" / "review.html").read_text(encoding="utf-8").replace("__DATA__", safe)


def take(folder: Path, gold: GoldSet, file: Path, *, gone: bool = False, actions: Sequence[str] = ACTIONS) -> tuple[int, int]:
    """Adds the decisions of a saved file to those of the set: (how many were new, how many were about what the set no longer holds). Raises UsageError, and adds nothing, where a line is none
    or judges another set; with `gone` only where all of them do: the set may have lost items since the page was made."""
    known = {q.question_id for q in gold.questions}
    found: list[Decision] = []
    left_out = 0
    for number, decision in parse(file):
        if decision.action not in actions:
            raise UsageError(f"{file} line {number} has the action {decision.action!r}: it must be one of {', '.join(actions)}.")
        if when(decision.at) > dt.datetime.now(dt.UTC) + dt.timedelta(days=1):
            raise UsageError(f"{file} line {number} was decided at {decision.at}, which is yet to come: set the clock of that machine, and the line.")
        if decision.question not in known and gone:
            left_out += 1
            continue
        if decision.question not in known:
            raise UsageError(
                f"{file} line {number} is about question {decision.question!r}, which {gold.name} does not hold: it belongs to another set."
            )
        belongs = (
            decision.item.startswith((f"p:{decision.question}:", f"j:{decision.question}:"))
            if decision.action == "judge"
            else decision.item in {f"q:{decision.question}"} or decision.action == "undo"
        )
        if not belongs:
            raise UsageError(f"{file} line {number} is about the item {decision.item!r}, which is no item of question {decision.question!r}.")
        found.append(decision)
    if left_out and not found:
        raise UsageError(f"{file} is about nothing that {gold.name} holds: it belongs to another set, or to what was there before.")
    return append(folder, found), left_out
