"""Claims by a chat model: quotes that must stand there, grades by a model and by a person, what models do wrong, and what it costs."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from lab.corpus import claim_chat
from lab.corpus.claims import extract
from lab.corpus.grading import by_people, grade
from lab.corpus.ingest import ingest
from lab.errors import UsageError
from lab.gold.review import read
from lab.models.chat import Chat
from lab.retrieval.recall import recall
from lab.store.connect import Store
from tests.browser import Browser, browser  # noqa: F401
from tests.conftest import Lab, write
from tests.servers import Model, model

PUMPS = "# Pumps\n\nThe duty pump runs at night. The relief valve opens at 12 bar. The pump is blue."
DOORS = "# Doors\n\nThe door of the hall is shut at six. Visitors ring the bell."


def said(statement: str, quote: str, kind: str = "statement", confidence: Any = 0.9, passage: Any = 1) -> dict[str, Any]:
    return {"statement": statement, "kind": kind, "confidence": confidence, "passage": passage, "quote": quote}


GOOD = [
    said("The duty pump runs at night.", "The duty pump runs at night."),
    said("A relief valve opens at 12 bar.", "relief valve opens at 12  bar", "Limit", 0.95),
]
DOOR = [said("The hall's door is shut at six.", "shut at six", "event")]


@pytest.fixture
def plant(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Store, Path]:
    monkeypatch.setenv("LAB_HOME", str(tmp_path / "home"))
    files = write(tmp_path / "d", {"pumps.md": PUMPS, "doors.md": DOORS})
    ingest(files, "c", store=store, embedder="keyword")
    return store, files


def held(store: Store) -> dict[str, tuple[str, str]]:
    """statement → (status, quote)"""
    return {
        str(s): (str(status), str(quote)) for s, status, quote in store.rows("select statement, status, quote from kb_c.claims order by claim_id")
    }


def test_a_quote_must_stand_in_its_passage(plant: tuple[Store, Path], models: list[Model]) -> None:
    store, _ = plant
    wrong = [
        said("The relief valve opens at 99 bar.", "opens at 99 bar"),
        said("It opens at 2 bar.", "2 bar"),  # stands in 12 bar, and is no word there
        said("The pump is blue.", "The pump is blue.", passage=7),  # the wrong number, and still found
        said("x" * 201, "The pump is blue."),
        said("The pump is never red.", "The pump is blue.", confidence=85),
        said("The pump explodes.", "pump"),
        said("Gates are iron.", "opens at 12 bar"),
        said("", "The pump is blue."),
        said({"text": "The pump is blue."}, "The pump is blue."),  # type: ignore[arg-type]
        said("…", "The pump is blue."),
        "The pump is blue.",  # a member that is no object costs itself
        None,
        said("the duty pump  runs at night.", "The duty pump runs at night."),  # said twice
    ]
    by = model(models, ("Pumps", {"claims": GOOD + wrong}), ("Doors", {"claims": DOOR}))
    done = extract(store, "c", by="chat", chat=by.chat)
    assert (done.extractor, done.documents, done.new, len(by.asked)) == ("chat-2/scripted", 2, 10, 2)
    assert done.rejected == {
        "its quote does not stand in the passage": 2, "its confidence is 85, and no number from 0 to 1": 1, "it has 201 characters, more than 200": 1,
        "its quote is a single word": 1, "its quote shares no word with it": 1, "it is no claim: an object with a statement in words": 5,
    }  # fmt: skip
    found = held(store)
    assert found["A relief valve opens at 12 bar."] == ("candidate", "relief valve opens at 12 bar") and found["The pump is blue."][0] == "candidate"
    assert found["The relief valve opens at 99 bar."][0] == "rejected" and found["The pump is never red."][0] == "rejected"
    spans = store.rows(
        "select c.quote, substr(f.text, c.start + 1, c.\"end\" - c.start) from kb_c.claims c join kb_c.files f on f.source = c.source_id where c.status = 'candidate'"
    )
    assert len(spans) == 4 and all(quote == text for quote, text in spans)
    assert done.cost == {"calls": 2, "tokens": 220, "cached": 0}
    costs = store.rows("select source_id, claims, rejected, cost from kb_c.claim_passes order by 1")
    assert [tuple(row) for row in costs] == [("doors.md", 1, 0, {"calls": 1, "tokens": 110}), ("pumps.md", 3, 6, {"calls": 1, "tokens": 110})]
    assert recall(store, "c", "relief valve").claims == [], "a candidate is not recalled"
    again = extract(store, "c", by="chat", chat=by.chat)
    assert (again.documents, again.new, len(by.asked)) == (0, 0, 2)


def test_a_change_costs_what_it_touches(plant: tuple[Store, Path], models: list[Model], monkeypatch: pytest.MonkeyPatch) -> None:
    """Passages are cached by their text: a heading that changes asks nothing anew, a passage that does asks for its window alone."""
    monkeypatch.setattr(claim_chat, "_WINDOW", 60)
    store, files = plant
    long = "# Pumps\n\nThe duty pump runs at night.\n\n## Valves\n\nThe relief valve opens at 12 bar.\n"
    write(files, {"pumps.md": long})
    ingest(files, "c", store=store, embedder="keyword")
    by = model(
        models,
        ("Doors", {"claims": DOOR}),
        ("duty pump", {"claims": GOOD[:1]}),
        ("relief", {"claims": [said("A valve opens at 12 bar.", "opens at 12 bar")]}),
    )
    extract(store, "c", by="chat", chat=by.chat)
    assert len(by.asked) == 3 and sum(status == "candidate" for status, _ in held(store).values()) == 3
    assert "Write 3 to 7 claims" in by.asked[0][1]["messages"][0]["content"] or "Write 1 to" in by.asked[1][1]["messages"][0]["content"]
    write(files, {"pumps.md": long.replace("12 bar", "12 bar at 20 degrees")})
    ingest(files, "c", store=store, embedder="keyword")
    assert held(store)["A valve opens at 12 bar."][0] == "stale"
    done = extract(store, "c", by="chat", chat=by.chat)
    assert (done.documents, len(by.asked), done.cost["cached"], done.kept) == (1, 4, 1, 2)
    assert {status for status, _ in held(store).values()} == {"candidate"}


@pytest.mark.parametrize("count", [0, 40])
def test_other_counts_than_were_asked_for(count: int, plant: tuple[Store, Path], models: list[Model]) -> None:
    store, _ = plant
    many = [said(f"Fact {n} of the pump.", "The pump is blue.", confidence=n / 100) for n in range(count)]
    done = extract(store, "c", by="chat", chat=model(models, ("Pumps", {"claims": many}), ("Doors", {"claims": []})).chat)
    found = held(store)
    assert done.new == count and sum(status == "candidate" for status, _ in found.values()) == min(count, 15)
    if count:
        assert found["Fact 39 of the pump."][0] == "candidate" and found["Fact 24 of the pump."][0] == "rejected"
        assert done.rejected == {"the document has 15 claims that are surer": 25}


@pytest.mark.parametrize(
    ("answer", "claims"),
    [
        ('Sure! Here are the claims:\n```json\n{"claims": [{"statement": "The pump is blue.", "kind": "statement", "confidence": 0.9, "passage": 1, "quote": "The pump is blue."},]}\n```\nAnything else?', 1),
        ('{"claims": [{"statement": "The pump is blue.", "kind": "statement", "confidence": NaN, "passage": 1, "quote": "The pump is blue."}]}', 0),
        ('{"claims": [{"statement": "The pump is blue.", "kind": "statement", "confidence": 1%s, "passage": 1, "quote": "The pump is blue."}]}' % ("0" * 400), 0),
        (json.dumps({"claims": [said(f"Fact {n} of the pump.", "The pump is blue.", confidence=0.5) for n in range(5000)]}), 15),
        ('{"claims": [{"statement": "The pump is blue.", "kind": null, "confidence": 1, "passage": "one", "quote": "The pump is blue."}]}', 1),
        ('{"claims": [[1], 7, {"statement": 3}]}', 0),
        ("I could not find any.", None), ('{"claims": "none"}', None), ("[" * 500, None),
    ],
)  # fmt: skip
def test_what_models_make_of_json(
    answer: str, claims: int | None, plant: tuple[Store, Path], models: list[Model], lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _ = plant
    by = model(models, ("Pumps", answer), ("Doors", {"claims": DOOR}))
    monkeypatch.setenv("LAB_CHAT_URL", by.url)
    monkeypatch.setenv("LAB_CHAT_MODEL", "scripted")
    told = lab("claims", "extract", "c", "--by", "chat", "--json", store=store)
    assert told.code == (3 if claims is None else 0) and told.json["malformed"] == (claims is None)
    assert sum(status == "candidate" for status, _ in held(store).values()) == 1 + (claims or 0)
    if claims is None:
        assert [row[0] for row in store.rows("select source_id from kb_c.claim_passes")] == ["doors.md"], "it is not taken for done"
        assert "made no JSON" in lab("claims", "extract", "c", "--by", "chat", store=store).err and len(by.asked) == 5, (
            "it is asked again: twice each time"
        )
        by.says[0] = ("Pumps", {"claims": GOOD})
        assert lab("claims", "extract", "c", "--by", "chat", store=store).code == 0 and len(held(store)) == 3, "and a mended server is heard"


def test_another_model_under_the_same_name(plant: tuple[Store, Path], models: list[Model], lab: Lab) -> None:
    """What a model said is kept by its name; pruned, it is asked again."""
    store, _ = plant
    by = model(models, ("Pumps", {"claims": GOOD}), ("Doors", {"claims": DOOR}))
    extract(store, "c", by="chat", chat=by.chat)
    forget = "delete from kb_c.claim_passes"
    for words, calls in (([], 2), (["--chat"], 4)):
        assert lab("cache", "prune", *words, store=store).code == 0
        with store.connection() as connection:
            connection.execute(forget)
        extract(store, "c", by="chat", chat=by.chat)
        assert len(by.asked) == calls


def test_what_a_machine_rejected_may_come_again(plant: tuple[Store, Path], models: list[Model]) -> None:
    """The same claim with a confidence that is one; what a person rejected stays so."""
    store, _ = plant
    first = model(models, ("Pumps", {"claims": [said("The pump is blue.", "The pump is blue.", confidence=7)]}), ("Doors", {"claims": []}))
    extract(store, "c", by="chat", chat=first.chat)
    assert held(store)["The pump is blue."][0] == "rejected"
    second = model(models, ("Pumps", {"claims": [said("The pump is blue.", "The pump is blue.")]}), ("Doors", {"claims": []}))
    extract(store, "c", by="chat", chat=Chat(second.url, "second"))
    assert store.rows("select status, reason, extractor from kb_c.claims") == [("candidate", None, "chat-2/second")]
    with store.connection() as connection:
        connection.execute("update kb_c.claims set status = 'rejected', reason = 'rejected by ann'")
    extract(store, "c", by="chat", chat=Chat(second.url, "third"))
    assert store.rows("select status, reason from kb_c.claims") == [("rejected", "rejected by ann")]


def test_a_budget_ends_it_and_the_same_command_goes_on(plant: tuple[Store, Path], models: list[Model]) -> None:
    store, _ = plant
    by = model(models, ("Pumps", {"claims": GOOD}), ("Doors", {"claims": DOOR}))
    done = extract(store, "c", by="chat", chat=by.chat, budget=50)
    assert (done.documents, done.left, len(by.asked)) == (1, 1, 1)
    broken = model(models, ("Pumps", "never"), ("Doors", "never"))
    done = extract(store, "c", by="chat", chat=Chat(broken.url, "broken"), budget=50)
    assert (done.malformed, done.left, len(broken.asked)) == (1, 1, 2), "what cannot be read is told as that, and not as the budget"
    assert extract(store, "c", by="chat", chat=by.chat).documents == 1 and len(by.asked) == 2


def test_only_claims_of_documents_that_pass_are_verified(
    plant: tuple[Store, Path], models: list[Model], lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, files = plant
    by = model(
        models, ("Document: Pumps", {"score": 1, "pass": True, "feedback": "All are right."}), ("Document: Doors", {"score": 0.4, "pass": True, "feedback": "The hour is wrong."}),
        ("Title: Pumps", {"claims": GOOD}), ("Title: Doors", {"claims": DOOR}),
    )  # fmt: skip
    extract(store, "c", by="chat", chat=by.chat)
    monkeypatch.setenv("LAB_CHAT_URL", by.url)
    monkeypatch.setenv("LAB_CHAT_MODEL", "scripted")
    told = lab("claims", "grade", "c", "--json", store=store).json
    assert (told["passed"], told["failed"], told["feedback"]) == (1, 1, {"doors.md": "The hour is wrong."})
    assert {s: status for s, (status, _) in held(store).items()} == {
        "The duty pump runs at night.": "verified", "A relief valve opens at 12 bar.": "verified", "The hall's door is shut at six.": "candidate",
    }  # fmt: skip
    assert [c.statement for c in recall(store, "c", "relief valve").claims] == ["A relief valve opens at 12 bar."]
    assert grade(store, "c", chat=by.chat).passed == 0 and len(by.asked) == 4, "graded once"
    assert grade(store, "c", chat=Chat(by.url, "another"), least=0.3).passed == 2, "another grader looks for itself"
    assert grade(store, "c", chat=by.chat, least=0.3).passed == 1 and len(by.asked) == 6, "another least score is applied to what the model said"
    assert grade(store, "c", chat=by.chat).passed == 0 and len(by.asked) == 6, "which then stays"
    assert lab("claims", "stats", "c", "--json", store=store).json["documents"] == {"passed": 2, "failed": 0}
    write(files, {"pumps.md": PUMPS + " It is new."})
    ingest(files, "c", store=store, embedder="keyword")
    assert held(store)["The duty pump runs at night."][0] == "stale"
    extract(store, "c", by="chat", chat=by.chat)
    assert held(store)["The duty pump runs at night."][0] == "candidate", "a new state is graded anew"
    with store.connection() as connection:
        connection.execute("delete from kb_c.files where source = 'doors.md'")
    assert [row[0] for row in store.rows("select distinct source_id from kb_c.claim_grades")] == ["pumps.md"]


@pytest.mark.parametrize("score", ["1" + "0" * 400, "NaN", "Infinity", "7", "-1", '"good"', "true"])
def test_a_grade_that_is_no_number_is_none(score: str, plant: tuple[Store, Path], models: list[Model]) -> None:
    store, _ = plant
    by = model(
        models,
        ("Document:", f'{{"score": {score}, "pass": true, "feedback": "fine"}}'),
        ("Title: Pumps", {"claims": GOOD}),
        ("Title: Doors", {"claims": []}),
    )
    extract(store, "c", by="chat", chat=by.chat)
    done = grade(store, "c", chat=by.chat)
    assert (done.passed, done.failed, done.unjudged) == (0, 0, 1) and {status for status, _ in held(store).values()} == {"candidate"}


def test_a_person_grades_claim_by_claim(
    plant: tuple[Store, Path], models: list[Model], lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store, _ = plant
    by = model(
        models, ("Title: Pumps", {"claims": GOOD}), ("Title: Doors", {"claims": DOOR}), ("Document:", {"score": 0, "pass": False, "feedback": "no"})
    )
    extract(store, "c", by="chat", chat=by.chat)

    def keys(text: str) -> None:
        import io

        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{sign}\n" for sign in text)))

    keys("aq")  # doors.md first, by source
    told = lab("claims", "review", "c", "--who", "ann", "--json", store=store).json
    assert told["decided"] == 1 and (told["grades"][0]["passed"], told["grades"][0]["left"]) == (1, 1)
    keys("2ear")  # a judgment and an edit mean nothing here
    told = lab("claims", "review", "c", "--who", "ann", "--json", store=store).json
    assert told["decided"] == 2 and told["grades"][0]["failed"] == 1 and "1 of 2 claims rejected" in told["grades"][0]["feedback"]["pumps.md"]
    found = held(store)
    assert [found[s][0] for s in ("The hall's door is shut at six.", "The duty pump runs at night.", "A relief valve opens at 12 bar.")] == [
        "verified",
        "candidate",
        "rejected",
    ]
    outweighed = grade(store, "c", chat=by.chat)
    assert (outweighed.passed, outweighed.failed) == (1, 1) and held(store)["The hall's door is shut at six."][0] == "verified", (
        "a person outweighs a model"
    )
    keys("")
    text = lab("claims", "review", "c", "--who", "ann", "--pass", "0.5", store=store)
    assert "2 documents passed" in text.out and held(store)["The duty pump runs at night."][0] == "verified", "the rejected one stays in the share"


def test_the_same_on_a_page(plant: tuple[Store, Path], models: list[Model], lab: Lab, tmp_path: Path, browser: Browser) -> None:  # noqa: F811
    store, _ = plant
    extract(store, "c", by="chat", chat=model(models, ("Pumps", {"claims": GOOD}), ("Doors", {"claims": DOOR})).chat)
    page = tmp_path / "claims.html"
    assert lab("claims", "review", "c", "--html", str(page), "--json", store=store).json["items"] == 3
    browser.open(page.as_uri())
    assert browser.js("document.querySelector('mark').textContent") == "shut at six"
    assert browser.js("[...document.querySelectorAll('#keys kbd')].map(k => k.textContent).join('')") == "arsub"
    browser.key("a")
    browser.type("Bob")
    browser.js("document.activeElement.blur()")
    for key in "aeraa":  # the e means nothing
        browser.key(key)
    browser.js("document.querySelector('#save').click()")
    assert "lab claims review c --take FILE" in browser.js("document.querySelector('#said').textContent")
    saved = browser.downloaded("reviews-claims-c-Bob.jsonl")
    for expected in (3, 0):
        told = lab("claims", "review", "c", "--take", str(saved), "--json", store=store).json
        assert told["decided"] == expected and (told["grades"][0]["passed"], told["grades"][0]["failed"]) == (1, 1)
    assert [d.action for d in read(tmp_path / "home" / "claims" / "c")] == ["accept", "reject", "accept"]
    assert browser.said == [] and browser.fetched == []


def test_wrong_words(plant: tuple[Store, Path], lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    store, _ = plant
    monkeypatch.delenv("LAB_CHAT_URL", raising=False)
    for words, told in (
        (["extract", "c", "--by", "magic"], "rules or chat"), (["extract", "c", "--by", "chat"], "LAB_CHAT_URL"), (["grade", "c"], "LAB_CHAT_URL"), (["grade", "c", "--pass", "2"], "from 0 to 1"),
        (["review", "c", "--html", "a", "--take", "b"], "one command each"), (["review", "nobody"], "nobody"), (["extract", "c", "--budget", "-1"], "no number"),
        (["grade", "c", "--budget", "-5"], "no number"), (["review", "c", "--pass", "-1"], "from 0 to 1"),
    ):  # fmt: skip
        answered = lab("claims", *words, store=store)
        assert answered.code == 2 and told in answered.err, answered.err
    with pytest.raises(UsageError):
        extract(store, "nobody")


def changed(store: Store, files: Path, text: str) -> None:
    write(files, {"pumps.md": text})
    ingest(files, "c", store=store, embedder="keyword")


def test_an_edit_that_is_undone(plant: tuple[Store, Path], models: list[Model], lab: Lab) -> None:
    """The claims of a state that was read before hold again, and so do their grades: nothing is asked anew, and nothing waits for good."""
    store, files = plant
    by = model(
        models, ("Document:", {"score": 1, "pass": True, "feedback": "fine"}), ("Title: Pumps", {"claims": GOOD}), ("Title: Doors", {"claims": DOOR})
    )
    must = PUMPS + " It must be stopped by hand."
    changed(store, files, must)
    assert extract(store, "c").new == 1
    extract(store, "c", by="chat", chat=by.chat)
    grade(store, "c", chat=by.chat)
    before = lab("claims", "stats", "c", "--json", store=store).json
    assert before["documents"] == {"passed": 2, "failed": 0}
    changed(store, files, "# Pumps\n\nThe pump is gone.")
    changed(store, files, must)
    stats = lab("claims", "stats", "c", "--json", store=store).json
    assert stats["documents"] == {"passed": 1, "failed": 0} and {c["status"] for c in stats["claims"]} == {"stale", "verified"}
    assert extract(store, "c").kept == 1 and extract(store, "c", by="chat", chat=by.chat).kept == 2
    assert lab("claims", "stats", "c", "--json", store=store).json == before
    done = grade(store, "c", chat=by.chat)
    assert (done.passed, done.unchanged, done.cost["calls"], len(by.asked)) == (0, 2, 0, 4)
    again = grade(store, "c", chat=by.chat, least=0.8)
    assert (again.passed, again.unchanged, len(by.asked)) == (0, 2, 4), "the same least score changes nothing"


def by_hand(path: Path, store: Store, *said: tuple[str, str, str, str]) -> Path:
    """A file of decisions as the page saves it: (who, statement, action, when)."""
    ids = dict(store.rows("select statement, claim_id from kb_c.claims"))
    lines = [
        {"at": at, "who": who, "item": f"q:{ids[statement]}", "question": ids[statement], "action": action, "text": "", "source": "", "start": 0, "end": 0, "grade": 0, "quote": ""}
        for who, statement, action, at in said
    ]  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_two_people_and_what_is_gone(
    plant: tuple[Store, Path], models: list[Model], lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who decided last counts, in whatever order the files are taken, and calls without a decision change nothing."""
    store, files = plant
    night, valve = "The duty pump runs at night.", "A relief valve opens at 12 bar."
    by = model(
        models, ("Title: Pumps", {"claims": GOOD}), ("Title: Doors", {"claims": []}), ("Document:", {"score": 1, "pass": True, "feedback": "fine"})
    )
    extract(store, "c", by="chat", chat=by.chat)
    bob = by_hand(
        tmp_path / "bob.jsonl", store, ("bob", night, "accept", "2026-03-02T10:00:00+00:00"), ("bob", valve, "accept", "2026-03-02T10:01:00+00:00")
    )
    ann = by_hand(
        tmp_path / "ann.jsonl", store, ("ann", night, "reject", "2026-03-01T10:00:00+00:00"), ("ann", valve, "accept", "2026-03-01T10:00:00Z")
    )
    assert lab("claims", "review", "c", "--take", str(ann), "--json", store=store).json["grades"][0]["failed"] == 1
    assert {s: status for s, (status, _) in held(store).items()} == {night: "rejected", valve: "candidate"}
    told = lab("claims", "review", "c", "--take", str(bob), "--json", store=store).json
    assert told["decided"] == 2 and [(g["grader"], g["passed"]) for g in told["grades"]] == [("person:ann", 1), ("person:bob", 1)]
    assert {s: status for s, (status, _) in held(store).items()} == {night: "verified", valve: "verified"}
    entered = store.rows("select grader, passed, at from kb_c.claim_grades order by 1")
    touched = store.rows("select claim_id, updated_at from kb_c.claims order by 1")
    import io

    for who in ("ann", "bob"):
        monkeypatch.setattr("sys.stdin", io.StringIO(""))
        assert lab("claims", "review", "c", "--who", who, "--json", store=store).json["decided"] == 0
    assert store.rows("select grader, passed, at from kb_c.claim_grades order by 1") == entered
    assert store.rows("select claim_id, updated_at from kb_c.claims order by 1") == touched
    assert [str(at)[:16] for _, _, at in entered] == ["2026-03-01 10:00", "2026-03-02 10:01"]
    low = model(models, ("Document:", {"score": 0.1, "pass": False, "feedback": "no"}))
    outweighed = grade(store, "c", chat=Chat(low.url, "low"))
    assert (outweighed.passed, outweighed.failed) == (1, 0), "what counts is told: a person's grade"
    late = by_hand(tmp_path / "late.jsonl", store, ("ann", night, "reject", "2026-03-03T10:00:00Z"), ("ann", valve, "accept", "2026-03-03T10:00:00Z"))
    changed(store, files, PUMPS.replace("at night", "by day"))
    extract(store, "c", by="chat", chat=model(models, ("Pumps", {"claims": GOOD})).chat)
    told = lab("claims", "review", "c", "--take", str(late), store=store)
    assert told.code == 0 and "1 decisions are about claims that no passage holds any more" in told.err
    assert {s: status for s, (status, _) in held(store).items()} == {night: "rejected", valve: "verified"}, "what is gone counts for no share"
    other = by_hand(tmp_path / "other.jsonl", store, ("ann", night, "accept", "2026-03-04T10:00:00Z"))
    assert lab("claims", "review", "c", "--take", str(other), store=store).code == 2


def test_one_rejection_holds_and_what_is_undone_goes(plant: tuple[Store, Path], models: list[Model], lab: Lab, tmp_path: Path) -> None:
    """A person's word on one claim counts before the document is decided, against the model too; taken back, it leaves nothing behind."""
    store, _ = plant
    night, valve = "The duty pump runs at night.", "A relief valve opens at 12 bar."
    good = ("Document:", {"score": 1, "pass": True, "feedback": "fine"})
    by = model(models, ("Title: Pumps", {"claims": GOOD}), ("Title: Doors", {"claims": []}), good)
    extract(store, "c", by="chat", chat=by.chat)

    def take(*said: tuple[str, str, str, str]) -> Any:
        told = lab("claims", "review", "c", "--take", str(by_hand(tmp_path / "d.jsonl", store, *said)), "--json", store=store)
        assert told.code == 0, told.err
        return {s: status for s, (status, _) in held(store).items()}

    assert take(("ann", night, "reject", "2026-03-01T10:00:00Z")) == {night: "rejected", valve: "candidate"}
    assert grade(store, "c", chat=by.chat).passed == 1
    assert held(store)[night][0] == "rejected" and recall(store, "c", "duty pump night").claims == []
    assert take(("ann", night, "undo", "2026-03-01T10:01:00Z")) == {night: "candidate", valve: "verified"}
    assert lab("claims", "stats", "c", "--json", store=store).json["documents"] == {"passed": 0, "failed": 0}, "the grade was of other claims"
    low = model(models, ("Document:", {"score": 0.3, "pass": False, "feedback": "no"}))
    assert grade(store, "c", chat=Chat(low.url, "low")).failed == 1
    yes = [("ann", night, "accept", "2026-03-02T10:00:00Z"), ("ann", valve, "accept", "2026-03-02T10:00:00Z")]
    assert set(take(*yes).values()) == {"verified"}
    back = [("ann", night, "undo", "2026-03-02T10:01:00Z"), ("ann", valve, "undo", "2026-03-02T10:01:00Z")]
    assert set(take(*back).values()) == {"candidate"}, "the model's grade counts again"
    no = [("ann", night, "reject", "2026-03-03T10:00:00Z"), ("ann", valve, "reject", "2026-03-03T10:00:00Z")]
    assert set(take(*no).values()) == {"rejected"} and lab("claims", "stats", "c", "--json", store=store).json["documents"] == {
        "passed": 0,
        "failed": 1,
    }
    back = [("ann", night, "undo", "2026-03-03T10:01:00Z"), ("ann", valve, "undo", "2026-03-03T10:01:00Z")]
    assert set(take(*back).values()) == {"candidate"}
    assert store.rows("select grader from kb_c.claim_grades order by 1") == [("chat:low",), ("chat:scripted",)]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"at": "0001-01-01T00:00:00+14:00"}, "for at"), ({"at": "not a time"}, "for at"), ({"at": "9999-12-31T00:00:00Z"}, "for at"), ({"at": "2999-12-31T00:00:00Z"}, "yet to come"),
        ({"who": "n\u0000"}, "names nobody"), ({"who": "\ud800"}, "names nobody"), ({"who": " "}, "names nobody"), ({"action": "edit"}, "accept, reject, undo"), ({"action": "judge"}, "accept, reject, undo"),
    ],
)  # fmt: skip
def test_decisions_that_are_none_leave_nothing_behind(
    change: dict[str, str], said: str, plant: tuple[Store, Path], models: list[Model], lab: Lab, tmp_path: Path
) -> None:
    store, _ = plant
    extract(store, "c", by="chat", chat=model(models, ("Pumps", {"claims": GOOD}), ("Doors", {"claims": DOOR})).chat)
    file = by_hand(tmp_path / "d.jsonl", store, *((("ann", c["statement"], "accept", "2026-03-01T10:00:00Z")) for c in GOOD))
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    file.write_text("".join(json.dumps(row | change) + "\n" for row in rows))
    told = lab("claims", "review", "c", "--take", str(file), store=store)
    assert told.code == 2 and said in told.err, told.err
    assert lab("claims", "stats", "c", store=store).code == 0 and not store.rows("select from kb_c.claim_grades")
    assert read(tmp_path / "home" / "claims" / "c") == []


@pytest.mark.parametrize("depth", [120, 600, 900, 5000])
def test_an_answer_that_is_too_deep_is_none(depth: int, plant: tuple[Store, Path], models: list[Model]) -> None:
    store, _ = plant
    deep = json.dumps({"claims": GOOD})[:-1] + ', "more": ' + "[" * depth + "]" * depth + "}"
    done = extract(store, "c", by="chat", chat=model(models, ("Pumps", deep), ("Doors", {"claims": DOOR})).chat)
    assert (done.malformed, done.new) == (1, 1)


@pytest.mark.parametrize(
    ("text", "statement", "quote", "status"),
    [
        ("安全弁は十二バールで開きます。", "安全弁は十二バールで開く。", "安全弁は十二バールで開きます。", "candidate"), ("Rating: PN16. It is blue.", "The rating is PN16.", "PN16", "candidate"),
        ("This must not be done. It is blue.", "That must not be done.", "must not be done", "candidate"), ("The pump is blue.", "The pump explodes.", "pump", "rejected"),
    ],
)  # fmt: skip
def test_short_quotes_and_other_scripts(text: str, statement: str, quote: str, status: str, plant: tuple[Store, Path], models: list[Model]) -> None:
    store, files = plant
    changed(store, files, f"# Pumps\n\n{text}")
    extract(store, "c", by="chat", chat=model(models, ("Pumps", {"claims": [said(statement, quote)]}), ("Doors", {"claims": []})).chat)
    assert [found for found, _ in held(store).values()] == [status]


def test_another_version_of_the_prompt_takes_the_place_of_the_older(
    plant: tuple[Store, Path], models: list[Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _ = plant
    by = model(models, ("Pumps", {"claims": GOOD}), ("Doors", {"claims": []}))
    with monkeypatch.context() as older:
        older.setattr(claim_chat, "VERSION", "chat-1")
        extract(store, "c", by="chat", chat=by.chat)
    extract(store, "c")
    by.says[0] = ("Pumps", {"claims": GOOD[1:]})
    extract(store, "c", by="chat", chat=by.chat)
    assert {s: status for s, (status, _) in held(store).items()} == {
        "The duty pump runs at night.": "stale",
        "A relief valve opens at 12 bar.": "candidate",
    }
    assert {row[0] for row in store.rows("select extractor from kb_c.claim_passes")} == {"chat-2/scripted", "rules-1"}
    extract(store, "c", by="chat", chat=Chat(by.url, "other"))
    assert held(store)["A relief valve opens at 12 bar."][0] == "candidate", "another model's claims stand beside them"


def test_people_elsewhere_and_old_pages(
    plant: tuple[Store, Path], models: list[Model], lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rejection by somebody whose decisions lie in another LAB_HOME stays until somebody here decides later; a page that is taken late undoes nothing newer of its own writer."""
    store, _ = plant
    night, valve = "The duty pump runs at night.", "A relief valve opens at 12 bar."
    extract(store, "c", by="chat", chat=model(models, ("Pumps", {"claims": GOOD}), ("Doors", {"claims": []})).chat)

    def take(*said: tuple[str, str, str, str]) -> dict[str, str]:
        assert lab("claims", "review", "c", "--take", str(by_hand(tmp_path / "d.jsonl", store, *said)), store=store).code == 0
        return {s: status for s, (status, _) in held(store).items()}

    assert take(("bob", night, "reject", "2026-01-02T10:00:00Z"), ("bob", valve, "accept", "2026-01-02T10:00:00Z"))[night] == "rejected"
    monkeypatch.setenv("LAB_HOME", str(tmp_path / "elsewhere"))
    assert take(("ann", night, "accept", "2026-01-01T10:00:00Z"), ("ann", valve, "accept", "2026-01-01T10:00:00Z"))[night] == "rejected"
    assert take(("ann", night, "accept", "2026-01-03T10:00:00Z"), ("ann", valve, "accept", "2026-01-03T10:00:00Z")) == {
        night: "verified",
        valve: "verified",
    }
    assert take(("ann", night, "reject", "2025-12-31T10:00:00Z")) == {night: "verified", valve: "verified"}


def test_what_has_no_claim_left_does_not_pass(plant: tuple[Store, Path], models: list[Model], lab: Lab, tmp_path: Path) -> None:
    store, _ = plant
    extract(store, "c", by="chat", chat=model(models, ("Pumps", {"claims": []}), ("Doors", {"claims": DOOR})).chat)
    file = by_hand(tmp_path / "d.jsonl", store, ("ann", DOOR[0]["statement"], "reject", "2026-01-02T10:00:00Z"))
    told = lab("claims", "review", "c", "--take", str(file), "--pass", "0", "--json", store=store).json["grades"][0]
    assert (told["passed"], told["failed"]) == (0, 1) and lab("claims", "stats", "c", "--json", store=store).json["documents"] == {
        "passed": 0,
        "failed": 1,
    }


def test_what_follows_from_decisions_does_not_depend_on_when_they_were_read(plant: tuple[Store, Path], models: list[Model]) -> None:
    """Random histories of three people: read in any order and in parts, with a model that grades between, they end where they end when read at once; the newest word on a claim counts."""
    store, _ = plant
    facts = ["The duty pump runs at night.", "The relief valve opens at 12 bar.", "The pump is blue."]
    says = ("Title: Pumps", {"claims": [said(fact, fact) for fact in facts]}), ("Title: Doors", {"claims": DOOR})
    chat = model(models, *says, ("Document:", {"score": 1, "pass": True, "feedback": "fine"})).chat
    extract(store, "c", by="chat", chat=chat)
    ids = [str(row[0]) for row in store.rows("select claim_id from kb_c.claims order by 1")]

    def standing(entries: list[tuple[str, str, str, str]]) -> dict[str, dict[str, tuple[str, str]]]:
        """(when, who, claim, what) → who → claim → (what, when), of what was not undone."""
        stacks: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for at, who, claim, action in sorted(entries):
            stack = stacks.setdefault((who, claim), [])
            if action != "undo":
                stack.append((action, at))
            elif stack:
                stack.pop()
        found: dict[str, dict[str, tuple[str, str]]] = {who: {} for _, who, _, _ in entries}
        for (who, claim), stack in stacks.items():
            if stack:
                found[who][claim] = stack[-1]
        return found

    def state() -> tuple[list[Any], list[Any]]:
        return (
            store.rows("select claim_id, status, reason from kb_c.claims order by 1"),
            store.rows("select source_id, grader, claims, score, passed, at from kb_c.claim_grades where grader like 'person:%' order by 1, 2"),
        )

    def read_all(entries: list[tuple[str, str, str, str]]) -> tuple[list[Any], list[Any]]:
        by_people(store, "c", standing(entries))
        grade(store, "c", chat=chat)
        by_people(store, "c", standing(entries))
        return state()

    for seed in range(12):
        r = random.Random(seed)
        log = [
            (f"2026-01-01T10:{n:02}:00Z", r.choice(["ann", "bob", "cid"]), r.choice(ids), r.choice(["accept", "accept", "reject", "undo"]))
            for n in range(r.randint(3, 40))
        ]
        log += [(f"2026-01-01T11:{n:02}:00Z", "ann", claim, r.choice(["accept", "accept", "reject"])) for n, claim in enumerate(ids) if seed % 2]
        shuffled = r.sample(log, len(log))
        for part in sorted(r.sample(range(1, len(log)), 2)):
            read_all(shuffled[:part])
        in_parts = read_all(log)
        assert read_all(log) == in_parts, seed
        with store.connection() as connection:
            connection.execute("delete from kb_c.claim_grades")
            connection.execute("update kb_c.claims set status = 'candidate', reason = null")
        assert read_all(log) == in_parts, seed
        status = {claim: found for claim, found, _ in in_parts[0]}
        for claim in ids:
            newest = max(
                ((at, who, what) for who, held in standing(log).items() for c, (what, at) in held.items() if c == claim), default=("", "", "")
            )
            assert (status[claim] == "rejected") == (newest[2] == "reject"), (seed, claim)
