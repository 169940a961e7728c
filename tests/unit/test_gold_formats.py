"""Gold sets from and to other people's files: what comes back is what went out, as far as the format can hold it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from lab.errors import CannotJudge, UsageError
from lab.gold.files import load_gold, save_gold
from lab.gold.formats import beir, irds, spans, squad, trec
from lab.records import GoldSet, Judgment, Question

TEXTS = {"a b.md": "The pump is oiled daily. It is blue.", "c%20.md": "Ann, “the fitter”,\noils it."}


def texts(sources: Sequence[str]) -> Mapping[str, str]:
    return {source: TEXTS[source] for source in sources if source in TEXTS}


def span(question: str, source: str, quote: str, grade: int) -> Judgment:
    at = TEXTS[source].index(quote)
    return Judgment(question, source, at, at + len(quote), grade, quote)


def whole(question: str, source: str, grade: int) -> Judgment:
    return Judgment(question, source, 0, len(TEXTS[source]), grade, TEXTS[source])


@pytest.fixture
def gold(tmp_path: Path) -> GoldSet:
    """Spans, grades 2, 1 and 0, an unanswerable question, two judgments of one question in two documents, metadata, a line break in a quote."""
    questions = [
        Question("q1", 'How often, "exactly"?', "fact", "train", True, {"band": "natural", "parent": "q2"}),
        Question("q2", "Who oils <it> & when?", "multi", "dev", True, {"needs": "all"}),
        Question("q3", "What does it cost?", "unanswerable", "dev", False),
    ]
    judgments = [
        span("q1", "a b.md", "oiled daily", 2),
        span("q2", "c%20.md", "Ann, “the fitter”,\noils it.", 1),
        span("q2", "a b.md", "oiled daily", 1),
    ]
    save_gold(tmp_path / "g", questions, judgments, "# g\n", refused=[span("q1", "a b.md", "It is blue.", 0)])
    return load_gold(tmp_path / "g")


def same(a: GoldSet, b: GoldSet) -> None:
    assert list(b.questions) == list(a.questions)
    assert set(b.judgments) == set(a.judgments) and set(b.refused) == set(a.refused)
    assert b.digest == a.digest


def test_csv_loses_nothing(gold: GoldSet, tmp_path: Path) -> None:
    assert spans.write(gold, tmp_path / "g.csv") == []
    same(gold, load_gold(spans.read(tmp_path / "g.csv", "h", to=tmp_path)))
    same(gold, load_gold(spans.read(tmp_path / "g.csv", "i", to=tmp_path, texts=texts)))
    with pytest.raises(UsageError, match="exists"):
        spans.write(gold, tmp_path / "g.csv")


def test_squad_loses_the_refused_only(gold: GoldSet, tmp_path: Path) -> None:
    said = squad.write(gold, TEXTS, tmp_path / "g.json")
    assert said == ["1 passages that were judged not to answer are left out: SQuAD has no place for them"]
    back = load_gold(squad.read(tmp_path / "g.json", "h", known=TEXTS.items(), to=tmp_path))
    assert sorted(back.questions, key=lambda q: q.question_id) == list(gold.questions)
    assert set(back.judgments) == set(gold.judgments)


def test_squad_brings_its_own_documents(tmp_path: Path) -> None:
    """Three annotators, two of whom marked the same words; an answer in another paragraph of the same article; an impossible question."""
    context = "Café Bräu opened in 1921. It closed in 1950."
    data = {"version": "v2.0", "data": [{"title": "Café Bräu", "paragraphs": [
        {"context": context, "qas": [
            {"id": "x", "question": "When did it open?", "answers": [{"text": "1921", "answer_start": 20}, {"text": "1921", "answer_start": 20}, {"text": "in 1921", "answer_start": 17}]},
            {"id": "y", "question": "Who drank there?", "is_impossible": True, "answers": []}]},
        {"context": "Nothing more.", "qas": []}]}]}  # fmt: skip
    (tmp_path / "s.json").write_text(json.dumps(data))
    path = squad.read(tmp_path / "s.json", "s", to=tmp_path)
    made = load_gold(path)
    assert [(j.source, j.start, j.end, j.quote) for j in made.judgments] == [("Café_Bräu/1", 20, 24, "1921"), ("Café_Bräu/1", 17, 24, "in 1921")]
    assert [q.answerable for q in made.questions] == [True, False]
    records = [json.loads(line) for line in (path / "documents" / "corpus.jsonl").read_text().splitlines()]
    assert [(r["_id"], r["title"], r["text"]) for r in records] == [
        ("Café_Bräu/1", "Café Bräu", context),
        ("Café_Bräu/2", "Café Bräu", "Nothing more."),
    ]
    with pytest.raises(UsageError, match="stands in no document"):
        squad.read(tmp_path / "s.json", "t", known=[("z", "other words")], to=tmp_path)
    data["data"][0]["paragraphs"][0]["qas"][0]["answers"][0]["answer_start"] = 3  # type: ignore[index]
    (tmp_path / "s.json").write_text(json.dumps(data))
    with pytest.raises(UsageError, match="'1921' of question x does not stand at 3"):
        squad.read(tmp_path / "s.json", "t", to=tmp_path)
    assert not (tmp_path / "t").exists()


def test_titles_that_are_cleaned_alike_stay_apart(tmp_path: Path) -> None:
    """東京 and 大阪 both became article/1, C and C++ one article: the second was written over the first."""
    data = {"data": [{"title": title, "paragraphs": [{"context": f"{title} has a river.", "qas": [
        {"id": title, "question": "What has it?", "answers": [{"text": "a river", "answer_start": len(title) + 5}]}]}]} for title in ("東京", "大阪", "C", "C++", "??")]}  # fmt: skip
    (tmp_path / "s.json").write_text(json.dumps(data))
    path = squad.read(tmp_path / "s.json", "s", to=tmp_path)
    assert [j.source for j in load_gold(path).judgments] == ["東京/1", "大阪/1", "C/1", "C/2", "article/1"]
    assert len((path / "documents" / "corpus.jsonl").read_text().splitlines()) == 5


def test_a_question_named_with_a_space_and_a_quote_of_a_whole_book(tmp_path: Path) -> None:
    long = "word " * 40_000
    save_gold(tmp_path / "g", [Question("a b", "Who?")], [Judgment("a b", "x.md", 0, len(long), 1, long)], "")
    gold = load_gold(tmp_path / "g")
    spans.write(gold, tmp_path / "g.csv")
    assert load_gold(spans.read(tmp_path / "g.csv", "h", to=tmp_path)).digest == gold.digest
    trec.write(gold, {"x.md": long}, tmp_path / "t")
    back = trec.read(tmp_path / "t" / "qrels.txt", "i", topics=tmp_path / "t" / "topics.txt", texts=lambda sources: {"x.md": long}, to=tmp_path)
    assert load_gold(back).judgments == gold.judgments
    with pytest.raises(UsageError, match=r"name a \.csv"):
        spans.write(gold, tmp_path / "g.tsv")


def test_what_changes_a_score_changes_the_digest(tmp_path: Path) -> None:
    digests = set()
    for number, metadata in enumerate(({}, {"ignore": ["x.md"]}, {"needs": "all"}, {"parent": "b"}, {"band": "copied"})):
        save_gold(tmp_path / str(number), [Question("a", "Who?", metadata=metadata)], [whole("a", "a b.md", 1)], "")
        digests.add(load_gold(tmp_path / str(number)).digest)
    assert len(digests) == 4, "how much it copies changes none"


@pytest.mark.parametrize("bad", ["[]x", "{}", '{"data": [{}]}', '{"data": [{"paragraphs": [{}]}]}', '{"data": [{"paragraphs": [{"context": "a", "qas": [{"id": 1}]}]}]}',
                                 '{"data": [{"title": "t", "paragraphs": [{"context": "a", "qas": [7]}]}]}', '{"data": []}'])  # fmt: skip
def test_what_is_no_squad_file_is_said(bad: str, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(bad)
    with pytest.raises(UsageError, match=r"s\.json"):
        squad.read(tmp_path / "s.json", "s", to=tmp_path)


def test_trec_keeps_documents_and_grades_and_says_what_it_loses(gold: GoldSet, tmp_path: Path) -> None:
    said = trec.write(gold, TEXTS, tmp_path / "t")
    assert [sentence.split(";")[0].split(":")[0] for sentence in said] == [
        "2 of 3 judgments are spans", "1 judgments of a document that was judged for the same question already are one with it", "white space and % in names of documents are written as %XX, since qrels have columns by white space",
        "kinds, splits and the mark of unanswerable questions are left out",
    ]  # fmt: skip
    assert (tmp_path / "t" / "qrels.txt").read_text() == "q1 0 a%20b.md 2\nq2 0 c%2520.md 1\nq2 0 a%20b.md 1\n"
    back = load_gold(trec.read(tmp_path / "t" / "qrels.txt", "h", topics=tmp_path / "t" / "topics.txt", texts=texts, to=tmp_path))
    assert [(q.question_id, q.text) for q in back.questions] == [(q.question_id, q.text) for q in gold.questions]
    assert set(back.judgments) == {whole("q1", "a b.md", 2), whole("q2", "c%20.md", 1), whole("q2", "a b.md", 1)}


def test_whole_documents_survive_trec_and_beir(tmp_path: Path) -> None:
    questions = [
        Question("1", "How often?", split="test"),
        Question("2", "Who?", split="train"),
        Question("3", "Price?", "unanswerable", "test", False),
    ]
    refused = [Judgment("1", "c%20.md", 0, len(TEXTS["c%20.md"]), 0, "")]
    save_gold(tmp_path / "g", questions, [whole("1", "a b.md", 3), whole("2", "c%20.md", 1)], "# g\n", refused=refused)
    gold = load_gold(tmp_path / "g")
    assert beir.write(gold, [(source, "", text) for source, text in TEXTS.items()], tmp_path / "b") == []
    same(gold, load_gold(beir.read(tmp_path / "b", "h", "train,test", tmp_path)))
    trec.write(gold, TEXTS, tmp_path / "t")
    back = load_gold(trec.read(tmp_path / "t" / "qrels.txt", "i", topics=tmp_path / "t" / "topics.txt", texts=texts, to=tmp_path))
    assert (set(back.judgments), set(back.refused)) == (set(gold.judgments), set(gold.refused))


def test_topics_as_trec_wrote_them(tmp_path: Path) -> None:
    """TREC-8's form: no closing tags, labels before the text, entities."""
    (tmp_path / "t.txt").write_text(
        "<top>\n\n<num> Number: 401 \n<title> foreign minorities, Germany &amp; France\n\n<desc> Description: \nWhat language and\ncultural differences?\n\n"
        "<narr> Narrative: \nA relevant document &lt;here&gt;.\n\n</top>\n<top>\n<num> Number: 402\n<desc> Description:\nbehavioral genetics\n</top>\n"
    )
    first, second = trec.read_topics(tmp_path / "t.txt")
    assert (first.question_id, first.text) == ("401", "foreign minorities, Germany & France")
    assert first.metadata == {"description": "What language and cultural differences?", "narrative": "A relevant document <here>."}
    assert (second.question_id, second.text, second.metadata) == ("402", "behavioral genetics", {})
    (tmp_path / "t.tsv").write_text("7\twho oils it\n8\twhat for\n")
    assert [(q.question_id, q.text) for q in trec.read_topics(tmp_path / "t.tsv")] == [("7", "who oils it"), ("8", "what for")]


def test_qrels_below_zero_say_nothing_and_zero_says_no(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "q.txt").write_text("7 0 a%20b.md 2\n7 Q0 c%2520.md 0\n8 0 a%20b.md -1\n8 0 gone.md 1\n9 0 a%20b.md 1\n")
    (tmp_path / "t.tsv").write_text("7\twho oils it\n8\twhat for\n")
    made = load_gold(trec.read(tmp_path / "q.txt", "h", topics=tmp_path / "t.tsv", texts=texts, to=tmp_path))
    assert made.judgments == (whole("7", "a b.md", 2),) and [(j.question_id, j.source, j.grade) for j in made.refused] == [("7", "c%20.md", 0)]
    assert [q.question_id for q in made.questions] == ["7", "8"]
    said = capsys.readouterr().err
    assert "1 judgments have a grade below 0" in said and "1 judgments name documents that are absent or empty, as gone.md" in said
    for bad, why in (("7 0 x\n", "line 1"), ("7 0 x y\n", "line 1"), ("", "no text"), ("z 0 a%20b.md 1\n", "judges none")):
        (tmp_path / "q.txt").write_text(bad)
        with pytest.raises(UsageError, match=why):
            trec.read(tmp_path / "q.txt", "i", topics=tmp_path / "t.tsv", texts=texts, to=tmp_path)
    (tmp_path / "q.txt").write_text("7 0 gone.md 1\n")
    with pytest.raises(CannotJudge, match="no judgment of a document that is there"):
        trec.read(tmp_path / "q.txt", "i", topics=tmp_path / "t.tsv", texts=texts, to=tmp_path)
    assert not (tmp_path / "i").exists()


def test_a_dataset_of_ir_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One registered here, so that nothing is fetched."""
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "home"))
    ir_datasets = pytest.importorskip("ir_datasets")
    (tmp_path / "d.tsv").write_text("d1\tThe pump is oiled daily.\nd2\tIt is blue.\n")
    (tmp_path / "q.tsv").write_text("7\thow often is it oiled\n8\twhat colour\n")
    (tmp_path / "r.txt").write_text("7 0 d1 2\n7 0 d2 0\n8 0 d2 1\n")
    name = f"lab-test/{tmp_path.name}"
    made = ir_datasets.create_dataset(docs_tsv=str(tmp_path / "d.tsv"), queries_tsv=str(tmp_path / "q.tsv"), qrels_trec=str(tmp_path / "r.txt"))
    ir_datasets.registry.register(name, made)
    path = irds.read(name, "h", to=tmp_path / "gold")
    gold = load_gold(path)
    assert [(q.question_id, q.text) for q in gold.questions] == [("7", "how often is it oiled"), ("8", "what colour")]
    assert [(j.question_id, j.source, j.grade, j.quote) for j in gold.judgments] == [
        ("7", "d1", 2, "The pump is oiled daily."),
        ("8", "d2", 1, "It is blue."),
    ]
    assert [(j.question_id, j.source) for j in gold.refused] == [("7", "d2")]
    assert len((path / "documents" / "corpus.jsonl").read_text().splitlines()) == 2
    with pytest.raises(UsageError, match="knows no dataset"):
        irds.read("lab-test/none", "i", to=tmp_path / "gold")


def test_every_set_follows_its_schema(gold: GoldSet) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    from lab.resources import folder

    schema = jsonschema.Draft202012Validator(json.loads((folder("gold") / "schema.json").read_text()))
    checked = 0
    for path in (folder("gold") / "handbook", folder("gold") / "python-reference", Path(str(gold.metadata["path"]))):
        for line in (path / "questions.jsonl").read_text().splitlines():
            schema.validate(json.loads(line))
            checked += 1
    assert checked > 700
    assert not schema.is_valid({"_id": "a"}) and not schema.is_valid({"_id": "a", "text": "x", "metadata": {"answerable": "no"}})


@pytest.mark.parametrize("metadata", ['{"answerable": "false"}', '{"ignore": "486"}', '{"kind": 3}', '{"split": ["dev"]}'])
def test_metadata_of_another_type_is_refused(metadata: str, tmp_path: Path) -> None:
    """`"answerable": "false"` counted as answerable."""
    save_gold(tmp_path / "g", [Question("a", "x")], [], "")
    (tmp_path / "g" / "questions.jsonl").write_text(f'{{"_id": "a", "text": "x", "metadata": {metadata}}}\n')
    with pytest.raises(UsageError, match=r"line 1: metadata\."):
        load_gold(tmp_path / "g")
