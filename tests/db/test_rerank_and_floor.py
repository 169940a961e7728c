"""Rerankers by cross-encoder and server, their cache; the floor; near twins as one; why a passage was not returned."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.corpus.ingest import ingest
from lab.errors import LabError, ServerError, UsageError
from lab.models import rerankers, wire
from lab.records import SearchResult
from lab.retrieval.search import open_corpus, search
from lab.retrieval.why import why
from lab.settings import Settings
from lab.store.connect import Store
from lab.text import text_hash
from tests.conftest import Databases, Lab, write
from tests.servers import Fake

TEXTS = {
    "a.md": "# A\n\nThe pump is oiled weekly.\n", "b.md": "# B\n\nThe pump stands in hall two.\n", "c.md": "# C\n\nThe pump of the annex is blue.\n",
    "d.md": "# D\n\nA fan cools the room.\n", "e.md": "# E\n\nValve PRV-2041 opens at four bar.\n",
}  # fmt: skip


@pytest.fixture(scope="module")
def pumps(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with databases.fresh() as dsn, Store(dsn) as store:
        ingest(write(tmp_path_factory.mktemp("pumps"), TEXTS), "c", store=store, embedder="keyword")
        yield store


def order(found: SearchResult) -> list[str]:
    return [r.source for r in found.results]


# ── a cross-encoder made on the spot ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two layers, 32 dimensions, random weights: the real code path without real weights."""
    import torch
    from sentence_transformers import CrossEncoder
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    folder = tmp_path_factory.mktemp("cross")
    words = sorted({word.strip(".#").lower() for text in TEXTS.values() for word in text.split()} | {"how", "often"})
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]))
    torch.manual_seed(3)
    config = BertConfig(vocab_size=len(words) + 5, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, num_labels=1)
    BertForSequenceClassification(config).save_pretrained(folder / "model")
    BertTokenizerFast(vocab_file=str(folder / "vocab.txt")).save_pretrained(folder / "model")
    CrossEncoder(str(folder / "model"), device="cpu")
    return str(folder / "model")


def test_a_cross_encoder_orders_the_head_and_its_scores_do_not_depend_on_companions(encoder: str, pumps: Store) -> None:
    model = rerankers.named(f"cross-encoder:{encoder}")
    texts = [text * (1 + at) for at, text in enumerate(TEXTS.values())]
    together = model.score("how often is the pump oiled", texts)
    alone = [model.score("how often is the pump oiled", [text])[0] for text in texts]
    assert together == pytest.approx(alone, abs=1e-4)
    found = search("c", "pump", store=pumps, reranker=f"cross-encoder:{encoder}", rerank_depth=3, authority_weight=0)
    plain = search("c", "pump", store=pumps, authority_weight=0)
    assert set(order(found)[:3]) == set(order(plain)[:3])
    assert order(found)[3:] == order(plain)[3:]
    scores = [r.score for r in found.results][:3]
    assert scores == sorted(scores, reverse=True)
    bodies = pumps.rows("select source, body from kb_c.chunks")
    want = dict(zip([s for s, _ in bodies], model.score("pump", [b for _, b in bodies]), strict=True))
    assert scores == pytest.approx([want[source] for source in order(found)[:3]], abs=1e-4)


def test_scores_are_kept_by_model_question_and_text(encoder: str, pumps: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = {"reranker": f"cross-encoder:{encoder}", "rerank_depth": 3}
    first = order(search("c", "blue pump", store=pumps, **flags))  # type: ignore[arg-type]
    asked: list[int] = []
    inner = rerankers.named(f"cross-encoder:{encoder}")
    score = inner.score
    monkeypatch.setattr(inner, "score", lambda q, texts: (asked.append(len(texts)), score(q, texts))[1])
    assert order(search("c", "blue pump", store=pumps, **flags)) == first  # type: ignore[arg-type]
    assert asked == []
    search("c", "blue pumps", store=pumps, **flags)  # type: ignore[arg-type]
    assert asked == [3], "another question misses"
    with pumps.single() as connection:
        connection.execute(
            "update lab.rerank_scores set score = 'NaN' where ctid in (select ctid from lab.rerank_scores where question_hash = %s limit 1)",
            [text_hash("blue pump")],
        )
    search("c", "blue pump", store=pumps, **flags)  # type: ignore[arg-type]
    search("c", "blue pumps", store=pumps, **flags)  # type: ignore[arg-type]
    assert sum(asked) == 4, "a broken row is computed again"


def test_weights_that_are_not_there_are_one_sentence(pumps: Store, lab: Lab, tmp_path: Path) -> None:
    answer = lab("search", "c", "pump", "--reranker", "cross-encoder:nobody/has-this-model", store=pumps)
    assert (answer.code, "cannot be loaded" in answer.err, answer.out) == (2, True, "")
    assert lab("search", "c", "pump", "--reranker", "cross-encoder:", store=pumps).code == 2
    assert lab("search", "c", "pump", "--reranker", "magic", store=pumps).code == 2


# ── a server ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def server(answer: Callable[[Any], tuple[int, Any]] | None = None) -> Fake:
    """Scores a passage by how short it is, or as `answer` says."""

    def said(path: str, body: Any) -> tuple[int, Any]:
        if body is None:
            return 200, {"model_id": "fake", "model_sha": "abc"}
        texts = body.get("texts") or body.get("documents")
        rows = [{"index": at, "score": float(-len(text)), "relevance_score": float(-len(text))} for at, text in enumerate(texts)]
        rows.sort(key=lambda row: -row["score"])
        return answer(body) if answer else (200, {"results": rows} if "documents" in body else rows)

    return Fake(said)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "PAUSE", 0.0)
    rerankers.named.cache_clear()


@pytest.mark.parametrize("path", ["", "/rerank", "/v1/rerank", "/v2/rerank"])
def test_both_kinds_of_servers(path: str, pumps: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_RERANK_KEY", "secret-key")
    monkeypatch.setenv("LAB_RERANK_MODEL", "ranker-1")
    fake = server()
    found = search("c", "pump", store=pumps, reranker=f"http:{fake.url}{path}", authority_weight=0)
    lengths = [len(body) for r in found.results for (body,) in pumps.rows("select body from kb_c.chunks where source = %(s)s", {"s": r.source})]
    assert lengths == sorted(lengths)
    where, body, key = fake.asked[0]
    assert where == (path or "/rerank")
    assert key == "Bearer secret-key"
    assert ("documents" in body, body.get("model")) == ((True, "ranker-1") if "v" in path else (False, None))


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (lambda body: (500, "oops"), ServerError, "did not answer after 5 tries"), (lambda body: (401, "no"), UsageError, "LAB_RERANK_KEY"),
        (lambda body: (200, []), LabError, "0 scores for"), (lambda body: (200, b"<html>"), LabError, "something else than JSON"),
        (lambda body: (200, [{"index": 0, "score": 1}] * len(body["texts"])), LabError, "scores for"), (lambda body: (200, {"error": "x"}), LabError, "scores for"),
        (lambda body: (200, [{"index": at, "score": None} for at in range(len(body["texts"]))]), LabError, "scores for"),
        (lambda body: (413, "too long"), LabError, "refused"),
    ],
)  # fmt: skip
def test_a_server_that_fails_is_an_error_that_names_it(answer: Any, error: type[LabError], said: str, pumps: Store) -> None:
    fake = server(answer)
    with pytest.raises(error, match=said) as raised:
        search("c", "pump", store=pumps, reranker=f"http:{fake.url}")
    assert "rerank server at http://127.0.0.1" in str(raised.value)


def test_nan_from_a_server_is_no_score(pumps: Store) -> None:
    fake = server(lambda body: (200, json.dumps([{"index": at, "score": float("nan")} for at in range(len(body["texts"]))]).encode()))
    with pytest.raises(LabError, match="NaN"):
        search("c", "pump", store=pumps, reranker=f"http:{fake.url}")


def test_a_key_in_the_address_is_refused(pumps: Store) -> None:
    for url in ("http://user:pw@127.0.0.1:1", "http://127.0.0.1:1/rerank?key=x"):
        with pytest.raises(UsageError, match="LAB_RERANK_KEY") as raised:
            search("c", "pump", store=pumps, reranker=f"http:{url}")
        assert "pw" not in str(raised.value)


# ── the floor ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_below_the_floor_nothing_is_returned_and_it_is_said(pumps: Store) -> None:
    best = max(hit.score for hit in search("c", "zebra lion", store=pumps).arms["dense"].hits)
    assert best < 0.5
    found = search("c", "zebra lion", store=pumps, floor=0.5)
    assert (found.results, found.diagnostic.stage if found.diagnostic else "") == ((), "floor")
    assert search("c", "The pump is oiled weekly.", store=pumps, floor=0.5).results
    for k in (1, 5):
        assert bool(search("c", "pump hall", store=pumps, floor=0.3, k=k).results) == bool(
            search("c", "pump hall", store=pumps, floor=0.3, k=2).results
        )


def test_a_code_that_is_there_passes_the_floor(pumps: Store) -> None:
    assert order(search("c", "PRV 2041", store=pumps, floor=0.99))[0] == "e.md"
    assert search("c", "PRV 2042", store=pumps, floor=0.99).results == ()
    assert search("c", "PRV 2041", store=pumps, floor=0.99, codes="off").results == ()


def test_the_floor_on_a_reranker(pumps: Store) -> None:
    fake = server()
    url = f"http:{fake.url}"
    assert search("c", "pump", store=pumps, reranker=url, floor=-1000, floor_on="rerank").results
    assert search("c", "pump", store=pumps, reranker=url, floor=-1, floor_on="rerank").results == ()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"floor": "0.5", "dense": "none"}, "which is off"), ({"floor": "x"}, "cannot be"), ({"floor": "2"}, "cannot be"), ({"floor": "nan"}, "cannot be"),
        ({"floor": "3", "floor_on": "rerank"}, "needs a --reranker"),
    ],
)  # fmt: skip
def test_floors_that_mean_nothing_are_refused(flags: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Settings().with_words(flags)
    assert Settings().with_words({"floor": "0.50"}) == Settings().with_words({"floor": "0.5"})
    assert Settings().with_words({"floor": "off"}).floor == "none"


# ── near twins, why ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_near_twins_are_one_result_spoken_for_by_authority(store: Store, tmp_path: Path) -> None:
    """Two notices alike but for a word, and one that differs in a number: the number makes it another rule."""
    text = "Before the relief valve is taken out for its yearly test, the shift lead closes the block valve, hangs a red tag on it, and tells the control room {} that the line is shut. "
    files = {f"{name}.md": f"# N\n\n{text.format(word)}" + "Nothing else is done before that, and nobody works on the line alone while it is open to the air." + more
             for name, word, more in (("a", "now", ""), ("b", "then", ""), ("c", "now", " It takes 20 minutes."))}  # fmt: skip
    files["source_authority.json"] = '{"default": 0, "rules": [{"match": "b.md", "tier": 5}]}'
    ingest(write(tmp_path, files), "c", store=store, embedder="none")
    exact = order(search("c", "relief valve test", store=store, dense="none"))
    assert sorted(exact) == ["a.md", "b.md", "c.md"]
    found = search("c", "relief valve test", store=store, dense="none", dedup="near")
    assert sorted(order(found)) == ["b.md", "c.md"]
    assert next(r for r in found.results if r.source == "b.md").copies == ("a.md::1",)


def test_why_a_passage_was_not_returned(pumps: Store, lab: Lab) -> None:
    corpus = open_corpus(pumps, "c")
    settings = Settings(k=1, lexical="bm25")
    best = order(search("c", "pump oiled weekly", store=pumps, k=1))[0]
    (row,) = why(corpus, "pump oiled weekly", settings, best)
    assert (row.lost_at, "rank 1" in row.reason) == (None, True)
    (row,) = why(corpus, "pump oiled weekly", settings, "b.md::1")
    assert row.lost_at == "cut"
    assert "k is 1" in row.reason
    (row,) = why(corpus, "pump oiled weekly", Settings(k=1, candidates=1), "d.md")
    assert row.lost_at == "arms"
    assert "similarity" in row.reason
    assert "no word of the question" in row.reason
    (row,) = why(corpus, "pump", Settings(filters="source=a.md"), "b.md")
    assert row.lost_at == "filters"
    (row,) = why(corpus, "zebra", Settings(floor="0.9"), "d.md")
    assert row.lost_at == "floor"
    answer = lab("search", "c", "pump oiled weekly", "--why", "b.md", "--k", "1", "--json", store=pumps)
    assert answer.json["passages"][0]["lost_at"] == "cut"
    assert lab("search", "c", "pump", "--why", "nowhere.md", store=pumps).code == 2
    assert "lost at" in lab("search", "c", "pump", "--why", "b.md", store=pumps).out


def test_explain_as_json_holds_the_ledger(pumps: Store, lab: Lab) -> None:
    told = lab("search", "c", "pump", "--explain", "--json", store=pumps).json["ledger"]
    assert told["columns"][:2] == ["dense", "lexical"]
    assert all(len(p["ranks"]) == len(told["columns"]) for p in told["passages"])
    assert "ledger" not in lab("search", "c", "pump", "--json", store=pumps).json


def test_a_tuned_floor_is_kept_where_it_is_served(handbook: Store, lab: Lab, tmp_path: Path) -> None:
    """What the tuning promises on `test` is what `lab run` with answers finds there; codes pass any floor, so that the promise is refused with them."""
    refused = lab("tune", "floor", "handbook", "--gold", "handbook", "--max-false-answers", "0.05", "--json", store=handbook)
    assert refused.code == 3 and "Say --codes off" in refused.json["diagnostic"]["message"]
    words = [
        "tune",
        "floor",
        "handbook",
        "--gold",
        "handbook",
        "--max-false-answers",
        "0.05",
        "--codes",
        "off",
        "--plot",
        str(tmp_path / "curve.png"),
    ]
    told = lab(*words, "--json", store=handbook).json
    chosen, reported = told["chosen_on"], told["reported_on"]
    assert chosen["false_answers_bound"] <= 0.05 and (chosen["split"], reported["split"]) == ("dev", "test")
    assert (
        reported["false_answers_interval"][0] <= reported["false_answers"] <= reported["false_answers_interval"][1]
        and (tmp_path / "curve.png").stat().st_size > 10_000
    )
    done = lab(
        "run",
        "handbook",
        "--gold",
        "handbook",
        "--split",
        "test",
        "--codes",
        "off",
        "--floor",
        str(told["floor"]),
        "--answers",
        "extractive",
        "--json",
        store=handbook,
    ).json["health"]["answers"]
    assert (done["false_answers"], done["unanswerable"]) == (reported["false"], reported["unanswerable"])
    assert (done["answered"], done["answerable"]) == (reported["passed"], reported["answerable"])
    for more, said in (
        (["--split", "test"], "judged on"), (["--report", "dev"], "chooses the floor"), (["--max-false-answers", "0"], "from 0.0001"), (["--max-false-answers", "1e-17"], "from 0.0001"), (["--floor", "0.3"], "leave --floor"), (["--dense", "none"], "dense arm"),
        (["--plot", "x.gif"], ".png"), (["--plot", "/dev/null/x.png"], "cannot be written"),
    ):  # fmt: skip
        wrong = lab("tune", "floor", "handbook", "--gold", "handbook", *more, store=handbook)
        assert wrong.code == 2 and said in wrong.err, wrong.err
