"""Files that deceive: each is read rightly or refused with a reason code; none hangs, crashes, fetches, or is silently empty."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from lab.corpus import readers, sniff
from lab.corpus.metadata import load as load_metadata
from lab.corpus.readers.compose import iso_date
from lab.corpus.readers.tables import rows_as_sentences
from lab.corpus.readers.worker import Worker
from lab.corpus.validate import Refused
from lab.errors import UsageError
from lab.records import Document

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
HTML = "<html><head><title>T</title></head><body>{}</body></html>"


def read(name: str, data: bytes | str) -> Document:
    raw = data.encode() if isinstance(data, str) else data
    return readers.read(name, raw, *readers.format_of(raw, name))


def packed(members: dict[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def odt(body: str) -> bytes:
    content = (
        '<?xml version="1.0"?><office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
        'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0">'
        f"<office:body><office:text>{body}</office:text></office:body></office:document-content>"
    )
    return packed({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": content})


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        ("report.pdf", HTML.format("<h1>404 Not Found</h1>").encode(), "mismatch"),
        ("report.docx", b"Just words.", "mismatch"),
        ("a.pdf", b"", "empty"),
        ("a.pdf", b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog", "corrupt"),
        ("a.docx", b"PK\x03\x04" + b"\0" * 50, "corrupt"),
        ("a.docx", packed({"word/document.xml": "no xml", "[Content_Types].xml": "<x/>"}), "corrupt"),
        ("bomb.docx", packed({"word/document.xml": b"\0" * 40_000_000, "[Content_Types].xml": "<x/>"}), "bomb"),
        ("a.zip", packed({"a.txt": "words"}), "format"),
        ("a.xlsx", packed({"xl/workbook.xml": "<x/>"}), "format"),
        ("a.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + b"\0" * 30, "format"),
        ("a.txt", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + b"\0" * 30, "format"),
        ("a.rtf", b"{\\rtf1 words}", "format"),
        ("a.json", b"{}", "format"),
        ("x.xhtml", b'<?xml version="1.0"?><!DOCTYPE html [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;">]><html><body>&b;</body></html>', "unsafe"),
        ("x.html", b'<!DOCTYPE html [<!ENTITY x SYSTEM "file:///etc/passwd">]><html><body>&x;</body></html>', "unsafe"),
        ("e.html", HTML.format("<nav>Home</nav><script>x()</script>").encode(), "empty"),
    ],
)  # fmt: skip
def test_what_deceives_is_refused_with_its_code(name: str, data: bytes, code: str) -> None:
    with pytest.raises(Refused, match=f"^{code}: "):
        read(name, data)


def test_odt_entities_are_refused() -> None:
    content = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>'
    bad = packed({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": content})
    with pytest.raises(Refused, match=r"^unsafe: "):
        read("a.odt", bad)


def test_content_decides_and_not_the_name() -> None:
    assert read("page.txt", HTML.format("<p>Words.</p>")).format == "html"
    assert read("README", "Words.").format == "text"
    assert read("notes.md", "<p align='center'>Logo</p>\n\n# T\n").format == "markdown"
    assert read("book.txt", odt("<text:h text:outline-level='2'>H</text:h><text:p>Words.</text:p>")).text == "H\n\nWords."


def test_main_content_without_navigation_scripts_or_hidden_text() -> None:
    page = HTML.format(
        "<header><a href='/'>Home</a></header><nav>Menu</nav><div class='sidebar-left'>Aside</div><div role='navigation'>More</div>"
        "<div class='content'><h1>Title<a class='headerlink' href='#t'>¶</a></h1><p>First <b>bold</b>\n words.</p><ul><li>one</li><li>two</li></ul>"
        "<div style='display: none'>hidden</div><pre>  code\n    here</pre><p>Last.</p></div><footer>Imprint</footer><script>evil()</script>"
    )
    assert read("a.html", page).text == "Title\n\nFirst bold words.\n\n- one\n- two\n\n  code\n    here\n\nLast."


def test_a_section_named_after_its_heading_is_content() -> None:
    page = HTML.format(
        "<div class='section' id='related-documents'><h2>Related documents</h2><p>Words.</p></div><div class='toc'>1 2 3</div><p>Other words.</p>"
    )
    assert read("a.html", page).text == "Related documents\n\nWords.\n\nOther words."


def test_tables_become_sentences_and_layout_tables_do_not() -> None:
    data = "<table><tr><th>Pump</th><th>Test interval</th></tr><tr><td>Pump A</td><td>6 months</td></tr><tr><td rowspan=2>Pump B</td><td>1 year</td></tr><tr><td>2 years</td></tr></table>"
    document = read("a.html", HTML.format(f"<main><p>Words.</p>{data}</main>"))
    rows = [document.text[b.start : b.end] for b in document.blocks if b.kind == "row"]
    assert rows == [
        "For Pump A, the test interval is 6 months.",
        "For Pump B, the test interval is 1 year.",
        "For Pump B, the test interval is 2 years.",
    ]
    layout = "<table><tr><td><h1>Title</h1><p>Words.</p></td><td>Aside</td></tr></table>"
    assert "Title\n\nWords." in read("b.html", HTML.format(layout)).text
    assert rows_as_sentences([["a"], ["b"]]) == ["a: b."]


def test_definition_lists_anchors_and_targets() -> None:
    page = HTML.format(
        "<main><h2 id='g'>Glossary</h2><dl><dt>Dead leg</dt><dd>A pipe without flow.</dd></dl><p>See <a href='b.html#x'>there</a>, <a href='#g'>here</a>.</p></main>"
    )
    document = read("a.html", page)
    assert "Dead leg: A pipe without flow." in document.text and document.anchors["#g"] == 0
    assert [(document.text[link.start : link.end], link.target) for link in document.hyperlinks] == [("there", "b.html#x"), ("here", "#g")]
    ((start, end, close),) = document.terms
    assert (document.text[start:end], document.text[start:close]) == ("Dead leg", "Dead leg: A pipe without flow.")


def test_head_tells_url_date_and_version() -> None:
    page = (
        "<html><head><title>T</title><link rel='canonical' href='https://example.org/a'><meta property='article:modified_time' content='2024-05-01T10:00:00Z'>"
        "<meta name='version' content='2.1'></head><body><p>Words.</p></body></html>"
    )
    document = read("a.html", page)
    assert (document.source_url, document.updated, document.version) == ("https://example.org/a", "2024-05-01", "2.1")


@pytest.mark.parametrize(
    ("charset", "text"), [("shift_jis", "安全弁"), ("windows-1251", "Клапан"), ("iso-8859-2", "Zawór żółty"), ("gb2312", "安全阀")]
)
def test_html_is_decoded_as_it_says(charset: str, text: str) -> None:
    page = f"<html><head><meta charset='{charset}'></head><body><p>{text}</p></body></html>".encode(charset)
    assert read("a.html", page).text == text


def test_deep_nesting_is_read_or_refused_and_never_cut_in_silence() -> None:
    assert read("a.html", HTML.format("<div>" * 1000 + "<p>deep</p>" + "</div>" * 1000)).text == "deep"
    with pytest.raises(Refused, match="nested too deeply"):
        read("a.html", HTML.format("<div>" * 50_000 + "<p>deep</p>" + "</div>" * 50_000))


def test_front_matter_is_typed_and_tells_provenance() -> None:
    document = read(
        "a.md",
        "---\ntitle: T\nyear: 2024\nshare: 0.5\nfinal: true\ncode: 007\nlast_updated: 2024-05-01\nversion: 1.2\nurl: https://x.org/a\n---\n# H\n\nWords.\n",
    )
    assert dict(document.metadata) == {
        "title": "T", "year": 2024, "share": 0.5, "final": True, "code": "007", "last_updated": "2024-05-01", "version": 1.2, "url": "https://x.org/a",
    }  # fmt: skip
    assert (document.updated, document.version, document.source_url) == ("2024-05-01", "1.2", "https://x.org/a")


def test_metadata_files(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_text("source,year,owner,reviewed:date,final\na.md,2024,crew,2024-05-01,true\nb.md,2023,,,false\n")
    assert load_metadata(path) == {
        "a.md": {"year": 2024, "owner": "crew", "reviewed": "2024-05-01", "final": True},
        "b.md": {"year": 2023, "final": False},
    }
    for text, message in (
        ("file,year\na,1\n", "must have a column named source"),
        ("source,year:whole\na,1\n", "cannot be of type"),
        ("source,year:int\na,x\n", r"line 2, column 'year': 'x' is no int"),
        ("source,year\na,1\na,2\n", "stands twice"),
        ("source,year\na\n", "line 2 has 1 cells"),
        ("source,d:date\na,1.5.2024\n", "is no date like"),
    ):
        path.write_text(text)
        with pytest.raises(UsageError, match=message):
            load_metadata(path)


def test_a_file_that_takes_too_long_or_kills_its_reader_costs_that_file_only(monkeypatch: pytest.MonkeyPatch) -> None:
    page = HTML.format("<p>Words.</p>").encode()
    with Worker(seconds=0.0) as worker, pytest.raises(Refused, match=r"^too_slow: "):
        worker.read("a.html", page, "html", "", None)
    with Worker() as worker:
        assert worker.read("a.html", page, "html", "", None).text == "Words."
        assert worker._process is not None
        worker._process.kill()
        worker._process.wait()
        assert worker.read("a.html", page, "html", "", None).text == "Words."
        with pytest.raises(Refused, match=r"^unsafe: "):
            worker.read("a.html", b"<!DOCTYPE html [<!ENTITY x 'y'>]><html><body>&x;</body></html>", "html", "", None)
        assert worker.read("a.html", page, "html", "", None).text == "Words."


def test_a_large_file_is_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sniff, "MAX_BYTES", 10)
    with pytest.raises(Refused, match=r"^too_large: "):
        read("a.txt", b"x" * 11)


def test_docx_headings_lists_tables_links_and_notes() -> None:
    import docx

    made = docx.Document()
    made.core_properties.title = "The manual"
    made.add_heading("4.2 Isolation", level=2)
    made.add_paragraph("Close the valve.")
    made.add_paragraph("first", style="List Bullet")
    made.add_paragraph("second", style="List Bullet")
    table = made.add_table(rows=2, cols=2)
    for at, words in enumerate(("Pump", "Interval", "Pump A", "6 months")):
        table.cell(at // 2, at % 2).text = words
    made.sections[0].header.paragraphs[0].text = "RUNNING HEAD"
    out = io.BytesIO()
    made.save(out)
    document = read("a.docx", out.getvalue())
    assert document.text == "4.2 Isolation\n\nClose the valve.\n\n- first\n- second\n\nFor Pump A, the interval is 6 months."
    assert (document.title, document.blocks[0].kind, document.blocks[0].level) == ("The manual", "heading", 2)


def test_odt_headings_lists_tables() -> None:
    body = (
        "<text:h text:outline-level='1'>One</text:h><text:p>Words <text:span>go</text:span><text:s/>on.</text:p>"
        "<text:list><text:list-item><text:p>first</text:p></text:list-item><text:list-item><text:p>second</text:p></text:list-item></text:list>"
        "<table:table><table:table-row><table:table-cell><text:p>Pump</text:p></table:table-cell><table:table-cell><text:p>Interval</text:p></table:table-cell></table:table-row>"
        "<table:table-row><table:table-cell><text:p>Pump A</text:p></table:table-cell><table:table-cell><text:p>6 months</text:p></table:table-cell></table:table-row></table:table>"
    )
    assert read("a.odt", odt(body)).text == "One\n\nWords go on.\n\n- first\n- second\n\nFor Pump A, the interval is 6 months."


def test_epub_follows_its_spine_and_leaves_the_navigation_out() -> None:
    opf = (
        '<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Book</dc:title><dc:date>2023-01-02</dc:date></metadata>'
        '<manifest><item id="n" href="nav.xhtml" properties="nav" media-type="application/xhtml+xml"/><item id="a" href="a.xhtml" media-type="application/xhtml+xml"/>'
        '<item id="b" href="b.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="n"/><itemref idref="b"/><itemref idref="a"/></spine></package>'
    )
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="O/c.opf"/></rootfiles></container>'
    )
    book = packed(
        {
            "mimetype": "application/epub+zip", "META-INF/container.xml": container, "O/c.opf": opf, "O/nav.xhtml": HTML.format("<p>Contents</p>"),
            "O/a.xhtml": HTML.format("<h1 id='s'>Second</h1><p>Two.</p>"), "O/b.xhtml": HTML.format("<h1>First</h1><p>See <a href='a.xhtml#s'>it</a>.</p>"),
        }
    )  # fmt: skip
    document = read("a.epub", book)
    assert document.text == "First\n\nSee it.\n\nSecond\n\nTwo." and (document.title, document.updated) == ("Book", "2023-01-02")
    assert document.hyperlinks[0].target in document.anchors


@pytest.mark.parametrize(
    ("word", "date"),
    [
        ("D:20221217024144-00'00'", "2022-12-17"), ("2024-05-01T10:00:00Z", "2024-05-01"), ("20240501", "2024-05-01"), ("1 May 2024", "2024-05-01"),
        ("May 3rd, 2021", "2021-05-03"), ("2024-02-31", ""), ("2024-13-01", ""), ("soon", ""), (None, ""), ("12345678901234", ""),
    ],
)  # fmt: skip
def test_dates_that_exist(word: str | None, date: str) -> None:
    assert iso_date(word) == date
