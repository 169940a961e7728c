"""Runs: settings × gold set × collection, executed once and recorded. The members of a grid are executed side by side, question by question."""

from __future__ import annotations

import datetime as dt
import secrets
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from lab.corpus.near import near_classes
from lab.errors import CannotJudge, LabError, ServerError, UsageError
from lab.evaluation import environment, trec
from lab.evaluation.abstention import abstention, signal, signals
from lab.evaluation.coverage import Target, credit, judged, targets
from lab.evaluation.health import columns_of, examine, grades, spread
from lab.evaluation.kept_out import without
from lab.evaluation.losses import Loss, loss, waterfall
from lab.evaluation.measures import DEFAULT, Measure, Ranking, means, parse, score_all
from lab.evaluation.primary import Quoted, quoted
from lab.evaluation.recorded import Run
from lab.gold.check import Fitted, fit
from lab.gold.clusters import clusters
from lab.gold.files import load_gold, only
from lab.gold.stats import bands
from lab.models.rerankers import trained_on
from lab.progress import Progress, say
from lab.records import ArmList, Diagnostic, GoldSet, Hit, Judgment, Ledger, Question, SearchResult
from lab.retrieval.audit import audit
from lab.retrieval.context import Corpus
from lab.retrieval.rescore import reranker
from lab.retrieval.search import Shared, check_runnable, open_corpus, question_vectors, rank
from lab.settings import Settings, named
from lab.store import documents, runs
from lab.store.connect import Store, connect
from lab.text import text_hash

HEALTH_K = 5  # the cutoff of the primary measure
SEED = 20_240_229  # of every draw in this version; recorded with each run


@dataclass(slots=True)
class _Member:
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
    seconds: float = 0.0


def run(
    collection: str,
    gold: str | GoldSet,
    *,
    store: Store | None = None,
    settings: Settings | str | None = None,
    split: str | None = None,
    measures: Sequence[str] = DEFAULT,
    from_trec: str | Path | None = None,
    **flags: str | float,
) -> Run:
    """Searches every question of a gold set once, and records rankings, ledger and scores.

    `from_trec` is a TREC run to be scored in place of a search: its lists are the ranking, as far as `flags` do not ask for more. Raises UsageError for an unknown name, CannotJudge when the gold set does not fit the collection.
    """
    if store is None:
        with connect() as opened:
            return run(collection, gold, store=opened, settings=settings, split=split, measures=measures, from_trec=from_trec, **flags)
    base = named(settings) if isinstance(settings, str) else settings or Settings()
    words = {Settings.flag(name).name: str(value) for name, value in flags.items()}
    chosen = base.with_words(words)
    wanted = [parse(m) for m in measures]
    corpus = open_corpus(store, collection)
    loaded = as_gold(gold, split)
    if from_trec is not None:
        name, lists = trec.read(Path(from_trec))
        corpus.given[name] = trec.by_text(lists, loaded.questions)
        only_list = {"dense": "none", "lexical": "none", "external": name, "authority_weight": "0", "dedup": "off"}
        words = {**only_list, **words}
        chosen = base.with_words(words)
    return execute(corpus, loaded, [(words, chosen)], measures=wanted)[0]


def as_gold(gold: str | GoldSet, split: str | None) -> GoldSet:
    """The gold set that is meant, with only the questions of `split` if one is named."""
    loaded = gold if isinstance(gold, GoldSet) else load_gold(gold)
    return only(loaded, split) if split is not None else loaded


def execute(
    corpus: Corpus,
    gold: GoldSet,
    members: Sequence[tuple[Mapping[str, str], Settings]],
    *,
    measures: Sequence[Measure],
    experiment_id: str | None = None,
    jobs: int = 1,
) -> list[Run]:
    """Executes all members, question by question, sharing what they have in common; one recorded run a member, in the order given. `jobs` searchers work at once: what is
    recorded is the same for any number of them.

    A question whose search fails counts 0 and makes its run `degraded`; usage errors and a server that is gone end everything. Nothing is recorded
    before it is known that the members can run and the gold set fits.
    """
    for _, settings in members:
        check_runnable(corpus, settings)
    fitted = fit(corpus.store, corpus.collection, gold)
    gold = fitted.gold
    for note in fitted.notes:
        say(note)
    asked = answerable(gold)
    judged = {j.question_id for j in gold.judgments}
    unjudged = [q.question_id for q in gold.questions if q.answerable and q.question_id not in judged]
    if not asked:
        raise CannotJudge(f"gold set {gold.name!r} holds no answerable question with a judgment: nothing can be scored.")
    for _, settings in members:
        _not_seen(settings, asked)
    if unjudged:
        fitted = replace(
            fitted,
            notes=(
                *fitted.notes,
                f"{len(unjudged)} questions have neither a judgment nor the mark that they have no answer, as {unjudged[0]}: they are left out",
            ),
        )
    wanted = targets_of(corpus, gold, asked)
    copying = bands(gold)
    runs.record_questions(corpus.store, gold.digest, _described(gold, copying))
    surroundings = environment.describe(corpus.store)
    working = [_begin(corpus, gold, passed, settings, surroundings, experiment_id, unjudged) for passed, settings in members]
    vectors: list[np.ndarray | None] = [None] * len(asked)
    if any(settings.dense_arm != "none" for _, settings in members):
        vectors = question_vectors(corpus, [q.text for q in asked])
    _search(corpus, asked, vectors, working, jobs)
    for member, known in zip(
        working, signals(corpus, [q for q in gold.questions if not q.answerable], [settings for _, settings in members]), strict=True
    ):
        member.unanswerable = known
    _audit(corpus, asked, working)
    near = _near(corpus, measures)
    quotations = quoted(corpus, wanted) if any(m.name == "primary_first" for m in measures) else {}
    judged_not = refused_of(corpus, gold, asked)
    return [_finish(corpus, gold, member, asked, wanted, judged_not, near, quotations, measures, fitted, copying) for member in working]


def _described(gold: GoldSet, copying: Mapping[str, str]) -> list[Question]:
    """The questions as they are recorded: with band and cluster, so that every report and every test can tell them without the gold set's files."""
    cluster = clusters(gold.questions, gold.judgments)
    return [
        replace(
            q, metadata={**q.metadata, "cluster": cluster[q.question_id], **({"band": copying[q.question_id]} if q.question_id in copying else {})}
        )
        for q in gold.questions
    ]


def answerable(gold: GoldSet) -> list[Question]:
    """The questions that ranking measures can score: judged, and not marked unanswerable (those enter abstention measures only)."""
    judged = {j.question_id for j in gold.judgments}
    return [q for q in gold.questions if q.question_id in judged and q.answerable]


def targets_of(corpus: Corpus, gold: GoldSet, asked: Sequence[Question]) -> dict[str, list[Target]]:
    """Question → its judgments as a ranking of this collection can meet them."""
    return _met(corpus, gold.judgments, asked)


def refused_of(corpus: Corpus, gold: GoldSet, asked: Sequence[Question]) -> dict[str, list[Target]]:
    """The same for the passages that were judged not to answer."""
    return _met(corpus, gold.refused, asked) if gold.refused else {}


def _met(corpus: Corpus, judgments: Sequence[Judgment], asked: Sequence[Question]) -> dict[str, list[Target]]:
    spots = documents.spots(corpus.store, corpus.collection, sorted({j.source for j in judgments}))
    by_question: dict[str, list[Judgment]] = {}
    for judgment in judgments:
        by_question.setdefault(judgment.question_id, []).append(judgment)
    return {q.question_id: targets(by_question.get(q.question_id, ()), spots) for q in asked}


def _not_seen(settings: Settings, asked: Sequence[Question]) -> None:
    """UsageError where a reranker would be judged on questions that it was trained on."""
    card = trained_on(settings.reranker)
    seen = sum(text_hash(q.text).hex() in card for q in asked) if card else 0
    if seen:
        raise UsageError(
            f"--reranker {settings.reranker} was trained on {seen} of these {len(asked)} questions: judge it on others, as with --split test."
        )


def _begin(
    corpus: Corpus,
    gold: GoldSet,
    passed: Mapping[str, str],
    settings: Settings,
    surroundings: Mapping[str, Any],
    experiment_id: str | None,
    unjudged: Sequence[str],
) -> _Member:
    c = corpus.collection
    run_id = new_id("r")
    runs.begin_run(
        corpus.store,
        runs.NewRun(
            run_id=run_id,
            experiment_id=experiment_id,
            collection=c.name,
            gold=gold.name,
            gold_digest=gold.digest,
            split=str(gold.metadata.get("split", "all")),
            settings=settings.as_dict(),
            settings_digest=settings.digest,
            passed=passed,
            inputs={
                "ingest": c.ingest.as_dict(), "corpus_digest": c.corpus_digest, "link_digest": c.link_digest, "link_extractor": c.link_extractor,
                "embedder": c.embedder,
                "model_digest": c.model_digest, "language": c.language, "index_build": dict(c.index_build), "stale_rows": c.stale_rows,
                "authority": dict(c.authority), "chunks": corpus.chunks, "without_vector": corpus.without_vector,
                "reranker": settings.reranker, "reranker_digest": second.digest if (second := reranker(corpus, settings)) is not None else None,
            },
            environment=surroundings,
            seed=SEED,
            unjudged=unjudged,
        ),
    )  # fmt: skip
    return _Member(run_id, passed, settings)


def new_id(prefix: str) -> str:
    """`r20261130-141502-9f3a61c4`: sorts by time, unique beyond it."""
    return f"{prefix}{dt.datetime.now(dt.UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(4)}"


_MOST_JOBS = 8  # as many as the store keeps connections
_TAKEN = 10  # passages of one document that may stand above what is scored


def _search(corpus: Corpus, asked: Sequence[Question], vectors: Sequence[np.ndarray | None], members: Sequence[_Member], jobs: int) -> None:
    """Every question for every member; entered in the order of the questions, whoever searched."""
    with Progress(f"search {corpus.collection.name}", len(asked) * len(members), "searches") as bar:

        def one(place: int) -> list[tuple[SearchResult | LabError, float]]:
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
                    _enter(asked[place], one(place), members)
            return
        with ThreadPoolExecutor(min(jobs, _MOST_JOBS)) as pool:
            for place, found in enumerate(pool.map(one, range(len(asked)))):
                _enter(asked[place], found, members)


def _enter(question: Question, found: Sequence[tuple[SearchResult | LabError, float]], members: Sequence[_Member]) -> None:
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


def _audit(corpus: Corpus, asked: Sequence[Question], members: Sequence[_Member]) -> None:
    """Of members whose dense lists came from the index: how much of the exact lists it brings."""
    known: dict[tuple[int, int], float] = {}
    sample = [q.text for q in asked[:: max(1, len(asked) // _AUDITED)][:_AUDITED]]
    for member in members:
        if member.engines.get("dense", {}).get("engines", {}).get("hnsw") and not corpus.lacks("chunks_hnsw"):
            key = (min(member.settings.candidates, 100), member.settings.ef_search)
            if key not in known:
                known[key] = audit(corpus, sample, k=key[0], ef_search=key[1]).recall
            member.recall = known[key]


def _failed(question: Question, member: _Member, error: LabError) -> SearchResult:
    """The empty result of a question whose search failed."""
    member.failed.append(question.question_id)
    note = f"failed: {error}"
    return SearchResult(question.text, (), Diagnostic("search", str(error)), Ledger((), (), np.zeros((0, 0), dtype=np.int32), (note,)))


def _count(member: _Member, arm: ArmList) -> None:
    """Enters engine, rows asked and got, why the arm stopped, and the server's settings as read back."""
    entry = member.engines.setdefault(arm.arm, {"engines": {}, "asked": arm.asked, "least_got": arm.got, "stopped": {}})
    entry["engines"][arm.engine] = entry["engines"].get(arm.engine, 0) + 1
    entry["stopped"][arm.stopped] = entry["stopped"].get(arm.stopped, 0) + 1
    entry["least_got"] = min(entry["least_got"], arm.got)
    member.server.update(arm.server)
    if arm.fallback:
        member.fallbacks.add(arm.fallback)


_near_known: dict[tuple[str, str, str, str], Mapping[str, str]] = {}


def _near(corpus: Corpus, measures: Sequence[Measure]) -> Mapping[str, str]:
    """Chunk id → near class over the whole collection, so that a run's classes do not depend on what else was run; empty when no measure needs it."""
    if not any(m.name == "distinct" for m in measures):
        return {}
    c = corpus.collection
    key = (corpus.store.dsn, c.name, c.corpus_digest, c.link_digest)
    if key not in _near_known:
        _near_known.clear()  # one collection at a time is what a process works on
        _near_known[key] = near_classes(corpus.store, c)
    return _near_known[key]


def _finish(
    corpus: Corpus,
    gold: GoldSet,
    member: _Member,
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
    listed: list[runs.Passage] = []

    def passage(hit: Hit) -> int:
        if hit.key not in passages:
            passages[hit.key] = len(listed)
            listed.append((hit.chunk_id, hit.source, hit.start, hit.end, hit.class_id))
        return passages[hit.key]

    results: list[runs.ResultRow] = []
    ledger: list[runs.LedgerRow] = []
    graded: dict[str, list[int]] = {}
    stages = columns_of(found.ledger for found in member.rankings.values())
    stage_seconds: dict[str, list[float]] = {}
    ranking_of: dict[str, Ranking] = {}
    lost: dict[str, Loss] = {}
    failed = set(member.failed)
    k = min(HEALTH_K, member.settings.k)
    bare = documents.without_vector(corpus.store, corpus.collection) if corpus.without_vector and member.settings.dense_arm != "none" else frozenset()
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
            runs.LedgerRow(
                question.question_id, rows, ranks.ravel().tolist(), found.ledger.seconds, found.ledger.notes, graded[question.question_id],
                gone.stage if gone else None, gone.rank if gone else None,
            )
        )  # fmt: skip
        results += [
            runs.ResultRow(question.question_id, r.rank, passages[r.key], r.score, r.similarity, c.grade, c.by_twin, r.linked_by)
            for r, c in zip(found.results, credits, strict=True)
        ]
        for name, value in found.ledger.seconds.items():
            stage_seconds.setdefault(name, []).append(value)
    member.by_question = score_all(measures, ranking_of)
    scores = [(question, name, value) for question, values in member.by_question.items() for name, value in values.items()]
    health = examine(member.rankings, wanted, graded, k)
    health.lost = waterfall(lost)
    health.ann_recall = member.recall
    told = {question: signal(found.arms) for question, found in member.rankings.items()}
    health.abstain = abstention({question: value for question, value in told.items() if value is not None}, member.unanswerable)
    notes = (
        list(fitted.notes)
        + [f"{note} ({times} questions)" for note, times in sorted(member.notes.items())]
        + _warnings(member, measures)
        + health.notes
    )
    status = "degraded" if member.failed or member.fallbacks or fitted.lost else "ok"
    scored = means(member.by_question, map(str, measures))
    runs.finish_run(
        corpus.store, member.run_id, status=status, questions=len(member.by_question), scores=scores, results=results, ledger=ledger,
        passages=runs.intern_passages(corpus.store, corpus.collection.name, listed), stages=stages, server=member.server, engines=member.engines,
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


def _warnings(member: _Member, measures: Sequence[Measure]) -> list[str]:
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
