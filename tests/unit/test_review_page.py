"""The page on which a person without Python reviews, in a real browser."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.errors import UsageError
from lab.gold.files import load_gold, save_gold
from lab.gold.review import apply, items, read
from lab.gold.sheet import page, take
from lab.records import GoldSet, Judgment, Question
from tests.browser import Browser, browser

__all__ = ["browser"]


@pytest.fixture
def gold(tmp_path: Path) -> GoldSet:
    asked = [
        Question("q1", "How <often> & when? </script><script>alert(1)</script>", "fact", metadata={"incomplete": True, "to_review": ["b.md::1"]}),
        Question("q2", "Who?", "fact"),
        Question("q3", "What does it cost?", "unanswerable", answerable=False),
    ]
    save_gold(tmp_path / "g", asked, [Judgment("q1", "a.md", 4, 9, 2, "Daily"), Judgment("q2", "a.md", 16, 19, 1, "Ann")], "# g\n")
    return load_gold(tmp_path / "g")


def written(gold: GoldSet, tmp_path: Path) -> Path:
    everything = items(gold, [], {"b.md::1": ("b.md", 0, 9, "Other one")})
    (tmp_path / "page.html").write_text(page(gold, everything, lambda item: ("say ", " at six, by "), "lab gold review g"), encoding="utf-8")
    return tmp_path / "page.html"


def test_a_person_decides_by_keys_saves_loads_and_the_set_follows(gold: GoldSet, tmp_path: Path, browser: Browser) -> None:
    browser.open(written(gold, tmp_path).as_uri())
    assert browser.js("document.querySelector('#question').textContent") == gold.questions[0].text
    assert browser.js("document.querySelector('#passage').textContent") == "say Daily at six, by "
    assert browser.js("document.querySelector('mark').textContent") == "Daily"
    browser.key("a")
    assert "Write your name first" in browser.js("document.querySelector('#said').textContent")
    browser.type("Ann B")
    browser.js("document.activeElement.blur()")
    browser.key("1")  # its own passage answers in part; the question is still to be decided
    assert browser.js("document.querySelector('#said').textContent") == "its passage: answers in part"
    for key in "a0u2":  # accept; does not answer, undone, answers
        browser.key(key)
    assert browser.js("document.querySelector('#question').textContent") == "Who?"
    browser.key("e")
    browser.js("document.querySelector('#words').value = ''")
    browser.type("Who signs?")
    browser.key("Enter")
    assert browser.js("document.querySelector('#source').textContent") == "no passage: the question is said to have no answer"
    browser.key("x")  # means nothing
    browser.key("r")
    assert browser.js("document.querySelector('#place').textContent") == "4 of 4 decided"
    browser.js("document.querySelector('#save').click()")
    saved = browser.downloaded("reviews-g-Ann_B.jsonl")
    lines = [json.loads(line) for line in saved.read_text().splitlines()]
    assert [(d["item"], d["action"], d["grade"]) for d in lines] == [
        ("j:q1:a.md:4", "judge", 1), ("q:q1", "accept", 0), ("p:q1:b.md:0", "judge", 0), ("p:q1:b.md:0", "undo", 0), ("p:q1:b.md:0", "judge", 2), ("q:q2", "edit", 0), ("q:q3", "reject", 0),
    ]  # fmt: skip
    assert browser.said == [] and browser.fetched == []
    folder = tmp_path / "g"
    assert (take(folder, gold, saved), take(folder, gold, saved)) == ((7, 0), (0, 0)), "taken twice it is there once"
    outcome = apply(gold, read(folder))
    assert [(q.question_id, q.text) for q in outcome.gold.questions] == [("q1", gold.questions[0].text), ("q2", "Who signs?")]
    assert Judgment("q1", "b.md", 0, 9, 2, "Other one") in outcome.gold.judgments and outcome.gold.questions[0].metadata["reviewed_by"] == "Ann B"


def test_a_saved_file_goes_on_elsewhere(gold: GoldSet, tmp_path: Path, browser: Browser) -> None:
    """Another machine: nothing is remembered but the file. At phone width nothing is cut off."""
    (tmp_path / "half.jsonl").write_text(
        '{"at": "2026-01-02T03:04:05Z", "who": "Bob", "item": "q:q1", "question": "q1", "action": "accept", "text": "", "source": "", "start": 0, "end": 0, "grade": 0, "quote": ""}\n'
    )
    (tmp_path / "bad.jsonl").write_text("no decision\n")
    browser.open(written(gold, tmp_path).as_uri(), width=390, height=800)
    browser.choose("#load", tmp_path / "bad.jsonl")
    browser._wait(lambda: "Line 1 of the file is no decision" in browser.js("document.querySelector('#said').textContent"))
    browser.choose("#load", tmp_path / "half.jsonl")
    browser._wait(lambda: browser.js("document.querySelector('#place').textContent") == "2 of 4, 1 decided")
    assert browser.js("document.querySelector('#who').value") == "Bob"
    assert browser.js("document.documentElement.scrollWidth") <= 390
    assert browser.said == []


def test_decisions_on_another_set_are_refused(gold: GoldSet, tmp_path: Path) -> None:
    line = {"at": "2026-01-01", "who": "Bob", "item": "q:z", "question": "z", "action": "accept"}
    for change, said in (({}, "which g does not hold"), ({"question": "q1", "action": "maybe"}, "the action 'maybe'"), ({"grade": "2"}, "for grade")):
        (tmp_path / "d.jsonl").write_text(json.dumps(line | change) + "\n")
        with pytest.raises(UsageError, match=said):
            take(tmp_path / "g", gold, tmp_path / "d.jsonl")
    assert not (tmp_path / "g" / "reviews.jsonl").exists()
