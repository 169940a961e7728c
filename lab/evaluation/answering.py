"""The answers of a run: every question of the gold set is answered as `lab answer` would, and the answers are scored.

`answered` is 1 where a question that has an answer got one. `citation_precision` is the share of the cited passages that cover a judgment, `citation_recall` the share of the judgments that they
cover (0 without an answer; an answer that cites nothing has 0 of both). `faithfulness` and `relevance` are the judge's. All but `answered` and `citation_recall` are about answered questions only. What questions without an answer got is told
apart (`false_answers`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lab.errors import CannotJudge, LabError, ServerError, UsageError
from lab.evaluation.coverage import Target, credit, judged
from lab.evaluation.judging import TARGET, Case, Judge, agreement, judge_named
from lab.evaluation.measures import ANSWERS, mean
from lab.gold.answers import labels_of
from lab.models.asked import Remembered
from lab.models.chat import Chat, configured
from lab.progress import Progress, say
from lab.records import GoldSet, Question
from lab.retrieval.context import Corpus
from lab.scratch import whole_file, writable
from lab.serving import answers
from lab.serving.answers import Answer
from lab.settings import Settings

_CACHE, _VERSION = "answer-cache", "answer-1"


@dataclass(frozen=True, slots=True)
class Answering:
    """How the questions of a run are answered and judged. `stuff`: from the whole collection, without a search. `to`: a file that takes every answer, one JSON object a line."""

    answerer: str
    judge: str = "proxy"
    stuff: bool = False
    budget: int = answers.BUDGET
    chat: Chat | None = None
    to: Path | None = None

    def checked(self, gold: GoldSet | None = None) -> Answering:
        """UsageError for an unknown answerer or judge, a model that is not named, labels that cannot be read, or a file that cannot be written: before anything is asked."""
        if self.answerer not in answers.ANSWERERS:
            raise UsageError(f"--answers cannot be {self.answerer!r}: it takes {' or '.join(answers.ANSWERERS)}.")
        answers.check(self.answerer, budget=self.budget)
        if "chat" in (self.answerer, self.judge) and self.chat is None:
            configured()
        if self.judge not in {"proxy", "chat"}:
            raise UsageError(f"--judge cannot be {self.judge!r}: it takes proxy or chat.")
        labels_of(gold)
        if self.to is not None:
            writable(self.to, "the answers")
        return self


@dataclass(slots=True)
class Answers:
    """`scores`: question → measure → value. `summary` goes to the run's health. `notes`: what did not go well."""

    scores: dict[str, dict[str, float]] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    failed: int = 0  # questions without an answer or a verdict because the model gave none


def answer_all(
    corpus: Corpus, gold: GoldSet, settings: Settings, how: Answering, asked: Sequence[Question], wanted: Mapping[str, Sequence[Target]]
) -> Answers:
    """Answers `asked` and the questions without an answer. A question on which the answerer fails is not answered, and makes the run degraded."""
    store, name = corpus.store, corpus.collection.name
    judge = judge_named(how.judge, store, how.chat)
    model = Remembered(how.chat or configured(), _CACHE, _VERSION) if how.answerer == "chat" else None
    unanswerable = [q for q in gold.questions if not q.answerable]
    found = Answers()
    given: dict[str, Answer] = {}
    failures: dict[str, str] = {}
    everything = [*asked, *unanswerable]
    stuffed = answers.retrieve(store, name, everything[0].text, budget=how.budget, stuff=True) if how.stuff else None
    with store.held(), Progress(f"answers from {name}", len(everything), "questions") as bar:
        for question in everything:
            try:
                apart = frozenset(map(str, question.metadata.get("ignore") or ()))
                context = (
                    answers.barred(replace(stuffed, question=question.text), apart)
                    if stuffed is not None
                    else answers.retrieve(store, name, question.text, settings=settings, budget=how.budget, without=apart)
                )
                given[question.question_id] = answers.synthesise(context, model)
            except (UsageError, CannotJudge, ServerError):
                raise
            except LabError as error:
                failures[question.question_id] = str(error)
            bar.advance()
    told = [q for q in everything if q.question_id in given and given[q.question_id].answer is not None]
    verdicts = judge.judge([Case(q.text, given[q.question_id].answer or "", answers.block_texts(given[q.question_id].passages)) for q in told])
    by_question = dict(zip((q.question_id for q in told), verdicts, strict=True))
    for question in asked:
        found.scores[question.question_id] = _scores(
            given.get(question.question_id), by_question.get(question.question_id), wanted[question.question_id]
        )
    false = sum(q.question_id in by_question for q in unanswerable)
    unjudged = sum(verdict is None for verdict in verdicts)
    found.failed = len(failures) + unjudged
    if failures:
        first = min(failures)
        found.notes.append(f"the answerer failed on {len(failures)} questions, as on {first}: {failures[first]}")
    if unjudged:
        why = getattr(judge, "refused", "")
        found.notes.append(f"the judge {judge.name} came to no verdict on {unjudged} answers" + (f": {why}" if why else ""))
    path, labelled = labels_of(gold)
    agreed = agreement(judge, labelled, path)
    found.summary = {
        "answerer": how.answerer if model is None else f"chat:{model.model}", "stuff": how.stuff, "judge": judge.name, "answered": sum(q.question_id in by_question for q in asked),
        "answerable": len(asked), "false_answers": false, "unanswerable": len(unanswerable), "unjudged": unjudged, "failed": len(failures), "target": TARGET,
        "means": _means(found.scores), "agreement": agreed.to_json(), "cost": _cost(given, judge),
    }  # fmt: skip
    if how.to is not None:
        _write(how.to, everything, given, by_question, found.scores, failures)
        say(f"{len(everything)} answers are in {how.to}")
    return found


def _scores(given: Answer | None, verdict: Any, wanted: Sequence[Target]) -> dict[str, float]:
    if given is None or given.answer is None:
        return {"answered": 0.0, "citation_recall": 0.0}
    by_number = {p.n: p.result for p in given.passages}
    cited = [(by_number[n].key, by_number[n].class_id) for n in given.sources if n in by_number]
    scores = {
        "answered": 1.0, "citation_recall": sum(len(c.newly) for c in credit(cited, wanted)) / len(wanted),
        "citation_precision": sum(judged(cited, wanted)) / len(cited) if cited else 0.0,
    }  # fmt: skip
    if verdict is not None:
        scores |= {"faithfulness": verdict.faithfulness, "relevance": verdict.relevance}
    return scores


def _means(scores: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    values = {name: {q: row[name] for q, row in scores.items() if name in row} for name in ANSWERS}
    return {name: mean(held) for name, held in values.items() if held}


def _cost(given: Mapping[str, Answer], judge: Judge) -> dict[str, int]:
    total = {"calls": 0, "tokens": 0}
    for one in given.values():
        total["calls"] += one.cost.get("calls", 0)
        total["tokens"] += one.cost.get("prompt_tokens", 0) + one.cost.get("completion_tokens", 0)
    spent = getattr(judge, "spent", None)
    return total | {"judge_calls": spent.calls if spent else 0, "judge_tokens": spent.asked + spent.answered if spent else 0}


def _write(
    to: Path,
    questions: Sequence[Question],
    given: Mapping[str, Answer],
    verdicts: Mapping[str, Any],
    scores: Mapping[str, Mapping[str, float]],
    failures: Mapping[str, str],
) -> None:
    lines = []
    for q in questions:
        one, verdict = given.get(q.question_id), verdicts.get(q.question_id)
        row: dict[str, Any] = {"_id": q.question_id, "text": q.text, "kind": q.kind, "answerable": q.answerable}
        row |= (
            {"failed": failures[q.question_id]}
            if one is None
            else {k: v for k, v in one.to_json().items() if k not in {"schema_version", "question", "collection"}}
        )
        row |= {"scores": dict(scores.get(q.question_id, {})), "why": verdict.why if verdict is not None else None}
        lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    whole_file(to, "".join(lines))
