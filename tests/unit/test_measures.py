"""Measures by hand arithmetic. Gold and rankings are letters: a chunk named like a judgment covers it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import pytest

from lab.errors import UsageError
from lab.evaluation.coverage import Target, covers, credit, judged, targets
from lab.evaluation.kept_out import without
from lab.evaluation.measures import DEFAULT, Measure, Ranking, mean, parse, score
from lab.records import Hit, Judgment, Ledger, Result, SearchResult
from lab.store.chunks import Spot


def judgment(name: str, grade: int = 1, start: int = 0, end: int = 10) -> Judgment:
    return Judgment("q", name, start, end, grade, "x" * (end - start))


def key(name: str) -> int:
    return int.from_bytes(name.encode())


def ranking(gold: dict[str, int], results: Sequence[str]) -> Ranking:
    wanted = [Target(judgment(name, grade), frozenset({name.encode()}), frozenset({key(name)})) for name, grade in gold.items()]
    credits = credit([(key(r), r.encode()) for r in results], wanted)
    return Ranking(credits, list(results), [r[0] for r in results], list(gold.values()))


def value(measure: str, gold: Sequence[str] | dict[str, int], results: Sequence[str]) -> float:
    graded = gold if isinstance(gold, dict) else dict.fromkeys(gold, 1)
    return score(parse(measure), ranking(graded, results))


def test_a_passage_that_stands_twice_is_refused_with_its_name() -> None:
    with pytest.raises(UsageError, match="same passage twice"):
        ranking({"p7": 1}, ["p7", "p7", "p3"])
    assert value("hit@3", ["p7"], ["p7", "p3"]) == 1
    assert value("nDCG@3", ["p7"], ["p7", "p3"]) == 1


def test_the_ideal_comes_from_the_gold_not_from_what_was_returned() -> None:
    expected = 1 / (1 + 1 / math.log2(3) + 1 / math.log2(4))
    assert value("nDCG@10", ["a", "b", "c"], ["a"]) == pytest.approx(expected) == pytest.approx(0.469, abs=5e-4)


def test_the_ideal_is_cut_at_k() -> None:
    assert value("nDCG@5", list("abcde"), ["a", "b", "x", "y", "z"]) < 1
    assert value("nDCG@2", list("abcde"), ["a", "b"]) == 1


def test_ndcg_with_two_relevant() -> None:
    expected = (1 / math.log2(3) + 1 / math.log2(5)) / (1 + 1 / math.log2(3))
    assert value("nDCG@4", ["x", "y"], ["n", "x", "nn", "y"]) == pytest.approx(expected) == pytest.approx(0.651, abs=5e-4)


def test_graded_gains_are_the_grades() -> None:
    expected = (1 + 2 / math.log2(3)) / (2 + 1 / math.log2(3))
    assert value("nDCG@10", {"a": 1, "b": 2}, ["a", "b"]) == pytest.approx(expected)


def test_recall_is_not_hit_rate() -> None:
    assert value("hit@5", ["a", "b"], ["a"]) == 1
    assert value("R@5", ["a", "b"], ["a"]) == 0.5


def test_precision_is_divided_by_k_not_by_what_was_returned() -> None:
    assert value("P@5", ["a"], ["a"]) == 0.2


def test_reciprocal_rank_is_cut_at_k() -> None:
    assert value("RR@10", ["a"], ["x", "y", "a"]) == pytest.approx(1 / 3)
    assert value("RR@2", ["a"], ["x", "y", "a"]) == 0


def test_question_without_results_scores_zero() -> None:
    for name in ("hit@10", "R@10", "RR@10", "nDCG@10", "distinct@10", "sources@10"):
        assert value(name, ["a"], []) == 0
    assert value("short@10", ["a"], []) == 1


def test_questions_without_results_count_in_the_mean() -> None:
    # 4 answerable questions, 2 hit, 2 return nothing
    rows = {"1": value("hit@10", ["a"], ["a"]), "2": value("hit@10", ["b"], ["b"]), "3": value("hit@10", ["c"], []), "4": value("hit@10", ["d"], [])}
    assert mean(rows) == 0.5


def test_distinct_counts_classes_and_sources_documents() -> None:
    r = Ranking(ranking({"a": 1}, ["a", "b", "c"]).credits, ["n1", "n1", "n2"], ["s", "s", "s"], [1])
    assert (score(Measure("distinct", 10), r), score(Measure("distinct", 2), r), score(Measure("sources", 10), r)) == (2, 1, 1)
    assert score(Measure("short", 3), r) == 0


def test_names_print_and_parse_as_themselves() -> None:
    assert [str(parse(name)) for name in DEFAULT] == list(DEFAULT)
    assert str(parse("ndcg@10")) == "nDCG@10" and str(parse("recall@5")) == "R@5"
    for wrong in ("hit5", "nDCG", "hit@0", "hits@5", ""):
        with pytest.raises(UsageError, match="unknown measure"):
            parse(wrong)


# ── coverage ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("chunk", "span", "covered"),
    [
        ((0, 100), (10, 20), True), ((0, 15), (10, 20), True), ((0, 14), (10, 20), False), ((20, 30), (10, 20), False),
        ((100, 140), (0, 1000), True),  # a span longer than the chunk: the chunk lies inside it
        ((960, 1040), (0, 1000), True), ((961, 1041), (0, 1000), False), ((0, 100), (50, 53), True), ((0, 51), (50, 53), False), ((0, 52), (50, 53), True),
    ],
)  # fmt: skip
def test_a_chunk_covers_half_of_the_span_or_lies_half_inside_it(chunk: tuple[int, int], span: tuple[int, int], covered: bool) -> None:
    assert covers(*chunk, judgment("a", start=span[0], end=span[1])) is covered


def spots(*chunks: tuple[int, int, int, bytes]) -> dict[str, list[Spot]]:
    return {"a": [Spot(key, "a", key, start, end, (), cls) for key, start, end, cls in chunks]}


def test_a_span_in_the_overlap_of_two_chunks_is_credited_once_at_the_first() -> None:
    wanted = targets([judgment("a", start=90, end=100)], spots((1, 0, 100, b"1"), (2, 85, 200, b"2")))
    credits = credit([(2, b"2"), (1, b"1")], wanted)
    assert [c.newly for c in credits] == [(0,), ()]
    r = Ranking(credits, ["", ""], ["a", "a"], [1])
    assert (score(parse("R@10"), r), score(parse("nDCG@10"), r)) == (1, 1)


def test_a_chunk_that_holds_three_judged_spans_earns_a_perfect_score() -> None:
    three = [judgment("a", start=s, end=s + 10) for s in (0, 20, 40)]
    credits = credit([(1, b"1")], targets(three, spots((1, 0, 100, b"1"))))
    r = Ranking(credits, [""], ["a"], [1, 1, 1])
    assert (score(parse("nDCG@10"), r), score(parse("R@1"), r)) == (1, 1)


def test_three_chunks_of_which_one_is_found() -> None:
    three = [judgment("a", start=s, end=s + 10) for s in (0, 20, 40)]
    credits = credit([(1, b"1")], targets(three, spots((1, 0, 10, b"1"), (2, 20, 30, b"2"), (3, 40, 50, b"3"))))
    assert score(parse("nDCG@10"), Ranking(credits, [""], ["a"], [1, 1, 1])) == pytest.approx(0.469, abs=5e-4)


def test_an_exact_twin_of_the_gold_passage_is_a_hit_and_said_to_be_one() -> None:
    wanted = targets([judgment("a")], spots((1, 0, 10, b"same")))
    (found,) = credit([(77, b"same")], wanted)
    assert found.newly == (0,) and found.by_twin
    (own,) = credit([(1, b"same")], wanted)
    assert not own.by_twin


def test_a_twin_beside_the_passage_is_credited_once() -> None:
    wanted = targets([judgment("a")], spots((1, 0, 10, b"same")))
    assert [len(c.newly) for c in credit([(1, b"same"), (77, b"same")], wanted)] == [1, 0]


def test_a_document_named_like_the_question_is_not_dropped() -> None:
    wanted = targets([Judgment("12", "12", 0, 5, 1, "x" * 5)], {"12": [Spot(1, "12", 1, 0, 5, (), b"1")]})
    assert credit([(1, b"1")], wanted)[0].newly == (0,)


def test_judged_counts_what_anybody_judged_relevant_or_not() -> None:
    """Of a, b, c, d: a answers, c was judged not to, and a twin of c stands fourth."""
    known = [Target(judgment("a"), frozenset({b"a"}), frozenset({key("a")})), Target(judgment("c", 0), frozenset({b"c"}), frozenset({key("c")}))]
    told = judged([(key("a"), b"a"), (key("b"), b"b"), (key("c"), b"c"), (key("d"), b"c")], known)
    assert told == [True, False, True, True]
    base = ranking({"a": 1}, ["a", "b", "c", "d"])
    r = dataclasses.replace(base, judged=told)
    assert [score(parse(f"judged@{k}"), r) for k in (1, 2, 4, 10)] == [1.0, 0.5, 0.75, 0.75]
    assert score(parse("judged@5"), ranking({"a": 1}, [])) is None, "nothing was returned, so nothing can be judged"


def test_all_hit_asks_for_every_passage_of_a_question_that_needs_all() -> None:
    both = dataclasses.replace(ranking({"a": 1, "b": 1}, ["a", "x", "b"]), needs_all=True)
    assert [score(parse(f"all_hit@{k}"), both) for k in (1, 2, 3)] == [0.0, 0.0, 1.0]
    assert score(parse("all_hit@3"), ranking({"a": 1, "b": 1}, ["a", "x", "b"])) is None


def test_what_is_neither_relevant_nor_irrelevant_is_as_if_not_returned() -> None:
    """The lists of two arms and the order of the result, each with the paper s that the question was written from: what stood below moves up by one."""
    hits = tuple(Hit(i, source, 1, 0, 9, source.encode(), 0, 0.0) for i, source in enumerate("asbc"))
    ranks = np.array([[2, 0, 2], [1, 2, 1], [3, 1, 0], [0, 3, 3]], dtype=np.int32)
    results = tuple(
        Result(rank, hits[i].chunk_id, hits[i].source, 0, 9, "", "", 1.0, None, 0, hits[i].class_id, i) for rank, i in ((1, 1), (2, 0), (3, 3))
    )
    found = SearchResult("q", results, None, Ledger(("dense", "lexical", "cut"), hits, ranks))
    kept = without(found, {"s"}, 2)
    assert [(r.rank, r.source) for r in kept.results] == [(1, "a"), (2, "c")]
    assert [h.source for h in kept.ledger.hits] == ["a", "b", "c"]
    assert kept.ledger.ranks.tolist() == [[1, 0, 1], [2, 1, 0], [0, 2, 2]]
    assert [r.source for r in without(found, {"z"}, 2).results] == ["s", "a"] and found.ledger.ranks[0, 0] == 2
    assert without(found, {"s"}, 1).ledger.ranks.tolist() == [[1, 0, 1], [2, 1, 0], [0, 2, 0]], "what was searched deeper is cut again"
