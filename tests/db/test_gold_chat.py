"""Gold written by a chat model, against a real local HTTP server with canned and with malformed answers."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.corpus.ingest import ingest
from lab.corpus.quotes import locate
from lab.gold.check import check
from lab.gold.files import load_gold
from lab.models import chat, wire
from lab.store import collections
from lab.store.connect import Store
from tests.conftest import Lab, write
from tests.servers import Fake

RULES = ["The relief valve on each brine tank is lifted by hand once in every calendar month.", "Whoever opens the gate at the north quay writes the time into the red book at once.",
         "Nobody smokes behind the chlorine store, and lighters stay in the porter's box."]  # fmt: skip
ASKS = [
    "When must somebody raise the safety device of a vessel?",
    "Where does a person note an entry by water?",
    "May one light up near the gas depot?",
]


def said(value: Any) -> tuple[int, Any]:
    text = value if isinstance(value, str) else json.dumps(value)
    return 200, {"choices": [{"message": {"content": text}}], "usage": {"prompt_tokens": 100, "completion_tokens": 20}}


def canned(path: str, body: Any) -> tuple[int, Any]:
    """Two questions for the first rule (one with a quote that does not stand there), one for the second, none for the third; paraphrases of what is asked."""
    user = body["messages"][1]["content"]
    if user.startswith("Question:"):
        at = next((n for n, rule in enumerate(RULES) if any(word in user for word in rule.split()[1:3])), 0)
        return said({"questions": [ASKS[at]]})
    if RULES[0] in user:
        return said({"questions": [{"question": "How often is the relief valve lifted?", "quote": "lifted by hand once in every calendar  month", "kind": "fact"},
                                   {"question": "Who lifts the relief valve?", "quote": "the shift lead lifts it", "kind": "fact"}]})  # fmt: skip
    if RULES[1] in user:
        return said(
            'Sure! ```json\n{"questions": [{"question": "What is written into the red book?", "quote": "“writes the time into the red book”", "kind": "Procedure"},]}\n```'
        )
    return said({"questions": []})


@pytest.fixture
def rules(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any], Fake]]:
    monkeypatch.setenv("LAB_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(wire, "PAUSE", 0.0)
    ingest(write(tmp_path / "d", {f"{n}.md": f"# T{n}\n\n{rule}" for n, rule in enumerate(RULES)}), "c", store=store, embedder="none")

    def serve(answer: Any) -> Fake:
        chat._chat.cache_clear()
        fake = Fake(answer)
        monkeypatch.setenv("LAB_CHAT_URL", fake.url)
        monkeypatch.setenv("LAB_CHAT_MODEL", "scribe-1")
        return fake

    yield serve
    chat._chat.cache_clear()


def test_each_question_keeps_its_own_passage_and_its_quote(rules: Callable[[Any], Fake], store: Store, lab: Lab, tmp_path: Path) -> None:
    """Two, one and no question came back where two were asked for."""
    fake = rules(canned)
    made = lab("gold", "generate", "c", "--as", "g", "--chat", "-n", "20", "--to", str(tmp_path), "--json", store=store).json
    gold = load_gold(tmp_path / "g")
    by_text = {q.text: q for q in gold.questions}
    judged = {q.text: next(j for j in gold.judgments if j.question_id == q.question_id) for q in gold.questions}
    assert set(by_text) == {"How often is the relief valve lifted?", "What is written into the red book?", ASKS[0], ASKS[1]}
    first = judged["How often is the relief valve lifted?"]
    assert (first.source, first.quote) == ("0.md", "lifted by hand once in every calendar month")
    assert judged["What is written into the red book?"].quote == "writes the time into the red book"
    assert (
        by_text[ASKS[0]].kind == "paraphrase" and by_text[ASKS[0]].metadata["parent"] == by_text["How often is the relief valve lifted?"].question_id
    )
    assert by_text[ASKS[0]].metadata["band"] == "paraphrased" and by_text["What is written into the red book?"].kind == "procedure"
    assert all(q.metadata["model"] == "scribe-1" for q in gold.questions)
    assert made["rejected"]["quote_absent"] == 1
    assert made["cost"] == {"calls": 5, "tokens": 600, "cached": 0, "questions_returned": {"0": 1, "1": 1, "2": 1}}
    assert check(store, collections.get(store, "c"), gold).outcome == "ok"
    assert "scribe-1" in (tmp_path / "g" / "README.md").read_text()
    assert {body["model"] for _, body, _ in fake.asked} == {"scribe-1"}
    again = lab("gold", "generate", "c", "--as", "g", "--chat", "-n", "20", "--to", str(tmp_path), "--replace", "--json", store=store).json
    assert (again["cost"]["calls"], again["cost"]["cached"], len(fake.asked)) == (0, 5, 5), "the same call again asks nothing"
    assert load_gold(tmp_path / "g").digest == gold.digest


def test_a_budget_stops_and_the_next_call_goes_on(rules: Callable[[Any], Fake], store: Store, lab: Lab, tmp_path: Path) -> None:
    fake = rules(canned)
    answer = lab("gold", "generate", "c", "--as", "g", "--chat", "--budget", "120", "--to", str(tmp_path), store=store)
    assert "the budget of 120 tokens is spent" in answer.err
    asked = len(fake.asked)
    assert asked == 1
    lab("gold", "generate", "c", "--as", "h", "--chat", "--to", str(tmp_path), store=store)
    assert len(fake.asked) == 5, "what the first call had learnt is not asked again"


def test_forbidden_words_are_forbidden(rules: Callable[[Any], Fake], store: Store, lab: Lab, tmp_path: Path) -> None:
    """The model says 'valves' again: another form of a rare word."""

    def stubborn(path: str, body: Any) -> tuple[int, Any]:
        user = body["messages"][1]["content"]
        if user.startswith("Question:"):
            assert re.search(r"Forbidden words: .*\bvalve\b", user) or "valve" not in user
            return said({"questions": ["How often are valves raised?"]})
        return canned(path, body)

    rules(stubborn)
    made = lab("gold", "generate", "c", "--as", "g", "--chat", "--to", str(tmp_path), "--json", store=store).json
    assert made["rejected"]["forbidden_word"] >= 1
    assert "How often are valves raised?" not in {
        q.text
        for q in load_gold(tmp_path / "g").questions
        if "0.md" in {j.source for j in load_gold(tmp_path / "g").judgments if j.question_id == q.question_id}
    }


def test_a_preamble_is_no_question_and_prose_is_malformed(rules: Callable[[Any], Fake], store: Store, lab: Lab, tmp_path: Path) -> None:
    """A model that answers in prose is asked once more for each passage; nothing of it becomes a question. Of a list its questions are, exactly two a passage."""
    rules(lambda path, body: said("Sure! Two questions:\n1) When must filters be changed?\n2) Who approves the red book?"))
    made = lab("gold", "generate", "c", "--as", "two", "--chat", "--paraphrases", "0", "--to", str(tmp_path), "--json", store=store).json
    assert {q.text for q in load_gold(tmp_path / "two").questions} == {"When must filters be changed?", "Who approves the red book?"}
    assert (made["kept"], made["rejected"], made["cost"]["questions_returned"]) == (2, {"duplicate": 4}, {"2": 3})
    fake = rules(lambda path, body: said("I am sorry, I cannot write questions about that."))
    shutil.rmtree(tmp_path / "home" / "gold-cache")
    answer = lab("gold", "generate", "c", "--as", "g", "--chat", "--to", str(tmp_path), store=store)
    assert (answer.code, "3 malformed" in answer.err, len(fake.asked)) == (3, True, 6), answer.err
    assert not (tmp_path / "g").exists()


def test_a_question_that_needs_two_passages(rules: Callable[[Any], Fake], store: Store, lab: Lab, tmp_path: Path) -> None:
    """Two rules of one document share a rare word (brine); a quote that does not stand in the second refuses the question. all_hit asks for both passages."""
    second = "A brine tank that leaks is emptied before the shift ends, and the shift lead signs for it."
    ingest(write(tmp_path / "two", {"t.md": f"# T\n\n## One\n\n{RULES[0]}\n\n## Two\n\n{second}\n"}), "two", store=store, embedder="none")
    right = True

    def answer(path: str, body: Any) -> tuple[int, Any]:
        user = body["messages"][1]["content"]
        if "Second passage" not in user:
            return said({"questions": []})
        quotes = ["lifted by hand once", "emptied before the shift ends"]
        a, b = quotes if user.index(RULES[0]) < user.index(second) else quotes[::-1]
        return said({"questions": [{"question": "Which two duties does a brine tank bring?", "first": a, "second": b if right else "never said"}]})

    rules(answer)
    lab("gold", "generate", "two", "--as", "g", "--chat", "--to", str(tmp_path), store=store)
    gold = load_gold(tmp_path / "g")
    assert [(q.kind, q.metadata["needs"]) for q in gold.questions] == [("multi", "all")]
    assert sorted(j.quote for j in gold.judgments) == ["emptied before the shift ends", "lifted by hand once"]
    for k, value in (("1", 0.0), ("2", 1.0)):
        asked = ("run", "two", "--gold", str(tmp_path / "g"), "--dense", "none", "--measure", f"all_hit@{k}", "--measure", "hit@1", "--json")
        assert lab(*asked, store=store).json["scores"] == {f"all_hit@{k}": value, "hit@1": 1.0}
    shutil.rmtree(tmp_path / "home" / "gold-cache")
    right = False
    refused = lab("gold", "generate", "two", "--as", "h", "--chat", "--to", str(tmp_path), store=store)
    assert refused.code == 3 and "1 quote_absent" in refused.err


def test_what_is_missing_is_one_sentence(store: Store, lab: Lab, tmp_path: Path) -> None:
    ingest(write(tmp_path / "d", {"a.md": f"# A\n\n{RULES[0]}"}), "c", store=store, embedder="none")
    answer = lab("gold", "generate", "c", "--as", "g", "--chat", store=store)
    assert (answer.code, "LAB_CHAT_URL" in answer.err) == (2, True)


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("lifted by hand", "lifted by hand"), ("“The relief valve”", "The relief valve"), ("calendar\nmonth.", "calendar month."), ("calendar month;", "calendar month"), ("lifted by a crane", None),
        ("and once in every", None), ("red", None), ("art", None), ("", None), ("…", None), ("!", None), ("THE RELIEF VALVE", None),
    ],
)  # fmt: skip
def test_quotes_are_found_word_for_word(quote: str, found: str | None) -> None:
    place = locate(RULES[0], quote)
    assert (RULES[0][place[0] : place[1]] if place else None) == found
