"""ODT (OpenDocument text): headings by outline level, lists, tables, hyperlinks; notes and tracked deletions left out.

The two XML files inside are parsed by lxml without network and without entities. OASIS OpenDocument 1.3, part 3.
"""

from __future__ import annotations

import io
import zipfile
from typing import Any

from lab.corpus.readers.compose import Composer, Inline, as_metadata, iso_date, table_rows
from lab.corpus.readers.tables import rows_as_sentences
from lab.corpus.validate import Refused
from lab.records import Document

_NS = "{urn:oasis:names:tc:opendocument:xmlns:%s:1.0}"
_OFFICE, _TEXT, _TABLE, _META = (_NS % name for name in ("office", "text", "table", "meta"))
_DC = "{http://purl.org/dc/elements/1.1/}"
_XLINK = "{http://www.w3.org/1999/xlink}"
_DRAW = _NS % "drawing"
_SKIPPED = frozenset(_TEXT + name for name in ("tracked-changes", "note", "table-of-content", "alphabetical-index", "sequence-decls", "bibliography"))


def xml(data: bytes, what: str) -> Any:
    """The root of an XML file from inside a packed one."""
    import lxml.etree

    if b"<!ENTITY" in data[:65536]:
        raise Refused("unsafe: the file declares entities of its own")
    try:
        return lxml.etree.fromstring(data, lxml.etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False))
    except lxml.etree.XMLSyntaxError:
        raise Refused(f"corrupt: {what} inside is no XML") from None


def read(source: str, data: bytes) -> Document:
    composer = Composer(source, "odt")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            manifest = archive.read("META-INF/manifest.xml") if "META-INF/manifest.xml" in archive.namelist() else b""
            if b"encryption-data" in manifest:
                raise Refused("encrypted: the ODT needs a password: save it without")
            content = archive.read("content.xml")
            about = archive.read("meta.xml") if "meta.xml" in archive.namelist() else b""
    except Refused:
        raise
    except Exception:  # zipfile and zlib let many kinds through
        raise Refused("corrupt: the ODT cannot be opened") from None
    if about:
        _about(composer, xml(about, "meta.xml"))
    body = xml(content, "content.xml").find(f"{_OFFICE}body/{_OFFICE}text")
    if body is None:
        raise Refused("corrupt: the ODT holds no text body")
    _blocks(composer, body)
    return composer.document()


def _about(composer: Composer, root: Any) -> None:
    found = {element.tag: (element.text or "").strip() for element in root.iter() if isinstance(element.tag, str)}
    composer.title = found.get(_DC + "title", "")
    composer.updated = iso_date(found.get(_DC + "date"))
    composer.metadata = as_metadata(
        {"author": found.get(_DC + "creator"), "subject": found.get(_DC + "subject"), "keywords": found.get(_META + "keyword")}
    )


def _blocks(composer: Composer, parent: Any, item: bool = False) -> None:
    for element in parent:
        tag = element.tag
        if not isinstance(tag, str) or tag in _SKIPPED:
            continue
        if tag == _TEXT + "h":
            level = element.get(_TEXT + "outline-level") or "1"
            inline = _inline(element)
            inline.text = inline.text.replace("\n", " ")
            composer.add("heading", inline, level=int(level) if level.isdigit() else 1)
            _boxes(composer, element)
        elif tag == _TEXT + "p":
            inline = _inline(element)
            if item and inline.text.strip():
                inline.marked("- ")
            style = (element.get(_TEXT + "style-name") or "").lower()
            if style == "title" and inline.text.strip():
                composer.add("heading", inline, level=1)
            else:
                composer.add("paragraph", inline, item=item)
            _boxes(composer, element)
        elif tag in {_TEXT + "list", _TEXT + "list-item", _TEXT + "list-header"}:
            _blocks(composer, element, item=True)
        elif tag == _TABLE + "table":
            _table(composer, element)
        else:
            _blocks(composer, element, item)


def _boxes(composer: Composer, element: Any) -> None:
    """Text boxes that hang on a paragraph or heading."""
    for box in element.iter(_DRAW + "text-box"):
        if next((a for a in box.iterancestors(_TEXT + "p", _TEXT + "h")), None) is element:
            _blocks(composer, box)


def _inline(element: Any) -> Inline:
    inline = Inline()
    _gather(element, inline)
    return inline


def _gather(element: Any, inline: Inline) -> None:
    inline.add(element.text)
    for child in element:
        tag = child.tag
        if tag == _TEXT + "s" or tag == _TEXT + "tab":
            inline.add(" ")
        elif tag == _TEXT + "line-break":
            inline.newline()
        elif tag in {_TEXT + "bookmark", _TEXT + "bookmark-start", _TEXT + "reference-mark-start"}:
            inline.anchors.append((f"#{child.get(_TEXT + 'name')}", len(inline.text)))
        elif tag == _TEXT + "a":
            start = len(inline.text)
            _gather(child, inline)
            inline.link(start, child.get(_XLINK + "href") or "")
        elif isinstance(tag, str) and tag not in _SKIPPED and tag != _DRAW + "frame" and not tag.endswith("annotation"):
            _gather(child, inline)
        inline.add(child.tail)


def _table(composer: Composer, element: Any) -> None:
    rows = []
    for row in element.iter(_TABLE + "table-row"):
        if next(row.iterancestors(_TABLE + "table")) is not element:
            continue
        line: list[str] = []
        for cell in row:
            if cell.tag not in {_TABLE + "table-cell", _TABLE + "covered-table-cell"}:
                continue
            own = [p for p in cell.iter(_TEXT + "p", _TEXT + "h") if next(p.iterancestors(_TABLE + "table")) is element]
            text = " ".join(part for p in own if (part := _inline(p).text.strip()))
            repeated = cell.get(_TABLE + "number-columns-repeated") or "1"
            line += [text] * (min(int(repeated), 64) if repeated.isdigit() else 1)
        rows.append(line)
    if len(rows) == 1 or max((len(row) for row in rows), default=0) <= 1:
        for row in element.iter(_TABLE + "table-row"):
            if next(row.iterancestors(_TABLE + "table")) is element:
                for cell in row:
                    _blocks(composer, cell)
        return
    for sentence in rows_as_sentences(table_rows(rows)):
        composer.add("row", sentence)
    for nested in element.iter(_TABLE + "table"):
        if nested is not element and next(nested.iterancestors(_TABLE + "table")) is element:
            _table(composer, nested)
