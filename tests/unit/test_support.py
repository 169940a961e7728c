"""Whether a text says a sentence, by words: each rule by an input that breaks it, and what the proxy cannot see."""

from __future__ import annotations

import pytest

from lab.serving.support import unsupported

TEXT = (
    "The relief valve opens at 12 bar. The fire watcher stands within 6 m and holds an extinguisher of 9 kg. Hydrogen heads hang within 300 mm of the ceiling. Chlorine heads sit 400 mm above the floor. "
    "Mistakes are not punished. Each stack may be restarted three times a day because of the gaskets. The hall has twelve changes of air, the battery room eight."
)


@pytest.mark.parametrize(
    ("sentence", "why"),
    [
        ("The relief valve opens at 12 bar.", ""),
        ("At 12 bar the valve opens.", ""),
        ("“The relief valve opens at 12 bar.”", ""),
        ("Yes: mistakes are not punished.", ""),
        ("A stack may be restarted 3 times a day.", ""),
        ("The battery room has eight changes of air.", ""),
        ("The relief valve opens at 16 bar.", "16 does not stand"),
        ("A stack may be restarted five times a day.", "5 does not stand"),
        ("The fire watcher holds an extinguisher of 6 kg.", "6 is said of something else"),
        ("The hydrogen heads hang within 400 mm of the ceiling.", "400 is said of something else"),
        ("Mistakes are punished.", "denies"),
        ("The relief valve does not open at 12 bar.", "denies"),
        ("Only the relief valve opens at 12 bar.", "says only"),
        ("The fire watcher stands outside of 6 m and holds an extinguisher of 9 kg.", ""),  # within / outside of are no words to it
        ("The relief valve opens at no more than 12 bar.", ""),  # a bound is no negation
        ("Each stack of Frankfurt may be restarted three times a day.", "Frankfurt does not stand"),
        ("The hall has eight changes of air.", "8 is said of something else"),
        ("The mayor sells tickets.", "words do not stand"),
        ("The relief valve opens at 12 bar, and the mayor sells tickets every week.", "words do not stand"),
        ("Three times a day because of the gaskets.", ""),  # a part of a sentence that nothing in the rest takes back
        ("Mistakes are not punished. Each stack may be restarted three times a day because of the gaskets.", ""),  # two whole ones in a row
        ("Hydrogen heads hang within 300 mm of the floor.", ""),  # two things that changed places: not seen
    ],
)
def test_what_a_text_says(sentence: str, why: str) -> None:
    found = unsupported(sentence, TEXT)
    assert found == "" if why == "" else why in found, found


@pytest.mark.parametrize(
    ("sentence", "text", "why"),
    [
        ("Staff may enter.", "No staff may enter.", "denies"),
        ("The tank is safe.", "The tank is safe only when it is empty.", "leaves out an only"),
        ("The tank is safe only when it is empty.", "The tank is safe when it is empty.", "says only"),
        ("Store it at 5 C.", "Store it at -5 C.", "5 does not stand"),
        ("Store it at 5 C.", "Store it at minus 5 C.", "5 does not stand"),
        ("Store it at −5 C.", "Store it at -5 C.", ""),
        ("Store it at 3-5 C.", "Store it at 3-5 C.", ""),
        ("Use the part PRV-2041.", "Use the part PRV-2041.", ""),
        ("Store it at –5 C.", "Store it at −5 C.", ""),
        ("Store it at -5 C.", "Store it at minus five C.", ""),
        ("Store it at 3 -5 C.", "Store it at 3 to 5 C.", ""),
        ("It is not the case.", "It is not the case that the pump leaks.", ""),
    ],
)
def test_a_part_of_a_sentence_is_no_quotation_of_it(sentence: str, text: str, why: str) -> None:
    found = unsupported(sentence, text)
    assert found == "" if why == "" else why in found, found


def test_opposites() -> None:
    text = "The valve is shut before the pump starts."
    assert unsupported("The valve is shut after the pump starts.", text) == "it says the opposite of what it cites"
    assert unsupported("The valve is open before the pump starts.", text) != ""


def test_words_of_the_question_are_no_news() -> None:
    assert unsupported("For the big desalination line the valve opens at 12 bar.", TEXT) != ""
    assert (
        unsupported("For the big desalination line the valve opens at 12 bar.", TEXT, "When does the valve of the big desalination line open?") == ""
    )


def test_nothing_to_judge() -> None:
    assert unsupported("The valve opens.", "") != "" and unsupported("Yes.", TEXT) == "" and unsupported("…", TEXT) == ""
