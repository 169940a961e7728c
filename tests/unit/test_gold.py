"""Gold files, splits, and the two sets that ship with the lab."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import pytest

from lab.corpus import readers
from lab.errors import UsageError
from lab.gold.check import classify, relocate
from lab.gold.documents import made_for, python_topics, topics_digest
from lab.gold.files import kinds, load_gold, save_gold
from lab.gold.formats import beir
from lab.gold.splits import assign, components, largest_share
from lab.records import GoldSet, Judgment, Question
from lab.resources import folder
from lab.text import STOP_WORDS, copied_share, copying_band, stem, words

HANDBOOK = folder("gold") / "handbook"


def texts() -> dict[str, str]:
    found = {}
    for path in sorted((HANDBOOK / "documents").rglob("*.md")):
        source = path.relative_to(HANDBOOK / "documents").as_posix()
        data = path.read_bytes()
        found[source] = readers.read(source, data, *readers.format_of(data, path.name)).text
    return found


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_set_survives_its_files(tmp_path: Path) -> None:
    questions = [Question("a", "Ä \t tab?", "fact", "dev", True, {"band": "natural"}), Question("b", "none", "unanswerable", "test", False)]
    judgments = [Judgment("a", "d/x.md", 3, 12, 2, "tab\there\\n\nnew")]
    save_gold(tmp_path / "g", questions, judgments, "# g\n")
    save_gold(tmp_path / "g", questions, judgments, "# g\n")
    gold = load_gold(tmp_path / "g")
    assert list(gold.questions) == questions and list(gold.judgments) == judgments
    assert gold.digest == load_gold(tmp_path / "g").digest
    assert [q.question_id for q in load_gold(tmp_path / "g", split="dev").questions] == ["a"]


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("questions.jsonl", '{"_id": "a"}\n', "line 1"),
        ("questions.jsonl", '{"_id": "a", "text": "x"}\n{"_id": "a", "text": "y"}\n', "line 2 repeats"),
        ("judgments.tsv", "wrong\n", "header"),
        ("judgments.tsv", "question\tsource\tstart\tend\tgrade\tquote\na\td\t5\t5\t1\tx\n", "line 2"),
        ("judgments.tsv", "question\tsource\tstart\tend\tgrade\tquote\nz\td\t0\t5\t1\tx\n", "'z'"),
        ("judgments.tsv", "question\tsource\tstart\tend\tgrade\tquote\na\td\tx\t5\t1\tx\n", "line 2"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(file: str, text: str, said: str, tmp_path: Path) -> None:
    save_gold(tmp_path / "g", [Question("a", "x")], [], "")
    (tmp_path / "g" / file).write_text(text)
    with pytest.raises(UsageError, match=said):
        load_gold(tmp_path / "g")


def test_an_unknown_set_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'handbook'"):
        load_gold("handbok")
    with pytest.raises(UsageError, match="unknown split"):
        load_gold(HANDBOOK, split="train")


def test_classes_of_drift() -> None:
    j = Judgment("q", "d", 2, 5, 1, "abc")
    assert [classify(j, t) for t in ("xxabc", "abc", "abcabc", "xyz")] == [("intact", 2, 5), ("moved", 0, 3), ("ambiguous", 0, 0), ("gone", 0, 0)]
    moved, lost = relocate(GoldSet("g", (), (j,), ""), {"d": "abc"})
    assert (moved.judgments[0].start, moved.judgments[0].end, lost) == (0, 3, [])


# ── splits ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_questions_that_share_a_document_or_a_parent_stay_together() -> None:
    questions = [Question(str(i), "x", metadata={"parent": "0"} if i == 5 else {}) for i in range(6)]
    judgments = [
        Judgment("0", "a", 0, 1, 1, "x"),
        Judgment("1", "a", 0, 1, 1, "x"),
        Judgment("2", "b", 0, 1, 1, "x"),
        Judgment("3", "c", 0, 1, 1, "x"),
        Judgment("3", "b", 0, 1, 1, "x"),
    ]
    groups = sorted(components(questions, judgments))
    assert groups == [["0", "1", "5"], ["2", "3"], ["4"]]
    split = {q.question_id: q.split for q in assign(questions, judgments)}
    assert split["0"] == split["1"] == split["5"] and split["2"] == split["3"]
    assert set(split.values()) == {"dev", "test"}


def test_imported_splits_keep_their_names() -> None:
    assert [q.split for q in assign([Question("a", "x", split="train")], [])] == ["train"]


# ── handbook ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_handbook_has_what_its_readme_promises() -> None:
    gold = load_gold(HANDBOOK)
    counts = kinds(gold.questions)
    assert len(texts()) >= 45 and len(gold.questions) >= 420
    assert counts["definition"] >= 120 and counts["citation"] >= 60 and counts["fact"] >= 40
    assert counts["section"] >= 30 and counts["paraphrase"] >= 20 and counts["unanswerable"] >= 150
    assert {q.answerable for q in gold.questions if q.kind == "unanswerable"} == {False}


def test_every_span_of_the_handbook_holds_its_quote() -> None:
    stored = texts()
    for j in load_gold(HANDBOOK).judgments:
        assert stored[j.source][j.start : j.end] == j.quote, j


def test_every_answerable_question_is_judged_and_no_other() -> None:
    gold = load_gold(HANDBOOK)
    judged = {j.question_id for j in gold.judgments}
    assert judged == {q.question_id for q in gold.questions if q.answerable}


def _paragraph(text: str, start: int, end: int) -> str:
    first = text.rfind("\n\n", 0, start)
    last = text.find("\n\n", end)
    return text[first + 2 if first >= 0 else 0 : last if last >= 0 else len(text)]


def test_questions_do_not_copy_their_passages() -> None:
    gold, stored = load_gold(HANDBOOK), texts()
    bands: Counter[str] = Counter()
    for q in gold.questions:
        if q.answerable:
            j = gold.of(q.question_id)[0]
            share = copied_share(q.text, _paragraph(stored[j.source], j.start, j.end))
            assert q.metadata["copied"] == round(share, 2) and q.metadata["band"] == copying_band(share)
            bands[copying_band(share)] += 1
    assert bands["copied"] <= 0.3 * sum(bands.values())


def test_no_opening_stands_in_more_than_a_fifth_of_a_kind() -> None:
    openings: dict[str, Counter[str]] = defaultdict(Counter)
    for q in load_gold(HANDBOOK).questions:
        openings[q.kind][" ".join(words(q.text)[:2])] += 1
    for kind, counts in openings.items():
        assert counts.most_common(1)[0][1] <= 0.2 * sum(counts.values()), (kind, counts.most_common(1))


def test_paraphrases_share_no_content_word_with_the_paragraph_that_answers() -> None:
    gold, stored = load_gold(HANDBOOK), texts()
    for q in gold.questions:
        if q.kind == "paraphrase":
            j = gold.of(q.question_id)[0]
            there = {stem(w) for w in words(_paragraph(stored[j.source], j.start, j.end)) if w not in STOP_WORDS}
            assert not {stem(w) for w in words(q.text) if w not in STOP_WORDS} & there, q


def test_both_splits_of_the_handbook_can_tell_five_percent_of_false_answers() -> None:
    gold = load_gold(HANDBOOK)
    for split in ("dev", "test"):
        assert sum(q.split == split and not q.answerable for q in gold.questions) >= 59
    assert largest_share(gold.questions, gold.judgments) <= 0.2
    sources = defaultdict(set)
    split_of = {q.question_id: q.split for q in gold.questions}
    for j in gold.judgments:
        sources[j.source].add(split_of[j.question_id])
    assert all(len(splits) == 1 for splits in sources.values())


# ── python-reference ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_python_reference_has_its_questions() -> None:
    gold = load_gold(folder("gold") / "python-reference")
    assert len(gold.questions) >= 80
    assert {j.question_id for j in gold.judgments} == {q.question_id for q in gold.questions if q.answerable}


def test_every_span_of_python_reference_holds_its_quote() -> None:
    version, wanted = made_for()
    if topics_digest() != wanted:
        pytest.skip(f"the help topics of this Python differ from those of {version}: judgments are relocated by quote instead")
    topics = python_topics()
    for j in load_gold(folder("gold") / "python-reference").judgments:
        assert topics[j.source.removesuffix(".txt")][j.start : j.end] == j.quote, j


@pytest.mark.parametrize("name", ["../escaped", "", ".hidden", "a/b"])
def test_an_imported_set_stays_in_its_folder(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot name a gold set"):
        beir.read(tmp_path, name, "test", tmp_path / "gold")


def test_importing_names_the_bad_line_and_does_not_overwrite(tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d", "title": "T", "text": "Body."}\n{"_id": "e", "text": ""}\n')
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "What?"}\n')
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td\t2\nq\te\t1\nq\tx\t0\n")
    gold = load_gold(beir.read(tmp_path, "g", "test", tmp_path / "gold"))
    assert [(j.source, j.start, j.end, j.grade, j.quote) for j in gold.judgments] == [("d", 0, 5, 2, "Body.")]
    assert [q.split for q in gold.questions] == ["test"]
    with pytest.raises(UsageError, match="--replace"):
        beir.read(tmp_path, "g", "test", tmp_path / "gold")
    (tmp_path / "queries.jsonl").write_text("{oops\n")
    with pytest.raises(UsageError, match="line 1"):
        beir.read(tmp_path, "g", "test", tmp_path / "gold", replace=True)
    with pytest.raises(UsageError, match="unknown split"):
        beir.read(tmp_path, "h", "train", tmp_path / "gold")


def test_a_reworded_quote_is_found_where_it_stands_now() -> None:
    """Of ten words one is another: 9 shared, 11 in all, 0.82. Three others: 7 of 13, gone."""
    quote = "The relief valve on brine tanks is lifted every month."
    text = "First words. The relief valve on brine tanks is raised every month. Last words."
    found, start, end = classify(Judgment("q", "d", 0, len(quote), 1, quote), text)
    assert (found, text[start:end]) == ("reworded", "The relief valve on brine tanks is raised every month")
    half = "alpha beta gamma delta epsilon zeta eta theta iota kappa"
    assert classify(Judgment("q", "d", 9, 9 + len(half), 1, half), "alpha beta gamma delta epsilon zeta eta theta one two three four")[0] == "gone"
    other = "The safety valve on brine pumps is raised every month."
    assert classify(Judgment("q", "d", 1, 1 + len(quote), 1, quote), other) == ("gone", 0, 0)
    assert classify(Judgment("q", "d", 1, 4, 1, "???"), "no words alike") == ("gone", 0, 0)


def test_a_set_that_cannot_be_written_leaves_nothing_and_the_old_one_as_it_was(tmp_path: Path) -> None:
    """A lone surrogate can stand in no file. A set called x.new is no scratch folder, and what lies beside the set's files stays."""
    save_gold(tmp_path / "x", [Question("a", "Old?")], [Judgment("a", "d\te.md", 0, 3, 1, "abc")], "# x")
    save_gold(tmp_path / "x.new", [Question("b", "Mine?")], [], "# x.new")
    (tmp_path / "x" / "baseline.json").write_text("{}")
    with pytest.raises(UnicodeEncodeError):
        save_gold(tmp_path / "x", [Question("a", "\ud83d?")], [], "# x")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x", "x.new"]
    assert load_gold(tmp_path / "x").questions[0].text == "Old?" and load_gold(tmp_path / "x").judgments[0].source == "d\te.md"
    save_gold(tmp_path / "x", [Question("a", "New?")], [Judgment("a", "d.md", 0, 3, 1, "abc")], "# x")
    assert (load_gold(tmp_path / "x").questions[0].text, (tmp_path / "x" / "baseline.json").read_text()) == ("New?", "{}")
    assert load_gold(tmp_path / "x.new").questions[0].text == "Mine?"
