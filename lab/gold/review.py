"""What people decide about a gold set: an append-only file of decisions beside it, and the set that follows from them.

    reviews.jsonl   {"at", "who", "item", "question", "action": accept | reject | edit | judge | undo, "text", "source", "start", "end", "grade", "quote"}
    queue.jsonl     passages that wait for a judgment (`lab gold pool`): {"question", "source", "start", "end", "quote", "runs"}

An item is a question (`q:ID`), a passage that waits for a judgment (`p:ID:SOURCE:START`), or the question's own passage judged anew (`j:ID:SOURCE:START`). The last decision of a person on an item counts; two people decide apart.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.errors import UsageError
from lab.gold.files import gold_digest
from lab.records import GoldSet, Judgment, Question

FILE, QUEUE = "reviews.jsonl", "queue.jsonl"
ACTIONS = ("accept", "reject", "edit", "judge", "undo")


@dataclass(frozen=True, slots=True)
class Item:
    """What is to be decided: a question with its judged passage, or whether a passage answers a question. `[start, end)` is the span in question."""

    name: str
    question: Question
    source: str = ""
    start: int = 0
    end: int = 0
    quote: str = ""
    why: str = ""  # why a passage waits: similar, or the runs that returned it
    claim: bool = False  # a statement to be accepted or rejected, in place of a question

    @property
    def is_passage(self) -> bool:
        return self.name.startswith("p:")

    def own_passage(self) -> Item:
        """The passage that a question is judged by, as an item: its grade may be wrong while the question is right."""
        return dataclasses.replace(self, name=f"j:{self.question.question_id}:{self.source}:{self.start}")


@dataclass(frozen=True, slots=True)
class Decision:
    """One line of reviews.jsonl."""

    at: str
    who: str
    item: str
    question: str
    action: str
    text: str = ""
    source: str = ""
    start: int = 0
    end: int = 0
    grade: int = 0
    quote: str = ""


@dataclass(slots=True)
class Outcome:
    """The set that follows from the decisions, and how many of each kind led to it."""

    gold: GoldSet
    counts: Mapping[str, int]


def items(gold: GoldSet, queue: Sequence[Mapping[str, Any]], spans: Mapping[str, tuple[str, int, int, str]]) -> list[Item]:
    """Everything to decide, questions in file order, each followed by the passages that wait for it. `spans`: chunk id → (source, start, end, text), for the passages
    that generation left to a person."""
    best: dict[str, Judgment] = {}
    for j in gold.judgments:
        if j.question_id not in best or j.grade > best[j.question_id].grade:
            best[j.question_id] = j
    waiting: dict[str, list[Item]] = {}
    for q in gold.questions:
        for chunk_id in q.metadata.get("to_review", ()):
            if chunk_id in spans:
                source, start, end, text = spans[chunk_id]
                waiting.setdefault(q.question_id, []).append(
                    Item(f"p:{q.question_id}:{source}:{start}", q, source, start, end, text, "looks as if it answered")
                )
    known = {q.question_id: q for q in gold.questions}
    for entry in queue:
        if entry["question"] in known:
            q = known[entry["question"]]
            name = f"p:{q.question_id}:{entry['source']}:{entry['start']}"
            if name not in {item.name for item in waiting.get(q.question_id, ())}:
                why = "returned by " + ", ".join(entry["runs"])
                waiting.setdefault(q.question_id, []).append(
                    Item(name, q, str(entry["source"]), int(entry["start"]), int(entry["end"]), str(entry["quote"]), why)
                )
    found = []
    for q in gold.questions:
        top = best.get(q.question_id)
        found.append(Item(f"q:{q.question_id}", q, top.source, top.start, top.end, top.quote) if top is not None else Item(f"q:{q.question_id}", q))
        found += waiting.get(q.question_id, [])
    return found


def read(folder: Path) -> list[Decision]:
    """The decisions in the order in which they were made; UsageError naming the line of what cannot be read."""
    return [decision for _, decision in parse(folder / FILE)] if (folder / FILE).is_file() else []


def parse(path: Path) -> list[tuple[int, Decision]]:
    """(line, decision) of a file of decisions."""
    found = []
    for number, line in _lines(path, {"who", "item", "action", "question", "at"}):
        known = {name: line[name] for name in Decision.__slots__ if name in line}
        for name, value in known.items():
            if type(value) is not (int if name in {"start", "end", "grade"} else str):
                raise UsageError(f"{path} line {number} has {json.dumps(value)} for {name}.")
        one = Decision(**known)
        if not one.who.strip() or not one.who.isprintable():
            raise UsageError(f"{path} line {number} names nobody who could have decided: {json.dumps(one.who)}.")
        try:
            when(one.at)
        except ValueError:
            raise UsageError(f"{path} line {number} has {json.dumps(one.at)} for at: a time as 2026-01-31T12:00:00Z is needed.") from None
        found.append((number, one))
    return found


def when(at: str) -> dt.datetime:
    """The time of a decision; UTC where it does not say. ValueError for what is no time since 1970."""
    found = dt.datetime.fromisoformat(at)
    found = found if found.tzinfo is not None else found.replace(tzinfo=dt.UTC)
    if not 1970 <= found.year < 9999:
        raise ValueError(at)
    return found.astimezone(dt.UTC)


def read_queue(folder: Path) -> list[dict[str, Any]]:
    path = folder / QUEUE
    return [line for _, line in _lines(path, {"question", "source", "start", "end", "quote", "runs"})] if path.is_file() else []


def _lines(path: Path, needed: set[str]) -> list[tuple[int, dict[str, Any]]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read ({error}).") from None
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                value = json.loads(line)
                if not isinstance(value, dict) or not needed <= set(value):
                    raise ValueError(line)
            except ValueError:
                raise UsageError(f"{path} line {number} cannot be read: it needs {', '.join(sorted(needed))}.") from None
            found.append((number, value))
    return found


def enter(folder: Path, who: str, item: Item, action: str, *, text: str = "", grade: int = 0) -> Decision:
    """Appends a decision: it is on the disk when this returns."""
    decision = Decision(
        dt.datetime.now(dt.UTC).isoformat(timespec="seconds"), who, item.name, item.question.question_id, action, text,
        item.source if action == "judge" else "", item.start if action == "judge" else 0, item.end if action == "judge" else 0, grade,
        item.quote if action == "judge" else "",
    )  # fmt: skip
    append(folder, [decision], again=True)
    return decision


def append(folder: Path, decisions: Sequence[Decision], *, again: bool = False) -> int:
    """Adds decisions to the file; returns how many. One that stands there already is left out, unless `again`."""
    known = set() if again else set(read(folder))
    fresh = [decision for decision in decisions if decision not in known]
    with (folder / FILE).open("a", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps({name: getattr(d, name) for name in Decision.__slots__}, ensure_ascii=False) + "\n" for d in fresh)
        file.flush()
    return len(fresh)


def standing(decisions: Iterable[Decision], who: str | None = None) -> dict[tuple[str, str], Decision]:
    """(person, item) → the decision that counts: the last one that was not undone."""
    stacks: dict[tuple[str, str], list[Decision]] = {}
    for d in decisions:
        if who is not None and d.who != who:
            continue
        stack = stacks.setdefault((d.who, d.item), [])
        if d.action == "undo":
            if stack:
                stack.pop()
        else:
            stack.append(d)
    return {key: stack[-1] for key, stack in stacks.items() if stack}


def apply(gold: GoldSet, decisions: Sequence[Decision]) -> Outcome:
    """The gold set after review: rejected questions are gone, edited ones have their new words, judged passages their grade, accepted ones say who accepted them.

    Where people differ, the last decision in the file counts; `agreement` lists them. A question is complete when every passage that waited for it was judged.
    """
    order = {id(d): at for at, d in enumerate(decisions)}
    last: dict[str, Decision] = {}
    for d in sorted(standing(decisions).values(), key=lambda d: order[id(d)]):
        last[d.item] = d
    counts = dict.fromkeys(("accepted", "rejected", "edited", "judged_relevant", "judged_not"), 0)
    questions: list[Question] = []
    gone: set[str] = set()
    for q in gold.questions:
        said = last.get(f"q:{q.question_id}")
        if said is not None and said.action == "reject":
            gone.add(q.question_id)
            counts["rejected"] += 1
            continue
        metadata = dict(q.metadata)
        if said is not None:
            counts["edited" if said.action == "edit" else "accepted"] += 1
            metadata |= {"reviewed_by": said.who, "reviewed_at": said.at}
        judged = [p for name, p in last.items() if name.startswith(f"p:{q.question_id}:") and p.action == "judge"]
        if metadata.get("to_review") and len(judged) >= len(metadata["to_review"]):
            metadata.pop("incomplete", None)
            metadata.pop("to_review")
        questions.append(
            dataclasses.replace(q, text=said.text if said is not None and said.action == "edit" and said.text else q.text, metadata=metadata)
        )
    judgments = [j for j in gold.judgments if j.question_id not in gone]
    refused = [j for j in gold.refused if j.question_id not in gone]
    for name, d in last.items():
        if not name.startswith(("p:", "j:")) or d.action != "judge" or d.question in gone:
            continue
        place = (d.question, d.source, d.start, d.end)
        if any(_place(j) == place and j.grade == d.grade for j in (*judgments, *refused)):
            continue
        entered = Judgment(d.question, d.source, d.start, d.end, d.grade, d.quote)
        judgments, refused = ([j for j in rows if _place(j) != place] for rows in (judgments, refused))
        (judgments if d.grade else refused).append(entered)
        counts["judged_relevant" if d.grade else "judged_not"] += 1
    digest = gold_digest(questions, (*judgments, *refused))
    made = dataclasses.replace(gold, questions=tuple(questions), judgments=tuple(judgments), refused=tuple(refused), digest=digest)
    return Outcome(made, counts)


def _place(j: Judgment) -> tuple[str, str, int, int]:
    return j.question_id, j.source, j.start, j.end


def agreement(decisions: Sequence[Decision], first: str, second: str) -> tuple[float | None, int, list[tuple[str, str, str]]]:
    """(Cohen's κ (1960) over what both decided, how many items that is, the items on which they differ with both words); κ is None where both said one thing only."""
    ours = {item: _word(d) for (who, item), d in standing(decisions, first).items() if who == first}
    theirs = {item: _word(d) for (who, item), d in standing(decisions, second).items() if who == second}
    both = sorted(ours.keys() & theirs.keys())
    if not both:
        return None, 0, []
    differ = [(item, ours[item], theirs[item]) for item in both if ours[item] != theirs[item]]
    observed = 1 - len(differ) / len(both)
    kinds = {*ours.values(), *theirs.values()}
    chance = sum((sum(ours[i] == k for i in both) / len(both)) * (sum(theirs[i] == k for i in both) / len(both)) for k in kinds)
    return (None if chance == 1 else (observed - chance) / (1 - chance)), len(both), differ


def _word(d: Decision) -> str:
    return f"grade {d.grade}" if d.action == "judge" else {"edit": "accept"}.get(d.action, d.action)
