"""Measures of answers: by hand on four questions, judges and what models do to them, agreement with people, and answers as measures of runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab.corpus.ingest import ingest
from lab.errors import UsageError
from lab.evaluation import judging
from lab.evaluation.answering import Answering
from lab.evaluation.compare import compare
from lab.evaluation.judging import Case, agreement, judge_named
from lab.evaluation.measures import parse
from lab.evaluation.run import run
from lab.gold import answers as labelled
from lab.gold.files import load_gold, save_gold
from lab.models.chat import Chat
from lab.records import Judgment, Question
from lab.resources import folder
from lab.store.connect import Store
from tests.conftest import Lab, write
from tests.servers import Fake, Model, model

VALVES = "# Valves\n\nThe relief valve opens at 12 bar.\n\n## Tests\n\nIt is tested on the bench every six months."
DOORS = "# Doors\n\nThe door of the hall is blue. It is shut at night."


@pytest.fixture
def plant(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("LAB_HOME", str(tmp_path / "home"))
    files = write(tmp_path / "d", {"valves.md": VALVES, "doors.md": DOORS})
    ingest(files, "c", store=store, embedder="keyword")
    asked = [Question("q1", "At which pressure does the relief valve open?", "fact"), Question("q2", "Which colour has the door of the hall?", "fact"),
             Question("q3", "When is the relief valve tested?", "fact"), Question("u1", "Who sells tickets?", "unanswerable", answerable=False)]  # fmt: skip

    def judgment(question: str, source: str, quote: str) -> Judgment:
        at = (files / source).read_text().index(quote)
        return Judgment(question, source, at, at + len(quote), 2, quote)

    save_gold(
        tmp_path / "g", asked,
        [judgment("q1", "valves.md", "The relief valve opens at 12 bar."), judgment("q2", "doors.md", "The door of the hall is blue."),
         judgment("q3", "valves.md", "It is tested on the bench every six months."), judgment("q3", "valves.md", "The relief valve opens at 12 bar.")], "# g\n",
    )  # fmt: skip
    labels = {"_id": "q1", "question": asked[0].text, "reference": "12 bar", "passages": [{"text": "The relief valve opens at 12 bar."}],
              "answers": [{"text": "It opens at 12 bar [1].", "label": "good"}, {"text": "It opens at 9 bar [1].", "label": "bad", "fault": "number"}]}  # fmt: skip
    (tmp_path / "g" / labelled.FILE).write_text(json.dumps(labels) + "\n")  # a gold set's own labels are the ones that count
    return store


def told(text: str) -> dict[str, Any]:
    return {"answer": text, "sufficient": bool(text)}


def numbers(store: Store, question: str) -> dict[str, int]:
    """Source and section → the number that the passage has in the block of a question."""
    from lab.serving.answers import retrieve

    return {p.result.text[:12]: p.n for p in retrieve(store, "c", question).passages}


def test_scores_by_hand(plant: Store, models: list[Model], tmp_path: Path) -> None:
    """q1 cites the right passage and a wrong one; q2 is not answered; q3 cites one of its two passages, says one of two sentences wrong; u1 is answered and should not be."""
    one = numbers(plant, "At which pressure does the relief valve open?")
    three = numbers(plant, "When is the relief valve tested?")
    right, door, bench = one["The relief v"], one["The door of "], three["It is tested"]
    by = model(
        models,
        ("Question: At which pressure", told(f"The relief valve opens at 12 bar [{right}][{door}].")), ("Question: Which colour", told("")),
        ("Question: When is", told(f"It is tested on the bench every six months [{bench}]. It is tested every nine months [{bench}].")), ("Question: Who sells", told("The mayor sells tickets [1].")),
    )  # fmt: skip
    to = tmp_path / "answers.jsonl"
    done = run("c", load_gold(str(tmp_path / "g")), store=plant, answering=Answering("chat", chat=by.chat, to=to))
    scores = done.by_question
    assert scores["q1"] | {"answered": 1.0, "citation_precision": 0.5, "citation_recall": 1.0, "faithfulness": 1.0} == scores["q1"]
    assert (scores["q2"]["answered"], scores["q2"]["citation_recall"]) == (0.0, 0.0) and "faithfulness" not in scores["q2"]
    assert scores["q3"] | {"citation_precision": 1.0, "citation_recall": 0.5, "faithfulness": 0.5} == scores["q3"]
    assert done.scores["answered"] == pytest.approx(2 / 3) and done.scores["citation_recall"] == 0.5 and done.scores["faithfulness"] == 0.75
    told_apart = done.health["answers"]
    assert (told_apart["false_answers"], told_apart["unanswerable"], told_apart["answered"], told_apart["answerable"]) == (1, 1, 2, 3)
    assert told_apart["answerer"] == "chat:scripted" and told_apart["cost"]["calls"] == 4 and told_apart["target"] == 0.9
    rows = {row["_id"]: row for row in map(json.loads, to.read_text().splitlines())}
    assert rows["q2"]["answer"] is None and "9 does not stand" in rows["q3"]["why"] and rows["u1"]["answerable"] is False
    stored = {(q, m): v for q, m, v in plant.rows("select question_id, measure, value from lab.scores where run_id = %(r)s", {"r": done.run_id})}
    assert stored["q3", "faithfulness"] == 0.5 and ("q2", "relevance") not in stored
    asked = len(by.asked)
    again = run("c", load_gold(str(tmp_path / "g")), store=plant, answering=Answering("chat", chat=by.chat))
    assert len(by.asked) == asked and again.scores == done.scores, "what the model said is kept"
    without = run("c", load_gold(str(tmp_path / "g")), store=plant, answering="extractive")
    assert compare(done.run_id, without.run_id, primary="faithfulness", store=plant).to_json()["verdict"] == "cannot_tell"


def test_a_scripted_answerer_that_quotes_reaches_the_targets_and_one_that_invents_does_not(
    plant: Store, models: list[Model], lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def right(question: str, start: str, text: str) -> tuple[str, Any]:
        return f"Question: {question}", told(f"{text} [{numbers(plant, question)[start]}]")

    good = model(
        models, right("At which pressure does the relief valve open?", "The relief v", "The relief valve opens at 12 bar"), right("Which colour has the door of the hall?", "The door of ", "The door of the hall is blue"),
        right("When is the relief valve tested?", "It is tested", "It is tested every six months"), ("Question: Who", told("")),
    )  # fmt: skip
    bad = model(models, ("Question:", told("The mayor opens it at 99 bar [1].")))
    monkeypatch.setenv("LAB_CHAT_MODEL", "good")
    monkeypatch.setenv("LAB_CHAT_URL", good.url)
    text = lab("run", "c", "--gold", str(tmp_path / "g"), "--answers", "chat", store=plant)
    assert (
        text.code == 0
        and "> 0.90" in text.out
        and "3 of 3 answerable questions were answered, and 0 of 1" in text.out
        and "2 labelled answers of g: κ 1.00" in text.out
        and "by proxy" in text.out
    )
    found = lab("run", "c", "--gold", str(tmp_path / "g"), "--answers", "chat", "--json", store=plant).json["health"]["answers"]
    assert found["means"]["faithfulness"] > 0.9 and found["means"]["relevance"] > 0.9
    monkeypatch.setenv("LAB_CHAT_MODEL", "bad")
    monkeypatch.setenv("LAB_CHAT_URL", bad.url)
    found = lab("run", "c", "--gold", str(tmp_path / "g"), "--answers", "chat", "--json", store=plant).json["health"]["answers"]
    assert found["means"]["faithfulness"] == 0.0 and found["false_answers"] == 1


def test_the_proxy_on_labelled_answers(plant: Store) -> None:
    """At least 40 questions by hand; the proxy flags at least 80 % of the bad answers, and few of the good ones."""
    path, rows = labelled.labels_of()
    assert (
        path.parent.name == "handbook"
        and len({row.question_id for row in rows}) >= 40
        and all(row.fault in labelled.FAULTS for row in rows if not row.good)
    )
    found = agreement(judge_named("proxy", plant), rows, path)
    assert found.bad_flagged / found.bad >= 0.8 and found.good_flagged / found.good <= 0.15 and found.kappa is not None and found.kappa > 0.6
    assert abs(found.bad_flagged - 103) <= 2 and abs(found.good_flagged - 6) <= 1, "as README says"
    assert found.by_fault["uncited"][0] == found.by_fault["uncited"][1] and found.unjudged == 0


def test_labelled_passages_stand_in_the_documents(handbook: Store) -> None:
    from lab.store import collections, documents

    texts = {source: text for source, _, text in documents.texts(handbook, collections.get(handbook, "handbook"))}
    asked = {q.question_id: q.text for q in load_gold("handbook").questions}
    for line in (folder("gold") / "handbook" / "answers.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        assert asked[row["_id"]] == row["question"]
        assert all(texts[p["source"]][p["start"] : p["end"]] == p["text"] for p in row["passages"]), row["_id"]


CASE = Case("When does it open?", "At 12 bar [1].", {1: "The valve opens at 12 bar."})


def test_agreement_by_hand(plant: Store, models: list[Model]) -> None:
    """Of two good and two bad answers the judge calls one bad one good: observed 3/4, by chance 2/4·3/4 + 2/4·1/4 = 1/2, κ = 1/2."""
    rows = [
        labelled.Labelled(f"q{n}", "q", "", {1: "t"}, f"answer {n}", good, "" if good else "number")
        for n, good in enumerate((True, True, False, False))
    ]
    verdict = {"faithfulness": 1, "relevance": 1, "why": ""}
    by = model(models, ("answer 3", verdict | {"faithfulness": 0}), ("answer", verdict))
    found = agreement(judge_named("chat", plant, by.chat), rows, "mine")
    assert (found.kappa, found.good_flagged, found.bad_flagged, found.by_fault) == (0.5, 0, 1, {"number": (1, 2)})
    assert "κ 0.50; it flags 1 of 2 bad ones and 0 of 2 good ones" in judging.in_words(found.to_json())
    same = agreement(judge_named("chat", plant, model(models, ("answer", verdict)).chat), rows[:2], "mine")
    assert same.kappa is None and "no κ" in judging.in_words(same.to_json())


@pytest.mark.parametrize(
    ("said", "faithfulness"),
    [
        ('Sure! My verdict:\n```json\n{"faithfulness": 0.5, "relevance": 1, "why": "x",}\n```', 0.5), ('{"faithfulness": NaN, "relevance": 1, "why": ""}', None),
        ('{"faithfulness": 1, "relevance": Infinity, "why": ""}', None), ('{"faithfulness": 8, "relevance": 10, "why": ""}', None), ('{"faithfulness": 1%s, "relevance": 1, "why": ""}' % ("0" * 400), None), ('{"faithfulness": "high", "relevance": 1, "why": ""}', None),
        ('{"faithfulness": true, "relevance": 1, "why": ""}', None), ("It is fine.", None), ('{"faithfulness": 1}', None),
    ],
)  # fmt: skip
def test_a_verdict_that_is_none(said: str, faithfulness: float | None, plant: Store, models: list[Model]) -> None:
    by = model(models, ("Question", said))
    [verdict] = judge_named("chat", plant, by.chat).judge([CASE])
    assert verdict is None if faithfulness is None else verdict is not None and verdict.faithfulness == faithfulness
    assert len(by.asked) == (1 if faithfulness is not None else 2)


def test_what_the_judge_leaves_is_counted(plant: Store, models: list[Model], tmp_path: Path) -> None:
    by = model(models, ("You judge", "never mind"), ("Question:", told("The relief valve opens at 12 bar [1].")))
    done = run("c", load_gold(str(tmp_path / "g")), store=plant, answering=Answering("chat", "chat", chat=by.chat))
    assert done.health["answers"]["unjudged"] == 4 and "faithfulness" not in done.scores and any("no verdict on 4" in note for note in done.notes)
    assert done.health["answers"]["agreement"]["kappa"] is None and done.status == "degraded"


def test_a_judge_that_refuses_ends_nothing(plant: Store, models: list[Model], lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One case is refused with status 400: the others are judged, everything is stored, and the run is not passed off as complete."""

    def answer(path: str, body: Any) -> tuple[int, Any]:
        told = "\n".join(m["content"] for m in body["messages"])
        if "Which colour" in told:
            return 400, {"error": "content\x1b[31m filter"}
        return 200, {"choices": [{"message": {"content": '{"faithfulness": 1, "relevance": 1, "why": ""}'}}]}

    fake = Fake(answer)
    monkeypatch.setenv("LAB_CHAT_URL", fake.url)
    monkeypatch.setenv("LAB_CHAT_MODEL", "m")
    to = tmp_path / "out" / "answers.jsonl"
    text = lab(
        "run", "c", "--gold", str(tmp_path / "g"), "--answers", "extractive", "--judge", "chat", "--answers-to", str(to), "--json", store=plant
    )
    assert text.code == 3 and text.json["status"] == "degraded" and text.json["health"]["answers"]["unjudged"] == 1
    assert any("no verdict on 1 answers" in note and "status 400" in note and "\x1b" not in note for note in text.json["notes"])
    assert len(to.read_text().splitlines()) == 4 and text.json["scores"]["faithfulness"] == 1.0


def test_an_answer_that_cites_nothing_and_documents_that_are_ignored(plant: Store, models: list[Model], tmp_path: Path) -> None:
    by = model(models, ("Question:", told("The relief valve opens at 12 bar.")))
    gold = load_gold(str(tmp_path / "g"))
    done = run("c", gold, store=plant, answering=Answering("chat", chat=by.chat))
    assert done.by_question["q1"] | {"citation_precision": 0.0, "citation_recall": 0.0, "faithfulness": 0.0} == done.by_question["q1"]
    apart = [replace(q, metadata={**q.metadata, "ignore": ["valves.md"]}) if q.question_id == "q1" else q for q in gold.questions]
    for stuff in (False, True):
        before = len(by.asked)
        run("c", replace(gold, questions=tuple(apart)), store=plant, answering=Answering("chat", chat=Chat(by.url, f"stuff {stuff}"), stuff=stuff))
        [body] = [body for _, body, _ in by.asked[before:] if "At which pressure" in body["messages"][1]["content"]]
        block = body["messages"][1]["content"]
        assert "12 bar" not in block and "[1] source: doors.md" in block and "[2]" not in block


def test_labels_that_cannot_be_read_end_it_before_anything_is_asked(plant: Store, models: list[Model], tmp_path: Path) -> None:
    by = model(models, ("Question:", told("x [1].")))
    (tmp_path / "g" / labelled.FILE).write_text("{}\n")
    with pytest.raises(UsageError, match="line 1 is no labelled question"):
        run("c", load_gold(str(tmp_path / "g")), store=plant, answering=Answering("chat", chat=by.chat))
    assert by.asked == [] and not plant.rows("select from lab.runs")


def test_an_answerer_that_fails_makes_the_run_degraded(plant: Store, models: list[Model], tmp_path: Path) -> None:
    by = model(models, ("Question: When", "I would rather not."), ("Question:", told("The relief valve opens at 12 bar [1].")))
    done = run("c", load_gold(str(tmp_path / "g")), store=plant, answering=Answering("chat", chat=by.chat))
    assert (
        done.status == "degraded"
        and done.by_question["q3"]["answered"] == 0.0
        and any("failed on 1 questions, as on q3" in note for note in done.notes)
    )


def test_the_whole_collection_as_a_baseline(plant: Store, models: list[Model], lab: Lab, tmp_path: Path) -> None:
    found = lab("run", "c", "--gold", str(tmp_path / "g"), "--answers", "extractive", "--stuff", "--json", store=plant).json["health"]["answers"]
    assert found["stuff"] is True and found["answered"] == 3
    assert lab("run", "c", "--gold", str(tmp_path / "g"), "--answers", "extractive", "--stuff", "--budget", "50", store=plant).code == 2


def test_a_policy_may_ask(plant: Store, models: list[Model], lab: Lab, tmp_path: Path) -> None:
    """A gate looks at answers only where a policy names them."""
    gold = str(tmp_path / "g")
    first = lab("run", "c", "--gold", gold, "--answers", "extractive", "--json", store=plant).json["run_id"]
    second = lab("run", "c", "--gold", gold, "--answers", "extractive", "--json", store=plant).json["run_id"]
    assert lab("runs", "promote", first, "--as", "main", store=plant).code == 0
    (tmp_path / "gate.toml").write_text('[[rules]]\nmeasure = "faithfulness"\nmargin = 0.1\n')
    assert (
        lab("gate", "--baseline", "main", "--run", second, "--policy", str(tmp_path / "gate.toml"), "--json", store=plant).json["rules"][0]["measure"]
        == "faithfulness"
    )
    plain = lab("run", "c", "--gold", gold, "--json", store=plant).json["run_id"]
    assert lab("gate", "--baseline", "main", "--run", plain, "--policy", str(tmp_path / "gate.toml"), store=plant).code in {2, 3}
    exported = tmp_path / "run.json"
    assert lab("runs", "export", first, "--to", str(exported), store=plant).code == 0
    assert lab("runs", "import", str(exported), store=plant).code in {0, 2}


def test_wrong_words(plant: Store, lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LAB_CHAT_URL", raising=False)
    gold = str(tmp_path / "g")
    for words, said in (
        (["--answers", "oracle"], "--answers cannot be 'oracle': it takes extractive or chat"), (["--answers", "extractive", "--answers-to", "/dev/null/a"], "cannot be written"), (["--answers", "chat"], "LAB_CHAT_URL"), (["--answers", "extractive", "--judge", "me"], "proxy or chat"), (["--stuff"], "say --answers"),
        (["--measure", "faithfulness"], "with --answers"), (["--answers", "extractive", "--smoke", "3"], "leave --smoke"), (["--answers", "extractive", "--answers-to", "."], "is a folder"),
    ):  # fmt: skip
        answered = lab("run", "c", "--gold", gold, *words, store=plant)
        assert answered.code == 2 and said in answered.err, answered.err
    ran = lab("run", "c", "--gold", gold, "--answers", "extractive", "--json", store=plant).json["run_id"]
    for command in (
        ["ablate", "c", "--gold", gold, "--factor", "defines=off,question", "--measure", "faithfulness"], ["tune", "c", "--gold", gold, "--factor", "rrf_k=10,60", "--measure", "answered", "--folds", "2"],
        ["replay", ran, "--measure", "relevance"], ["bisect", ran, ran, "--measure", "relevance"], ["noise", "c", "--gold", gold, "--measure", "citation_recall"],
    ):  # fmt: skip
        answered = lab(*command, store=plant)
        assert answered.code == 2 and "is a measure of answers" in answered.err, (command, answered.err)
    assert not plant.rows("select from lab.experiments")
    assert lab("replay", ran, store=plant).code == 0, "the rankings of a run with answers can be made again"
    assert str(parse("Faithfulness")) == "faithfulness"
    (tmp_path / "bad.jsonl").write_text(
        '{"_id": "a", "question": "q", "reference": "r", "passages": [], "answers": [{"text": "x", "label": "fine"}]}\n'
    )
    with pytest.raises(UsageError, match=r"line 1 is no labelled question"):
        labelled.read(tmp_path / "bad.jsonl")
