"""Citations and definitions in text; forms of statutes, rulebooks, manuals and contracts."""

from __future__ import annotations

import pytest

from lab.corpus.linking import link_rows, places
from lab.corpus.links import find_citations, find_definitions, heading_number
from lab.store.documents import Linkable, Spot


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see section 4.2.1", [("section", "4.2.1")]),
        ("under Sections 4.2, 4.3 and 5.1", [("section", "4.2"), ("section", "4.3"), ("section", "5.1")]),
        ("in accordance with Article 6(1)(a)", [("article", "6")]),
        ("Articles 12 to 14 apply", [("article", "12"), ("article", "13"), ("article", "14")]),
        ("sections 4.2 to 4.4", [("section", "4.2"), ("section", "4.3"), ("section", "4.4")]),
        ("sections 4–6", [("section", "4"), ("section", "5"), ("section", "6")]),
        ("sections 4.2–4.4", [("section", "4.2"), ("section", "4.3"), ("section", "4.4")]),
        ("Articles 12-14", [("article", "12"), ("article", "13"), ("article", "14")]),
        ("Tables 3-1 to 3-3", [("table", "3-1"), ("table", "3-2"), ("table", "3-3")]),
        ("Rule 3.2 and § 12", [("rule", "3.2"), ("section", "12")]),
        ("as in Table 3-1.", [("table", "3-1")]),
        ("see chapter 9 and Annex B", [("chapter", "9"), ("annex", "B")]),
        ("Clause 7.1 of this agreement", [("clause", "7.1")]),
        ("Article 5 of Directive 95/46/EC", []),
        ("section 4 of the Companies Act 2006", []),
        ("Article 16 of the Treaty", []),
        ("the conditions of this Article.\n\n5. The body shall", []),
        ("Section\n7.2 applies", [("section", "7.2")]),
        ("Art. 9 and sec. 4.1", [("article", "9"), ("section", "4.1")]),
        ("Article 8 of Regulation (EU) No 1/2, in conjunction with Article 5 thereof", []),
        ("this section describes a rule of thumb", []),
        ("part of the table", []),
    ],
)
def test_citations(text: str, expected: list[tuple[str, str]]) -> None:
    assert [(m.kind, m.number) for m in find_citations(text)] == expected
    assert all(text[m.start : m.end] == m.label for m in find_citations(text))


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("**Cold permit** means a permit for work without a flame.", ["Cold permit"]),
        ("‘consent’ of the data subject means any freely given indication.", ["consent"]),
        ('The term "quiet hour" refers to the hour before the change of shift.', ["quiet hour"]),
        ("A dead leg is defined as a length of pipe without flow.", ["dead leg"]),
        ('In this chapter, "second look" means a check by another person.', ["second look"]),
        ('A line is "proved empty" when its drain has run and stopped.', ["proved empty"]),
        ("- **Drop zone**: the floor below a lift, with 2 m around it.", ["Drop zone"]),
        ("“Affiliate” shall mean any company under common control.", ["Affiliate"]),
        ("By hole watch is understood the person at the entrance.", []),
        ("Gulf Water Ltd, a company in Sharjah (the “Supplier”), sells water.", ["Supplier"]),
        ('The valves and pipes named in Annex B (hereinafter referred to as the "Assets") stay here.', ["Assets"]),
        ("(d) kept no longer than is necessary (‘storage limitation’);", ["storage limitation"]),
        ("The use of electronic means for communication is allowed.", []),
        ("The pump (see “Notes”) runs.", []),
        ("This means that the pump stops.", []),
        ("It is cleaned by means of a brush.", []),
        ("Nothing is defined here.", []),
    ],
)
def test_definitions(text: str, terms: list[str]) -> None:
    assert [d.term for d in find_definitions(text)] == terms


def test_a_definition_spans_its_sentence() -> None:
    text = "First words. **Cold permit** means a white form. Last words."
    (found,) = find_definitions(text)
    assert text[found.start : found.end] == "**Cold permit** means a white form."


@pytest.mark.parametrize(
    ("heading", "number"),
    [
        ("4.2.1 Before the isolation", ("", "4.2.1")), ("Article 6", ("article", "6")), ("§ 12 Fees", ("section", "12")), ("Annex B: forms", ("annex", "B")),
        ("Table 3-1", ("table", "3-1")), ("A warning", None), ("Notes", None), ("2024 in review", ("", "2024")),
    ],
)  # fmt: skip
def test_numbers_of_headings(heading: str, number: tuple[str, str] | None) -> None:
    assert heading_number(heading) == number


def spot(key: int, source: str, start: int, end: int, *heading: str) -> Spot:
    return Spot(key, source, key, start, end, heading, b"")


def test_citations_resolve_in_their_own_document_first_and_never_to_a_guess() -> None:
    a = "See section 4.2 and section 9.9."
    spots = {
        "a": [spot(1, "a", 0, 40, "4.1 Here"), spot(2, "a", 50, 60, "4.2 There")],
        "b": [spot(3, "b", 0, 10, "4.2 Elsewhere")],
        "c": [spot(4, "c", 0, 30, "Intro")],
    }
    documents = [Linkable("a", "", a), Linkable("b", "", "Text"), Linkable("c", "", "See section 4.2.")]
    rows = [(r.relation, r.from_id, r.to_id) for r in link_rows(documents, spots, places(documents, spots))]
    # In c the number stands in two other documents: nothing is guessed.
    assert rows == [("cites", 1, 2)]


def test_a_document_that_defines_joins_the_term_to_the_chunk_that_holds_it() -> None:
    text = "Some words before it. A **dead leg** means a pipe without flow."
    spots = {"a": [spot(1, "a", 0, 21), spot(2, "a", 22, len(text))]}
    documents = [Linkable("a", "", text)]
    (row,) = link_rows(documents, spots, places(documents, spots))
    assert (row.relation, row.term, row.to_id, text[row.start : row.end]) == ("defines", "dead leg", 2, text[22:])
