"""The end of a run: what a member found becomes scores, losses, health, and the rows that are recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lab.corpus.near import near_classes
from lab.evaluation.abstention import abstention, signal
from lab.evaluation.coverage import Target, credit, judged
from lab.evaluation.health import columns_of, examine, grades, spread
from lab.evaluation.losses import Loss, loss, waterfall
from lab.evaluation.measures import ANSWERS, Measure, Ranking, means, score_all
from lab.evaluation.members import LEAST_RECALL, Member
from lab.evaluation.primary import Quoted
from lab.evaluation.recorded import Run
from lab.gold.check import Fitted
from lab.gold.clusters import clusters
from lab.records import GoldSet, Hit, Question
from lab.retrieval.context import Corpus
from lab.store import chunks, recording

HEALTH_K = 5  # the cutoff of the primary measure
_known: dict[tuple[str, str, str, str], Mapping[str, str]] = {}


def near_of(corpus: Corpus, measures: Sequence[Measure]) -> Mapping[str, str]:
    """Chunk id → near class over the whole collection, so that a run's classes do not depend on what else was run; empty when no measure needs it."""
    if not any(m.name == "distinct" for m in measures):
        return {}
    c = corpus.collection
    key = (corpus.store.dsn, c.name, c.corpus_digest, c.link_digest)
    if key not in _known:
        _known.clear()  # one collection at a time is what a process works on
        _known[key] = near_classes(corpus.store, c)
    return _known[key]


def finish(
    corpus: Corpus,
    gold: GoldSet,
    member: Member,
    asked: Sequence[Question],
    wanted: Mapping[str, Sequence[Target]],
    judged_not: Mapping[str, Sequence[Target]],
    near: Mapping[str, str],
    quotations: Mapping[str, Quoted],
    measures: Sequence[Measure],
    fitted: Fitted,
    copying: Mapping[str, str],
) -> Run:
    passages: dict[int, int] = {}  # chunk key → index into the list of passages
    listed: list[recording.Passage] = []

    def passage(hit: Hit) -> int:
        if hit.key not in passages:
            passages[hit.key] = len(listed)
            listed.append((hit.chunk_id, hit.source, hit.start, hit.end, hit.class_id))
        return passages[hit.key]

    results: list[recording.ResultRow] = []
    ledger: list[recording.LedgerRow] = []
    graded: dict[str, list[int]] = {}
    stages = columns_of(found.ledger for found in member.rankings.values())
    stage_seconds: dict[str, list[float]] = {}
    ranking_of: dict[str, Ranking] = {}
    lost: dict[str, Loss] = {}
    failed = set(member.failed)
    k = min(HEALTH_K, member.settings.k)
    bare = chunks.without_vector(corpus.store, corpus.collection) if corpus.without_vector and member.settings.dense_arm != "none" else frozenset()
    for question in asked:
        found = member.rankings[question.question_id]
        credits = credit([(r.key, r.class_id) for r in found.results], wanted[question.question_id])
        ranking_of[question.question_id] = Ranking(
            credits,
            [near.get(r.chunk_id, r.chunk_id) for r in found.results],
            [r.source for r in found.results],
            [t.judgment.grade for t in wanted[question.question_id]],
            [r.class_id for r in found.results],
            quotations.get(question.question_id),
            judged([(r.key, r.class_id) for r in found.results], [*wanted[question.question_id], *judged_not.get(question.question_id, ())]),
            question.metadata.get("needs") == "all",
        )
        rows = [passage(hit) for hit in found.ledger.hits]
        graded[question.question_id] = grades(found, wanted[question.question_id])
        ranks = spread(found.ledger, stages)
        keys = {key for target in wanted[question.question_id] for key in target.keys}
        gone = Loss("failed", 0) if question.question_id in failed else loss(stages, ranks, graded[question.question_id], k, targets=keys, bare=bare)
        if gone is not None:
            lost[question.question_id] = gone
        ledger.append(
            recording.LedgerRow(
                question.question_id, rows, ranks.ravel().tolist(), found.ledger.seconds, found.ledger.notes, graded[question.question_id],
                gone.stage if gone else None, gone.rank if gone else None,
            )
        )  # fmt: skip
        results += [
            recording.ResultRow(question.question_id, r.rank, passages[r.key], r.score, r.similarity, c.grade, c.by_twin, r.linked_by)
            for r, c in zip(found.results, credits, strict=True)
        ]
        for name, value in found.ledger.seconds.items():
            stage_seconds.setdefault(name, []).append(value)
    member.by_question = score_all(measures, ranking_of)
    named = list(map(str, measures))
    if member.answers is not None:
        named += ANSWERS
        for name, values in member.answers.scores.items():
            member.by_question[name] |= values
    scores = [(question, name, value) for question, values in member.by_question.items() for name, value in values.items()]
    health = examine(member.rankings, wanted, graded, k)
    health.lost = waterfall(lost)
    health.ann_recall = member.recall
    told = {question: signal(found.arms) for question, found in member.rankings.items()}
    health.abstain = abstention({question: value for question, value in told.items() if value is not None}, member.unanswerable)
    if member.answers is not None:
        health.answers = member.answers.summary
    notes = (
        list(fitted.notes)
        + [f"{note} ({times} questions)" for note, times in sorted(member.notes.items())]
        + _warnings(member, measures)
        + health.notes
        + (member.answers.notes if member.answers is not None else [])
    )
    fell = member.answers is not None and member.answers.failed
    status = "degraded" if member.failed or member.fallbacks or fitted.lost or fell else "ok"
    scored = means(member.by_question, named)
    recording.finish_run(
        corpus.store, member.run_id, status=status, questions=len(member.by_question), scores=scores, results=results, ledger=ledger,
        passages=recording.intern_passages(corpus.store, corpus.collection.name, listed), stages=stages, server=member.server, engines=member.engines,
        notes=notes, timings=_timings(member.seconds, stage_seconds), health=health.to_json(),
    )  # fmt: skip
    kinds = {q.question_id: q.kind for q in gold.questions}
    return Run(
        member.run_id, corpus.collection.name, gold.name, status, len(member.by_question), dict(member.passed), member.settings, scored,
        member.by_question, kinds, notes, {q: tuple(r.chunk_id for r in found.results) for q, found in member.rankings.items()},
        health.to_json(), copying, clusters(gold.questions, gold.judgments), {question: one.stage for question, one in lost.items()},
    )  # fmt: skip


def _timings(seconds: float, stages: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Seconds of the run and of each arm and stage, and their median and 95th percentile in milliseconds. What the members of a grid share is counted for each of them:
    what settings cost is measured apart (`lab.evaluation.latency`)."""
    return {
        "seconds": seconds,
        "stages": {name: sum(values) for name, values in stages.items()},
        "p50_ms": {name: round(1000 * float(np.quantile(values, 0.5)), 3) for name, values in stages.items()},
        "p95_ms": {name: round(1000 * float(np.quantile(values, 0.95)), 3) for name, values in stages.items()},
    }


def _warnings(member: Member, measures: Sequence[Measure]) -> list[str]:
    """Settings that cannot do what they seem to promise."""
    s, notes = member.settings, []
    if member.recall is not None and member.recall < LEAST_RECALL:
        notes.append(
            f"the vector index brings {member.recall:.3f} of the exact lists, less than {LEAST_RECALL}: raise --ef-search, or say --dense exact"
        )
    beyond = [str(m) for m in measures if m.k > s.k]
    if beyond:
        notes.append(f"k is {s.k}: {', '.join(beyond)} see no further than rank {s.k}")
    if s.reranker != "none" and s.rerank_depth <= s.k:
        notes.append(f"rerank_depth {s.rerank_depth} ≤ k {s.k}: the reranker cannot change which passages are returned, only their order")
    if s.mmr_lambda != 1.0 and s.mmr_pool <= s.k:
        notes.append(f"mmr_pool {s.mmr_pool} ≤ k {s.k}: MMR cannot change which passages are returned, only their order")
    return notes
