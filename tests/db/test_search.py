"""Search on a real server: enough rows, the right index, total orders, and user text as data."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from lab.corpus.derived import reindex
from lab.corpus.ingest import ingest
from lab.errors import LabError, UsageError
from lab.records import Chunk, Document, SearchResult
from lab.resources import folder
from lab.retrieval.search import Shared, fetch_arm, open_corpus, question_vectors, rank, search
from lab.settings import IngestSettings, Settings, named
from lab.store import arms, collections, documents, embedded
from lab.store.connect import Store
from lab.store.lexical import lexical as arm
from lab.store.part import copy_part
from lab.store.queries import query
from tests.conftest import Databases, Lab, write


def texts_into(store: Store, texts: dict[str, str], name: str = "c", embedder: str = "none", chunker: str = "whole") -> None:
    """A collection with one document a text."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        ingest(write(Path(folder), texts), name, store=store, embedder=embedder, chunker=chunker)


def vectors_into(store: Store, vectors: np.ndarray, name: str = "v", text: str = "passage {i}") -> None:
    """A collection of 64 dimensions made of these vectors, `(n, 64)`."""
    target = collections.create(
        store, name, IngestSettings(chunker="whole"), embedder="keyword", model_digest="test", dim=vectors.shape[1], language="english"
    )
    loads = []
    for i, vector in enumerate(vectors):
        words = text.format(i=i)
        chunk = Chunk(f"s{i:05}", 1, 0, len(words), words, "")
        unit = (vector / np.linalg.norm(vector)).astype(np.float16)
        loads.append(documents.Load(Document(f"s{i:05}", "", words), "r", b"x", 1, 0, [chunk], [words], [unit]))
    documents.store_batch(store, target, loads)
    collections.build_indexes(store, target)


def sources(found: SearchResult) -> list[str]:
    return [r.source for r in found.results]


def lexical(store: Store, question: str, name: str = "c", **flags: str | int) -> list[str]:
    return sources(search(name, question, store=store, dense="none", **flags))  # type: ignore[arg-type]


# ── the lexical arm ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("ranker", ["bm25", "ts_rank", "ts_rank_cd"])
def test_any_word_may_match(ranker: str, store: Store) -> None:
    texts_into(store, {"a.txt": "Inspection records are kept five years.", "b.txt": "The pump runs."})
    question = "How long must a licensee retain inspection logs after a valve is replaced?"
    assert lexical(store, question, lexical=ranker) == ["a.txt"]
    assert lexical(store, question, lexical=ranker, query_mode="all") == []
    assert lexical(store, "inspection records", lexical=ranker, query_mode="all") == ["a.txt"]
    assert lexical(store, "inspection -records", lexical=ranker, query_mode="websearch") == []
    assert lexical(store, '"kept five"', lexical=ranker, query_mode="websearch") == ["a.txt"]


def test_only_stop_words_make_the_arm_abstain_and_leave_the_dense_order(store: Store) -> None:
    texts_into(store, {"a.txt": "valve closed", "b.txt": "pump started"}, embedder="keyword")
    found = search("c", "what is it and who are they", store=store)
    assert found.arms["lexical"].stopped == "abstained" and any("abstained" in note for note in found.ledger.notes)
    both = search("c", "who is at the valve", store=store)
    dense = search("c", "who is at the valve", store=store, lexical="none")
    assert sources(both) == sources(dense) == ["a.txt", "b.txt"]


def test_an_empty_result_says_which_step_emptied_it(store: Store, lab: Lab) -> None:
    texts_into(store, {"a.txt": "valve closed"})
    answer = lab("search", "c", "turbine", "--dense", "none", "--json", store=store)
    assert answer.code == 0 and answer.json["results"] == []
    assert answer.json["diagnostic"]["stage"] == "arms" and "no passage matched" in answer.json["diagnostic"]["message"]


def test_a_rare_word_counts_more_than_a_frequent_one(store: Store) -> None:
    files = {f"{i:02}.txt": "operator operator operator operator operator" for i in range(50)} | {"x.txt": "the cryostat"}
    texts_into(store, files)
    assert lexical(store, "operator cryostat", dedup="off")[0] == "x.txt"


@pytest.mark.parametrize(
    "question",
    ["who signs the operator's permit?", "a & | !", "foo:*", '"', "-40", "\0", "(" * 10_000, "\ud800", "", "' or 1=1 --", ":name %s %(x)s {y}", "\\", "<->", "a\0b"],
)  # fmt: skip
@pytest.mark.parametrize("mode", ["any", "all", "websearch"])
def test_no_character_of_a_question_does_harm(question: str, mode: str, handbook: Store) -> None:
    for ranker in ("bm25", "ts_rank_cd"):
        assert isinstance(search("handbook", question, store=handbook, dense="none", lexical=ranker, query_mode=mode), SearchResult)


def test_operators_have_no_meaning(store: Store) -> None:
    texts_into(store, {"a.txt": "foo bar 40", "b.txt": "foobar other"})
    assert lexical(store, "foo:*") == ["a.txt"]
    assert lexical(store, "bar -foo") == ["a.txt"]
    assert lexical(store, "bar & !foo") == ["a.txt"]


ANY_TEXT = st.text(alphabet=st.characters(codec=None), max_size=300)
LONG = st.builds(
    lambda text, times: (text * times)[:100_000], st.text(alphabet=st.characters(codec=None), min_size=1, max_size=40), st.integers(1, 3000)
)
FLAGS = st.sampled_from(
    [
        {},
        {"query_mode": "all"},
        {"query_mode": "websearch"},
        {"lexical": "ts_rank"},
        {"codes": "off"},
        {"intent": "on"},
        {"filters": "source=standards/*"},
        {"dedup": "off"},
    ]
)


@given(ANY_TEXT | LONG, FLAGS)
@example("-" * 33, {"query_mode": "websearch"})
@example("-&" * 40 + "x", {"query_mode": "websearch"})
@example("-!" * 40 + "-)" * 40 + "-|" * 40 + "x", {"query_mode": "websearch"})
@example("- " * 40 + "x", {"query_mode": "websearch"})
@example("(-" * 40 + "a or b", {"query_mode": "websearch"})
@hypothesis_settings(
    max_examples=2000 if os.environ.get("LAB_SLOW") == "1" else 300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_text_is_a_question(handbook: Store, question: str, flags: dict[str, str]) -> None:
    found = search("handbook", question, store=handbook, dense="none", defines="always", cites="on", **flags)
    assert [r.rank for r in found.results] == list(range(1, len(found.results) + 1))
    assert found.results or found.diagnostic is not None


# ── order ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("ranker", ["bm25", "ts_rank_cd"])
def test_five_hundred_equal_scores_are_cut_the_same_each_time(ranker: str, store: Store) -> None:
    texts_into(store, {f"{i:03}.txt": f"inspect the relief valve monthly. unit {i:03}" for i in range(500)})
    corpus = open_corpus(store, "c")
    seen = set()
    for workers in (0, 4):
        with store.held(), store.single() as connection:
            connection.execute(f"set max_parallel_workers_per_gather = {workers}")
            for _ in range(5):
                found = arm(store, corpus.collection, "relief valve", ranker=ranker, mode="any", candidates=50, by_class=True, chunks=500)
                seen.add(tuple(hit.source for hit in found.hits))
    assert seen == {tuple(f"{i:03}.txt" for i in range(50))}


@pytest.mark.parametrize("name", ["default", "lexical-only", "classic"])
def test_the_first_k_are_a_prefix_of_the_first_k_plus_m(name: str, handbook: Store) -> None:
    for question in ("what is a quiet hour", "PRV-2041 set pressure", "who may enter a confined space"):
        for flags in ({}, {"defines": "always", "cites": "on"}, {"mmr_lambda": 0.7}):
            long = [r.chunk_id for r in search("handbook", question, store=handbook, settings=name, k=20, **flags).results]  # type: ignore[arg-type]
            for k in (1, 3, 10):
                assert [r.chunk_id for r in search("handbook", question, store=handbook, settings=name, k=k, **flags).results] == long[:k]  # type: ignore[arg-type]


def test_rows_inserted_in_another_order_give_the_same_results(store: Store) -> None:
    draw = random.Random(5)
    words = "valve pump gauge relief seal motor crew panel log permit".split()
    texts = {f"{i:03}.txt": " ".join(draw.choices(words, k=12)) for i in range(120)}
    texts_into(store, texts, "a", embedder="keyword")
    texts_into(store, dict(list(texts.items())[:60]), "b", embedder="keyword")
    with store.connection() as connection:  # the second half arrives first in the table after a delete and a reinsert
        connection.execute("delete from kb_b.files where source < '030.txt'")
    texts_into(store, texts, "b", embedder="keyword")
    reindex(store, collections.get(store, "b"))
    for question in ("relief valve of the pump", "crew log", "seal motor gauge"):
        found = [search(name, question, store=store, dense="exact", k=50) for name in ("a", "b")]
        assert [(r.source, r.score) for r in found[0].results] == [(r.source, r.score) for r in found[1].results]


# ── the dense arm ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def wide(databases: Databases) -> object:
    """10,000 vectors in clusters, as text gives them."""
    with databases.fresh() as dsn, Store(dsn) as store:
        draw = np.random.default_rng(3)
        centres = draw.normal(size=(200, 64))
        vectors_into(store, centres[draw.integers(0, 200, 10_000)] + 0.4 * draw.normal(size=(10_000, 64)))
        yield store, centres


def test_a_hundred_asked_are_a_hundred_given_and_the_settings_are_read_back(wide: tuple[Store, np.ndarray]) -> None:
    store, centres = wide
    corpus = open_corpus(store, "v")
    for ef in (40, 200):
        found = arms.dense(store, corpus.collection, centres[0], engine="hnsw", ef_search=ef, candidates=100, by_class=True, chunks=corpus.chunks)
        assert (found.engine, found.got, len(found.hits), found.asked) == ("hnsw", 100, 100, 100)
        assert found.server == {"hnsw.ef_search": str(ef), "hnsw.iterative_scan": "strict_order"}
    assert store.rows("select current_setting('hnsw.ef_search')") == [("40",)], "set for the search's transaction only"


def test_hnsw_finds_nearly_what_an_exact_scan_finds(wide: tuple[Store, np.ndarray]) -> None:
    store, centres = wide
    corpus = open_corpus(store, "v")
    shared = 0
    for centre in centres[:20]:
        lists = [
            {
                h.key
                for h in arms.dense(
                    store, corpus.collection, centre, engine=engine, ef_search=200, candidates=100, by_class=True, chunks=corpus.chunks
                ).hits
            }
            for engine in ("hnsw", "exact")
        ]
        shared += len(lists[0] & lists[1])
    assert shared / 2000 >= 0.95


def test_small_collections_are_scanned_exactly(handbook: Store) -> None:
    assert search("handbook", "quiet hour", store=handbook).arms["dense"].engine == "exact"


def _plan(store: Store, name: str, parameters: dict[str, object], schema: str) -> str:
    from psycopg import sql

    with store.connection() as connection:
        rows = connection.execute(sql.SQL("explain ") + query(name, schema=schema), parameters).fetchall()
    return "\n".join(str(row[0]) for row in rows)


def test_the_plans_use_the_indexes(wide: tuple[Store, np.ndarray]) -> None:
    from pgvector import HalfVector

    store, centres = wide
    vector = HalfVector(centres[0].astype(np.float16))
    assert "Index Scan using chunks_hnsw" in _plan(store, "search/dense_hnsw", {"vector": vector, "limit": 100}, "kb_v")
    assert "chunks_hnsw" not in _plan(store, "search/dense_exact", {"vector": vector, "limit": 100}, "kb_v")
    bm25 = {"question": "passage 77", "index": "kb_v.chunks_bm25", "limit": 100}
    assert "Index Scan using chunks_bm25" in _plan(store, "search/lexical_bm25", bm25, "kb_v")
    assert "Bitmap Index Scan on chunks_tsv" in _plan(store, "search/lexical_ts_rank", {"tsquery": "'77'", "limit": 100}, "kb_v")


def test_a_tie_break_inside_the_order_by_would_lose_the_index(wide: tuple[Store, np.ndarray]) -> None:
    """Why the inner query orders by the operator alone."""
    store, centres = wide
    vector = "[" + ",".join(f"{x:.4f}" for x in centres[0]) + "]"
    with store.connection() as connection:
        rows = connection.execute(f"explain select key from kb_v.chunks order by embedding <=> '{vector}'::halfvec, key limit 10").fetchall()
        down = connection.execute(f"explain select key from kb_v.chunks order by 1 - (embedding <=> '{vector}'::halfvec) desc limit 10").fetchall()
    assert "Index Scan using chunks_hnsw" not in str(down)
    assert "Index Scan using chunks_hnsw" not in str(rows) or "Incremental Sort" in str(rows)


def test_three_hundred_copies_do_not_crowd_out_a_hundred_classes(store: Store) -> None:
    draw = np.random.default_rng(4)
    vectors = draw.normal(size=(2000, 64))
    vectors[:300] = vectors[0]
    vectors_into(store, vectors)
    with store.connection() as connection:
        connection.execute("update kb_v.chunks set class_id = '\\x00' where source < 's00300'")
    corpus = open_corpus(store, "v")
    found = arms.dense(store, corpus.collection, vectors[0], engine="exact", ef_search=200, candidates=100, by_class=True, chunks=corpus.chunks)
    assert found.got == 100 and len(found.hits) == 399 and found.ranks[:300] == (1,) * 300 and found.ranks[300] == 2


def test_a_collection_without_vectors_says_so(store: Store) -> None:
    texts_into(store, {"a.txt": "valve"})
    with pytest.raises(UsageError, match="--dense none"):
        search("c", "valve", store=store)
    for flags in ({"mmr_lambda": 0.5}, {"reranker": "maxsim"}):
        with pytest.raises(UsageError, match="ingest with minilm"):
            search("c", "valve", store=store, dense="none", **flags)  # type: ignore[arg-type]


# ── twins, links, reranker, mmr ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_copy_of_highest_authority_is_returned_with_the_others_listed(store: Store, tmp_path: Path) -> None:
    rules = '{"rules": [{"match": "z/*", "tier": 3}]}'
    files = {"a/x.md": "# A\n\nClose the valve.\n", "z/x.md": "# Z\n\nClose  the valve.\n", "b/x.md": "# B\n\nOpen the gate.\n"}
    ingest(write(tmp_path, files | {"source_authority.json": rules}), "c", store=store, embedder="none")
    (result,) = search("c", "valve", store=store, dense="none").results
    assert (result.source, result.authority, result.copies) == ("z/x.md", 3, ("a/x.md::1",))
    assert lexical(store, "valve", dedup="off", authority_weight=0) == ["a/x.md", "z/x.md"]


RULES = {
    "1.md": "# 1 Words\n\n## 1.1 Terms\n\nA **dead leg** means a pipe without flow.\n",
    "2.md": "# 2 Draining\n\n## 2.1 Dead legs\n\nEvery dead leg is drained weekly. A dead leg over 2 m is marked, see section 3.1.\n\n## 2.2 Dead leg log\n\nA dead leg is logged.\n",
    "3.md": "# 3 Paint\n\n## 3.1 Colours\n\nThe colour is orange.\n",
}


def test_the_definition_of_the_questions_own_term_goes_first(store: Store, tmp_path: Path) -> None:
    ingest(write(tmp_path, RULES), "c", store=store, embedder="none")
    question = "define dead leg"
    assert lexical(store, question)[0] == "2.md"
    found = search("c", question, store=store, dense="none", defines="question")
    assert found.results[0].source == "1.md" and found.results[0].linked_by == "defines:dead leg"
    assert lexical(store, "how often is a dead leg drained", defines="question") == lexical(store, "how often is a dead leg drained")


def test_a_cited_passage_stands_directly_below_its_best_parent(store: Store, tmp_path: Path) -> None:
    ingest(write(tmp_path, RULES), "c", store=store, embedder="none")
    assert "3.md" not in lexical(store, "which dead leg is marked")
    found = search("c", "which dead leg is marked", store=store, dense="none", cites="on")
    listed = [r.chunk_id for r in found.results]
    assert listed[listed.index("2.md::1") + 1] == "3.md::1"
    assert found.results[listed.index("3.md::1")].linked_by == "cites:2.md::1"
    assert lexical(store, "which dead leg is marked", cites="on", links_max=0) == lexical(store, "which dead leg is marked")


def test_links_off_executes_no_link_query(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ingest(write(tmp_path, RULES), "c", store=store, embedder="none")
    for name in ("defined", "cited"):
        monkeypatch.setattr(arms, name, lambda *_: pytest.fail("a link query was executed"))
    assert lexical(store, "what is a dead leg", defines="0", cites="no")
    assert lexical(store, "what is a dead leg", defines="question", cites="on", links_max=0)
    assert lexical(store, "what is a dead leg", cites="on", link_parents=0)


def test_a_hub_is_not_added(store: Store, tmp_path: Path) -> None:
    files = {f"{i + 10}.md": f"# {i + 10} T\n\n## {i + 10}.1 Rule\n\nWidget {i}: see section 3.1.\n" for i in range(8)} | {"3.md": RULES["3.md"]}
    ingest(write(tmp_path, files), "c", store=store, embedder="none")
    assert "3.md" in lexical(store, "widget", cites="on")
    capped = search("c", "widget", store=store, dense="none", cites="on", link_hub_max=7)
    assert "3.md" not in sources(capped) and any("8 passages cite it (89% of all), more than 7" in note for note in capped.ledger.notes)


def test_maxsim_reorders_and_is_cached(store: Store) -> None:
    texts_into(store, {"a.txt": "valve valve valve filler filler", "b.txt": "relief valve"}, embedder="keyword")
    assert lexical(store, "relief valve", lexical="bm25", reranker="maxsim")[0] == "b.txt"
    scores = [r.score for r in search("c", "relief valve", store=store, reranker="maxsim", authority_weight=0).results]
    assert scores == [1.0, 0.5]
    assert store.rows("select count(*) from lab.token_vectors") == [(2,)]


def test_mmr_takes_the_different_one_second(store: Store) -> None:
    texts_into(store, {"a.txt": "valve relief pressure", "b.txt": "valve relief pressure pressure", "c.txt": "valve crew"}, embedder="keyword")
    plain = sources(search("c", "valve relief pressure", store=store, lexical="none"))
    assert plain == ["a.txt", "b.txt", "c.txt"]
    assert sources(search("c", "valve relief pressure", store=store, lexical="none", mmr_lambda=0.3))[:2] == ["a.txt", "c.txt"]


# ── the ledger and the command ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_ledger_says_where_a_passage_stood(store: Store, tmp_path: Path) -> None:
    ingest(write(tmp_path, RULES), "c", store=store, embedder="none")
    found = search("c", "define dead leg", store=store, dense="none", defines="question", k=2)
    assert found.ledger.columns == ("lexical", "fuse", "codes", "authority", "dedup", "links", "cut")
    first = found.results[0]
    row = {c: found.ledger.rank(first.key, c) for c in found.ledger.columns}
    assert row["lexical"] == row["fuse"] == row["dedup"] == 3 and row["links"] == row["cut"] == 1
    assert set(found.ledger.seconds) == set(found.ledger.columns)


def test_settings_that_share_arms_and_stages_get_what_each_gets_alone(handbook: Store) -> None:
    corpus = open_corpus(handbook, "handbook")
    members = [Settings(dense="none"), Settings(dense="none", defines="question"), Settings(dense="none", authority_weight=0.0), Settings(dense="none", k=3),
               Settings(dense="none", dedup="off"), Settings(dense="none", cites="on", rrf_k=10)]  # fmt: skip
    for question in ("what is a quiet hour", "isolation of pumps before work"):
        shared = Shared(corpus, question, None)
        for member in members + members[::-1]:
            together, alone = rank(shared, member), search("handbook", question, store=handbook, settings=member)
            assert together.results == alone.results


def test_the_command_prints_json_tables_and_sql(handbook: Store, lab: Lab) -> None:
    answer = lab("search", "handbook", "what is a quiet hour", "--json", store=handbook)
    assert answer.code == 0
    assert list(answer.json)[1:] == ["question", "results", "diagnostic"] and answer.json["diagnostic"] is None
    first = answer.json["results"][0]
    assert set(first) >= {"rank", "chunk_id", "source", "start", "end", "text", "score", "similarity", "authority"}
    stored = handbook.rows("select text from kb_handbook.files where source = %(s)s", {"s": first["source"]})[0][0]
    assert stored[first["start"] : first["end"]] == first["text"]
    table = lab("search", "handbook", "quiet hour", "--explain", "--defines", "1")
    assert table.code == 0 and "lexical" in table.out and first["source"] in table.out
    assert lab("search", "handbok", "x").code == 2


@pytest.mark.parametrize("flags", [[], ["--lexical", "ts_rank_cd"], ["--query-mode", "all"], ["--dense", "none"]])
def test_the_sql_runs_in_psql_and_gives_the_arms(flags: list[str], handbook: Store, lab: Lab, tmp_path: Path) -> None:
    statements = lab("search", "handbook", "the operator's quiet hour", "--sql", "--candidates", "5", *flags, store=handbook).out
    (tmp_path / "q.sql").write_text(statements)
    psql = embedded.binaries() / "psql"
    done = subprocess.run(
        [str(psql), "-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-f", str(tmp_path / "q.sql"), handbook.dsn],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.strip().splitlines()) >= 1


def test_named_settings_run(handbook: Store) -> None:
    for name in ("default", "dense-only", "lexical-only", "classic"):
        assert len(search("handbook", "quiet hour", store=handbook, settings=named(name)).results) <= 10


VARIABLES = {
    "tokens": "{e=prv2041,w:valv}", "chunks": "575", "paths": "{}",
    "vector": "[" + ",".join(["0.1"] * 384) + "]", "limit": "5", "question": "quiet hour", "index": "kb_handbook.chunks_bm25", "tsquery": "'quiet' | 'hour'",
    "language": "english", "mode": "any", "classes": "{}", "keys": "{1,2}", "terms": '{"quiet hour"}', "parents": "{1,2,3}", "term": "quiet hour", "cap": "9",
    "statuses": "{verified}", "kinds": "{definition}", "confidence": "0", "authority": "0", "floor": "0.3",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(p.stem for p in (folder("sql") / "search").glob("*.sql")))
def test_psql_runs_every_search_query_as_it_stands(name: str, handbook: Store) -> None:
    with handbook.connection() as connection:
        if name == "lexical_bm25_postings" and not collections.with_postings(connection, collections.get(handbook, "handbook")):
            collections.post(connection, collections.get(handbook, "handbook"))
    words = [str(embedded.binaries() / "psql"), "-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-v", "schema=kb_handbook"]
    words += [part for key, value in VARIABLES.items() for part in ("-v", f"{key}={value}")]
    done = subprocess.run([*words, "-f", str(folder("sql") / "search" / f"{name}.sql"), handbook.dsn], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_one_statement_for_psql_ranks_as_the_lab_does(handbook: Store) -> None:
    """hybrid.sql: the same order as search without what is no part of it, and the same scores."""
    corpus = open_corpus(handbook, "handbook")
    settings = Settings(dense="exact", authority_weight=0, dedup="off", codes="off")
    for question in ("how often is the relief valve tested", "what is a quiet hour", "who may enter a confined space", "chlorine leak at night"):
        vector = question_vectors(corpus, [question])[0]
        want = rank(Shared(corpus, question, vector), settings)
        with handbook.connection() as connection:
            connection.execute("set local enable_seqscan = off; set local hnsw.ef_search = 1000")
            values = {
                "vector": arms.HalfVector(vector),
                "index": corpus.collection.bm25_index,
                "question": question,
                "candidates": 100,
                "rrf_k": 10,
                "limit": 10,
            }
            rows = connection.execute(query("search/hybrid", schema=corpus.collection.schema), values).fetchall()
        assert [row[0] for row in rows] == [r.chunk_id for r in want.results]
        assert [float(row[1]) for row in rows] == pytest.approx([r.score for r in want.results])


def test_a_part_of_a_collection_is_one_of_its_own(handbook: Store) -> None:
    whole = collections.get(handbook, "handbook")
    try:
        made = copy_part(handbook, whole, "part", 100)
        assert (made.chunks, made.codes, made.dim) == (100, whole.codes, whole.dim)
        assert copy_part(handbook, whole, "part", 50).chunks == 50
        found = search("part", "relief valve", store=handbook)
        assert len(found.results) == 10
        assert found.diagnostic is None
    finally:
        collections.drop(handbook, "part")


def test_constant_reranker_scores_keep_the_order_and_are_noted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    texts_into(store, {"a.txt": "valve one", "b.txt": "valve two", "c.txt": "valve three"}, embedder="keyword")
    monkeypatch.setattr("lab.models.rerankers.MaxSim.score", lambda self, question, passages: [0.5] * len(passages))
    plain = search("c", "valve", store=store)
    same = search("c", "valve", store=store, reranker="maxsim")
    assert sources(same) == sources(plain) and any("same score" in note for note in same.ledger.notes)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_reranker_that_gives_no_number_is_refused(bad: float, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    texts_into(store, {"a.txt": "valve one", "b.txt": "valve two"}, embedder="keyword")
    monkeypatch.setattr("lab.models.rerankers.MaxSim.score", lambda self, question, passages: [bad] * len(passages))
    with pytest.raises(LabError, match="NaN"):
        search("c", "valve", store=store, reranker="maxsim")


def test_an_edited_question_is_one_miss_and_another_model_shares_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    texts_into(store, {"a.txt": "valve one"}, embedder="keyword")
    corpus = open_corpus(store, "c")
    count = "select count(*) from lab.embeddings"
    before = store.rows(count)[0][0]
    question_vectors(corpus, ["first question", "second question"])
    question_vectors(corpus, ["first question", "second question, edited"])
    assert store.rows(count)[0][0] == before + 3
    monkeypatch.setattr("lab.models.embedders.KeywordEmbedder.digest", "another model")
    question_vectors(corpus, ["first question"])
    assert store.rows(count)[0][0] == before + 4


def test_without_its_bm25_index_search_answers_from_the_rows_and_says_so(store: Store, lab: Lab) -> None:
    words = "valve pump seal gland motor flange gasket rotor casing bearing".split()
    texts_into(store, {f"{i:03}.txt": " ".join(words[(i * k) % 10] for k in range(1, 4 + i % 9)) for i in range(60)})
    asked = ["valve and seal", "rotor", "gasket casing bearing", "pump or flange or motor"]
    flags = ("--dense", "none", "--json")
    before = {q: lab("search", "c", q, *flags, store=store).json for q in asked}
    assert all(answer["diagnostic"] is None for answer in before.values())
    with store.connection() as connection:
        connection.execute("drop index kb_c.chunks_bm25")
    for q in asked:
        answer = lab("search", "c", q, *flags)
        assert answer.code == 0 and answer.json["diagnostic"]["stage"] == "lexical" and "run `lab index c`" in answer.json["diagnostic"]["message"]
        assert [r["score"] for r in answer.json["results"]] == pytest.approx([r["score"] for r in before[q]["results"]], rel=0.02)
        assert {r["chunk_id"] for r in answer.json["results"][:3]} & {r["chunk_id"] for r in before[q]["results"][:5]}
    assert lab("index", "c").code == 0
    assert lab("search", "c", asked[0], *flags).json == before[asked[0]]


def test_an_invalid_hnsw_index_is_not_used_and_the_run_is_degraded(wide: tuple[Store, np.ndarray]) -> None:
    store, vectors = wide
    name = "v"
    documents.record_counts(store, collections.get(store, name))
    corpus = open_corpus(store, name)
    vector = vectors[7].astype(np.float16)
    before = fetch_arm(corpus, "x", Settings(lexical="none"), vector, "dense")
    with store.connection() as connection:
        connection.execute(f"update pg_index set indisvalid = false where indexrelid = 'kb_{name}.chunks_hnsw'::regclass")
    try:
        now = fetch_arm(open_corpus(store, name), "x", Settings(lexical="none"), vector, "dense")
    finally:
        with store.connection() as connection:
            connection.execute(f"update pg_index set indisvalid = true where indexrelid = 'kb_{name}.chunks_hnsw'::regclass")
    assert before is not None and now is not None and (before.engine, now.engine) == ("hnsw", "exact")
    assert before.fallback is None and now.fallback is not None and f"lab index {name}" in now.fallback
    assert [hit.key for hit in now.hits[:5]] == [hit.key for hit in before.hits[:5]]


# ── faults found in review ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_passage_linked_twice_stands_below_its_best_parent(store: Store, tmp_path: Path) -> None:
    files = {
        "1.md": "# 1 A\n\n## 1.1 First\n\nWidget widget widget, see section 3.1.\n",
        "2.md": "# 2 B\n\n## 2.1 Second\n\nA widget has a dead leg among its many other parts of note.\n",
        "3.md": "# 3 C\n\n## 3.1 Third\n\nA **dead leg** means a pipe without flow.\n",
    }
    ingest(write(tmp_path, files), "c", store=store, embedder="none")
    assert lexical(store, "widget", cites="on", defines="always") == ["1.md", "3.md", "2.md"]


def test_the_definition_of_a_term_the_question_names_is_exempt_from_the_hub_rule(store: Store, tmp_path: Path) -> None:
    files = {f"{i}.md": f"# T{i}\n\nWidget {i} needs a cold permit today.\n" for i in range(6)} | {
        "w.md": "# W\n\nA **cold permit** means a form without flame.\n"
    }
    ingest(write(tmp_path, files), "c", store=store, embedder="none")
    flags = {"defines": "always", "link_hub_max": 3, "k": 4}
    assert "w.md" in lexical(store, "which widget needs a cold permit", **flags)  # type: ignore[arg-type]
    assert "w.md" not in lexical(store, "which widget today", **flags)  # type: ignore[arg-type]


def test_a_linked_passage_is_spoken_for_by_its_copy_of_highest_authority(store: Store, tmp_path: Path) -> None:
    files = {
        "bul/1.md": "# 1 Colours\n\nPaint is orange.\n",
        "std/3.md": "# Third\n\nPaint is orange.\n",
        "a.md": "# A\n\nThe widget is marked, see chapter 1.\n",
        "source_authority.json": '{"rules": [{"match": "std/*", "tier": 3}]}',
    }
    ingest(write(tmp_path, files), "c", store=store, embedder="none")
    linked = search("c", "widget", store=store, dense="none", cites="on").results[1]
    assert (linked.source, linked.authority, linked.copies) == ("std/3.md", 3, ("bul/1.md::1",))


def test_the_cosine_shown_is_that_of_the_copy_shown(store: Store, tmp_path: Path) -> None:
    files = {"a.md": "# Valve\n\nClose it.\n", "z.md": "# Other\n\nClose it.\n", "source_authority.json": '{"rules": [{"match": "z.md", "tier": 3}]}'}
    ingest(write(tmp_path, files), "c", store=store, embedder="keyword")
    (found,) = search("c", "valve", store=store, lexical="none").results
    assert found.source == "z.md" and found.similarity == pytest.approx(0.0)


def test_an_empty_result_has_its_columns(store: Store) -> None:
    texts_into(store, {"a.txt": "valve"})
    frame = search("c", "turbine", store=store, dense="none").to_frame()
    assert len(frame) == 0 and list(frame[["source", "text"]].columns) == ["source", "text"]


def test_the_parts_of_a_score_add_up(handbook: Store) -> None:
    """Shares of the arms and what codes and authority add make the score; a reranker's score takes the place of what was before."""
    found = search("handbook", "How often is PRV-2041 tested by the fitter?", store=handbook)
    assert {name for r in found.results for name, _ in r.parts} == {"dense", "lexical", "codes", "authority"}
    for r in found.results:
        assert sum(value for _, value in r.parts) == pytest.approx(r.score, rel=1e-12)
    again = search("handbook", "How often is PRV-2041 tested by the fitter?", store=handbook, reranker="maxsim", authority_weight=0, codes="off")
    assert all(r.parts[-1] == ("rerank", r.score) for r in again.results)
    linked = search("handbook", "What does section 4.2 require?", store=handbook, cites="on")
    assert all(r.parts for r in linked.results)
    assert linked.to_json(explain=True)["results"][0]["parts"] == dict(linked.results[0].parts)


def test_a_passage_without_a_word_of_the_question_is_found_by_meaning(store: Store, tmp_path: Path) -> None:
    files = {
        "keep.md": "Records are kept five years.",
        "fan.md": "The fan turns left.",
        "paint.md": "Doors are painted green.",
        "tea.md": "Tea is served at four.",
    }
    ingest(write(tmp_path, files), "c", store=store, chunker="whole")
    assert sources(search("c", "How long must a licensee retain inspection logs after a valve is replaced?", store=store))[0] == "keep.md"
