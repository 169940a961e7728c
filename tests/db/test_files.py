"""92 real files: each is read as its row of MANIFEST.tsv says, or refused with a reason code."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab.corpus import readers
from lab.corpus.readers.worker import Worker
from lab.corpus.validate import Refused
from lab.records import Document
from tests.conftest import SHARED

MANIFEST = SHARED / "files" / "MANIFEST.tsv"
FILES = (
    [row["file"] for row in csv.DictReader(MANIFEST.read_text(encoding="utf-8").splitlines(), delimiter="\t")] if MANIFEST.exists() else ["absent"]
)

# The code with which a file must be refused.
REFUSED = {
    "pdf/password.pdf": "encrypted", "pdf/libreoffice-writer-password.pdf": "encrypted", "pdf/loremipsum-flat.pdf": "no_text",
    "pdf/imagemagick-images.pdf": "no_text", "text/empty.txt": "empty", "text/fake-text-all-whitespace.txt": "empty",
    "other/duplicate-paragraphs.doc": "format", "other/fake-doc.rtf": "format", "other/fake-power-point.pptx": "format",
    "other/fake-power-point-malformed.pptx": "format", "other/fake-email-utf-16.eml": "format", "docx/pydocx_having-images.docx": "empty",
    "docx/pydocx_tbl-having-tables.docx": "empty",
}  # fmt: skip
# Words that must stand in the text, in this order (white space made one space).
IN_ORDER: dict[str, tuple[str, ...]] = {
    "pdf/multi-column.pdf": ("Abstract", "Open-domain question answering relies", "1 Introduction", "Open-domain question answering (QA)", "2 Background"),
    "pdf/multi-column-2p.pdf": ("Abstract", "1 Introduction", "identify the correct answer (Chen et al., 2017). Although reducing"),
    "pdf/fake-bold-sample.pdf": ("Normal text: Hello World", "BOLD TEXT SAMPLE", "The quick brown fox jumps over the lazy dog."),
    "pdf/debian-policy.pdf": ("politically difficult thing to do", "2.5 Priorities", "Each package must have a priority value"),
    "pdf/google-doc-document.pdf": ("Beautiful is better than ugly.", "the germany"),
    "pdf/korean-text-with-tables.pdf": ("할인점",),
    "pdf/install.ja.pdf": ("インストール",),
    "pdf/crazyones-pdfa.pdf": ("The Crazy Ones", "The misfits. The rebels."),
    "pdf/header-test-doc.pdf": (), "pdf/minimal-document.pdf": ("Lorem ipsum dolor sit amet",),
    "pdf/embedded-cmap-cidfont.pdf": ("Heading in Helvetica",),
    "docx/docx-tables.docx": ("For a",), "docx/hlink-meta.docx": (), "docx/fake_table.docx": (),
    "docx/example-list-items-multiple.docx": ("- ",),
    "odt/fake.odt": ("Lorem ipsum dolor sit amet",), "odt/source.odt": ("Lorem ipsum dolor sit amet",),
    "html/example-10k.html": ("UNITED STATES", "SECURITIES AND EXCHANGE COMMISSION", "Risk Factors"),
    "html/fake-html-cp1252.html": ("My First Heading", "Die schöne Frau", "15,50 €", "L'été"),
    "html/fake-html-with-base64-image.html": ("Test page",),
    "html/fake-html-with-footer-and-header.html": ("My First Heading", "My first paragraph."),
    "html/example-steelJIS-datasheet-utf-16.html": ("SNB22-3",),
    "html/policy_ch-controlfields.html": ("5.1. Syntax of control files", "Package: libc6"),
    "html/pg15_glossary.html": ("ACID", "Atomicity"),
    "html/pg15_sql-select.html": ("SELECT", "Synopsis", "[ WITH [ RECURSIVE ]"),
    "html/pg15_functions-string.html": ("9.4. String Functions and Operators", "For "),
    "html/pg15_bookindex.html": ("Index", "Symbols"),
    "text/fake-text-utf-16.txt": ("This is a test document", "Doylestown, PA 18901"), "text/fake-text-utf-16-le.txt": ("Doylestown, PA 18901",),
    "text/fake-text-utf-16-be.txt": ("Doylestown, PA 18901",), "text/fake-text-utf-32.txt": ("Doylestown, PA 18901",),
    "text/book-war-and-peace-1225p.txt": ("Well, Prince, so Genoa and Lucca",), "text/UDHR_first_article_all.txt": ("Universal Declaration",),
    "epub/policy.epub": ("Debian Policy Manual", "2.5. Priorities", "4.1. Standards conformance"),
}  # fmt: skip
# What must not stand in it: navigation, scripts, running heads, doubled letters.
ABSENT: dict[str, tuple[str, ...]] = {
    "pdf/fake-bold-sample.pdf": ("BBOOLLDD T",), "pdf/debian-policy.pdf": ("Release 4.6.2.0\n\n2.5", "difi cult", ". . . . ."),
    "html/example-with-scripts.html": ("function(", "{color", "document."), "html/fake-html-with-base64-image.html": ("base64", "/9j/"),
    "html/fake-html-with-footer-and-header.html": ("Header", "Footer"), "html/ideas-page.html": ("escape(document", "refsd"),
    "html/policy_ch-controlfields.html": ("¶", "Quick search", "Table of Contents", "Next topic"),
    "html/policy_ch-relationships.html": ("¶", "Quick search", "Show Source"), "html/policy_upgrading-checklist.html": ("¶", "Quick search"),
    "html/pg15_sql-select.html": ("Prev\n", "Home\n", "PostgreSQL 15.20 Documentation"), "html/pg15_glossary.html": ("Navigation header", "Appendix L"),
    "html/pg15_functions-string.html": ("Navigation header",), "docx/docx-hdrftr.docx": ("header", "footer"),
}  # fmt: skip
PAGES = {
    "pdf/DA-619p.pdf": 602,
    "pdf/debian-policy.pdf": 172,
    "pdf/multi-column-2p.pdf": 2,
    "pdf/layout-parser-paper-with-empty-pages.pdf": 2,
    "pdf/pdflatex-4-pages.pdf": 4,
}
HEADINGS = {
    "pdf/debian-policy.pdf": 330,
    "epub/policy.epub": 330,
    "docx/handbook-872p.docx": 200,
    "odt/api-for-odfpy.odt": 500,
    "html/pg15_sql-select.html": 30,
}
LEAST = {"pdf/DA-619p.pdf": 1_500_000, "docx/handbook-872p.docx": 700_000, "pdf/debian-reference.en.pdf": 450_000, "html/example-10k.html": 150_000}


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as started:
        yield started


def load(path: Path, worker: Worker, password: str | None = None) -> Document:
    data = path.read_bytes()
    kind, text = readers.format_of(data, path.name)
    return worker.read(path.name, data, kind, text, password)


@pytest.mark.parametrize("name", FILES)
def test_each_file_does_what_the_manifest_says(name: str, worker: Worker, shared_data: Callable[[str], Path]) -> None:
    path = shared_data("files") / name
    if name in REFUSED:
        with pytest.raises(Refused, match=f"^{REFUSED[name]}: "):
            load(path, worker)
        return
    document = load(path, worker)
    text = " ".join(document.text.split())
    assert len(text) >= LEAST.get(name, 9) and "\0" not in document.text and "\x02" not in document.text
    at = 0
    for words in IN_ORDER.get(name, ()):
        at = text.find(words, at)
        assert at >= 0, words
    for words in ABSENT.get(name, ()):
        assert words not in document.text, words
    if name.startswith("pdf/"):
        assert document.pages[0][1] >= 1 and list(document.pages) == sorted(document.pages)
    if name in PAGES:
        assert PAGES[name] <= len(document.pages) <= PAGES[name] + 5  # pages of contents may keep a line
    assert sum(block.kind == "heading" for block in document.blocks) >= HEADINGS.get(name, 0)
    for before, block in zip((None, *document.blocks), document.blocks, strict=False):
        assert 0 <= block.start < block.end <= len(document.text) and (before is None or before.end <= block.start)


@pytest.mark.parametrize(("name", "password"), [("pdf/password.pdf", "password"), ("pdf/libreoffice-writer-password.pdf", "openpassword")])
def test_a_password_opens_them(name: str, password: str, worker: Worker, shared_data: Callable[[str], Path]) -> None:
    path = shared_data("files") / name
    assert len(load(path, worker, password).text) >= 18
    with pytest.raises(Refused, match="another password"):
        load(path, worker, "wrong")
