"""The members of a grid, searched side by side, question by question, and what each of them gathers on the way."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lab.errors import CannotJudge, LabError, ServerError, UsageError
from lab.evaluation.answering import Answers
from lab.evaluation.journal import Journal
from lab.evaluation.kept_out import without
from lab.groups import evenly
from lab.progress import Progress
from lab.records import ArmList, Diagnostic, Ledger, Question, SearchResult
from lab.retrieval.audit import audit
from lab.retrieval.context import Corpus
from lab.retrieval.search import Shared, rank
from lab.settings import Settings


@dataclass(slots=True)
class Member:
    """What one run gathers while it is executed."""

    run_id: str
    passed: Mapping[str, str]
    settings: Settings
    by_question: dict[str, dict[str, float]] = field(default_factory=dict)
    rankings: dict[str, SearchResult] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)
    engines: dict[str, dict[str, Any]] = field(default_factory=dict)
    server: dict[str, str] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    fallbacks: set[str] = field(default_factory=set)
    unanswerable: dict[str, float] = field(default_factory=dict)  # the floor's signal of the questions without an answer
    recall: float | None = None  # of the vector index
    answers: Answers | None = None  # where the questions were answered too
    seconds: float = 0.0


_MOST_JOBS = 8  # as many as the store keeps connections
_TAKEN = 10  # passages of one document that may stand above what is scored


def search_all(
    corpus: Corpus, asked: Sequence[Question], vectors: Sequence[np.ndarray | None], members: Sequence[Member], jobs: int, journal: Journal
) -> None:
    """Every question for every member; entered in the order of the questions, whoever searched. What the journal knows is not searched again."""
    with Progress(f"search {corpus.collection.name}", len(asked) * len(members), "searches") as bar:

        def one(place: int) -> list[tuple[SearchResult | LabError, float]]:
            if place in journal.known:
                bar.total -= len(members)
                return journal.known[place]
            question, vector = asked[place], vectors[place]
            shared = Shared(corpus, question.text, vector)
            apart = frozenset(map(str, question.metadata.get("ignore") or ()))
            found: list[tuple[SearchResult | LabError, float]] = []
            with corpus.store.held():
                for member in members:
                    start = time.perf_counter()
                    try:
                        if apart:  # a document has a few passages: so much deeper that what is taken out leaves enough
                            deeper = replace(member.settings, k=member.settings.k + _TAKEN * len(apart))
                            result: SearchResult | LabError = without(rank(shared, deeper, texts=False), apart, member.settings.k)
                        else:
                            result = rank(shared, member.settings, texts=False)
                    except (UsageError, CannotJudge, ServerError):
                        raise
                    except LabError as error:
                        result = error
                    found.append((result, time.perf_counter() - start))
                    bar.advance()
            return found

        if jobs <= 1:
            with corpus.store.held():
                for place in range(len(asked)):
                    found = one(place)
                    journal.add(place, found)
                    _enter(asked[place], found, members)
            return
        with ThreadPoolExecutor(min(jobs, _MOST_JOBS)) as pool:
            for place, found in enumerate(pool.map(one, range(len(asked)))):
                journal.add(place, found)
                _enter(asked[place], found, members)


def _enter(question: Question, found: Sequence[tuple[SearchResult | LabError, float]], members: Sequence[Member]) -> None:
    for member, (answer, seconds) in zip(members, found, strict=True):
        result = _failed(question, member, answer) if isinstance(answer, LabError) else answer
        member.seconds += seconds
        member.rankings[question.question_id] = result
        if not result.results and result.diagnostic is not None:
            note = f"no result: {result.diagnostic.stage}"
            member.notes[note] = member.notes.get(note, 0) + 1
        for note in result.ledger.notes:
            member.notes[note] = member.notes.get(note, 0) + 1
        for arm in result.arms.values():
            _count(member, arm)


_AUDITED = 20  # questions on which the vector index is compared with the exact list
LEAST_RECALL = 0.98


def audit_indexes(corpus: Corpus, asked: Sequence[Question], members: Sequence[Member]) -> None:
    """Of members whose dense lists came from the index: how much of the exact lists it brings."""
    known: dict[tuple[int, int], float] = {}
    sample = [q.text for q in evenly(asked, _AUDITED)]
    for member in members:
        if member.engines.get("dense", {}).get("engines", {}).get("hnsw") and not corpus.lacks("chunks_hnsw"):
            key = (min(member.settings.candidates, 100), member.settings.ef_search)
            if key not in known:
                known[key] = audit(corpus, sample, k=key[0], ef_search=key[1]).recall
            member.recall = known[key]


def _failed(question: Question, member: Member, error: LabError) -> SearchResult:
    """The empty result of a question whose search failed."""
    member.failed.append(question.question_id)
    note = f"failed: {error}"
    return SearchResult(question.text, (), Diagnostic("search", str(error)), Ledger((), (), np.zeros((0, 0), dtype=np.int32), (note,)))


def _count(member: Member, arm: ArmList) -> None:
    """Enters engine, rows asked and got, why the arm stopped, and the server's settings as read back."""
    entry = member.engines.setdefault(arm.arm, {"engines": {}, "asked": arm.asked, "least_got": arm.got, "stopped": {}})
    entry["engines"][arm.engine] = entry["engines"].get(arm.engine, 0) + 1
    entry["stopped"][arm.stopped] = entry["stopped"].get(arm.stopped, 0) + 1
    entry["least_got"] = min(entry["least_got"], arm.got)
    member.server.update(arm.server)
    if arm.fallback:
        member.fallbacks.add(arm.fallback)
