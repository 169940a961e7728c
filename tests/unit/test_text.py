"""Text as the lab compares it."""

from __future__ import annotations

import pytest

from lab.text import class_id, content_stems, copied_share, copying_band, facts, indexable, ngrams, normalise, term_key


def test_exact_twins_ignore_white_space_case_and_width_only() -> None:
    assert class_id("Close  the\nVALVE.") == class_id("close the valve.")
    assert class_id("ｖａｌｖｅ") == class_id("valve")
    assert class_id("Close the valve.") != class_id("Close the valve")
    assert class_id("6 months") != class_id("12 months")
    assert normalise(" A\t b ") == "a b"


def test_a_term_is_stored_without_article_and_ending() -> None:
    assert term_key("The Cold Permits") == term_key("cold permit") == "cold permit"


def test_ngrams_keep_the_first_position() -> None:
    assert ngrams("cold permit, cold", 2) == {"cold": 0, "permit": 1, "cold permit": 0, "permit cold": 1}


@pytest.mark.parametrize(
    ("question", "band"),
    [("Which grease does the Kestrel-9 damper need each quarter?", "copied"), ("How frequently do we lubricate that airflow flap?", "paraphrased")],
)
def test_copying_bands(question: str, band: str) -> None:
    passage = "The Kestrel-9 damper shall be greased with NLGI-2 each quarter"
    assert copying_band(copied_share(question, passage)) == band


def test_share_of_a_question_without_content_words_is_zero() -> None:
    assert copied_share("what is it and who are they", "it is they") == 0.0
    assert content_stems("what is it") == []


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("tested every 6 months", "tested every 12 months"), ("see PRV-2041", "see PRV-2042"), ("it is allowed", "it is not allowed"),
        ("in January", "in June"), ("Pump A is tested", "Pump B is tested"), ("section 4.2", "section 4.20"), ("they can", "they can't"),
    ],
)  # fmt: skip
def test_passages_that_differ_in_a_fact_have_different_facts(a: str, b: str) -> None:
    assert facts(a) != facts(b)


def test_facts_ignore_wording() -> None:
    assert facts("PRV-2041 opens at 12.5 bar") == facts("At 12.5 bar it opens, PRV-2041")


@pytest.mark.parametrize(
    ("text", "indexed"),
    [
        ("plain - text \"as\" it's", "plain - text \"as\" it's"), ("5–10 bar", "5 10 bar"), ("2019–2021", "2019 2021"), ("PRV‑2041", "PRV-2041"), ("pump – valve", "pump   valve"),
        ("sea–water", "sea-water"), ("−10 °C", " 10  C"), ("donʼt", "don't"), ("soft\u00adly", "softly"), ("na\u200cme", "name"), ("§4.2", " 4.2"), ("日本語、また", "日本語 また"),
    ],
)  # fmt: skip
def test_signs_outside_of_ascii_are_made_plain_for_the_text_index(text: str, indexed: str) -> None:
    assert indexable(text) == indexed
