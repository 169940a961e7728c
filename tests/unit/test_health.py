"""What a mean hides: by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lab.evaluation.coverage import Target
from lab.evaluation.health import Health, columns_of, examine, grades, sign_test, spread
from lab.records import ArmList, Hit, Judgment, Ledger, Result, SearchResult


def hit(key: int, score: float = 0.0) -> Hit:
    return Hit(key, f"{key:02}.md", 1, 0, 9, bytes([key]), 0, score, False)


def searched(columns: dict[str, list[int]], scores: dict[int, float] | None = None, linked: tuple[int, ...] = ()) -> SearchResult:
    """Lists of keys a column, best first; the last is what is returned. Arm scores fall with the rank unless they are given."""
    keys = sorted({key for listed in columns.values() for key in listed})
    ranks = np.array([[listed.index(key) + 1 if key in listed else 0 for listed in columns.values()] for key in keys], dtype=np.int32)
    arms = {
        name: ArmList(name, "test", tuple(hit(k, (scores or {}).get(k, 1 / (at + 1))) for at, k in enumerate(listed)), tuple(range(1, len(listed) + 1)), 100, len(listed), "enough")
        for name, listed in columns.items()
        if name in {"dense", "lexical"}
    }  # fmt: skip
    last = list(columns.values())[-1]
    results = tuple(
        Result(n, f"{k:02}.md::1", f"{k:02}.md", 0, 9, "", "", 1 / n, None, 0, bytes([k]), k, (), "cites" if k in linked else None)
        for n, k in enumerate(last, 1)
    )
    return SearchResult("q", results, None, Ledger(tuple(columns), [hit(key) for key in keys], ranks), arms)


def target(key: int, grade: int = 1) -> Target:
    return Target(Judgment("q", f"{key:02}.md", 0, 9, grade, "x"), frozenset({bytes([key])}), frozenset({key}))


def look(rankings: list[SearchResult], gold: list[int], k: int) -> Health:
    asked = {f"q{n}": found for n, found in enumerate(rankings)}
    wanted = {f"q{n}": [target(key)] for n, key in enumerate(gold)}
    return examine(asked, wanted, {q: grades(found, wanted[q]) for q, found in asked.items()}, k)


def test_each_arm_alone_stands_beside_the_fusion() -> None:
    """Dense has both, lexical one, the fusion one of two."""
    one = searched({"dense": [1, 2], "lexical": [3, 1], "fuse": [1, 3, 2], "cut": [1]})
    two = searched({"dense": [2, 4], "lexical": [5, 6], "fuse": [5, 2, 6, 4], "cut": [5]})
    assert look([one, two], [1, 2], 1).alone == {"dense": 1.0, "lexical": 0.0, "fuse": 0.5, "returned": 0.5}


def test_rescued_and_harmed_are_counted_apart() -> None:
    """The reranker lifts one gold passage from rank 3 to 1 and drops two from rank 1: net −1 at k = 1, and three questions moved."""
    up = searched({"dense": [1, 2, 3], "fuse": [1, 2, 3], "rerank": [3, 1, 2]})
    down = searched({"dense": [1, 2, 3], "fuse": [1, 2, 3], "rerank": [2, 1, 3]})
    health = look([up, down, down], [3, 1, 1], 1)
    assert (health.rescued, health.harmed, health.first_lost) == ({"rerank": 1}, {"rerank": 2}, {"rerank": 2})
    assert (health.alone["fuse"], health.alone["returned"]) == (pytest.approx(2 / 3), pytest.approx(1 / 3))


def test_a_weak_arm_that_drags_the_fusion_down_is_named() -> None:
    """Eight questions that dense answers and the fusion does not, none the other way: p = 2 · 1/2⁸ = 0.0078. Five: p = 0.0625, no warning."""
    lost = searched({"dense": [1, 2], "lexical": [3], "fuse": [3, 1, 2], "cut": [3]})
    kept = searched({"dense": [1, 2], "lexical": [1], "fuse": [1, 2], "cut": [1]})
    health = look([lost] * 8 + [kept] * 12, [1] * 20, 1)
    assert health.weak_arm == "lexical"
    assert "8 questions lost by fusing, 0 won, p = 0.0078" in health.notes[0]
    assert (look([lost] * 5 + [kept] * 12, [1] * 17, 1).weak_arm, sign_test(0, 5)) == ("", 0.0625)


def test_a_coin_flip_at_k_is_told() -> None:
    """Three passages share a score, gold is the last, k = 1: best 1, worst 0. With the gold first it is the same coin. A gold passage above the tie is safe."""
    tied = {1: 0.5, 2: 0.5, 3: 0.5}
    for gold in (1, 3):
        health = look([searched({"dense": [1, 2, 3], "fuse": [1, 2, 3], "cut": [1, 2, 3]}, tied)], [gold], 1)
        assert (health.tied, health.tied_best, health.tied_worst) == (1, 1.0, 0.0)
        assert "decided at rank 1" in health.notes[0]
    safe = searched({"dense": [4, 1, 2, 3], "fuse": [4, 1, 2, 3], "cut": [4, 1, 2, 3]}, {4: 0.9, **tied})
    assert (look([safe], [4], 2).tied, look([safe], [4], 2).tied_worst) == (0, 1.0)
    assert look([searched({"dense": [1, 2, 3], "fuse": [1, 2, 3], "cut": [1, 2, 3]})], [3], 1).tied == 0
    both = searched({"dense": [1, 2, 3], "fuse": [1, 2, 3], "cut": [1, 2, 3]}, tied)
    assert look([both], [1], 3).tied == 0, "all of them are in the first three"


def test_what_a_later_step_tells_apart_is_no_coin_flip() -> None:
    """Equal in the arms, told apart by the reranker: no flip. Equal after fusion though the arms disagree (1/61 + 1/62 both ways): one."""
    tied = {1: 0.5, 2: 0.5, 3: 0.5}
    reranked = searched({"dense": [1, 2, 3], "fuse": [1, 2, 3], "rerank": [3, 1, 2]}, tied)
    assert look([reranked], [3], 1).tied == 0
    fused = searched({"dense": [1, 2], "lexical": [2, 1], "fuse": [1, 2], "cut": [1, 2]})
    fused = replace(fused, results=tuple(replace(r, score=1 / 61 + 1 / 62) for r in fused.results))
    health = look([fused], [2], 1)
    assert (health.tied, health.tied_best, health.tied_worst) == (1, 1.0, 0.0)
    cut = replace(fused, results=fused.results[:1], beyond=(hit(2),))
    assert (look([cut], [2], 1).tied, look([cut], [2], 1).tied_best) == (1, 1.0)


def test_stages_that_only_some_questions_have_stand_in_one_table() -> None:
    """Where links were not asked for, the order stays what it was before them."""
    plain = searched({"dense": [1, 2], "fuse": [1, 2], "cut": [1, 2]})
    more = searched({"dense": [1, 2], "fuse": [1, 2], "links": [1, 7, 2], "cut": [1, 7]})
    health = look([plain, more, plain], [1, 7, 2], 2)
    assert (health.alone["returned"], health.rescued, health.harmed) == (1.0, {"links": 1}, {})
    columns = columns_of([plain.ledger, more.ledger])
    assert columns == ("dense", "fuse", "links", "cut")
    assert spread(plain.ledger, columns).tolist() == [[1, 1, 1, 1], [2, 2, 2, 2]]


def test_links_that_never_reach_the_list_are_inert() -> None:
    brought = searched({"dense": [1, 2], "fuse": [1, 2], "links": [1, 2, 7], "cut": [1, 2]})
    health = look([brought], [7], 2)
    assert (health.links_brought, health.links_returned) == (1, 0)
    assert "links are inert here" in health.notes[0]
    returned = searched({"dense": [1, 2], "fuse": [1, 2], "links": [1, 7, 2], "cut": [1, 7]}, linked=(7,))
    health = look([returned], [7], 2)
    assert (health.links_brought, health.links_returned, health.rescued, health.notes) == (1, 1, {"links": 1}, [])


def test_questions_without_results() -> None:
    nothing = SearchResult("q", (), None, Ledger(("dense", "fuse", "cut"), (), np.zeros((0, 3), dtype=np.int32)))
    health = look([nothing], [1], 5)
    assert (health.questions, health.short, health.alone["returned"], health.tied_best) == (1, 1, 0.0, 0.0)
