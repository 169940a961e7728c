"""Where was it lost, by hand: columns dense, lexical, fuse, authority, rerank, cut; k = 3."""

from __future__ import annotations

import numpy as np
import pytest

from lab.evaluation.losses import Loss, in_words, loss, waterfall

COLUMNS = ("dense", "lexical", "fuse", "authority", "rerank", "cut")


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ([2, 0, 1, 1, 1, 1], None),
        ([2, 0, 1, 5, 2, 2], None),
        ([2, 9, 7, 7, 7, 0], Loss("fuse", 2)),
        ([2, 1, 1, 4, 5, 0], Loss("authority", 1)),
        ([2, 1, 1, 2, 6, 6], Loss("rerank", 2)),
        ([2, 1, 1, 5, 3, 4], Loss("cut", 3)),
        ([8, 0, 9, 9, 9, 0], Loss("cut", 9)),
        ([8, 0, 9, 9, 0, 0], Loss("rerank", 9)),
        ([8, 0, 9, 9, 9, 9], Loss("cut", 9)),
        ([0, 0, 0, 0, 0, 0], Loss("no_arm", 0)),
    ],
)
def test_the_last_stage_that_moved_it_out_lost_it(ranks: list[int], expected: Loss | None) -> None:
    """The second passage answers nothing, and is always first."""
    table = np.array([ranks, [1, 2, 2, 3, 4, 1]], dtype=np.int32)
    assert loss(COLUMNS, table, [2, 0], 3, targets={7}) == expected


def test_the_best_of_several_passages_counts() -> None:
    table = np.array([[5, 0, 4, 4, 4, 4], [9, 2, 3, 3, 3, 3]], dtype=np.int32)
    assert loss(COLUMNS, table, [1, 1], 3, targets={7, 8}) is None


def test_what_no_arm_had_may_have_been_out_of_their_reach() -> None:
    nothing = np.zeros((0, 6), dtype=np.int32)
    assert loss(COLUMNS, nothing, [], 3, targets=()) == Loss("not_ingested", 0)
    assert loss(COLUMNS, nothing, [], 3, targets={7}, bare={7, 8}) == Loss("not_embedded", 0)
    assert loss(COLUMNS, nothing, [], 3, targets={7, 9}, bare={7, 8}) == Loss("no_arm", 0)


def test_a_link_brings_what_no_arm_had() -> None:
    columns = ("lexical", "fuse", "links", "cut")
    assert loss(columns, np.array([[0, 0, 2, 2]], dtype=np.int32), [1], 3, targets={7}) is None
    assert loss(columns, np.array([[0, 0, 3, 4]], dtype=np.int32), [1], 3, targets={7}) == Loss("cut", 3)


def test_the_waterfall_follows_the_order_of_execution() -> None:
    assert list(waterfall({"a": Loss("cut", 9), "b": Loss("no_arm", 0), "c": Loss("fuse", 1), "d": Loss("fuse", 2)}).items()) == [
        ("no_arm", 1),
        ("fuse", 2),
        ("cut", 1),
    ]
    assert in_words("rerank") == "demoted by the reranker" and in_words("new_stage") == "lost by new_stage"
