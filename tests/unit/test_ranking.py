"""Fusion and authority as literal arithmetic."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, cast

import pytest

from lab.records import ArmList, Candidate, Hit
from lab.retrieval.context import Context, Corpus, Lookups
from lab.retrieval.fuse import fuse
from lab.retrieval.meaning import asks_for_meaning, candidate_terms
from lab.retrieval.stages import authority, authority_after, dedup
from lab.settings import IngestSettings, Settings
from lab.store.arms import enough, ranks, tied
from lab.store.collections import Collection
from lab.text import term_key


def hit(name: str, *, tier: int = 0, cls: bytes | None = None, score: float = 1.0, key: int | None = None) -> Hit:
    return Hit(key if key is not None else ord(name[0]), name, 1, 0, 1, cls or name.encode(), tier, score, cls is not None)


def arm(name: str, hits: Sequence[Hit], by_class: bool = True) -> ArmList:
    return ArmList(name, "test", tuple(hits), tuple(ranks(hits, by_class)), 100, len(hits), "enough")


def context(settings: Settings, tiers: Sequence[int] = (9,), arm_weight: float = 2.0, members: dict[bytes, list[Hit]] | None = None) -> Context:
    rules = {"default": 0, "rules": [{"match": "x", "tier": tier} for tier in tiers]}
    collection = Collection("c", IngestSettings(), "minilm", "d", 384, "english", rules, "", "", dt.datetime.now(dt.UTC), {}, 10, 0, 0, {}, "")
    corpus = Corpus(cast(Any, None), collection, 10, 0)
    return Context("q", settings, corpus, Lookups(corpus), None, members or {}, arm_weight=arm_weight)


SIXTY = Settings(rrf_k=60, authority_weight=0.08)  # as in the papers that fuse with 60


def test_rrf_is_literal_arithmetic() -> None:
    fused = fuse({"dense": arm("dense", [hit("a"), hit("b")]), "lexical": arm("lexical", [hit("b"), hit("c")])}, SIXTY, {})
    assert [c.hit.source for c in fused] == ["b", "a", "c"]
    assert [c.score for c in fused] == [float(Fraction(1, 62)) + 1 / 61, 1 / 61, 1 / 62]
    assert fused[0].arm_ranks == {"dense": 2, "lexical": 1}


def test_weights_multiply_and_an_absent_list_adds_nothing() -> None:
    fused = fuse({"dense": arm("dense", [hit("a")]), "lexical": arm("lexical", [hit("b")])}, Settings(dense_weight=2.0, rrf_k=0), {})
    assert [(c.hit.source, c.score) for c in fused] == [("a", 2.0), ("b", 1.0)]


def test_copies_take_one_rank() -> None:
    copies = [hit("a", cls=b"x", key=1), hit("b", cls=b"x", key=2), hit("c", key=3)]
    assert ranks(copies, True) == [1, 1, 2]
    assert ranks(copies, False) == [1, 2, 3]
    fused = fuse({"dense": arm("dense", copies)}, SIXTY, {b"x": copies[:2]})
    assert [(c.hit.source, c.score, c.copies) for c in fused] == [("a", 1 / 61, (2,)), ("c", 1 / 62, ())]


def _at_rank(rank: int, tier: int, name: str) -> Candidate:
    score = 2 / (60 + rank)
    return Candidate(hit(name, tier=tier), score, score)


def test_a_top_tier_passage_at_rank_six_in_both_arms_passes_a_tier_zero_one_at_rank_one() -> None:
    # 61/66 + 0.08 = 1.0042 > 1
    out = authority(context(SIXTY), [_at_rank(1, 0, "a"), _at_rank(6, 9, "b")])
    assert [c.hit.source for c in out] == ["b", "a"]


def test_at_rank_seven_it_does_not() -> None:
    # 61/67 + 0.08 = 0.9904 < 1
    out = authority(context(SIXTY), [_at_rank(1, 0, "a"), _at_rank(7, 9, "b")])
    assert [c.hit.source for c in out] == ["a", "b"]


def test_by_default_rank_five_passes_rank_one_and_rank_six_does_not() -> None:
    # 11/15 + 0.3 = 1.033 > 1; 11/16 + 0.3 = 0.9875 < 1
    def first(rank: int) -> str:
        pair = [Candidate(hit(name, tier=tier), 2 / (10 + at), 2 / (10 + at)) for at, tier, name in ((1, 0, "a"), (rank, 9, "b"))]
        return authority(context(Settings()), pair)[0].hit.source

    assert (first(5), first(6)) == ("b", "a")


def test_the_boundary_does_not_move_when_one_arm_abstains() -> None:
    lists = [(Candidate(hit("a"), 1 / 61, 1 / 61), Candidate(hit("b", tier=9), 1 / (60 + rank), 0.0)) for rank in (6, 7)]
    first = [next(c.hit.source for c in authority(context(SIXTY, arm_weight=1.0), list(pair))) for pair in lists]
    assert first == ["b", "a"]


def test_no_tiers_or_no_weight_changes_nothing() -> None:
    pair = [_at_rank(1, 0, "a"), _at_rank(6, 9, "b")]
    assert authority(context(Settings(), tiers=(0,)), pair) == pair
    assert authority(context(Settings(authority_weight=0.0)), pair) == pair


def test_after_a_reranker_ranks_take_the_place_of_scores() -> None:
    settings = dataclasses.replace(SIXTY, reranker="maxsim")
    listed = [
        Candidate(hit(n, tier=t), s, s)
        for n, t, s in [("a", 0, 0.9), ("b", 0, 0.8), ("c", 0, 0.7), ("d", 0, 0.6), ("e", 0, 0.5), ("f", 9, 0.4), ("g", 9, 0.3)]
    ]
    out = authority_after(context(settings), listed)
    # f stood at rank 6: 61/66 + 0.08 > 1; g at rank 7: 61/67 + 0.08 = 0.990 > 61/62 = 0.984
    assert [c.hit.source for c in out] == ["f", "a", "g", "b", "c", "d", "e"]


def test_the_copy_of_highest_authority_speaks_for_its_class_fetched_or_not() -> None:
    low, high = hit("a", cls=b"x", key=1), hit("z", tier=3, cls=b"x", key=2)
    out = dedup(context(Settings(), members={b"x": [high, low]}), [Candidate(low, 0.5, 0.5), Candidate(hit("c"), 0.4, 0.4)])
    assert [(c.hit.source, c.copies, c.score) for c in out] == [("z", (1,), 0.5), ("c", (), 0.4)]


# ── fetching enough ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def rows(scores: Sequence[float], classes: Sequence[int] | None = None) -> list[Hit]:
    return [Hit(i, f"s{i:05}", 1, 0, 1, str(classes[i] if classes else i).encode(), 0, s) for i, s in enumerate(scores)]


def fetched(available: list[Hit], candidates: int, by_class: bool = True) -> tuple[ArmList, list[int]]:
    asked: list[int] = []

    def fetch(limit: int) -> tuple[list[Hit], bool]:
        asked.append(limit)
        return available[:limit], len(available) < limit

    return enough("dense", "exact", fetch, candidates, by_class, dict, 0.0), asked


def test_a_tie_at_the_limit_is_fetched_whole() -> None:
    found, asked = fetched(rows([1.0] * 500), 50)
    assert len(found.hits) == 50 and asked[-1] >= 500
    assert [h.source for h in found.hits] == [f"s{i:05}" for i in range(50)]


def test_identical_vectors_do_not_crowd_the_list() -> None:
    # 300 copies of one passage, then 1,700 others
    found, _ = fetched(rows([1.0] * 300 + [0.9 - i / 10_000 for i in range(1700)], [0] * 300 + list(range(1, 1701))), 100)
    assert found.got == 100 and found.stopped == "enough" and max(found.ranks) == 100


def test_what_is_not_there_is_not_asked_for_again() -> None:
    found, asked = fetched(rows([0.5, 0.4]), 100)
    assert (found.got, found.stopped, len(asked)) == (2, "exhausted", 1)


def test_the_cap_ends_it() -> None:
    found, asked = fetched(rows([1.0] * 10_000, [0] * 10_000), 10)
    assert found.stopped == "limit" and asked[-1] == 20 * 10 + 16 and found.got == 1


# ── does a question ask for a meaning? ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("What is a cold permit?", ["cold permit"]),
        ("what do we mean by a quiet hour", ["quiet hour"]),
        ("define dead leg", ["dead leg"]),
        ("someone wrote 'cold permit' in the log, meaning?", ["cold permit"]),
        ("quiet hour", ["quiet hour"]),
        ("When does a valve count as locked out?", ["locked out"]),
        ("When is a valve locked out?", ["locked out"]),
        ("what exactly is a dead leg here", ["dead leg"]),
        ("Is a dead leg the same as a blind end?", ["dead leg"]),
        ("When is the cold permit renewed?", []),
        ("When does the cold permit expire?", []),
        ("What sort of a crane is used under a cold permit?", []),
        ("Is the cold permit considered at handover?", []),
        ("Who is the cold permit issuer?", []),
        ("How long is a cold permit kept?", []),
        ("What is the colour of the cold permit form?", []),
        ("Who signs the cold permit for the tank farm on Sundays?", []),
    ],
)
def test_the_rule_for_meaning(question: str, asked: list[str]) -> None:
    defined = {term_key(t) for t in ("cold permit", "quiet hour", "dead leg", "locked out", "permit")}
    found = asks_for_meaning(question, [t for t in candidate_terms(question) if t in defined])
    assert found == [term_key(t) for t in asked]


def test_scores_that_differ_in_their_last_bits_are_a_tie() -> None:
    noisy = [Hit(1, "b", 1, 0, 1, b"", 0, 1.3325541), Hit(2, "a", 1, 0, 1, b"", 0, 1.3325539), Hit(3, "c", 1, 0, 1, b"", 0, 1.33)]
    assert [(h.source, h.score) for h in tied(noisy)] == [("a", 1.3325541), ("b", 1.3325541), ("c", 1.33)]
