"""Our measures against ir_measures (trec_eval), on random rankings: ties in grade, short lists, questions without results, several spans a chunk."""

from __future__ import annotations

import random

import ir_measures
import pytest
from ir_measures import RR, P, R, Success, nDCG

from lab.evaluation.coverage import Target, credit
from lab.evaluation.measures import Ranking, mean, parse, score
from lab.records import Judgment

PAIRS = [
    ("hit@1", Success @ 1),
    ("hit@5", Success @ 5),
    ("hit@10", Success @ 10),
    ("R@5", R @ 5),
    ("R@10", R @ 10),
    ("P@5", P @ 5),
    ("RR@10", RR @ 10),
    ("nDCG@10", nDCG @ 10),
]


@pytest.mark.parametrize("seed", range(6))
def test_agreement_with_trec_eval(seed: int) -> None:
    draw = random.Random(seed)
    qrels, results, ours = [], [], {}
    for q in range(60):
        grades = {f"d{d}": draw.choice([1, 1, 2, 3]) for d in draw.sample(range(40), draw.randint(1, 8))}
        listed = draw.sample([f"d{d}" for d in range(40)], draw.choice([0, 1, 4, 10, 25]))
        wanted = [Target(Judgment(str(q), d, 0, 1, g, "x"), frozenset({d.encode()}), frozenset({int(d[1:])})) for d, g in grades.items()]
        credits = credit([(int(d[1:]), d.encode()) for d in listed], wanted)
        ours[str(q)] = Ranking(credits, listed, listed, list(grades.values()))
        qrels += [ir_measures.Qrel(str(q), d, g) for d, g in grades.items()]
        results += [ir_measures.ScoredDoc(str(q), d, float(len(listed) - i)) for i, d in enumerate(listed)]
    theirs = {(m.query_id, str(m.measure)): m.value for m in ir_measures.iter_calc([m for _, m in PAIRS], qrels, results)}
    for name, measure in PAIRS:
        values = {q: score(parse(name), ranking) for q, ranking in ours.items()}
        for q, value in values.items():
            assert value == pytest.approx(theirs.get((q, str(measure)), 0.0), abs=1e-9), (name, q)
        whole = ir_measures.calc_aggregate([measure], qrels, results)[measure]
        assert mean(values) == pytest.approx(whole, abs=1e-9), "questions without results count as 0"


@pytest.mark.parametrize("seed", range(4))
def test_chunks_that_hold_several_spans_agree_once_spent_judgments_are_struck(seed: int) -> None:
    """Each result stands for the judgment it newly covers with the highest grade; the other judgments it covers are taken out of the qrels."""
    draw = random.Random(100 + seed)
    qrels, results, ours = [], [], {}
    for q in range(40):
        spans = [(f"j{j}", draw.choice([1, 2])) for j in range(6)]
        holds = {c: draw.sample([name for name, _ in spans], draw.choice([0, 0, 1, 2, 3])) for c in range(10)}
        wanted = [Target(Judgment(str(q), n, 0, 1, g, "x"), frozenset(), frozenset(c for c, h in holds.items() if n in h)) for n, g in spans]
        listed = draw.sample(range(10), 10)
        credits = credit([(c, b"") for c in listed], wanted)
        ours[str(q)] = Ranking(credits, [], [], [g for _, g in spans])
        struck = {spans[i][0] for c in credits for i in c.newly[1:]}
        qrels += [ir_measures.Qrel(str(q), n, g) for n, g in spans if n not in struck]
        names = [spans[c.newly[0]][0] if c.newly else f"none{i}" for i, c in enumerate(credits)]
        results += [ir_measures.ScoredDoc(str(q), n, float(10 - i)) for i, n in enumerate(names)]
    theirs = {m.query_id: m.value for m in ir_measures.iter_calc([nDCG @ 10], qrels, results)}
    for q, ranking in ours.items():
        value = score(parse("nDCG@10"), ranking)
        assert 0 <= value <= 1 + 1e-12
        assert value == pytest.approx(theirs.get(q, 0.0), abs=1e-9)
