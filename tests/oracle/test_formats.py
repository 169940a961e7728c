"""One manual in four formats: the same sections, whatever the reader."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.corpus import readers
from lab.corpus.chunking import heading_words
from lab.corpus.links import heading_number
from lab.records import Document

Section = tuple[str, str]
_NAVIGATION = ("Quick search", "Show Source", "Next topic", "Previous topic", "Table of Contents", "Powered by", "Permalink", "¶")


def read(path: Path) -> Document:
    data = path.read_bytes()
    return readers.read(path.name, data, *readers.format_of(data, path.name))


def sections(document: Document) -> set[Section]:
    """(number, letters and digits of the title) of every numbered heading."""
    found = set()
    for block in document.blocks:
        if block.kind != "heading":
            continue
        words = heading_words(document.text[block.start : block.end])
        numbered = re.match(r"(\d{1,2}(?:\.\d+)*)\.?\s+(.*)", words)
        if numbered:
            found.add((numbered[1], _letters(numbered[2])))
        elif (number := heading_number(words)) is not None:  # "ONE ABOUT THIS MANUAL"
            found.add((number[1], _letters(words.partition(" ")[2])))
    return found


def _letters(title: str) -> str:
    return "".join(ch for ch in title.casefold() if ch.isalnum())


@pytest.fixture(scope="module")
def pages(shared_data: Callable[[str], Path]) -> list[Document]:
    return [read(path) for path in sorted((shared_data("debian_policy") / "html").glob("*.html"))]


def test_html_text_epub_and_pdf_give_the_same_sections(pages: list[Document], shared_data: Callable[[str], Path]) -> None:
    folder = shared_data("debian_policy")
    html = {section for page in pages for section in sections(page)}
    assert len(html) >= 330
    for name in ("policy.txt", "policy.epub"):
        assert len(html & sections(read(folder / name))) / len(html) >= 0.95, name
    # The PDF counts the appendices on from chapter 12, the other formats anew.
    pdf = set()
    for number, title in sections(read(folder / "policy.pdf")):
        first, dot, rest = number.partition(".")
        pdf.add((f"{int(first) - 12 if int(first) > 12 else first}{dot}{rest}", title))
    assert len(html & pdf) / len(html) >= 0.95, sorted(html - pdf)


def test_no_navigation_is_stored(pages: list[Document], shared_data: Callable[[str], Path]) -> None:
    for document in [*pages, read(shared_data("debian_policy") / "policy.epub")]:
        for words in _NAVIGATION:
            assert words not in document.text, (document.source, words)
        titles = [heading_words(document.text[b.start : b.end]) for b in document.blocks if b.kind == "heading"]
        # A line of a table of contents repeats a heading as a paragraph of its own.
        paragraphs = {document.text[b.start : b.end].lstrip("- ") for b in document.blocks if b.kind == "paragraph"}
        assert sum(title in paragraphs for title in titles) <= 0.02 * max(len(titles), 50), document.source
