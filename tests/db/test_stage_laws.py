"""The laws that hold for every stage, on real candidates."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace

import pytest

from lab.corpus.ingest import ingest
from lab.records import Candidate
from lab.resources import folder
from lab.retrieval.context import Context, Lookups
from lab.retrieval.fuse import fuse
from lab.retrieval.rescore import reranker
from lab.retrieval.search import Shared, open_corpus, question_vectors
from lab.retrieval.stages import STAGES, Stage
from lab.settings import Settings
from lab.store.connect import Store
from tests.conftest import Databases

ON = Settings(authority_weight=0.3, cites="on", defines="always", reranker="maxsim", mmr_lambda=0.6, floor="0.05", steps_weight=0.3)
OFF = {
    "authority": {"authority_weight": 0.0},
    "dedup": {"dedup": "off"},
    "links": {"cites": "off", "defines": "off"},
    "rerank": {"reranker": "none"},
    "authority_after": {"reranker": "none"},
    "mmr": {"mmr_lambda": 1.0},
    "floor": {"floor": "none"},
    "steps": {"steps_weight": 0.0},
    "codes": {"code_weight": 0.0},
    "codes_after": {"code_weight": 0.0},
    "cut": {"k": 1000},
}
QUESTIONS = ("what is a quiet hour", "who signs the cold permit when the crew changes", "PRV-2041")


@pytest.fixture(scope="module")
def keyword(databases: Databases) -> Iterator[Store]:
    with databases.fresh() as dsn, Store(dsn) as store:
        ingest(folder("gold") / "handbook" / "documents", "laws", store=store, embedder="keyword")
        yield store


def setting(store: Store, question: str, settings: Settings) -> tuple[Context, list[Candidate]]:
    corpus = open_corpus(store, "laws")
    shared = Shared(corpus, question, question_vectors(corpus, [question])[0])
    arms = shared.arms(settings)
    members = shared.members(settings, arms)
    context = Context(
        question,
        settings,
        corpus,
        Lookups(corpus),
        reranker(corpus, settings),
        members,
        {hit.key: hit.score for hit in arms["dense"].hits},
        arm_weight=2.0,
    )
    return context, fuse(arms, settings, members)


@pytest.mark.parametrize("stage", STAGES, ids=lambda s: s.name)
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("count", [0, 1, 2, 12, 150])
def test_laws(stage: Stage, question: str, count: int, keyword: Store) -> None:
    context, candidates = setting(keyword, question, ON)
    given = candidates[:count]
    before = copy.deepcopy(given)
    out = stage.apply(context, given)
    assert given == before, "nothing is mutated"
    keys = [c.key for c in out]
    assert len(set(keys)) == len(keys), "each passage once"
    classes = {c.hit.class_id for c in given}
    assert all(c.hit.class_id in classes or c.linked_by for c in out), "a subset of the input, or links' additions"
    assert stage.apply(context, given) == out, "deterministic"
    if stage.name == "links":
        assert sum(c.hit.class_id not in classes for c in out) <= ON.links_max
    elif stage.name != "cut":
        assert len(out) == len({c.hit.class_id for c in given} if stage.name == "dedup" else given)
    else:
        assert out == given[: ON.k]


@pytest.mark.parametrize("stage", STAGES, ids=lambda s: s.name)
@pytest.mark.parametrize("question", QUESTIONS)
def test_the_off_value_is_the_identity(stage: Stage, question: str, keyword: Store) -> None:
    settings = replace(ON, **OFF[stage.name])  # type: ignore[arg-type]
    context, candidates = setting(keyword, question, settings)
    assert stage.apply(context, candidates) == candidates
    assert stage.name == "cut" or not stage.on(settings), "and the stage is not run"


def test_every_stage_has_an_off_value_here() -> None:
    assert set(OFF) == {stage.name for stage in STAGES}
