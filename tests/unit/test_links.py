"""Citations and definitions in text; forms of statutes, rulebooks, manuals and contracts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lab.corpus.linking import link_rows, places
from lab.corpus.links import find_citations, find_definitions, heading_number
from lab.records import Hyperlink
from lab.store.chunks import Spot
from lab.store.documents import Linkable


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


def cited(
    documents: dict[str, str], headings: dict[str, list[str]], hyperlinks: dict[str, list[Hyperlink]] | None = None
) -> set[tuple[str, str, str]]:
    """(from source, to source, label): every document is its text in one chunk, then one chunk a heading."""
    spots: dict[str, list[Spot]] = {}
    for source, text in documents.items():
        chunks = [Spot(0, source, 1, 0, len(text), (), b"")]
        chunks += [Spot(0, source, n, len(text), len(text) + 1, (heading,), b"") for n, heading in enumerate(headings.get(source, ()), 2)]
        spots[source] = [replace(chunk, key=100 * len(spots) + at) for at, chunk in enumerate(chunks)]
    listed = [Linkable(source, "", text, hyperlinks=(hyperlinks or {}).get(source, ())) for source, text in documents.items()]
    home = {chunk.key: chunk.source for chunks in spots.values() for chunk in chunks}
    rows = link_rows(listed, spots, places(listed, spots))
    return {(home[row.from_id or 0], home[row.to_id], row.label) for row in rows if row.relation == "cites"}


def test_a_number_of_another_manual_is_not_meant() -> None:
    """Both manuals have a section 1, so they are two works: the pump guide's "section 8.2", which it lacks, is no part of the valve guide."""
    texts = {"pumps.md": "See section 8.2. Then see section 2.", "valves.md": "Words."}
    assert cited(texts, {"pumps.md": ["1 A", "2 B"], "valves.md": ["1 A", "8 C", "8.2 D"]}) == {("pumps.md", "pumps.md", "section 2")}


def test_a_manual_in_many_files_is_one_work_and_its_neighbour_another() -> None:
    """a/3.md means a/8.md, whatever b/8.md holds; a page of b means b; a letter without numbers in a third folder means nobody for sure."""
    texts = {
        "a/3.md": "See section 8.2.",
        "a/8.md": "",
        "b/1.md": "See section 8.2. Then see section 3.1.",
        "b/8.md": "",
        "letters/x.md": "See section 8.2.",
    }
    headings = {"a/3.md": ["3 A", "3.1 B"], "a/8.md": ["8 C", "8.2 D"], "b/1.md": ["1 A", "3.1 X"], "b/8.md": ["8 E", "8.2 F"]}
    assert cited(texts, headings) == {("a/3.md", "a/8.md", "section 8.2"), ("b/1.md", "b/8.md", "section 8.2"), ("b/1.md", "b/1.md", "section 3.1")}


@pytest.mark.parametrize(
    "text", ["See section 2.1 of the Guide.", "As section 2.1 in Guide says.", "Article 9 applies; see Section 2.1 of our Guide."]
)
def test_a_section_of_a_linked_document_is_looked_for_there(text: str) -> None:
    at = text.index("Guide")
    found = cited(
        {"a.md": text, "guide.md": "Words."}, {"a.md": ["2.1 Own"], "guide.md": ["2 Two", "2.1 Rules"]}, {"a.md": [Hyperlink(at, at + 5, "guide.md")]}
    )
    assert {row[1:] for row in found} == {("guide.md", text[text.lower().index("section") :][:11]), ("guide.md", "Guide")}


def test_a_section_of_a_document_named_by_its_title_is_looked_for_there() -> None:
    documents = [Linkable("m.md", "Alpha guide", "As defined in section 1 of the Omega Handbook."), Linkable("omega.md", "Omega Handbook", "Words.")]
    spots = {"m.md": [spot(1, "m.md", 0, 50, "1 Start")], "omega.md": [spot(2, "omega.md", 0, 6, "1 Start")]}
    assert [(r.from_id, r.to_id) for r in link_rows(documents, spots, places(documents, spots))] == [(1, 2)]


def test_a_document_that_defines_joins_the_term_to_the_chunk_that_holds_it() -> None:
    text = "Some words before it. A **dead leg** means a pipe without flow."
    spots = {"a": [spot(1, "a", 0, 21), spot(2, "a", 22, len(text))]}
    documents = [Linkable("a", "", text)]
    (row,) = link_rows(documents, spots, places(documents, spots))
    assert (row.relation, row.term, row.to_id, text[row.start : row.end]) == ("defines", "dead leg", 2, text[22:])
