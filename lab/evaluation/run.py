"""Runs: settings × gold set × collection, executed once and recorded. The members of a grid are executed side by side, question by question."""

from __future__ import annotations

import contextlib
import datetime as dt
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lab.errors import CannotJudge, UsageError
from lab.evaluation import environment, trec
from lab.evaluation.abstention import signals
from lab.evaluation.answering import Answering, answer_all
from lab.evaluation.closing import finish, near_of
from lab.evaluation.coverage import Target, targets
from lab.evaluation.journal import Journal
from lab.evaluation.measures import DEFAULT, Measure, parse
from lab.evaluation.members import Member, audit_indexes, search_all
from lab.evaluation.primary import quoted
from lab.evaluation.recorded import Run
from lab.gold.check import fit
from lab.gold.clusters import clusters
from lab.gold.files import load_gold, only
from lab.gold.stats import bands
from lab.models.rerankers import trained_on
from lab.progress import say
from lab.records import GoldSet, Judgment, Question
from lab.retrieval.context import Corpus
from lab.retrieval.rescore import reranker
from lab.retrieval.search import check_runnable, open_corpus, question_vectors
from lab.settings import Settings, resolved
from lab.store import chunks, claims, recording
from lab.store.connect import Store, connect
from lab.text import digest, text_hash

SEED = 20_240_229  # of every draw in this version; recorded with each run


def run(
    collection: str,
    gold: str | GoldSet,
    *,
    store: Store | None = None,
    settings: Settings | str | None = None,
    split: str | None = None,
    measures: Sequence[str] = DEFAULT,
    from_trec: str | Path | None = None,
    answering: Answering | str | None = None,
    **flags: str | float,
) -> Run:
    """Searches every question of a gold set once, and records rankings, ledger and scores. With `answering` (extractive, chat, or an object) every question is answered too, and the
    answers are scored.

    `from_trec` is a TREC run to be scored in place of a search: its lists are the ranking, as far as `flags` do not ask for more. Raises UsageError for an unknown name, CannotJudge when the gold set does not fit the collection.
    """
    if store is None:
        with connect() as opened:
            return run(
                collection, gold, store=opened, settings=settings, split=split, measures=measures, from_trec=from_trec, answering=answering, **flags
            )
    base = resolved(settings)
    words = {Settings.flag(name).name: str(value) for name, value in flags.items()}
    chosen = base.with_words(words)
    wanted = [parse(m) for m in measures]
    how = Answering(answering) if isinstance(answering, str) else answering
    loaded = as_gold(gold, split)
    if how is not None:
        how.checked(loaded)
    corpus = open_corpus(store, collection)
    if from_trec is not None:
        name, lists = trec.read(Path(from_trec))
        corpus.given[name] = trec.by_text(lists, loaded.questions)
        only_list = {"dense": "none", "lexical": "none", "external": name, "authority_weight": "0", "dedup": "off"}
        words = {**only_list, **words}
        chosen = base.with_words(words)
    return execute(corpus, loaded, [(words, chosen)], measures=wanted, answering=how)[0]


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
    journals: contextlib.ExitStack | None = None,
    answering: Answering | None = None,
) -> list[Run]:
    """Executes all members, question by question, sharing what they have in common; one recorded run a member, in the order given. `jobs` searchers work at once: what is
    recorded is the same for any number of them.

    What was searched is kept while it goes on, so that the same call goes on after an interruption: until this one ends, or until `journals` is closed.

    A question whose search fails counts 0 and makes its run `degraded`; usage errors and a server that is gone end everything. Nothing is recorded
    before it is known that the members can run and the gold set fits.
    """
    of_answers = next((m for m in measures if not m.k), None)
    if of_answers is not None and answering is None:
        raise UsageError(f"{of_answers} is a measure of answers: `lab run` makes them, with --answers extractive or chat.")
    measures = [m for m in measures if m.k]  # those of answers come with the answers
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
    recording.record_questions(corpus.store, gold.digest, _described(gold, copying))
    surroundings = environment.describe(corpus.store)
    working = [_begin(corpus, gold, passed, settings, surroundings, experiment_id, unjudged) for passed, settings in members]
    vectors: list[np.ndarray | None] = [None] * len(asked)
    if any(settings.dense_arm != "none" for _, settings in members):
        vectors = question_vectors(corpus, [q.text for q in asked])
    with contextlib.ExitStack() as own:
        journal = (journals or own).enter_context(_journal(corpus, gold, asked, [settings for _, settings in members], surroundings))
        search_all(corpus, asked, vectors, working, jobs, journal)
        unanswerable = [q for q in gold.questions if not q.answerable]
        for member, known in zip(working, signals(corpus, unanswerable, [settings for _, settings in members]), strict=True):
            member.unanswerable = known
        audit_indexes(corpus, asked, working)
        if answering is not None:
            for member in working:
                member.answers = answer_all(corpus, gold, member.settings, answering, asked, wanted)
        near = near_of(corpus, measures)
        quotations = quoted(corpus, wanted) if any(m.name == "primary_first" for m in measures) else {}
        judged_not = refused_of(corpus, gold, asked)
        return [finish(corpus, gold, member, asked, wanted, judged_not, near, quotations, measures, fitted, copying) for member in working]


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
    spots = chunks.spots(corpus.store, corpus.collection, sorted({j.source for j in judgments}))
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
) -> Member:
    c = corpus.collection
    run_id = new_id("r")
    recording.begin_run(
        corpus.store,
        recording.NewRun(
            run_id=run_id,
            experiment_id=experiment_id,
            collection=c.name,
            gold=gold.name,
            gold_digest=gold.digest,
            split=str(gold.metadata.get("split", "all")),
            settings=settings.as_dict(),
            settings_digest=settings.digest,
            passed=passed,
            inputs=_inputs(corpus, settings),
            environment=surroundings,
            seed=SEED,
            unjudged=unjudged,
        ),
    )  # fmt: skip
    return Member(run_id, passed, settings)


def _inputs(corpus: Corpus, settings: Settings) -> dict[str, Any]:
    """What a run reads, but for gold and settings."""
    c, second = corpus.collection, reranker(corpus, settings)
    return {
        "ingest": c.ingest.as_dict(), "corpus_digest": c.corpus_digest, "link_digest": c.link_digest, "link_extractor": c.link_extractor, "embedder": c.embedder,
        "model_digest": c.model_digest, "language": c.language, "index_build": dict(c.index_build), "stale_rows": c.stale_rows, "authority": dict(c.authority),
        "chunks": corpus.chunks, "without_vector": corpus.without_vector, "reranker": settings.reranker, "reranker_digest": second.digest if second is not None else None,
        "claims_digest": claims.digest_of(corpus.store, c) if settings.claims_arm != "none" else None,
    }  # fmt: skip


def _journal(corpus: Corpus, gold: GoldSet, asked: Sequence[Question], settings: Sequence[Settings], surroundings: Mapping[str, Any]) -> Journal:
    """Where an interrupted search of these members goes on; none for lists that came from a file."""
    if corpus.given:
        return Journal(None)
    decides = [
        corpus.collection.name,
        gold.digest,
        [q.question_id for q in asked],
        dict(surroundings),
        [[s.as_dict(), _inputs(corpus, s)] for s in settings],
    ]
    return Journal(digest(decides))


def new_id(prefix: str) -> str:
    """`r20261130-141502-9f3a61c4`: sorts by time, unique beyond it."""
    return f"{prefix}{dt.datetime.now(dt.UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(4)}"
