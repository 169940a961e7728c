"""A smoke test of a collection with a gold set: the conditions under which a gate could not judge, looked at on a few questions, in seconds. It gives no verdict and records no run.

failed_searches   a question whose search failed
degraded          an arm that had to do without its index
no_result         a question that brought nothing back
short_lists       more than a hundredth of the lists are shorter than k (with a floor or filters this is meant, and not looked at); a gate looks at how many more there are than in its baseline
ann_recall        the vector index brings less than 0.98 of the exact lists
plan              the planner does not use the vector index
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lab.errors import CannotJudge, UsageError
from lab.evaluation.journal import Journal
from lab.evaluation.members import LEAST_RECALL, Member, search_all
from lab.evaluation.run import answerable, as_gold
from lab.evaluation.shown import Shown
from lab.gold.check import fit
from lab.records import GoldSet, Question
from lab.retrieval.audit import audit
from lab.retrieval.context import Corpus
from lab.retrieval.search import check_runnable, open_corpus, question_vectors
from lab.settings import Settings, resolved
from lab.store.connect import Store, connect
from lab.text import text_hash

SHORT = 0.01


@dataclass(frozen=True, slots=True, repr=False)
class Smoke(Shown):
    """`found`: code → what it means here. `kinds`: questions of each kind that were asked."""

    collection: str
    gold: str
    questions: int
    kinds: Mapping[str, int]
    found: Mapping[str, str]
    recall: float | None
    plan: str | None

    @property
    def outcome(self) -> str:
        """`ok`, or `cannot_judge`."""
        return "cannot_judge" if self.found else "ok"

    def to_frame(self) -> Any:
        """One row a condition that was found (pandas)."""
        import pandas as pd

        return pd.DataFrame(list(self.found.items()), columns=["condition", "found"])

    def to_json(self) -> dict[str, Any]:
        """The object of `lab run --smoke --json`."""
        return {
            "schema_version": 1, "collection": self.collection, "gold": self.gold, "questions": self.questions, "kinds": dict(self.kinds), "outcome": self.outcome,
            "reasons": list(self.found), "found": dict(self.found), "ann_recall": self.recall, "plan": self.plan,
        }  # fmt: skip


def smoke(
    collection: str, gold: str | GoldSet, many: int = 20, *, store: Store | None = None, settings: Settings | str | None = None, split: str | None = None,
    **flags: str | float,
) -> Smoke:  # fmt: skip
    """Asks `many` questions, of every kind its share and always the same ones. UsageError for unknown names, CannotJudge where the gold set is empty or does not fit."""
    if store is None:
        with connect() as opened:
            return smoke(collection, gold, many, store=opened, settings=settings, split=split, **flags)
    if many < 1:
        raise UsageError(f"--smoke {many} asks nothing: name at least 1 question.")
    chosen = resolved(settings).with_words({name: str(value) for name, value in flags.items()})
    corpus = open_corpus(store, collection)
    check_runnable(corpus, chosen)
    loaded = fit(store, corpus.collection, as_gold(gold, split)).gold
    asked = stratified(answerable(loaded), many)
    if not asked:
        raise CannotJudge(f"gold set {loaded.name!r} holds no answerable question with a judgment: nothing can be asked.")
    vectors: Sequence[np.ndarray | None] = question_vectors(corpus, [q.text for q in asked]) if chosen.dense_arm != "none" else [None] * len(asked)
    member = Member("", {}, chosen)
    search_all(corpus, asked, vectors, [member], 1, Journal(None))
    recall, plan = _index(corpus, asked, member)
    kinds: dict[str, int] = {}
    for question in asked:
        kinds[question.kind or "–"] = kinds.get(question.kind or "–", 0) + 1
    return Smoke(collection, loaded.name, len(asked), dict(sorted(kinds.items())), _found(member, chosen, collection, recall, plan), recall, plan)


def stratified(questions: Sequence[Question], many: int) -> list[Question]:
    """`many` of them: kind after kind in turn, within a kind in the order of the hash of the id, so that new questions move few old ones. In the order given."""
    groups: dict[str, list[Question]] = {}
    for question in sorted(questions, key=lambda q: (text_hash(q.question_id), q.question_id)):
        groups.setdefault(question.kind, []).append(question)
    order = sorted(
        (((at + 0.5) / len(group), kind, at) for kind, group in groups.items() for at in range(len(group))), key=lambda place: (place[2] > 0, place)
    )  # one of each kind first, then each kind by its share
    kept = {groups[kind][at].question_id for _, kind, at in order[:many]}
    return [q for q in questions if q.question_id in kept]


def _index(corpus: Corpus, asked: Sequence[Question], member: Member) -> tuple[float | None, str | None]:
    """Recall of the vector index and the planner's choice; None where search compares all vectors."""
    if not member.engines.get("dense", {}).get("engines", {}).get("hnsw") or corpus.lacks("chunks_hnsw"):
        return None, None
    found = audit(corpus, [q.text for q in asked], k=min(member.settings.candidates, 100), ef_search=member.settings.ef_search)
    return found.recall, "index" if found.index_used else "scan"


def _found(member: Member, settings: Settings, name: str, recall: float | None, plan: str | None) -> dict[str, str]:
    lists = {question: len(found.results) for question, found in member.rankings.items()}
    found: dict[str, str] = {}
    if member.failed:
        note = next(n for n in member.notes if n.startswith("failed: "))
        found["failed_searches"] = f"{len(member.failed)} of {len(lists)} searches failed, as {member.failed[0]} ({note.removeprefix('failed: ')})"
    if member.fallbacks:
        found["degraded"] = "; ".join(sorted(member.fallbacks))
    meant = settings.floor != "none" or settings.filters != "none"
    empty = [q for q, size in lists.items() if size == 0 and q not in member.failed]
    if empty and not meant:
        found["no_result"] = f"{len(empty)} of {len(lists)} questions bring nothing back, as {empty[0]}"
    short = [q for q, size in lists.items() if 0 < size < settings.k]
    if len(short) > SHORT * len(lists) and not meant:
        found["short_lists"] = f"{len(short)} of {len(lists)} lists hold fewer than {settings.k} results, as {short[0]}"
    if recall is not None and recall < LEAST_RECALL:
        found["ann_recall"] = (
            f"the vector index brings {recall:.3f} of the exact lists, less than {LEAST_RECALL}: raise --ef-search, or say --dense exact"
        )
    if plan == "scan":
        found["plan"] = f"the planner compares all vectors although there is an index: see `lab index {name} --audit`"
    return found
