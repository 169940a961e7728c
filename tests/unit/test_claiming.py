"""Claims by rules: what a sentence says, and what it does not."""

from __future__ import annotations

import pytest

from lab.corpus.claiming import LONGEST, Found, find_claims, item, kind_of, stated, within


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("The relief valve opens at 12 bar at most.", "limit"), ("A response is sent within 30 days.", "limit"), ("Noise may not exceed 85 dB(A) in the hall.", "limit"),
        ("Every six months the valve is tested on the bench.", "limit"), ("No more than three persons enter the tank.", "limit"),
        ("The fitter must lock the breaker first.", "requirement"), ("Contractors may not open the valve alone.", "requirement"), ("Visitors are required to wear a badge.", "requirement"),
        ("Smoking is prohibited in the battery room.", "requirement"), ("Personal data shall be processed lawfully.", "requirement"),
        ("The pump is blue and stands outside.", None), ("The pump weighs 12 kg when empty.", None), ("Must the pump be stopped at 12 bar at most?", None),
        ("The following must be done at once:", None), ("## The pump must be stopped at once", None), ("| must | be stopped at once |", None), ("Must stop.", None),
        ("The carpenter came three days before the audit.", None), ("In 2024 the plant had 12 trains.", None),
    ],
)  # fmt: skip
def test_kinds(sentence: str, kind: str | None) -> None:
    assert kind_of(sentence) == kind


def test_a_definition_makes_no_other_claim_and_one_a_term() -> None:
    text = "A “cold permit” means a permit for work without a flame that must be renewed within 12 hours. The shift lead must sign it."
    found = find_claims(text)
    assert [(c.kind, c.subject) for c in found] == [("definition", "cold permit"), ("requirement", "")]
    assert text[found[0].start : found[0].end].startswith("A “cold permit”") and all(text[c.start : c.end].split()[0] in c.statement for c in found)


def test_the_item_of_a_list_of_definitions_is_one_quote() -> None:
    """(2) goes on in its sub-items and its second sentence, to the next number; a numbered paragraph takes its number and its sentence alone."""
    text = "(1) ‘a thing’ means an object.\n\n(2) ‘main place’ means:\n\n(a) the first one; or\n\n(b) the second one. However, it may not be the third.\n\n(3) ‘other’ means another."
    found = [text[c.start : c.end] for c in find_claims(text) if c.kind == "definition"]
    assert found == ["(1) ‘a thing’ means an object.", text[text.index("(2)") : text.index("\n\n(3)")], "(3) ‘other’ means another."]
    one = "2. The controller shall show it (‘accountability’). It is brave."
    (first,) = (c for c in find_claims(one) if c.kind == "definition")
    assert one[first.start : first.end] == "2. The controller shall show it (‘accountability’)."
    assert item("plain words", 0, 11) == (0, 11)


def test_a_statement_is_short_and_bare() -> None:
    assert stated("- **Drift band** means the *largest* difference.") == "Drift band means the largest difference."
    assert stated("Set `rrf_k` (as `derived_from`) to 2*3, _not_ to **four**.") == "Set rrf_k (as derived_from) to 2*3, not to four."
    long = stated("word " * 100)
    assert len(long) <= LONGEST and long.endswith("word…")


def test_the_passage_that_holds_most_of_it() -> None:
    found = Found("limit", "x", "", 90, 130, 0.8)
    assert within(found, [(0, 100), (100, 200)]) == 1 and within(found, [(0, 110), (110, 200)]) == 0 and within(found, [(200, 300)]) is None
