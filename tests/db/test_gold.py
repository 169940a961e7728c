"""Gold against a collection: generated, imported, checked, repaired."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.corpus.ingest import ingest
from lab.errors import CannotJudge
from lab.gold.check import check
from lab.gold.files import load_gold, save_gold
from lab.gold.formats import spans
from lab.gold.generate import generate
from lab.records import GoldSet, Judgment, Question
from lab.store import collections, documents
from lab.store.connect import Store
from tests.conftest import Lab, write

QUOTES = [
    f"The {thing} in hall {n} is oiled {often}."
    for n, (thing, often) in enumerate([("pump", "daily"), ("fan", "weekly"), ("crane", "monthly"), ("door", "yearly")])
]


def texts_of(store: Store, name: str) -> Callable[[list[str]], dict[str, str]]:
    return lambda sources: {source: text for source, _, text in documents.texts(store, collections.get(store, name), sources)}


# ── generated ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_generated_set_fits_and_is_the_same_again(handbook: Store, tmp_path: Path) -> None:
    done = generate("handbook", "g", store=handbook, questions=80, seed=5, to=tmp_path)
    gold = load_gold(tmp_path / "g")
    assert check(handbook, collections.get(handbook, "handbook"), gold).outcome == "ok"
    assert (done.kept, len(gold.questions)) == (80, 80)
    assert set(done.kinds) == {"section", "definition", "fact", "citation", "keyword", "unanswerable"}
    per_document = Counter(j.source for j in gold.judgments)
    assert max(per_document.values()) <= 8 + 1, "a tenth of 80, and a judgment more where a citation leads there"
    again = generate("handbook", "h", store=handbook, questions=80, seed=5, to=tmp_path)
    assert load_gold(tmp_path / "h").digest == gold.digest and again.kinds == done.kinds
    assert load_gold_digest(handbook, tmp_path, seed=6) != gold.digest
    for q in gold.questions:
        assert q.metadata["generator"] and (not q.answerable or {"copied", "band", "longest_run", "lexical_first"} <= set(q.metadata))
        assert q.metadata.get("derived_from") == {"definition": "defines", "citation": "cites"}.get(q.kind)
        assert bool(q.metadata.get("to_review")) == bool(q.metadata.get("incomplete"))
    readme = (tmp_path / "g" / "README.md").read_text()
    assert "--seed 5" in readme and "flatter lexical search" in readme


def load_gold_digest(store: Store, folder: Path, seed: int) -> str:
    generate("handbook", f"s{seed}", store=store, questions=80, seed=seed, to=folder)
    return load_gold(folder / f"s{seed}").digest


def test_what_is_said_to_be_absent_is_absent(handbook: Store, tmp_path: Path) -> None:
    generate("handbook", "g", store=handbook, questions=20, kinds=["unanswerable"], to=tmp_path)
    texts = " ".join(text.lower() for _, _, text in documents.texts(handbook, collections.get(handbook, "handbook")))
    for q in load_gold(tmp_path / "g").questions:
        assert not q.answerable and str(q.metadata["absent"]).lower() not in texts


def test_every_document_is_asked_about_and_none_takes_all(store: Store, tmp_path: Path) -> None:
    """Ten documents, one with nine tenths of the passages."""
    big = "# Big\n\n" + "\n\n".join(f"## Part {n}\n\nThe machine {n} must be greased with paste {n * 7} every {n + 2} weeks." for n in range(90))
    small = {f"s{n}.md": f"# Small {n}\n\n## Rule\n\nThe door {n} must be locked by the guard every {n + 3} days." for n in range(9)}
    ingest(
        write(tmp_path / "d", {name: text.replace("\\\n", "\n") for name, text in {"big.md": big, **small}.items()}),
        "c",
        store=store,
        embedder="none",
    )
    generate("c", "g", store=store, questions=30, kinds=["fact", "keyword"], to=tmp_path)
    per_document = Counter(j.source for j in load_gold(tmp_path / "g").judgments)
    assert set(per_document) == {"big.md", *small}
    assert per_document["big.md"] <= 4, "ceil(30 / 10 documents) + 1"


def test_other_passages_that_look_as_if_they_answered_are_left_to_a_person(store: Store, tmp_path: Path) -> None:
    files = {"a.md": "# A\n\nThe pump seal must be changed by the fitter every nine weeks.", "b.md": "# B\n\nThe pump seal must be changed by the fitter every six weeks, says the old rule.",
             "c.md": "# C\n\nNobody sings."}  # fmt: skip
    ingest(write(tmp_path / "d", {name: text.replace("\\\n", "\n") for name, text in files.items()}), "c", store=store, embedder="none")
    generate("c", "g", store=store, questions=5, kinds=["fact"], to=tmp_path)
    asked = {q.text: q.metadata for q in load_gold(tmp_path / "g").questions}
    assert asked["How often must the pump seal be changed by the fitter?"]["to_review"] == ["b.md::1"]


def test_nothing_kept_is_said_with_counts(store: Store, lab: Lab, tmp_path: Path) -> None:
    ingest(write(tmp_path / "d", {f"{n}.md": f"# T{n}\n\nPump{n}." for n in range(3)}), "c", store=store, embedder="none")
    answer = lab("gold", "generate", "c", "--as", "g", "--to", str(tmp_path), "--kinds", "fact,keyword", store=store)
    assert (answer.code, answer.out) == (3, "")
    assert "0 kept" in answer.err and not (tmp_path / "g").exists()
    assert "did you mean 'fact'?" in lab("gold", "generate", "c", "--as", "g", "--kinds", "facts", store=store).err
    kept = lab("gold", "generate", "handbook_", "--as", "g", store=store)
    assert kept.code == 2


def test_generate_and_stats_as_json(handbook: Store, lab: Lab, tmp_path: Path) -> None:
    made = lab("gold", "generate", "handbook", "--as", "g", "-n", "30", "--to", str(tmp_path), "--json", store=handbook).json
    assert made["kept"] == 30 and set(made["rejected"]) <= {
        "duplicate",
        "dangling",
        "heading_echo",
        "too_short",
        "not_a_question",
        "quote_absent",
        "document_full",
    }
    stats = lab("gold", "stats", str(tmp_path / "g"), "--json").json
    assert (stats["questions"], sum(stats["kinds"].values()), sum(stats["bands"].values())) == (30, 30, 30 - stats["unanswerable"])
    assert lab("gold", "stats", "handbook").code == 0


# ── checked ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def gold_of(folder: Path, store: Store, name: str = "c", questions: int = 4) -> Path:
    texts = {source: text for source, _, text in documents.texts(store, collections.get(store, name))}
    judged = [
        Judgment(f"q{n}", f"{n}.md", texts[f"{n}.md"].index(quote), texts[f"{n}.md"].index(quote) + len(quote), 2, quote)
        for n, quote in enumerate(QUOTES)
    ]
    asked = [
        Question(f"q{n}", f"How often is the thing of hall {n} oiled?", "fact", metadata={"derived_from": "defines"} if n == 0 else {})
        for n in range(questions)
    ]
    save_gold(folder / "g", asked, judged, "# g\n")
    return folder / "g"


def test_drift_is_classed_repaired_and_refused_beyond_its_limit(store: Store, lab: Lab, tmp_path: Path) -> None:
    files = {f"{n}.md": f"# T\n\n{quote} Other words stand here." for n, quote in enumerate(QUOTES)}
    ingest(write(tmp_path / "d", files), "c", store=store, embedder="none")
    gold = gold_of(tmp_path, store)
    assert lab("gold", "check", str(gold), "-c", "c", "--json", store=store).json["outcome"] == "ok"
    changed = {
        "1.md": f"# T\n\nNew words first. {QUOTES[1]}",
        "2.md": "# T\n\nThe crane in hall 2 is greased monthly.",
        "3.md": "# T\n\nNothing of it.",
    }
    ingest(write(tmp_path / "d", changed), "c", store=store)
    answer = lab("gold", "check", str(gold), "-c", "c", "--json", store=store)
    assert (answer.code, answer.json["outcome"]) == (3, "drifted")
    assert answer.json["counts"] == {"intact": 1, "moved": 1, "reworded": 1, "ambiguous": 0, "gone": 1} or answer.json["counts"]["gone"] == 2
    moved = next(b for b in answer.json["broken"] if b["class"] == "moved")
    assert (moved["source"], moved["text"]) == ("1.md", QUOTES[1])
    assert lab("run", "c", "--gold", str(gold), "--dense", "none", store=store).code == 3
    mended = lab("gold", "check", str(gold), "-c", "c", "--repair", "--json", store=store)
    assert "1 moved judgments" in mended.err and mended.json["counts"]["moved"] == 0 and mended.json["counts"]["intact"] == 2
    assert lab("gold", "check", str(gold), "-c", "c", "--max-drift", "0.5", "--json", store=store).code == 0


def test_a_little_drift_is_scored_at_the_new_place_and_said(store: Store, lab: Lab, tmp_path: Path) -> None:
    """One of a hundred judgments has moved: below 2 %, so the run relocates it."""
    files = {f"{n}.md": f"# T\n\nThe lamp number {n} stands in the hall." for n in range(100)}
    ingest(write(tmp_path / "d", files), "c", store=store, embedder="none")
    texts = {source: text for source, _, text in documents.texts(store, collections.get(store, "c"))}
    judged = [
        Judgment(
            f"q{n}",
            f"{n}.md",
            texts[f"{n}.md"].index("The"),
            len(texts[f"{n}.md"].rstrip()),
            1,
            texts[f"{n}.md"][texts[f"{n}.md"].index("The") :].rstrip(),
        )
        for n in range(100)
    ]
    save_gold(tmp_path / "g", [Question(f"q{n}", f"Where is lamp number {n}?") for n in range(100)], judged, "# g\n")
    ingest(write(tmp_path / "d", {"7.md": "# T\n\nFirst of all. The lamp number 7 stands in the hall."}), "c", store=store)
    answer = lab("run", "c", "--gold", str(tmp_path / "g"), "--dense", "none", "--json", store=store)
    assert (answer.code, answer.json["status"], answer.json["questions"]) == (0, "ok", 100)
    assert any("1 judgments relocated" in note for note in answer.json["notes"])


def test_circular_evidence_is_said(store: Store, lab: Lab, tmp_path: Path) -> None:
    ingest(write(tmp_path / "d", {f"{n}.md": f"# T\n\n{quote}" for n, quote in enumerate(QUOTES)}), "c", store=store, embedder="none")
    gold = gold_of(tmp_path, store)
    answer = lab("ablate", "c", "--gold", str(gold), "--dense", "none", "--factor", "defines=off,question", "--json", store=store)
    assert ["1 of 4 questions" in w and "circular" in w for w in answer.json["warnings"]] == [True]
    assert (
        lab("ablate", "c", "--gold", str(gold), "--dense", "none", "--factor", "authority_weight=0,0.1", "--json", store=store).json["warnings"] == []
    )


# ── imported ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_table_written_by_hand(store: Store, lab: Lab, tmp_path: Path) -> None:
    ingest(
        write(tmp_path / "d", {f"{n}.md": f"# T\n\n{quote}\n\nTwice. Twice." for n, quote in enumerate(QUOTES)}), "c", store=store, embedder="none"
    )
    table = tmp_path / "mine.csv"
    table.write_text(
        f'question,source,quote,grade,kind\nHow often is the pump oiled?,0.md,{QUOTES[0]},2,fact\n"How often, then, is the fan oiled?",1.md,{QUOTES[1]},,fact\n'
    )
    answer = lab("gold", "import", str(table), "--format", "spans", "-c", "c", "--as", "mine", "--to", str(tmp_path), store=store)
    assert answer.code == 0, answer.err
    gold = load_gold(tmp_path / "mine")
    assert [(q.question_id, q.text, q.kind) for q in gold.questions] == [
        ("q001", "How often is the pump oiled?", "fact"),
        ("q002", "How often, then, is the fan oiled?", "fact"),
    ]
    assert [(j.start, j.grade) for j in gold.judgments] == [(5, 2), (5, 1)]
    for bad, said in (
        ("question,quote\na,b\n", "no column source"), ("question,source,quote\nq,0.md,Never said.\n", "line 2: the quote does not stand in 0.md"),
        ("question,source,quote\nq,0.md,Twice.\n", "stands 2 times"), ("question,source,quote\nq,x.md,a\n", "does not hold, as x.md"), ("question,source,quote\nq,0.md\n", "has 2 cells"),
        (f"question,source,quote,grade\nq,0.md,{QUOTES[0]},best\n", "no whole number"), ("question,source,quote\nq,0.md,\n", "holds no quote"),
    ):  # fmt: skip
        table.write_text(bad)
        answer = lab("gold", "import", str(table), "--format", "spans", "-c", "c", "--as", "bad", "--to", str(tmp_path), store=store)
        assert answer.code in {2, 3} and said in answer.err and not (tmp_path / "bad").exists(), (bad, answer.err)


def test_human_spans_stay_intact_under_every_chunker(store: Store, shared_data: Callable[[str], Path], tmp_path: Path) -> None:
    """XQuAD's articles: 1,190 answers; with one sentence in twenty edited, exactly the judgments in these change class."""
    folder = shared_data("xquad")
    gold = load_gold(spans.read(folder / "articles_gold_spans.tsv", "x", questions=folder / "beir" / "queries.jsonl", to=tmp_path))
    for chunker in ("heading", "sentence-window"):
        ingest(folder / "articles", chunker.replace("-", "_"), store=store, embedder="none", chunker=chunker, twins="exact")
        found = check(store, collections.get(store, chunker.replace("-", "_")), gold)
        assert (found.counts["intact"], found.outcome) == (1190, "ok")
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted((folder / "articles").glob("*.txt"))}
    edited = tmp_path / "edited"
    edited.mkdir()
    for name, text in every_twentieth_sentence_edited(texts).items():
        (edited / name).write_text(text, encoding="utf-8")
    ingest(edited, "edited", store=store, embedder="none", twins="exact")
    exactly_the_touched(store, "edited", gold)


def every_twentieth_sentence_edited(texts: dict[str, str]) -> dict[str, str]:
    """Letters of a twentieth of the sentences are other ones, as many: nothing else moves."""
    other = str.maketrans({chr(c): "#" for c in (*range(97, 123), *range(48, 58))})
    found, number = {}, 0
    for name, text in texts.items():
        parts = re.split(r"(?<=[.!?])(\s+)", text)
        for at in range(0, len(parts), 2):
            number += 1
            if number % 20 == 0:
                parts[at] = parts[at].translate(other)
        found[name] = "".join(parts)
    return found


def exactly_the_touched(store: Store, name: str, gold: GoldSet) -> None:
    """What is not intact is what does not stand there any more, and that is a few in a hundred."""
    collection = collections.get(store, name)
    stored = {source: text for source, _, text in documents.texts(store, collection)}
    touched = {(j.question_id, j.source, j.start) for j in gold.judgments if stored[j.source][j.start : j.end] != j.quote}
    found = check(store, collection, gold, max_drift=1.0)
    assert {(b.judgment.question_id, b.judgment.source, b.judgment.start) for b in found.broken} == touched
    assert 0.01 < len(touched) / len(gold.judgments) < 0.12 and found.counts["intact"] == len(gold.judgments) - len(touched)


def test_human_evidence_of_scifact_is_intact(store: Store, shared_data: Callable[[str], Path], tmp_path: Path) -> None:
    """1,391 evidence spans under two chunkers; with every twentieth sentence edited exactly what it touches changes class."""
    folder = shared_data("scifact")
    ingest(folder / "corpus.jsonl", "s", store=store, format="beir", embedder="none", twins="exact")
    path = spans.read(folder / "gold_evidence_sentences.tsv", "s", questions=folder / "queries.jsonl", texts=texts_of(store, "s"), to=tmp_path)  # type: ignore[arg-type]
    gold = load_gold(path)
    ingest(folder / "corpus.jsonl", "whole", store=store, format="beir", embedder="none", twins="exact", chunker="whole")
    for name in ("s", "whole"):
        found = check(store, collections.get(store, name), gold)
        assert (found.counts["intact"], found.outcome) == (1391, "ok")
    stored = {source: text for source, _, text in documents.texts(store, collections.get(store, "s"))}
    records = [json.dumps({"_id": source, "title": "", "text": text}) for source, text in every_twentieth_sentence_edited(stored).items()]
    (tmp_path / "corpus.jsonl").write_text("\n".join(records))
    ingest(tmp_path / "corpus.jsonl", "edited", store=store, format="beir", embedder="none", twins="exact")
    exactly_the_touched(store, "edited", gold)


def test_a_gold_set_that_points_nowhere_cannot_be_judged(store: Store, tmp_path: Path) -> None:
    ingest(write(tmp_path / "d", {"a.md": "# A\n\nWords."}), "c", store=store, embedder="none")
    save_gold(tmp_path / "g", [Question("q", "Where?")], [Judgment("q", "nowhere.md", 0, 3, 1, "abc")], "# g\n")
    with pytest.raises(CannotJudge, match=r"nowhere\.md"):
        _run(store, tmp_path)


def _run(store: Store, folder: Path) -> None:
    from lab.evaluation.run import run

    run("c", str(folder / "g"), store=store, dense="none")


def test_json_of_check(handbook: Store, lab: Lab) -> None:
    answer = lab("gold", "check", "handbook", "--json", store=handbook).json
    assert (set(answer["counts"]), answer["unknown_documents"], answer["outcome"]) == ({"intact", "moved", "reworded", "ambiguous", "gone"}, [], "ok")
    assert json.dumps(answer)


# ── judged by people ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_pooled_passages_are_reviewed_and_enter_the_set(store: Store, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs, one lexical and one of another depth: what both returned and nobody judged waits once; a judged passage does not."""
    files = {"a.md": "# A\n\nThe pump is oiled daily.", "b.md": "# B\n\nThe pump is oiled by the fitter.", "c.md": "# C\n\nThe pump is blue."}
    ingest(write(tmp_path / "d", files), "c", store=store, embedder="none")
    save_gold(
        tmp_path / "c",
        [Question("q1", "When is the pump oiled?", "fact")],
        [Judgment("q1", "a.md", 5, 29, 2, "The pump is oiled daily.")],
        "# c\n\nMine.\n",
    )
    gold = str(tmp_path / "c")
    ids = [lab("run", "c", "--gold", gold, "--dense", "none", "--k", k, "--json", store=store).json["run_id"] for k in ("2", "3")]
    assert lab("gold", "pool", gold, "--runs", ",".join(ids), "--json", store=store).json == {"schema_version": 1, "queued": 2, "waiting": 2}
    assert lab("gold", "pool", gold, "--runs", ids[0], "--json", store=store).json["queued"] == 0
    assert lab("gold", "pool", gold, "--runs", "nowhere", store=store).code == 2
    monkeypatch.setattr("sys.stdin", io.StringIO("a\n1\n0\n"))
    done = lab("gold", "review", gold, "--who", "ann", "--json", store=store)
    assert done.json == {"schema_version": 1, "who": "ann", "decided": 3, "left": 0, "decisions": 3}
    assert "When is the pump oiled?" in done.err
    assert lab("gold", "review", gold, "--apply", "--json").json["counts"] == {
        "accepted": 1,
        "rejected": 0,
        "edited": 0,
        "judged_relevant": 1,
        "judged_not": 1,
    }
    made = load_gold(tmp_path / "c")
    assert {(j.source, j.grade) for j in made.judgments} == {("a.md", 2), ("b.md", 1)}
    assert (tmp_path / "c" / "README.md").read_text() == "# c\n\nMine.\n" and made.questions[0].split in {"dev", "test"}
    assert check(store, collections.get(store, "c"), made).outcome == "ok"
    assert lab("gold", "pool", gold, "--runs", ids[1], "--json", store=store).json["queued"] == 0, "what was judged waits no more"
    assert lab("gold", "review", gold, "--agreement", "ann,bob", "--json").json["items"] == 0
    assert lab("gold", "review", gold, "--agreement", "ann").code == 2
