"""PDF pages by rule: columns, running heads, contents, divided words. Lines are given by their places, in points."""

from __future__ import annotations

from lab.corpus.readers.pdf import _is_contents, _joined, _level
from lab.corpus.readers.pdf_lines import Line
from lab.corpus.readers.pdf_page import Group, in_order, numbered_apart, paragraphs, running_heads


def line(text: str, left: float = 72, top: float = 700, right: float | None = None, size: float = 10, bold: bool = False) -> Line:
    return Line(text, left, top - size, right if right is not None else left + 5 * len(text), top, size, bold)


def test_two_columns_are_read_one_after_the_other_below_a_title_across_both() -> None:
    left = [line(f"left column line number {n}", 72, 600 - 12 * n, 290) for n in range(8)]
    right = [line(f"right column line number {n}", 310, 600 - 12 * n, 530) for n in range(8)]
    title = line("A title that stands across both of the columns", 72, 650, 530, 16)
    mixed = [piece for pair in zip(left, right, strict=True) for piece in pair]
    texts = [one.text for column in in_order([*mixed, title]) for one in column]
    assert texts == [title.text, *(one.text for one in left), *(one.text for one in right)]


def test_cells_of_a_table_without_rules_are_rows_and_no_columns() -> None:
    cells = [line(word, x, 600 - 12 * n) for n in range(8) for x, word in ((72, f"a{n}"), (300, f"b{n}"))]
    assert [one.text for column in in_order(cells) for one in column] == [f"a{n} b{n}" for n in range(8)]


def test_running_heads_go_and_first_lines_stay() -> None:
    pages = [
        [line("The Manual, Release 2", top=770), line(f"The first line of page {chr(97 + n)}", top=740), line(f"Chapter 1 · {n}", top=40)]
        for n in range(8)
    ]
    heads = running_heads(pages, [(612.0, 792.0)] * 8)
    assert heads == {(n, at) for n in range(8) for at in (0, 2)}


def test_a_page_of_contents_is_one_and_a_form_is_none() -> None:
    contents = [line(f"{n}.1 Valves . . . . . . . . . . {n}") for n in range(1, 6)]
    form = [line("Name .................."), line("Date .................."), line("Signature ................"), line("Fill in by 31")]
    assert _is_contents(contents) and not _is_contents(form)


def test_divided_words_are_put_together_and_hyphens_of_their_own_stay() -> None:
    from collections import Counter

    words = Counter({"information": 3, "well-known": 2})
    assert (
        _joined([line("some infor-"), line("mation is well-"), line("known, from 12-"), line("14 March")], words)
        == "some information is well-known, from 12- 14 March"
    )


def test_paragraphs_part_at_gaps_and_items_and_a_number_joins_its_title() -> None:
    column = [
        line("One goes", top=700),
        line("on here.", top=688),
        line("Two after a gap.", top=660),
        line("• three", top=648),
        line("• four", top=636),
    ]
    assert [[one.text for one in g.lines] for g in paragraphs([column], lambda _: 0)] == [
        ["One goes", "on here."],
        ["Two after a gap."],
        ["• three"],
        ["• four"],
    ]
    groups = numbered_apart([Group((line("CHAPTER", size=12),)), Group((line("ONE", size=20),), 1), Group((line("VALVES", size=20),), 1)])
    assert [" ".join(one.text for one in g.lines) for g in groups] == ["CHAPTER ONE VALVES"]


def test_large_type_on_its_side_is_no_heading() -> None:
    stamp = Line("[cs.CL]", 10, 300, 30, 360, 20, False, upright=False)
    assert _level(stamp, body=10, large=[20], known={}) == 0
    assert _level(line("Valves and pumps", size=20), body=10, large=[20], known={}) == 1
