"""Files that deceive: each is read rightly or refused with a reason code; none hangs, crashes, fetches, or is silently empty."""

from __future__ import annotations

import io
import json
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
        ("source,d:date\na,2024-W05-1\n", "is no date like"),
        ("source,n:int\na,1_000\n", "is no int"),
        ("source,n\na,x\0y\n", "is no CSV file"),
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


# ── faults found by breaking it ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<dl><dt>T</dt><dd><p>lead</p>tail text</dd></dl>", "T: lead\n\ntail text"),
        ("<dl><section><dt>F</dt><dd>in sec</dd></section></dl>", "F: in sec"),
        ("<dl><div><div><dt>x</dt><dd>deep div</dd></div></div></dl>", "x: deep div"),
        ("<dl><dt>T</dt><dd>x</dd>stray<p>stray p</p></dl>", "T: x\n\nstray\n\nstray p"),
        ("<p>para<p>para2<b>bold<i>ital</b>x</i><h2>head</h2><p>under</p>", "para\n\npara2bolditalx\n\nhead\n\nunder"),
        ("<p>10<sup>3</sup> m H<sub>2</sub>O</p>", "10^3 m H2O"),
        ("<table><tr><th>Contact<td>Ms Schulz</tr><tr><th>Phone<td>+49<br>30</tr></table>", "Contact: Ms Schulz.\nPhone: +49 30."),
        ("<p>Press <button>Start</button> now</p>", "Press Start now"),
        ("<table><tr><td>Pump A</td><td>6 months</td></tr><tr><td>Pump B</td><td>3 months</td></tr></table>", "Pump A: 6 months.\nPump B: 3 months."),
        (
            "<table><thead><tr><th rowspan=2>N</th><th colspan=2>G</th></tr><tr><th>min</th><th>max</th></tr></thead><tr><td>a</td><td>1</td><td>2</td></tr></table>",
            "For a, the G min is 1; the G max is 2.",
        ),
    ],
)
def test_nothing_of_a_page_is_lost(body: str, text: str) -> None:
    assert read("a.html", HTML.format(body)).text == text


def test_a_table_of_a_million_spans_ends() -> None:
    rows = "".join(f"<tr><td colspan=1000 rowspan=1000>r{i}</td><td>x</td></tr>" for i in range(1000))
    assert "r7" in read("a.html", HTML.format(f"<p>Words.</p><table>{rows}</table>")).text


@pytest.mark.parametrize(
    ("charset", "data", "text"),
    [
        ("undefined", b"page text", "page text"),
        ("unicode_escape", b"C:\\new", "C:\\new"),
        ("latin1", b"\x93over\x94", "“over”"),
        ("gb2312", "中文镕".encode("gbk"), "中文镕"),
    ],
)
def test_labels_mean_what_browsers_make_of_them(charset: str, data: bytes, text: str) -> None:
    assert read("a.html", f"<html><head><meta charset='{charset}'></head><body><p>".encode() + data + b"</p></body></html>").text == text


@pytest.mark.parametrize(
    "data",
    [
        ("Größe der Prüfung über é ü ö ä Straße. Il a été dit «oui». " * 4).encode("mac_roman"),
        b"word " * 4000 + b"\x01\x02\x03\x04" * 500 + b" tail",
        "\u200b\n".encode(),
    ],
)
def test_what_would_be_garbage_is_refused(data: bytes) -> None:
    with pytest.raises(Refused):
        read("a.txt", data)


def test_odd_encodings_that_can_be_read_are() -> None:
    assert read("a.txt", "安全弁を点検する".encode("iso2022_jp")).text == "安全弁を点検する"
    assert read("a.txt", b"Text with a lone \xed\xa0\x80 surrogate here.").text == "Text with a lone \ufffd surrogate here."
    assert read("a.md", b"\xef\xbb\xbf\xef\xbb\xbf# Head\n\ntext").title == "Head"


def test_text_that_begins_with_a_sign_is_text_and_a_comment_declares_nothing() -> None:
    words = "<a> denotes an item. See </b>. x<y and y>z. Keep 1 <2 text."
    assert read("notes.txt", words).text == words
    assert read("a.html", "Some intro\n<h1>Head</h1><p>Para</p>").text == "Some intro\n\nHead\n\nPara"
    assert read("a.html", "<!-- <!ENTITY --><html><body><p>Text</p></body></html>").text == "Text"


def test_front_matter_is_yaml() -> None:
    text = "---\ntitle: x # comment\nversion: 1.10\nh:\n  - x\n  - 2\nj: |\n  multi\n  line\ne: null\ng: [1, 2]\n---\nWords.\n"
    document = read("a.md", text)
    assert dict(document.metadata) == {"title": "x", "version": 1.1, "h": ["x", 2], "j": "multi\nline", "g": [1, 2]} and document.version == "1.10"
    with pytest.raises(Refused, match=r"^empty"):
        read("a.md", "---\ntitle: x\n---\n")
    assert not read("a.md", "---\na: &a [x]\nb: *a\n---\nWords.\n").metadata


def test_odt_cells_stand_under_their_heads() -> None:
    cell = "<table:table-cell><text:p>{}</text:p></table:table-cell>"
    heads, row = (
        "".join(map(cell.format, ("Pump", "Min", "Max", "Unit"))),
        cell.format("A") + "<table:table-cell table:number-columns-repeated='2'/>" + cell.format("bar"),
    )
    body = f"<table:table><table:table-row>{heads}</table:table-row><table:table-row>{row}</table:table-row></table:table>"
    assert read("a.odt", odt(body)).text == "For A, the unit is bar."


def test_a_book_without_one_of_its_chapters_is_refused() -> None:
    opf = '<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="a" href="a.xhtml"/></manifest><spine><itemref idref="a"/></spine></package>'
    container = '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="c.opf"/></rootfiles></container>'
    members: dict[str, str | bytes] = {"mimetype": "application/epub+zip", "META-INF/container.xml": container, "c.opf": opf}
    with pytest.raises(Refused, match=r"a\.xhtml .* is missing"):
        read("a.epub", packed(members))
    assert read("a.epub", packed(members | {"A.xhtml": HTML.format("<p>Here.</p>")})).text == "Here."


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<ol><li>One<li>Two<ol type=a><li>In<li>Side</ol><li>Three</ol>", "1. One\n2. Two\na. In\nb. Side\n3. Three"),
        ('<ol start=4><li>Four<li value=9>Nine<li>Ten</ol><ul><li>Dot</ul>', "4. Four\n9. Nine\n10. Ten\n- Dot"),
        ("<ol reversed><li>Two<li>One</ol>", "2. Two\n1. One"),
        ('<ol style="list-style-type: upper-roman"><li>A<li>B<li>C<li>D</ol>', "I. A\nII. B\nIII. C\nIV. D"),
        ("<ol><li><p>One</p><p>More</p><li><p>Two</p></ol>", "1. One\n\nMore\n\n2. Two"),
    ],
)  # fmt: skip
def test_numbers_of_html_lists(body: str, text: str) -> None:
    assert read("a.html", HTML.format("<h1>T</h1>" + body)).text.removeprefix("T").strip() == text


NUMBERING = f"""<w:numbering {W}><w:abstractNum w:abstractNumId="1">
<w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:pStyle w:val="Heading1"/><w:lvlText w:val="%1"/></w:lvl>
<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:pStyle w:val="Heading2"/><w:lvlText w:val="%1.%2"/></w:lvl></w:abstractNum>
<w:abstractNum w:abstractNumId="2"><w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="(%1)"/></w:lvl></w:abstractNum>
<w:abstractNum w:abstractNumId="3"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val="*"/></w:lvl></w:abstractNum>
<w:num w:numId="1"><w:abstractNumId w:val="1"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="2"/></w:num>
<w:num w:numId="3"><w:abstractNumId w:val="3"/></w:num>
<w:num w:numId="4"><w:abstractNumId w:val="2"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride></w:num></w:numbering>"""


def test_numbers_that_word_writes_itself() -> None:
    """Headings by style "2.1", lists "(a)", a list that starts anew; a raised digit is no part of the number before it."""
    import docx
    from docx.opc.constants import RELATIONSHIP_TYPE as KINDS
    from docx.opc.packuri import PackURI
    from docx.opc.part import Part
    from docx.oxml import parse_xml

    document = docx.Document()
    for relation in list(document.part.rels.values()):
        if relation.reltype == KINDS.NUMBERING:
            relation.target_part._blob = None
            del document.part.rels[relation.rId]
    part = Part(PackURI("/word/numbering.xml"), "application/vnd.openxmlformats-officedocument.wordprocessingml.numbering+xml", NUMBERING.encode(),
                document.part.package)  # fmt: skip
    document.part.relate_to(part, KINDS.NUMBERING)
    for style, level in (("Heading1", 0), ("Heading2", 1)):
        element = next(s for s in document.styles.element if s.get(f"{{{W.split(chr(34))[1]}}}styleId") == style)
        element.get_or_add_pPr().append(parse_xml(f'<w:numPr {W}><w:ilvl w:val="{level}"/><w:numId w:val="1"/></w:numPr>'))

    def item(text: str, number: int) -> None:
        paragraph = document.add_paragraph(text)
        paragraph._p.get_or_add_pPr().append(parse_xml(f'<w:numPr {W}><w:ilvl w:val="0"/><w:numId w:val="{number}"/></w:numPr>'))

    document.add_heading("Scope", 1)
    document.add_heading("Pumps", 1)
    document.add_heading("Tests", 2)
    document.add_heading("Seals", 2)
    item("first", 2)
    item("second", 2)
    item("dot", 3)
    item("anew", 4)
    raised = document.add_paragraph("10")
    run = raised.add_run("3")
    run.font.superscript = True
    raised.add_run(" m").font.superscript = False
    out = io.BytesIO()
    document.save(out)
    text = read("a.docx", out.getvalue()).text
    assert text == "1 Scope\n\n2 Pumps\n\n2.1 Tests\n\n2.2 Seals\n\n(a) first\n(b) second\n- dot\n(a) anew\n\n10^3 m"


def test_numbers_that_an_odt_writes_itself() -> None:
    styles = (
        '<office:automatic-styles xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0"><text:list-style style:name="L">'
        '<text:list-level-style-number text:level="1" style:num-format="1" style:num-suffix="."/>'
        '<text:list-level-style-number text:level="2" style:num-format="a" style:num-suffix=")"/></text:list-style>'
        '<style:style style:name="up" style:family="text"><style:text-properties style:text-position="super 58%"/></style:style>'
        '<text:outline-style><text:outline-level-style text:level="1" style:num-format="1"/>'
        '<text:outline-level-style text:level="2" style:num-format="1" text:display-levels="2"/></text:outline-style></office:automatic-styles>'
    )
    body = (
        '<text:h text:outline-level="1">A</text:h><text:h text:outline-level="2">B</text:h><text:h text:outline-level="2">C</text:h>'
        '<text:h text:outline-level="1">D</text:h>'
        '<text:list text:style-name="L"><text:list-item><text:p>one</text:p><text:list><text:list-item><text:p>in</text:p></text:list-item>'
        "<text:list-item><text:p>side</text:p><text:p>more</text:p></text:list-item></text:list></text:list-item>"
        "<text:list-item><text:p>two</text:p></text:list-item></text:list>"
        '<text:p>x</text:p><text:list text:style-name="L"><text:list-item><text:p>anew</text:p></text:list-item></text:list>'
        '<text:p>10<text:span text:style-name="up">3</text:span> m</text:p>'
    )
    data = odt(body)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        content = archive.read("content.xml").decode().replace("<office:body>", styles + "<office:body>")
    text = read("a.odt", packed({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": content})).text
    assert text == "1 A\n\n1.1 B\n\n1.2 C\n\n2 D\n\n1. one\na) in\nb) side\nmore\n2. two\n\nx\n\n1. anew\n\n10^3 m"


REST_TABLES = """
Limits
======

.. a remark for writers
   over two lines

=======  =============
Pump     Test interval
=======  =============
Pump A   6 months
Pump B   3 months
=======  =============

+--------+---------+
| Valve  | Limit   |
+========+=========+
| V-1    | 4 bar,  |
|        | cold    |
+--------+---------+

.. list-table:: Doors
   :header-rows: 1

   * - Door
     - Width
   * - North
     - 2 m
       clear

.. csv-table:: Roofs
   :header: Roof, "Height, in m"

   Hall, 12

.. note:: This stays.
"""


def test_tables_of_rest_become_sentences_and_comments_go() -> None:
    document = read("a.rst", REST_TABLES)
    rows = [document.text[b.start : b.end] for b in document.blocks if b.kind == "row"]
    assert rows == [
        "For Pump A, the test interval is 6 months.", "For Pump B, the test interval is 3 months.", "For V-1, the limit is 4 bar, cold.",
        "For North, the width is 2 m clear.", "For Hall, the height, in m is 12.",
    ]  # fmt: skip
    assert "remark" not in document.text
    assert "over two lines" not in document.text
    assert ".. note:: This stays." in document.text
    assert "Doors" in document.text
    assert "=====  " not in document.text


def test_a_table_that_cannot_be_read_stays_as_it_is() -> None:
    text = "Limits\n======\n\n=====  =====\na b c d e f g\n=====  =====\n\nWords after it.\n"
    document = read("a.rst", text)
    assert document.text == text


def test_nameless_references_and_the_date_of_rest() -> None:
    text = "Guide\n=====\n\n:Date: 2024-05-01\n\nSee `the first`__ and `the second`__.\n\n__ a.html\n.. __: b.html\n"
    document = read("a.rst", text)
    assert [(text[link.start : link.end], link.target) for link in document.hyperlinks] == [("`the first`__", "a.html"), ("`the second`__", "b.html")]
    assert document.updated == "2024-05-01"


def test_html_links_and_definition_lists_in_markdown() -> None:
    text = '# A\n\nSee <a href="b.md">the other</a>.\n\n## Glossary\n\nCold permit\n: A permit for work without a flame.\n\nHot permit\n\n: Another one.\n'
    document = read("a.md", text)
    assert [(text[link.start : link.end], link.target) for link in document.hyperlinks] == [('<a href="b.md">the other</a>', "b.md")]
    assert [text[a:b] for a, b, _ in document.terms] == ["Cold permit", "Hot permit"]
    assert [text[b:c].strip() for _, b, c in document.terms] == [": A permit for work without a flame.", ": Another one."]


@pytest.mark.parametrize(
    ("line", "heading"),
    [
        ("Article 5", True), ("Section 2: Pumps", True), ("Chapter 2", True), ("CHAPTER IV", True), ("IV. Costs", True), ("§ 12 Fees", True), ("Annex B – Forms", True),
        ("Article 5.", True), ("4.2 Isolation of pumps", True), ("Section 4 applies here.", False), ("Section 4 applies", False), ("I. am", False),
        ("Article 5 of the act governs this.", False), ("Part of it", False), ("Rule of thumb", False), ("Section", False),
    ],
)  # fmt: skip
def test_numbered_headings_of_plain_text(line: str, heading: bool) -> None:
    document = read("a.txt", f"First words of it.\n\n{line}\n\nThe body of the passage.\n")
    assert any(b.kind == "heading" for b in document.blocks) is heading


def test_kinds_of_numbered_headings_nest_as_they_occur() -> None:
    document = read("a.txt", "Part I\n\nChapter 1\n\nArticle 1\n\nWords.\n\nArticle 2\n\nWords.\n\nChapter 2\n\nArticle 3\n\nWords.\n")
    assert [b.level for b in document.blocks if b.kind == "heading"] == [1, 2, 3, 3, 2, 3]


def test_what_is_shown_as_it_stands_in_rest_is_kept() -> None:
    text = "Guide\n=====\n\nExample::\n\n   .. a comment in code\n      x\n   === ===\n   a   b\n   === ===\n\n.. code-block:: rst\n\n   .. shown\n\n.. note ::\n   text kept\n"
    assert read("a.rst", text).text == text


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (".. table:: T\n\n   === ===\n   a   b\n   === ===\n   1   2\n   === ===\n\n   words behind it\n", "words behind it"),
        ('.. csv-table:: T\n\n   "open, 1\n' + "x" * 140_000 + "\n", "open"),
        (".. list-table:: T\n   :header-rows: ²\n\n   * - A\n     - B\n   * - x\n     - y\n       - z\n", "- z"),
    ],
)
def test_odd_tables_of_rest_lose_nothing(text: str, kept: str) -> None:
    assert kept in read("a.rst", "Guide\n=====\n\n" + text).text


@pytest.mark.parametrize(
    "text", ["+-+-+\n| |\n" * 6000, "=== ===\nab\n" * 6000, ".. table::\n" + "".join(" " * n + ".. table::\n" for n in range(1, 400))]
)
def test_hostile_tables_of_rest_take_no_time(text: str) -> None:
    read("a.rst", "Guide\n=====\n\n" + text)


def test_numbered_headings_right_above_their_text() -> None:
    """A heading on a line of its own needs no blank line below; a wrapped line and the items of a list are none."""
    text = "SAFETY RULES\n\n1. Scope\nThese rules hold for all the staff.\n\n2. Doors\nDoors are kept shut, see section 1.\n\n1. Tea\n2. Milk\n\n"
    text += "3. Whoever leaves the building last calls the office in\nBerlin before noon.\n"
    made = read("r.txt", text)
    assert made.title == "SAFETY RULES"
    assert [text[b.start : b.end] for b in made.blocks if b.kind == "heading"] == ["1. Scope", "2. Doors"]


def test_a_section_is_no_title() -> None:
    assert read("rules.txt", "1 General\n\nWords.\n\n2 More\n\nWords.\n").title == "rules"
    assert read("rules.txt", "STANDARD FOR VALVES\n\n1 General\n\nWords.\n").title == "STANDARD FOR VALVES"
    assert read("rules.txt", "Dear all,\n\nwords.\n").title == "rules"


def test_a_quoted_value_of_front_matter_is_text() -> None:
    made = read("a.md", "---\nrev: \"3.10\"\nyear: 2024\ntags: ['007', '1', 2]\n---\n\n# A\n\nWords.\n")
    assert dict(made.metadata) == {"rev": "3.10", "year": 2024, "tags": ["007", "1", 2]}


def test_paragraphs_of_a_beir_record(tmp_path: Path) -> None:
    """A blank line ends one, as in every other text."""
    from lab.corpus.readers import beir

    (tmp_path / "corpus.jsonl").write_text(json.dumps({"_id": "a", "text": "  One\ntwo.\n \n\nThree. "}) + "\n", encoding="utf-8")
    [(document, _)] = beir.records(tmp_path / "corpus.jsonl")
    assert [document.text[b.start : b.end] for b in document.blocks] == ["One\ntwo.", "Three."]
