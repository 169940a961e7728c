"""The loop: arms, then every stage in turn, timed and entered in the ledger. One function for the tool, the command line and the harness."""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lab import filters
from lab.corpus import vectors
from lab.errors import LabError, UsageError, unknown
from lab.models.embedders import embedder
from lab.records import ArmList, Candidate, Diagnostic, Hit, Ledger, Result, SearchResult
from lab.retrieval.analyse import by_entities, by_intent, rewritten
from lab.retrieval.claims_arm import claims_arm
from lab.retrieval.context import Context, Corpus, Lookups
from lab.retrieval.everything import provenance
from lab.retrieval.external import external_arm
from lab.retrieval.fuse import fuse
from lab.retrieval.rescore import reranker
from lab.retrieval.stages import STAGES, Stage
from lab.settings import Settings, resolved
from lab.store import arms as queries
from lab.store import claims, collections, documents, written
from lab.store.connect import Store, connect
from lab.store.lexical import lexical

ARMS = ("dense", "lexical", "external", "claims")  # in the order in which their shares of a fused score are added


def search(
    collection: str | Corpus, question: str, *, store: Store | None = None, settings: Settings | str | None = None, history: Sequence[str] = (),
    **flags: str | float,
) -> SearchResult:  # fmt: skip
    """The passages that answer `question`, best first, with the ledger that says why.

    `history` are the questions asked before, the last one last; `rewrite` reads them. `settings` is a `Settings`, or the name of shipped ones; `flags` override (`lexical="none"`, `k=5`). Raises UsageError for an unknown
    collection or flag. An empty result is no error: `diagnostic` names the step that emptied it; or the arm
    that had to do without its index.
    """
    if store is None and isinstance(collection, str):
        with connect() as opened:
            return search(collection, question, store=opened, settings=settings, history=history, **flags)
    base = resolved(settings)
    chosen = base.with_words({name: str(value) for name, value in flags.items()})
    if not isinstance(collection, Corpus):
        assert store is not None
        collection = open_corpus(store, collection)
    check_runnable(collection, chosen)
    question = queries.sanitise(question)
    with collection.store.held():
        if chosen.rewrite != "off" and history:
            question = queries.sanitise(rewritten(question, history, chosen.rewrite))  # as the result's question, so that it is seen
        vector = question_vectors(collection, [question])[0] if chosen.dense_arm != "none" else None
        return rank(Shared(collection, question, vector), chosen)


def open_corpus(store: Store, name: str) -> Corpus:
    """The collection with what search looks up once."""
    collection = collections.get(store, name)
    if collection.chunks == 0:  # nothing was finished: an ingest goes on, or was stopped
        counts = documents.counts(store, collection)
        return Corpus(store, collection, counts["chunks"], counts["without_vector"])
    # A collection that was never indexed is one whose ingest goes on; of an indexed one all indexes must be there.
    indexes = frozenset(collections.indexes(store, collection)) if collection.indexed_at is not None else frozenset()
    return Corpus(store, collection, collection.chunks, collection.without_vector, indexes)


def check_runnable(corpus: Corpus, settings: Settings) -> None:
    """Raises UsageError when a collection cannot be searched with these settings: before anything is recorded."""
    name = corpus.collection.name
    if settings.external_arm.startswith("trec:") and settings.external not in corpus.given:
        raise UsageError("a TREC run is scored by `lab run NAME --gold SET --from-trec FILE`.")
    if settings.claims_arm != "none":
        if corpus.store.tenant is not None:
            raise UsageError("claims belong to the owner of the database: a tenant's login searches with --claims off.")
        if not claims.there(corpus.store, corpus.collection):
            raise UsageError(f"collection {name!r} has no verified claims: run `lab claims extract {name}`, or say --claims off.")
    if corpus.collection.dim is None:
        if settings.dense_arm != "none":
            raise UsageError(f"collection {name!r} was ingested with --embedder none: search it with --dense none.")
        if settings.mmr_lambda != 1.0:
            raise UsageError(f"--mmr-lambda below 1 compares vectors, but {name!r} was ingested with --embedder none: ingest with minilm.")
        if settings.reranker == "maxsim":
            raise UsageError(f"--reranker maxsim compares token vectors, but {name!r} was ingested with --embedder none: ingest with minilm.")


def question_vectors(corpus: Corpus, questions: Sequence[str]) -> list[np.ndarray | None]:
    """One float16 vector `(dim,)` a question through the cache; None where it is blank, or the model maps it to zero."""
    model, c = embedder(corpus.collection.embedder), corpus.collection
    if model.dim != c.dim:
        raise LabError(
            f"embedder {c.embedder} gives {model.dim} dimensions now, {c.name!r} was ingested with {c.dim}: ingest anew under another name."
        )
    asked = [queries.sanitise(q) for q in questions]
    spoken = [q for q in asked if q.strip()]
    found = iter(vectors.embed(corpus.store, model, spoken, prefix=vectors.prefix_of(c.ingest, "query"))[0])
    return [next(found) if q.strip() else None for q in asked]


def fetch_arm(corpus: Corpus, question: str, settings: Settings, vector: np.ndarray | None, name: str) -> ArmList | None:
    """The list of one arm, None when it is off. Depends on the question and on `arm_key(settings, name)` only."""
    by_class = settings.dedup != "off"
    if name == "dense":
        if settings.dense_arm == "none":
            return None
        return queries.dense(
            corpus.store, corpus.collection, vector,
            engine=settings.dense_arm, ef_search=settings.ef_search, candidates=settings.candidates, by_class=by_class, chunks=corpus.chunks,
            lacks=corpus.lacks, restriction=corpus.restriction(settings.filters),
        )  # fmt: skip
    if name not in settings.arms:
        return None
    if name == "external":
        return external_arm(corpus, question, settings)
    if name == "claims":
        return claims_arm(corpus, question, settings)
    return lexical(
        corpus.store, corpus.collection, question,
        ranker=settings.lexical_arm, mode=settings.query_mode, candidates=settings.candidates, by_class=by_class,
        chunks=corpus.chunks, codes=settings.codes == "on", lacks=corpus.lacks, restriction=corpus.restriction(settings.filters),
    )  # fmt: skip


def arm_key(settings: Settings, name: str) -> tuple[Any, ...]:
    """What decides an arm's list for a question: settings with the same key share it."""
    return (name, True, settings.reaching(name)) if name in settings.arms else (name, False)


class Shared:
    """Work on one question that several settings have in common: arms' lists, twins, look-ups, and the lists after each stage.

    The members of a grid form a prefix tree: two settings that agree in every flag up to a stage share all lists up to it.
    """

    def __init__(self, corpus: Corpus, question: str, vector: np.ndarray | None) -> None:
        self.corpus = corpus
        self.question = question
        self.vector = vector
        self.lookups = Lookups(corpus)
        self.lists: dict[tuple[Any, ...], tuple[list[Candidate], list[str], float]] = {}
        self._arms: dict[tuple[Any, ...], ArmList | None] = {}

    def arms(self, settings: Settings) -> dict[str, ArmList]:
        """The lists of the arms that are on."""
        found = {}
        for name in ARMS:
            key = arm_key(settings, name)
            if key not in self._arms:
                start = time.perf_counter()
                fetched = fetch_arm(self.corpus, self.question, settings, self.vector, name)
                # The arm's own clock stops before its transaction ends.
                self._arms[key] = replace(fetched, seconds=time.perf_counter() - start) if fetched is not None else None
            arm = self._arms[key]
            if arm is not None:
                found[name] = arm
        return found

    def members(self, settings: Settings, arms: Mapping[str, ArmList]) -> dict[bytes, list[Hit]]:
        """Members of the fetched classes that have copies, speaker first; nothing with dedup off."""
        if settings.dedup == "off":
            return {}
        found = self.corpus.members([hit.class_id for arm in arms.values() for hit in arm.hits if hit.has_twins])
        allowed = self.corpus.restriction(settings.filters)
        if allowed is None:
            return found
        # A copy that does not pass the filters neither speaks for its class nor is listed with it.
        passing = {name: [hit for hit in members if hit.key in allowed.keys] for name, members in found.items()}
        return {name: members for name, members in passing.items() if len(members) > 1}


def rank(shared: Shared, settings: Settings, *, texts: bool = True) -> SearchResult:
    """Arms, fusion and stages for one settings. With `texts` False the results carry no text: the harness compares places."""
    clock = time.perf_counter
    corpus, question = shared.corpus, shared.question
    settings, drawn = by_entities(corpus, question, settings)
    settings, said = by_intent(corpus, question, settings)
    arms = shared.arms(settings)
    seconds = {name: arm.seconds for name, arm in arms.items()}
    members = shared.members(settings, arms)
    weights = settings.arms
    context = Context(
        question,
        settings,
        corpus,
        shared.lookups,
        reranker(corpus, settings),
        members,
        {hit.key: hit.score for hit in arms["dense"].hits} if "dense" in arms else {},
        allowed.keys if (allowed := corpus.restriction(settings.filters)) is not None else None,
        arms["lexical"].coded if "lexical" in arms else {},
        sum(weights[name] for name, arm in arms.items() if arm.stopped != "abstained"),
    )
    context.notes += drawn + said
    context.notes += [arm.fallback for arm in arms.values() if arm.fallback]
    context.notes += [f"{name} arm abstained: {arm.abstained}" for name, arm in arms.items() if arm.abstained]
    key: tuple[Any, ...] = (*(arm_key(settings, name) for name in ARMS), settings.reaching("fuse"))
    lists: list[tuple[str, list[Candidate]]] = []
    steps: list[tuple[str, Callable[[], list[Candidate]]]] = [("fuse", lambda: fuse(arms, settings, members))]
    steps += [(stage.name, functools.partial(_apply, stage, context, lists)) for stage in STAGES if stage.on(settings)]
    for name, step in steps:
        if name != "fuse":
            key = (*key, name, settings.reaching(name))
        if key not in shared.lists:
            before, start = len(context.notes), clock()
            made = step()
            shared.lists[key] = (made, context.notes[before:], clock() - start)
        else:
            context.notes += shared.lists[key][1]
        made, _, seconds[name] = shared.lists[key]
        lists.append((name, made))
    final = lists[-1][1]
    names = (
        {c.key: c.hit.chunk_id for _, made in lists for c in made} | {m.key: m.chunk_id for ms in members.values() for m in ms}
        if settings.dedup == "near"
        else {}
    )
    parts = _parts(settings, lists, final) if texts else {}
    results = _results(corpus, settings, names, final, members, texts, parts)
    return SearchResult(
        question, results, _diagnose(corpus, settings, arms, lists), _ledger(arms, lists, context.notes, seconds), arms, _beyond(lists)
    )


def _apply(stage: Stage, context: Context, lists: Sequence[tuple[str, list[Candidate]]]) -> list[Candidate]:
    return stage.apply(context, lists[-1][1])


def _results(
    corpus: Corpus,
    settings: Settings,
    names: Mapping[int, str],
    final: Sequence[Candidate],
    members: Mapping[bytes, list[Hit]],
    texts: bool,
    parts: Mapping[int, tuple[tuple[str, float], ...]],
) -> tuple[Result, ...]:
    stored = queries.texts(corpus.store, corpus.collection, [c.key for c in final]) if texts and final else {}
    out = []
    for place, c in enumerate(final, 1):
        passage = stored.get(c.key)
        known = members.get(c.hit.class_id) or corpus.twins.get(c.hit.class_id) or []
        copies = tuple(m.chunk_id for m in known if m.key in c.copies)
        if settings.dedup == "near":
            copies = tuple(names[key] for key in c.copies if key in names)
        out.append(
            Result(
                place, c.hit.chunk_id, c.hit.source, c.hit.start, c.hit.end, passage.text if passage else "", passage.context if passage else "",
                c.score, c.similarity, c.hit.authority, c.hit.class_id, c.key, copies, c.linked_by, provenance(passage) if passage else None,
                parts.get(c.key, ()),
            )
        )  # fmt: skip
    return tuple(out)


def _beyond(lists: Sequence[tuple[str, list[Candidate]]]) -> tuple[Hit, ...]:
    """What the cut took away although its score is that of the last result."""
    kept, before = lists[-1][1], lists[-2][1] if len(lists) > 1 else []
    cut = itertools.takewhile(lambda c: c.score == kept[-1].score, before[len(kept) :]) if kept and lists[-1][0] == "cut" else ()
    return tuple(c.hit for c in cut)


_ADDING = frozenset({"codes", "authority", "steps"})


def _parts(settings: Settings, lists: Sequence[tuple[str, list[Candidate]]], final: Sequence[Candidate]) -> dict[int, tuple[tuple[str, float], ...]]:
    """Key → what its score is made of. A copy that another speaks for has the same score, so scores are followed by class where copies are one."""

    def unit(c: Candidate) -> object:
        return c.hit.class_id if settings.dedup != "off" else c.key

    wanted, weights = {unit(c) for c in final}, settings.arms
    last: dict[object, float] = {}
    found: dict[object, list[tuple[str, float]]] = {}
    for name, candidates in lists:
        for c in candidates:
            at = unit(c)
            if at not in wanted:
                continue
            if at not in found:  # its first list: the fusion, or that of the links
                found[at] = [(arm, weights[arm] / (settings.rrf_k + rank)) for arm, rank in c.arm_ranks.items()] or [(name, c.score)]
            elif c.score != last[at]:
                found[at].append((name, c.score - last[at] if name in _ADDING else c.score))
            last[at] = c.score
    return {c.key: tuple(found[unit(c)]) for c in final}


def _ledger(arms: Mapping[str, ArmList], lists: Sequence[tuple[str, list[Candidate]]], notes: Sequence[str], seconds: Mapping[str, float]) -> Ledger:
    columns = (*arms, *(name for name, _ in lists))
    row_of: dict[int, int] = {}
    hits: list[Hit] = []

    def rows(found: Sequence[Hit]) -> list[int]:
        for hit in found:
            if hit.key not in row_of:
                row_of[hit.key] = len(hits)
                hits.append(hit)
        return [row_of[hit.key] for hit in found]

    places: list[tuple[list[int], Sequence[int]]] = [(rows(arm.hits), arm.ranks) for arm in arms.values()]
    before: list[Candidate] = []
    for _, candidates in lists:
        same = len(before) == len(candidates) and all(
            a.hit is b.hit for a, b in zip(before, candidates, strict=True)
        )  # many a stage leaves the order as it is
        places.append(places[-1] if same else (rows([c.hit for c in candidates]), range(1, len(candidates) + 1)))
        before = candidates
    ranks = np.zeros((len(hits), len(columns)), dtype=np.int32)
    for at, (row, place) in enumerate(places):
        ranks[row, at] = place
    return Ledger(columns, hits, ranks, tuple(notes), dict(seconds))


def _diagnose(corpus: Corpus, settings: Settings, arms: Mapping[str, ArmList], lists: Sequence[tuple[str, list[Candidate]]]) -> Diagnostic | None:
    """Which step emptied the list, when it is empty; else which arm had to go another way than asked for."""
    if lists[-1][1]:
        return next((Diagnostic(name, arm.fallback) for name, arm in arms.items() if arm.fallback), None)
    if corpus.chunks == 0:
        return Diagnostic("collection", f"the collection {corpus.collection.name!r} holds no passage: ingest something into it.")
    restriction = corpus.restriction(settings.filters)
    if restriction is not None and not restriction.keys:
        return Diagnostic(
            "filters",
            f"no passage of {corpus.collection.name!r} passes the filter {settings.filters}: "
            + (_unknown_names(corpus, settings.filters) or f"see `lab collections {corpus.collection.name} --json` for what is known of each file."),
        )
    if all(not arm.hits for arm in arms.values()):
        said = [f"{name}: {arm.abstained or 'no passage matched'}" for name, arm in sorted(arms.items())]
        return Diagnostic("arms", "no arm found anything (" + "; ".join(said) + ").")
    emptied = next((name for name, candidates in lists if not candidates), lists[-1][0])
    return Diagnostic(emptied, f"the step {emptied} left nothing of {len(lists[0][1])} candidates.")


def _unknown_names(corpus: Corpus, text: str) -> str:
    """What is to be said of names in a filter that no document has."""
    known = [*queries.metadata_keys(corpus.store, corpus.collection), *filters.BUILT_IN]
    missing = [condition.key for condition in filters.parse(text) if condition.key not in known]
    return str(unknown("name in --filters", missing[0], known)) if missing else ""


def statements(corpus: Corpus, question: str, settings: Settings) -> str:
    """The SQL of the arms with all values written out, runnable in psql."""
    vector = question_vectors(corpus, [question])[0] if settings.dense_arm != "none" else None
    paths = [condition.path for condition in filters.parse(settings.filters)]
    return written.statements(corpus.store, corpus.collection, question, vector, settings, chunks=corpus.chunks, paths=paths, lacks=corpus.lacks)
