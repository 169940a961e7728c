"""A published reference: SciFact's test split. The lexical arm in every run; vectors (9 minutes on two cores, once) with LAB_SLOW=1."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lab.corpus.ingest import ingest
from lab.evaluation.run import run
from lab.gold.formats import beir
from lab.store import collections, runs
from lab.store.connect import Store, connect
from tests.conftest import WithoutExtension


def test_bm25_on_scifact(store: Store, shared_data: Callable[[str], Path], tmp_path: Path) -> None:
    folder = shared_data("scifact")
    report = ingest(folder / "corpus.jsonl", "scifact", store=store, format="beir", chunker="whole", embedder="none")
    assert report.chunks == 5183
    gold = beir.read(folder, "scifact-test", "test", tmp_path)
    done = run("scifact", str(gold), store=store, dense="none", lexical="bm25")
    assert done.questions == 300
    assert done.scores["nDCG@10"] >= 0.66
    plain = run("scifact", str(gold), store=store, dense="none", codes="off", measures=["nDCG@10"])
    with WithoutExtension(store.dsn) as other:  # as on a server that lacks pg_textsearch: the same formula over rows of words
        collections.build_indexes(other, collections.get(other, "scifact"))
        again = run("scifact", str(gold), store=other, dense="none", codes="off", measures=["nDCG@10"])
    assert (runs.get_run(store, plain.run_id).engines["lexical"]["engines"], runs.get_run(store, again.run_id).engines["lexical"]["engines"]) == (
        {"bm25": 300}, {"bm25_postings": 300},
    )  # fmt: skip
    assert sum(plain.rankings[q] == again.rankings[q] for q in plain.rankings) >= 0.95 * 300
    assert again.scores["nDCG@10"] == pytest.approx(plain.scores["nDCG@10"], abs=0.005)
    naive = run("scifact", str(gold), store=store, dense="none", lexical="ts_rank_cd", query_mode="websearch", measures=["nDCG@10", "short@10"])
    assert naive.scores["nDCG@10"] < 0.1 and naive.scores["short@10"] > 0.9, "why a natural question never goes through an all-words query alone"


@pytest.mark.slow
def test_hybrid_on_scifact(shared_data: Callable[[str], Path], tmp_path: Path) -> None:
    folder = shared_data("scifact")
    gold = beir.read(folder, "scifact-test", "test", tmp_path)
    with connect() as store:  # LAB_HOME's own database, so that the vectors stay
        ingest(folder / "corpus.jsonl", "scifact_minilm", store=store, format="beir", chunker="whole")
        dense = run("scifact_minilm", str(gold), store=store, lexical="none")
        hybrid = run("scifact_minilm", str(gold), store=store)
    assert dense.scores["nDCG@10"] == pytest.approx(0.645, abs=0.005)
    assert hybrid.scores["nDCG@10"] >= 0.70
