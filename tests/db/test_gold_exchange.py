"""Import and export through the command line, and the traps of Cranfield: graded judgments, empty documents, the paper that a question was written from."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from lab.corpus.ingest import ingest
from lab.evaluation.run import run
from lab.gold.check import check
from lab.gold.files import load_gold, save_gold
from lab.records import Judgment, Question
from lab.store import collections
from lab.store.connect import Store
from tests.conftest import Lab, write

FILES = {"a.md": "# A\n\nThe pump is oiled daily.", "b c.md": "# B\n\nThe fan is oiled by Ann."}


def small(store: Store, tmp_path: Path) -> str:
    ingest(write(tmp_path / "d", FILES), "c", store=store, embedder="none")
    save_gold(
        tmp_path / "c", [Question("q1", "When is the pump oiled?", "fact"), Question("q2", "Price?", "unanswerable", answerable=False)],
        [Judgment("q1", "a.md", 17, 28, 2, "oiled daily")], "# c\n", refused=[Judgment("q1", "b c.md", 5, 29, 0, "The fan is oiled by Ann.")],
    )  # fmt: skip
    return str(tmp_path / "c")


def test_what_is_exported_comes_back(store: Store, lab: Lab, tmp_path: Path) -> None:
    gold = small(store, tmp_path)
    before = load_gold(gold)
    lost = {}
    for format, target in (("csv", "o.csv"), ("squad", "o.json"), ("trec", "trec"), ("beir", "beir")):
        answer = lab("gold", "export", gold, "--format", format, "--to", str(tmp_path / target), "--json", store=store)
        assert answer.code == 0, answer.err
        lost[format] = answer.json["lost"]
        assert lab("gold", "export", gold, "--format", format, "--to", str(tmp_path / target), store=store).code == 2, "nothing is overwritten"
    assert lost["csv"] == [] and len(lost["squad"]) == 1 and "spans" in lost["trec"][0] and "spans" in lost["beir"][0]
    back = tmp_path / "back"
    for words in (
        ("o.csv", "--format", "csv", "-c", "c", "--as", "x"), ("o.json", "--format", "squad", "-c", "c", "--as", "y"),
        ("trec/qrels.txt", "--format", "trec", "--questions", str(tmp_path / "trec" / "topics.txt"), "-c", "c", "--as", "z"), ("beir", "--as", "w"),
    ):  # fmt: skip
        answer = lab("gold", "import", str(tmp_path / words[0]), *words[1:], "--to", str(back), store=store)
        assert answer.code == 0, answer.err
    assert load_gold(back / "x").digest == before.digest
    assert (load_gold(back / "y").judgments, load_gold(back / "y").questions) == (before.judgments, before.questions)
    for name in ("z", "w"):
        made = load_gold(back / name)
        assert [(j.source, j.start, j.grade) for j in made.judgments] == [("a.md", 0, 2)] and [j.source for j in made.refused] == ["b c.md"]
    assert check(store, collections.get(store, "c"), load_gold(back / "z")).outcome == "ok"
    assert run("c", str(back / "z"), store=store, dense="none").scores["judged@10"] == 1.0


def test_misused_options_are_one_sentence(store: Store, lab: Lab, tmp_path: Path) -> None:
    gold = small(store, tmp_path)
    for words, said in (
        (("import", str(tmp_path), "--as", "x", "--format", "bier"), "did you mean 'beir'"),
        (("import", str(tmp_path), "--as", "x", "--ignore", "f", "--format", "csv"), "--ignore does not belong to --format csv"),
        (("import", str(tmp_path), "--as", "x", "--format", "trec"), "needs the topics"),
        (("export", gold, "--format", "pdf", "--to", "x"), "format"),
        (("export", gold, "--format", "beir", "--to", "x", "-c", "nowhere"), "nowhere"),
    ):
        answer = lab("gold", *words, store=store)
        assert answer.code == 2 and said in answer.err, answer.err


def test_a_page_for_a_person_without_python(store: Store, lab: Lab, tmp_path: Path) -> None:
    gold = small(store, tmp_path)
    assert lab("gold", "review", gold, "--html", str(tmp_path / "p.html"), "--json", store=store).json["items"] == 2
    html = (tmp_path / "p.html").read_text()
    data = json.loads(html.split('type="application/json">')[1].split("</script>")[0])
    assert [(i["before"], i["quote"], i["after"]) for i in data["items"]] == [("# A\n\nThe pump is ", "oiled daily", "."), ("", "", "")]
    decision = {"at": "2026-01-02T03:04:05Z", "who": "Bob", "item": "q:q1", "question": "q1", "action": "reject"}
    (tmp_path / "d.jsonl").write_text(json.dumps(decision) + "\n")
    assert lab("gold", "review", gold, "--take", str(tmp_path / "d.jsonl"), "--json", store=store).json["added"] == 1
    assert lab("gold", "review", gold, "--apply", "--json", store=store).json["questions"] == 1
    assert load_gold(gold).refused == ()


def test_a_twin_of_a_judged_passage_is_not_queued(store: Store, lab: Lab, tmp_path: Path) -> None:
    ingest(write(tmp_path / "d", {"a.md": "# A\n\nThe pump is oiled daily.", "b.md": "# B\n\nThe pump is oiled daily.", "c.md": "# C\n\nThe pump is blue."}), "c", store=store, embedder="none")  # fmt: skip
    save_gold(tmp_path / "c", [Question("q1", "When is the pump oiled?")], [Judgment("q1", "a.md", 5, 29, 1, "The pump is oiled daily.")], "# c\n")
    found = run("c", str(tmp_path / "c"), store=store, dense="none", dedup="off")
    assert len(found.rankings["q1"]) == 3
    assert lab("gold", "pool", str(tmp_path / "c"), "--runs", found.run_id, "--json", store=store).json["queued"] == 1


# ── Cranfield ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_traps_of_cranfield(store: Store, shared_data: Callable[[str], Path], lab: Lab, tmp_path: Path) -> None:
    """1,612 of 1,837 rows judge; 225 mark the paper a question was written from, which is kept out of its ranking, whether the qrels list it too or not."""
    folder = shared_data("cranfield")
    ingest(folder / "corpus.jsonl", "cran", store=store, format="beir", embedder="none", twins="exact")
    source = [line.split("\t")[:2] for line in (folder / "qrels" / "source_minus1.tsv").read_text().splitlines()[1:]]
    rows = [line.split("\t") for line in (folder / "qrels" / "test.tsv").read_text().splitlines()[1:]]
    kept = [row for row in rows if row[:2] not in source and row[1] not in {"471", "995"}]
    answer = lab(
        "gold", "import", str(folder), "--as", "cran", "--ignore", str(folder / "qrels" / "source_minus1.tsv"), "--to", str(tmp_path), store=store
    )
    assert answer.code == 0, answer.err
    gold = load_gold(tmp_path / "cran")
    assert {(j.question_id, j.source): j.grade for j in gold.judgments} == {(q, d): int(g) for q, d, g in kept}
    assert {j.grade for j in gold.judgments} == {1, 2, 3, 4}
    assert not {j.source for j in gold.judgments} & {"471", "995"}
    assert [list(pair) for pair in source] == [[q.question_id, d] for q in gold.questions for d in q.metadata.get("ignore", ())]
    assert check(store, collections.get(store, "cran"), gold).outcome == "ok"
    without = run("cran", gold, store=store, dense="none")
    for question in gold.questions:
        assert not {c.rpartition("::")[0] for c in without.rankings.get(question.question_id, ())} & set(question.metadata.get("ignore", ()))
    assert without.scores["hit@10"] > 0 and all(len(ids) == 10 for ids in without.rankings.values()), "what stood below moves up"
    lab("gold", "import", str(folder), "--as", "plain", "--to", str(tmp_path), store=store)
    plain = run("cran", str(tmp_path / "plain"), store=store, dense="none")
    found = sum(any(c.rpartition("::")[0] == d for c in plain.rankings[q]) for q, d in source if q in plain.rankings)
    assert found > 50, "the paper that a question was written from is easily found, and would flatter or punish"
    assert plain.scores["nDCG@10"] != without.scores["nDCG@10"]
