"""Review: decisions in a file, the set that follows, agreement of two people, keys."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.errors import UsageError
from lab.gold.desk import work
from lab.gold.files import load_gold, save_gold
from lab.gold.review import FILE, Item, agreement, apply, enter, items, read, standing
from lab.records import GoldSet, Judgment, Question

SPANS = {"b.md::1": ("b.md", 0, 9, "Other one"), "c.md::1": ("c.md", 0, 9, "Third one")}


@pytest.fixture
def gold(tmp_path: Path) -> GoldSet:
    asked = [
        Question("q1", "How often?", "fact", metadata={"incomplete": True, "to_review": ["b.md::1", "c.md::1"]}),
        Question("q2", "Who?"),
        Question("q3", "Where?"),
    ]
    judged = [Judgment("q1", "a.md", 0, 5, 2, "Daily"), Judgment("q2", "a.md", 6, 9, 1, "Ann"), Judgment("q3", "a.md", 10, 14, 1, "Here")]
    save_gold(tmp_path / "g", asked, judged, "# g\n")
    return load_gold(tmp_path / "g")


def everything(gold: GoldSet) -> list[Item]:
    queue = [
        {"question": "q2", "source": "d.md", "start": 3, "end": 7, "quote": "Else", "runs": ["r1", "r2"]},
        {"question": "q1", "source": "b.md", "start": 0, "end": 9, "quote": "Other one", "runs": ["r1"]},
    ]
    return items(gold, queue, SPANS)


def decide(gold: GoldSet, keys: str, who: str = "ann", words: str = "") -> tuple[int, list[str]]:
    shown: list[str] = []
    folder = Path(str(gold.metadata["path"]))
    made = work(
        folder, who, everything(gold), lambda item: item.quote, iter(keys), lambda item, text, at, of: shown.append(item.name), lambda prompt: words
    )
    return made, shown


def test_questions_come_first_each_with_the_passages_that_wait_for_it(gold: GoldSet) -> None:
    assert [item.name for item in everything(gold)] == ["q:q1", "p:q1:b.md:0", "p:q1:c.md:0", "q:q2", "p:q2:d.md:3", "q:q3"]
    assert everything(gold)[4].why == "returned by r1, r2"


def test_every_key_is_a_decision_that_is_kept_and_can_be_undone(gold: GoldSet) -> None:
    """Accept, then grades 2 and 0, reject, undo, edit, skip; x means nothing."""
    made, shown = decide(gold, "a20xrueq", words="Who signs?")
    assert (made, shown[-1]) == (4, "p:q2:d.md:3")
    folder = Path(str(gold.metadata["path"]))
    assert [(d.item, d.action, d.grade) for d in read(folder)] == [
        ("q:q1", "accept", 0), ("p:q1:b.md:0", "judge", 2), ("p:q1:c.md:0", "judge", 0), ("q:q2", "reject", 0), ("q:q2", "undo", 0), ("q:q2", "edit", 0),
    ]  # fmt: skip
    assert decide(gold, "")[1][0] == "p:q2:d.md:3", "the next call goes on where this one ended"
    assert decide(gold, "", who="bob")[1][0] == "q:q1", "another person begins at the beginning"


def test_the_set_follows_from_the_decisions(gold: GoldSet) -> None:
    decide(gold, "a20e1r", words="Who signs?")
    outcome = apply(gold, read(Path(str(gold.metadata["path"]))))
    assert outcome.counts == {"accepted": 1, "rejected": 1, "edited": 1, "judged_relevant": 2, "judged_not": 1}
    by_id = {q.question_id: q for q in outcome.gold.questions}
    assert set(by_id) == {"q1", "q2"} and by_id["q2"].text == "Who signs?"
    assert by_id["q1"].metadata["reviewed_by"] == "ann" and not {"incomplete", "to_review"} & set(by_id["q1"].metadata)
    added = set(outcome.gold.judgments) - set(gold.judgments)
    assert added == {Judgment("q1", "b.md", 0, 9, 2, "Other one"), Judgment("q2", "d.md", 3, 7, 1, "Else")}
    assert outcome.gold.refused == (Judgment("q1", "c.md", 0, 9, 0, "Third one"),)
    again = apply(outcome.gold, read(Path(str(gold.metadata["path"]))))
    assert (again.gold.digest, again.gold.judgments) == (outcome.gold.digest, outcome.gold.judgments), "applied twice it is the same"


def test_a_question_stays_incomplete_until_all_its_passages_are_judged(gold: GoldSet) -> None:
    decide(gold, "a2")
    assert next(q for q in apply(gold, read(Path(str(gold.metadata["path"])))).gold.questions if q.question_id == "q1").metadata["incomplete"]


def test_kappa_of_two_people(gold: GoldSet) -> None:
    """Six items. Ann: a 2 0 a 1 r; Bob: a 2 1 a 1 a. They agree on 4 of 6; by chance 3·4/36 … accept 2·3, reject 1·0, grades 2: 1·1, 0: 1·0, 1: 1·2 → 9/36.
    κ = (4/6 − 9/36) / (1 − 9/36) = 5/9."""
    decide(gold, "a20a1r")
    decide(gold, "a21a1a", who="bob")
    kappa, both, differ = agreement(read(Path(str(gold.metadata["path"]))), "ann", "bob")
    assert (kappa, both) == (pytest.approx(5 / 9), 6)
    assert differ == [("p:q1:c.md:0", "grade 0", "grade 1"), ("q:q3", "reject", "accept")]
    assert agreement([], "ann", "bob") == (None, 0, [])


def test_one_decision_too_many_is_undone_once(gold: GoldSet) -> None:
    folder = Path(str(gold.metadata["path"]))
    item = everything(gold)[0]
    for action in ("accept", "undo", "undo", "reject"):
        enter(folder, "ann", item, action)
    assert [d.action for d in standing(read(folder)).values()] == ["reject"]


def test_a_broken_line_is_named(gold: GoldSet) -> None:
    folder = Path(str(gold.metadata["path"]))
    (folder / FILE).write_text(json.dumps({"who": "ann"}) + "\n")
    with pytest.raises(UsageError, match="line 1 cannot be read"):
        read(folder)


def test_the_passage_of_a_question_is_judged_anew_and_the_question_stays_open(gold: GoldSet) -> None:
    """1 for the passage of q1 (it had 2), then accepted; 0 for that of q2, undone; the passages that wait for q1 are still to be judged."""
    made, shown = decide(gold, "1as" + "s0uq")
    folder = Path(str(gold.metadata["path"]))
    assert [(d.item, d.action, d.grade) for d in read(folder)] == [
        ("j:q1:a.md:0", "judge", 1), ("q:q1", "accept", 0), ("j:q2:a.md:6", "judge", 0), ("j:q2:a.md:6", "undo", 0),
    ]  # fmt: skip
    assert made == 2 and shown.count("q:q1") == 2
    outcome = apply(gold, read(folder))
    assert [j.grade for j in outcome.gold.judgments if j.question_id == "q1"] == [1] and outcome.gold.questions[0].metadata["incomplete"]
    again = apply(outcome.gold, read(folder))
    assert again.gold.judgments == outcome.gold.judgments


def test_a_passage_judged_to_be_none_is_no_judgment_any_more(gold: GoldSet) -> None:
    decide(gold, "0r")
    enter(Path(str(gold.metadata["path"])), "ann", everything(gold)[3].own_passage(), "judge", grade=0)
    outcome = apply(gold, read(Path(str(gold.metadata["path"]))))
    assert [j.question_id for j in outcome.gold.judgments] == ["q3"] and [(j.question_id, j.grade) for j in outcome.gold.refused] == [("q2", 0)]
