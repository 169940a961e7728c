"""What a grid costs beside its heaviest member: the arms are asked once, a reranker scores the union of the pools once."""

from __future__ import annotations

import dataclasses
import secrets
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.corpus.ingest import ingest
from lab.evaluation.experiment import ablate
from lab.gold.documents import write_documents
from lab.gold.files import load_gold
from lab.models import training
from lab.progress import say
from lab.records import GoldSet
from lab.report.demo import ROOT
from lab.resources import folder
from lab.store.connect import Store, connect

EIGHT: Mapping[str, Sequence[str]] = {"authority_weight": ["0", "0.3"], "dedup": ["exact", "off"], "defines": ["off", "question"]}
SIXTY_FOUR: Mapping[str, Sequence[str]] = {**EIGHT, "cites": ["off", "on"], "rrf_k": ["10", "60"], "mmr_lambda": ["1", "0.7"]}
_QUESTIONS, _RERANKED = 60, 12


def grid_speed() -> dict[str, float]:
    """Seconds of one member, of 8 and of 64 on the handbook, without a reranker and with a cross-encoder whose scores are not cached yet: six layers, 512 tokens, as the usual ones for MS MARCO
    (untrained: it costs as much)."""
    gold = load_gold(folder("gold") / "handbook")
    asked = _every(gold, _QUESTIONS)
    figures: dict[str, float] = {"questions": float(len(asked.questions))}
    with connect() as store, tempfile.TemporaryDirectory() as scratch:
        ingest(write_documents(str(folder("gold") / "handbook"))[0], "handbook", store=store, root=ROOT)
        _seconds(store, asked, {"defines": ["off", "question"]}, {})  # whatever is slow only once
        one = _seconds(store, asked, {"mmr_lambda": ["0.7", "0.71"]}, {"defines": "question", "cites": "on"}) / 2
        for name, factors in (("8", EIGHT), ("64", SIXTY_FOUR)):
            taken = _seconds(store, asked, factors, {})
            figures[f"{name} members without a reranker, seconds"] = taken
            figures[f"{name} members: milliseconds a member and question beyond one member"] = (
                1000 * (taken - one) / (int(name) * len(asked.questions))
            )
        few = _every(asked, _RERANKED)
        heavy = {"defines": "question", "authority_weight": "0.3"}
        cold = [Path(scratch) / str(seed) for seed in range(3)]
        drawn = secrets.randbelow(2**30)  # other weights each time: scores of an earlier call would be cached
        for seed, path in enumerate(cold):
            training.cut(training.Recipe(seed=drawn + seed, layers=6, longest=512), path)
        alone = _seconds(store, few, {"dedup": ["exact"]}, {**heavy, "reranker": f"cross-encoder:{cold[0]}"}, single=True)
        figures["questions with a cross-encoder"] = float(len(few.questions))
        figures["one member with a cross-encoder, cold, seconds"] = alone
        for name, factors, path in (("8", EIGHT, cold[1]), ("64", SIXTY_FOUR, cold[2])):
            say(f"{name} members with a cross-encoder")
            figures[f"{name} members with it, cold, times"] = _seconds(store, few, factors, {"reranker": f"cross-encoder:{path}"}) / alone
    return figures


def _every(gold: GoldSet, many: int) -> GoldSet:
    """About so many of the answerable questions, drawn evenly."""
    there = [q for q in gold.questions if q.answerable]
    kept = {q.question_id for q in there[:: max(1, len(there) // many)]}
    return dataclasses.replace(
        gold, questions=tuple(q for q in there if q.question_id in kept), judgments=tuple(j for j in gold.judgments if j.question_id in kept)
    )


def _seconds(store: Store, gold: GoldSet, factors: Mapping[str, Sequence[str]], held: Mapping[str, Any], *, single: bool = False) -> float:
    start = time.perf_counter()
    if single:
        from lab.evaluation.run import run

        run("handbook", gold, store=store, **held)
    else:
        ablate("handbook", gold, factors, store=store, **held)
    return time.perf_counter() - start
