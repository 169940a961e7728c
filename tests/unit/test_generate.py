"""Generated gold, without a database: rules, sieve, copying meter."""

from __future__ import annotations

import pytest

from lab.gold.copying import copying, longest_run
from lab.gold.drafts import Draft, Passage
from lab.gold.generators import turned
from lab.gold.sift import Seen, reason
from lab.records import Judgment
from lab.text import copied_share, copying_band


def draft(question: str, kind: str = "fact", heading: tuple[str, ...] = (), quote: str = "The pump is oiled weekly.") -> Draft:
    text = "The pump is oiled weekly. The fan is not."
    return Draft(
        question, kind, (Judgment("", "a.md", 10, 10 + len(quote), 2, quote),), Passage(1, "a.md", 1, 10, 10 + len(text), text, heading, "A")
    )


@pytest.mark.parametrize(
    ("question", "kind", "heading", "why"),
    [
        ("How often is the pump oiled?", "fact", (), ""), ("What does this section require?", "fact", (), "dangling"), ("What do the above rules ask of a fitter?", "fact", (), "dangling"),
        ("How often does it run?", "fact", (), "dangling"), ("isolation of pumps", "fact", ("4.2 Isolation of pumps",), "heading_echo"),
        ("What does “this section” mean?", "definition", (), ""), ("Oil it?", "fact", (), "too_short"), ("The pump is oiled weekly.", "fact", (), "not_a_question"),
        ("pump oiled weekly", "keyword", (), ""), ("What is it?", "fact", (), "too_short"), ("Define “hot permit”.", "definition", (), ""),
        ("What is isolation of pumps about in winter?", "fact", ("4.2 Isolation of pumps",), ""),
    ],
)  # fmt: skip
def test_each_refusal_has_a_code(question: str, kind: str, heading: tuple[str, ...], why: str) -> None:
    assert reason(draft(question, kind, heading)) == why


def test_a_quote_that_does_not_stand_in_the_passage_is_refused() -> None:
    assert reason(draft("How often is the pump oiled?", quote="The pump is oiled daily.")) == "quote_absent"


def test_a_question_asked_twice_is_one() -> None:
    seen = Seen()
    assert seen.twin("How often is the pump oil changed?") == ""
    assert seen.twin("how often is pump oil changed") == "How often is the pump oil changed?"
    assert seen.twin("How often is the pump oil filter of TK-15 changed?") == ""
    assert seen.twin("What is PRV-2041?") == ""
    assert seen.twin("What is PRV-2042?") == "", "another code is another question"


@pytest.mark.parametrize(
    ("sentence", "question"),
    [
        ("The relief valve must be tested every six months.", "How often must the relief valve be tested?"),
        ("Each crane should be greased by a fitter at least once a month.", "How often should each crane be greased by a fitter?"),
        ("Visitors stand at least 3 metres from a running pump.", "Visitors stand at least how many metres from a running pump?"),
        ("The hypochlorite tank holds no more than 12.5 % of chlorine.", "The hypochlorite tank holds no more than how many per cent of chlorine?"),
        ("The shift lead must sign the red book.", "Who or what must sign the red book?"), ("The key must not leave the hall at night.", "Who or what must not leave the hall at night?"),
        ("It must be tested every six months.", None), ("If the flask breaks, the floor is treated as section 4 directs.", None), ("These doors are shut for 3 hours.", None),
        ("Between 3 metres and 5 metres nobody stands at all.", None), ("Weekly.", None), ("see table 3 for all 12 values", None),
    ],
)  # fmt: skip
def test_clauses_are_turned_round_or_left_alone(sentence: str, question: str | None) -> None:
    found = turned(sentence)
    assert (found[0] if found else None) == question


def test_the_copying_meter() -> None:
    """Two questions on one sentence: five of six content words copied, none of five."""
    passage = "The Kestrel-9 damper shall be greased with NLGI-2 each quarter."
    copied, rephrased = "Which grease does the Kestrel-9 damper need each quarter?", "How frequently do we lubricate that airflow flap?"
    assert (copying_band(copied_share(copied, passage)), copying_band(copied_share(rephrased, passage))) == ("copied", "paraphrased")
    found = copying(copied, passage, ["The damper is shut."], {"kestrel": 1, "damper": 4, "greas": 9, "quarter": 3, "9": 5}, True)
    assert (found.band, found.rarest, found.rarest_passages, found.run, found.lexical_first) == ("copied", "kestrel", 1, 4, True)
    assert found.elsewhere == pytest.approx(1 / 6)
    nothing = copying(rephrased, passage, [], {}, False)
    assert (nothing.band, nothing.rarest, nothing.run) == ("paraphrased", "", 0)


def test_a_run_of_stop_words_is_no_copy() -> None:
    assert longest_run("what is in the box", "it is in the hall") == 0
    assert longest_run("Which seal of the brine pump leaks?", "A seal of the brine pump is red.") == 5
