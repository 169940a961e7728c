"""Runs and experiments: recorded, paired, equal to what search serves."""

from __future__ import annotations

from pathlib import Path

import pytest

import lab as api
from lab.corpus.ingest import ingest
from lab.corpus.linking import EXTRACTOR
from lab.errors import CannotJudge, LabError, UsageError
from lab.evaluation.experiment import ablate, load
from lab.evaluation.measures import DEFAULT
from lab.evaluation.run import new_id, run
from lab.gold.documents import write_documents
from lab.gold.files import load_gold, save_gold
from lab.records import Judgment, Question
from lab.resources import folder
from lab.retrieval.search import search
from lab.settings import Settings
from lab.store import collections, documents
from lab.store import runs as rows
from lab.store.connect import Store
from tests.conftest import Lab, write

DOCUMENTS = {
    "a.md": "# A\n\nThe relief valve opens at twelve bar.\n",
    "b.md": "# B\n\nThe pump is greased in spring.\n",
    "c.md": "# C\n\nThe pump is greased in spring.\n",
    "d.md": "# D\n\nNothing of note happens here.\n",
}


def gold_into(path: Path, judged: dict[str, tuple[str, str, str]], extra: list[Question] | None = None) -> Path:
    """question id → (text, source, quote)."""
    questions = [Question(q, text, "fact") for q, (text, _, _) in judged.items()] + (extra or [])
    judgments = []
    for q, (_, source, quote) in judged.items():
        start = DOCUMENTS[source].index(quote) if source in DOCUMENTS and quote in DOCUMENTS[source] else 0
        judgments.append(Judgment(q, source, start, start + len(quote), 1, quote))
    save_gold(path, questions, judgments, "# test\n")
    return path


@pytest.fixture
def small(store: Store, tmp_path: Path) -> tuple[Store, Path]:
    ingest(write(tmp_path / "docs", DOCUMENTS), "c", store=store, embedder="none")
    judged = {
        "q1": ("when does the relief valve open", "a.md", "The relief valve opens at twelve bar."),
        "q2": ("when is the pump greased", "b.md", "The pump is greased in spring."),
        "q3": ("who paints the fence", "d.md", "Nothing of note happens here."),
        "q4": ("zebra crossing quagga", "d.md", "Nothing of note happens here."),
    }
    extra = [Question("u1", "what does a turbine cost", "unanswerable", answerable=False), Question("n1", "left without a judgment")]
    return store, gold_into(tmp_path / "g", judged, extra)


def test_every_answerable_judged_question_counts_and_no_other(small: tuple[Store, Path]) -> None:
    store, gold = small
    done = run("c", str(gold), store=store, dense="none")
    # q1 and q2 are hit, q3 and q4 find nothing: 2 of 4
    assert done.questions == 4 and done.scores["hit@10"] == 0.5 and done.scores["short@10"] == 1.0
    row = rows.get_run(store, done.run_id)
    assert row.status == "ok" and list(row.unjudged) == ["n1"] and row.questions == 4
    assert "u1" not in done.by_question


def test_the_twin_of_the_gold_passage_is_a_hit_reported_as_such(small: tuple[Store, Path]) -> None:
    store, gold = small
    done = run("c", str(gold), store=store, dense="none", dedup="off")
    assert done.by_question["q2"]["nDCG@10"] == 1.0 and done.by_question["q2"]["distinct@10"] == 1.0
    found = store.rows("select rank, grade, by_twin from lab.results where run_id = %(r)s and question_id = 'q2' order by rank", {"r": done.run_id})
    assert found == [(1, 1, False), (2, 0, False)]
    with store.connection() as connection:
        connection.execute("update kb_c.files set authority = 1 where source = 'c.md'")
        connection.execute("""update lab.collections set authority = '{"default": 0, "rules": [{"match": "c.md", "tier": 1}]}'""")
    done = run("c", str(gold), store=store, dense="none")
    found = store.rows("select p.source, r.grade, r.by_twin from lab.results r join lab.passages p using (passage_id) where run_id = %(r)s and question_id = 'q2'", {"r": done.run_id})  # fmt: skip
    assert found == [("c.md", 1, True)]


def test_a_run_records_what_it_takes_to_repeat_it(small: tuple[Store, Path]) -> None:
    store, gold = small
    done = run("c", str(gold), store=store, dense="none", authority_weight="0", k=3)
    row = rows.get_run(store, done.run_id)
    assert row.passed == {"dense": "none", "authority_weight": "0", "k": "3"}
    assert row.settings == Settings(dense="none", authority_weight=0.0, k=3).as_dict()
    assert row.inputs["link_extractor"] == EXTRACTOR
    assert set(row.inputs) >= {"ingest", "corpus_digest", "link_digest", "model_digest", "index_build", "stale_rows", "language", "authority"}
    assert set(row.environment) >= {"lab", "commit", "dirty", "python", "postgres", "extensions", "packages"}
    assert row.gold_digest == load_gold(gold).digest and row.engines["lexical"] == {
        "engines": {"bm25": 4},
        "asked": 100,
        "least_got": 0,
        "stopped": {"exhausted": 4},
    }
    assert row.server["enable_seqscan"] == "off" and row.finished_at is not None and row.seed > 0
    assert list(row.stages) == ["lexical", "fuse", "codes", "dedup", "cut"]


def test_the_database_holds_every_number(small: tuple[Store, Path]) -> None:
    store, gold = small
    done = run("c", str(gold), store=store, dense="none")
    stored = dict(store.rows("select measure, mean from lab.run_scores where run_id = %(r)s", {"r": done.run_id}))
    assert stored == pytest.approx(done.scores) and set(stored) == set(DEFAULT)
    ledger = store.rows(
        "select stage, rank from lab.ledger_rows where run_id = %(r)s and question_id = 'q2' and chunk_id = 'c.md::1' order by position",
        {"r": done.run_id},
    )
    assert ledger == [("lexical", 1), ("fuse", None), ("codes", None), ("authority", None), ("dedup", None), ("cut", None)], (
        "merged into its twin b.md, which was ranked first"
    )


def test_gold_that_points_nowhere_is_3_with_the_ids(small: tuple[Store, Path], lab: Lab) -> None:
    store, gold = small
    gold_into(gold, {"q1": ("x", "nowhere.md", "quoted words")})
    with pytest.raises(CannotJudge, match=r"nowhere\.md"):
        run("c", str(gold), store=store, dense="none")
    answer = lab("gold", "check", str(gold), "-c", "c", "--json", store=store)
    assert answer.code == 3 and answer.json["outcome"] == "unknown_documents" and answer.json["unknown_documents"] == ["nowhere.md"]
    gold_into(gold, {"q1": ("x", "a.md", "words that are not there")})
    answer = lab("gold", "check", str(gold), "-c", "c", "--json")
    assert answer.code == 3 and answer.json["outcome"] == "drifted" and answer.json["counts"]["gone"] == 1
    assert lab("run", "c", "--gold", str(gold), "--dense", "none").code == 3
    save_gold(gold, [Question("q1", "x")], [], "")
    assert lab("run", "c", "--gold", str(gold), "--dense", "none").code == 3
    assert lab("gold", "check", str(gold), "-c", "c", "--json").json["outcome"] == "empty"
    assert store.rows("select count(*) from lab.runs") == [(0,)], "nothing half-written"


def test_run_json(small: tuple[Store, Path], lab: Lab) -> None:
    store, gold = small
    answer = lab("run", "c", "--gold", str(gold), "--dense", "none", "--json", store=store)
    assert answer.code == 0 and set(answer.json) >= {"run_id", "status", "questions", "scores"}
    assert set(answer.json["scores"]) >= {"hit@5", "hit@10", "nDCG@10", "distinct@10"}
    assert lab("run", "c", "--gold", str(gold), "--dense", "none", "--measure", "hit@7", "--json").json["scores"] == {"hit@7": 0.5}
    assert lab("run", "c", "--gold", "nope").code == 2
    assert lab("runs", "list", "--json").json["runs"][0]["status"] == "ok"
    assert lab("runs", "show", answer.json["run_id"], "--json").json["scores"] == pytest.approx(answer.json["scores"])


@pytest.mark.parametrize(
    "flags", [{}, {"defines": "always", "cites": "on"}, {"dense": "none", "dedup": "off"}, {"authority_weight": "0", "mmr_lambda": "0.6"}]
)
def test_what_is_measured_is_what_is_served(flags: dict[str, str], handbook: Store) -> None:
    done = run("handbook", str(folder("gold") / "handbook"), store=handbook, **flags)  # type: ignore[arg-type]
    gold = load_gold(folder("gold") / "handbook")
    rankings = rows.rankings(handbook, [done.run_id])[done.run_id]
    chunks = dict(handbook.rows("select passage_id, chunk_id from lab.passages"))
    for question in [q for q in gold.questions if q.answerable][::40]:
        served = search("handbook", question.text, store=handbook, **flags)  # type: ignore[arg-type]
        assert [chunks[p] for p in rankings[question.question_id]] == [r.chunk_id for r in served.results]


def test_an_ablation_records_every_combination_and_pairs_by_question(handbook: Store) -> None:
    gold = load_gold(folder("gold") / "handbook")
    done = ablate("handbook", gold, {"defines": ["off", "question"], "dense": ["none", "hnsw"]}, store=handbook)
    assert [dict(r.passed) for r in done.runs] == [
        {"dense": d, "defines": f} for d in ("none", "hnsw") for f in ("off", "question")
    ]  # fmt: skip
    assert len({r.run_id for r in done.runs}) == 4 and done.inert == []
    of = done.runs[0]
    for e in [e for e in done.effects if len(e.factors) == 1]:
        chosen = [q for q in of.by_question if (not e.kind or of.kinds[q] == e.kind) and (not e.band or of.bands[q] == e.band)]
        assert e.paired.questions == len(chosen)
        if e.factors == ("defines",) and e.measure == "hit@5" and e.overall:
            on = [r for r in done.runs if r.passed["defines"] == "question"]
            off = [r for r in done.runs if r.passed["defines"] == "off"]
            assert e.paired.after == pytest.approx(sum(r.scores["hit@5"] for r in on) / 2)
            wins = sum(sum(r.by_question[q]["hit@5"] for r in on) > sum(r.by_question[q]["hit@5"] for r in off) for q in chosen)
            assert e.paired.wins == wins > 0 and e.confirmatory and not e.inert
    assert {e.name for e in done.interactions()} == {"dense none → hnsw × defines off → question"}
    both = done.interactions()[0].paired
    cell = {(r.passed["dense"], r.passed["defines"]): r.scores["hit@5"] for r in done.runs}
    by_hand = (cell["hnsw", "question"] - cell["none", "question"]) - (cell["hnsw", "off"] - cell["none", "off"])
    assert both.delta == pytest.approx(by_hand) and done.interactions()[0].paired.p_adjusted is None
    again = load(handbook, done.experiment_id)
    assert [r.scores for r in again.runs] == [r.scores for r in done.runs] and list(again.effects) == list(done.effects)
    alone = run("handbook", gold, store=handbook, dense="none", defines="question")
    assert alone.by_question == done.runs[1].by_question, "a member of a grid is what it is alone"


def test_a_factor_that_changes_no_ranking_is_inert(small: tuple[Store, Path]) -> None:
    store, gold = small
    done = ablate("c", str(gold), {"cites": ["off", "on"], "dedup": ["exact", "off"]}, store=store, dense="none")
    assert done.inert == ["cites"]


def test_a_reranker_that_cannot_change_the_cut_is_warned_of(store: Store, tmp_path: Path) -> None:
    ingest(write(tmp_path / "docs", DOCUMENTS), "c", store=store, embedder="keyword")
    gold = gold_into(tmp_path / "g", {"q1": ("relief valve", "a.md", "The relief valve opens at twelve bar.")})
    done = run("c", str(gold), store=store, reranker="maxsim", rerank_depth=10, k=10)
    assert any("cannot change which passages" in note for note in done.notes)


def test_bad_factors_are_refused(small: tuple[Store, Path], lab: Lab) -> None:
    store, gold = small
    for words, said in [
        (["--factor", "definez=off,on"], "did you mean 'defines'"),
        (["--factor", "defines=off"], "at least two values"),
        (["--factor", "defines=off,no"], "same value twice"),
        (["--factor", "defines=off,question", "--defines", "off"], "both a factor and held fixed"),
        (["--factor", "dense=none,hnsw", "--lexical", "none"], "no arm is left"),
    ]:
        answer = lab("ablate", "c", "--gold", str(gold), *words, store=store)
        assert answer.code == 2 and said in answer.err, answer.err
    with pytest.raises(UsageError, match="at least one"):
        ablate("c", str(gold), {}, store=store)


def test_the_python_api(handbook: Store) -> None:
    found = api.search("handbook", "what is a quiet hour", store=handbook, k=3)
    assert len(found.to_frame()) == 3 and "<table" in found._repr_html_()
    done = api.run("handbook", "handbook", store=handbook, dense="none")
    frame = done.to_frame()
    assert list(frame.columns) == ["run_id", "question", "kind", "band", "cluster", "measure", "value"]
    assert frame[frame.measure == "hit@5"].value.mean() == pytest.approx(done.scores["hit@5"])
    by_kind = frame[frame.measure == "hit@5"].groupby("kind").value.mean()
    assert {k: v["hit@5"] for k, v in done.grouped("kind").items()} == pytest.approx(by_kind.to_dict())
    assert done.macro("kind")["hit@5"] == pytest.approx(by_kind.mean()) and done.macro("cluster") != done.scores


def test_python_reference_is_relocated_by_its_quotes_on_another_python(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold = load_gold("python-reference")
    sources = sorted({j.source for j in gold.judgments})
    write_documents("python-reference", tmp_path / "topics")
    first, second = tmp_path / "topics" / sources[0], tmp_path / "topics" / sources[1]
    first.write_text("Moved by a line.\n\n" + first.read_text())
    second.write_text("Nothing is left of it.\n")
    ingest(tmp_path / "topics", "python_reference", store=store, embedder="none")
    done = run("python_reference", gold, store=store, dense="none")
    moved = sum(j.source == sources[0] for j in gold.judgments)
    assert any(f"{moved} judgments relocated" in note for note in done.notes)
    gone = next(note for note in done.notes if "gone from these texts" in note)
    assert done.status == "degraded" and rows.get_run(store, done.run_id).gold_digest != gold.digest
    assert sources[1] in gone and done.scores["hit@10"] > 0.3
    assert gone in capsys.readouterr().err


# ── faults found in review ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_reranker_that_fails_on_every_third_question_makes_the_run_degraded(
    store: Store, tmp_path: Path, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(write(tmp_path / "docs", DOCUMENTS), "c", store=store, embedder="keyword")
    judged = {f"q{i}": ("when does the relief valve open", "a.md", "The relief valve opens at twelve bar.") for i in range(6)}
    gold = gold_into(tmp_path / "g", judged)
    calls = 0

    def score(self: object, question: str, passages: list[str]) -> list[float]:
        nonlocal calls
        calls += 1
        if calls % 3 == 0:
            raise LabError("the reranker failed")
        return [1.0] * len(passages)

    monkeypatch.setattr("lab.models.rerankers.MaxSim.score", score)
    answer = lab("run", "c", "--gold", str(gold), "--reranker", "maxsim", "--json", store=store)
    assert answer.code == 3 and answer.json["status"] == "degraded" and answer.json["questions"] == 6
    assert answer.json["scores"]["hit@5"] == pytest.approx(4 / 6) and any("reranker failed (2 questions)" in note for note in answer.json["notes"])


@pytest.mark.parametrize("flags", [[], ["--dense", "none", "--mmr-lambda", "0.5"], ["--dense", "none", "--reranker", "maxsim"]])
def test_a_usage_error_records_no_run(flags: list[str], small: tuple[Store, Path], lab: Lab) -> None:
    store, gold = small
    assert lab("run", "c", "--gold", str(gold), *flags, store=store).code == 2
    assert lab("ablate", "c", "--gold", str(gold), "--factor", "k=1,2", *flags).code == 2
    assert store.rows("select (select count(*) from lab.runs), (select count(*) from lab.experiments)") == [(0, 0)]


def test_padded_factor_values_are_the_values(small: tuple[Store, Path], lab: Lab) -> None:
    store, gold = small
    answer = lab("ablate", "c", "--gold", str(gold), "--factor", "dedup=exact, off", "--dense", "none", "--json", store=store)
    assert answer.code == 0 and [r["passed"]["dedup"] for r in answer.json["runs"]] == ["exact", "off"]


def test_a_split_of_a_gold_object_is_scored_and_recorded(small: tuple[Store, Path]) -> None:
    store, gold = small
    loaded = load_gold(gold, split_by="question")
    done = run("c", loaded, store=store, dense="none", split="dev")
    assert set(done.by_question) == {q.question_id for q in loaded.questions if q.split == "dev" and q.question_id in {"q1", "q2", "q3", "q4"}}
    assert rows.get_run(store, done.run_id).split == "dev by question"
    done = run("c", load_gold(gold, split="test", split_by="question"), store=store, dense="none")
    assert rows.get_run(store, done.run_id).split == "test by question"


def test_a_component_of_more_than_a_fifth_has_no_fair_half(small: tuple[Store, Path], lab: Lab) -> None:
    store, gold = small
    gold_into(gold, {f"q{i}": ("when does the relief valve open", "a.md", "The relief valve opens at twelve bar.") for i in range(5)})
    refused = lab("run", "c", "--gold", str(gold), "--dense", "none", "--split", "dev", store=store)
    assert refused.code == 3 and "--split-by question" in refused.err
    answer = lab("run", "c", "--gold", str(gold), "--dense", "none", "--split", "dev", "--split-by", "question", "--json")
    assert answer.code == 0 and rows.get_run(store, answer.json["run_id"]).split == "dev by question"


def test_a_report_of_runs_that_never_ended_is_3(small: tuple[Store, Path], lab: Lab) -> None:
    store, gold = small
    done = ablate("c", str(gold), {"k": [1, 2]}, store=store, dense="none")
    with store.connection() as connection:
        connection.execute("update lab.runs set status = 'incomplete', finished_at = null where run_id = %s", [done.runs[1].run_id])
    answer = lab("report", done.experiment_id, store=store)
    assert answer.code == 3 and "incomplete" in answer.err


def test_ids_do_not_collide() -> None:
    assert len({new_id("r") for _ in range(5000)}) == 5000


def test_a_run_without_its_bm25_index_is_degraded_and_3(store: Store, tmp_path: Path, lab: Lab) -> None:
    write(tmp_path / "d", {"a.md": "# A\n\nThe relief valve opens at 12 bar.\n", "b.md": "# B\n\nQuiet hours begin at ten.\n"})
    ingest(tmp_path / "d", "c", store=store, embedder="none")
    text = "The relief valve opens at 12 bar."
    save_gold(
        tmp_path / "g", [Question("q", "When does the valve open?", "fact", "dev")], [Judgment("q", "a.md", 5, 5 + len(text), 1, text)], "# g\n"
    )
    assert lab("run", "c", "--gold", str(tmp_path / "g"), "--dense", "none", store=store).code == 0
    with store.connection() as connection:
        connection.execute("drop index kb_c.chunks_bm25")
    answer = lab("run", "c", "--gold", str(tmp_path / "g"), "--dense", "none", "--json")
    assert answer.code == 3 and answer.json["status"] == "degraded" and answer.json["scores"]["hit@5"] == 1.0
    assert any("BM25 index of c is missing" in note for note in answer.json["notes"])


def test_a_run_shows_what_each_stage_rescued_and_harmed(handbook: Store, lab: Lab) -> None:
    answer = lab("run", "handbook", "--gold", "handbook", "--split", "dev", "--cites", "on", "--measure", "hit@5", store=handbook)
    table = {line.split()[0]: line.split()[1:] for line in answer.out.splitlines() if line[:1].isalpha()}
    row = rows.runs(handbook, limit=1)[0]
    assert table["links"] == [str(row.health[part].get("links", 0)) for part in ("rescued", "harmed", "first_lost")]
    assert row.health["rescued"]["links"] > 0
    assert float(table["fused"][0]) == pytest.approx(row.health["alone"]["fuse"], abs=5e-5)
    stored = handbook.rows("select count(*) from lab.ledger where run_id = %(r)s and cardinality(grades) <> cardinality(passages)", {"r": row.run_id})
    assert stored == [(0,)]


def test_a_summary_that_pushes_its_source_out_of_its_place(store: Store, lab: Lab, tmp_path: Path) -> None:
    """Two rules, each quoted by a lesson of lower tier. The lesson that says more of the question's words ranks first without authority, behind its source with
    a large weight; a rule that nobody quotes is not counted."""
    rule = "The relief valve on each brine tank is lifted by hand once in every calendar month."
    other = "Whoever opens the gate at the north quay writes the time into the red book at once."
    files = {
        "rules/a.md": f"# A\n\n{rule}", "rules/b.md": f"# B\n\n{other}", "rules/c.md": "# C\n\nNobody smokes behind the chlorine store.",
        "lessons/a.md": f"# Valve lifting\n\nValve lifting by hand, month by month: {rule}", "lessons/b.md": "# Far\n\nLunch is at noon.",
        "source_authority.json": '{"default": 0, "rules": [{"match": "rules/*", "tier": 9}]}',
    }  # fmt: skip
    ingest(write(tmp_path / "d", files), "c", store=store, embedder="none")
    ask = {
        "q1": ("How is a valve lifted by hand in a month of lifting?", "rules/a.md", rule),
        "q2": ("Who smokes behind the store?", "rules/c.md", "Nobody smokes behind the chlorine store."),
    }
    texts = {source: text for source, _, text in documents.texts(store, collections.get(store, "c"))}
    judged = [
        Judgment(q, source, texts[source].index(quote), texts[source].index(quote) + len(quote), 2, quote) for q, (_, source, quote) in ask.items()
    ]
    save_gold(tmp_path / "g", [Question(q, text, kind="fact") for q, (text, _, _) in ask.items()], judged, "# g")
    answer = lab(
        "ablate",
        "c",
        "--gold",
        str(tmp_path / "g"),
        "--dense",
        "none",
        "--factor",
        "authority_weight=0,1",
        "--measure",
        "primary_first@10",
        store=store,
    )
    assert answer.code == 0, answer.err
    assert "Main effects on primary_first@10" in answer.out
    found = rows.runs(store, limit=2)
    scores = {row.passed["authority_weight"]: [(q, v) for _, q, m, v in rows.scores(store, [row.run_id]) if m == "primary_first@10"] for row in found}
    assert scores == {"0": [("q1", 0.0)], "1": [("q1", 1.0)]}
