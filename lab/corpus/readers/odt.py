"""ODT (OpenDocument text): headings by outline level, lists, tables, hyperlinks; notes and tracked deletions left out.

The two XML files inside are parsed by lxml without network and without entities. OASIS OpenDocument 1.3, part 3.
"""

from __future__ import annotations

import io
import zipfile
from typing import Any

from lab.corpus.readers import odt_numbering
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
            styles = archive.read("styles.xml") if "styles.xml" in archive.namelist() else b""
    except Refused:
        raise
    except Exception:  # zipfile and zlib let many kinds through
        raise Refused("corrupt: the ODT cannot be opened") from None
    if about:
        _about(composer, xml(about, "meta.xml"))
    root = xml(content, "content.xml")
    body = root.find(f"{_OFFICE}body/{_OFFICE}text")
    if body is None:
        raise Refused("corrupt: the ODT holds no text body")
    _Reader(composer, odt_numbering.of(xml(styles, "styles.xml") if styles else None, root)).blocks(body)
    return composer.document()


def _about(composer: Composer, root: Any) -> None:
    found = {element.tag: (element.text or "").strip() for element in root.iter() if isinstance(element.tag, str)}
    composer.title = found.get(_DC + "title", "")
    composer.updated = iso_date(found.get(_DC + "date"))
    composer.metadata = as_metadata(
        {"author": found.get(_DC + "creator"), "subject": found.get(_DC + "subject"), "keywords": found.get(_META + "keyword")}
    )


class _Reader:
    def __init__(self, composer: Composer, numbering: odt_numbering.Numbering) -> None:
        self.composer = composer
        self.numbering = numbering

    def blocks(self, parent: Any, mark: str = "") -> None:
        """The children of an element; the first paragraph among them has the `mark` of its list item."""
        item = bool(mark)
        for element in parent:
            tag = element.tag
            if not isinstance(tag, str) or tag in _SKIPPED:
                continue
            if tag == _TEXT + "h":
                self._heading(element)
            elif tag == _TEXT + "p":
                inline = self._inline(element)
                if mark and inline.text.strip():
                    inline.marked(mark + " ")
                    mark = ""
                style = (element.get(_TEXT + "style-name") or "").lower()
                if style == "title" and inline.text.strip():
                    self.composer.add("heading", inline, level=1)
                else:
                    self.composer.add("paragraph", inline, item=item)
                self._boxes(element)
            elif tag == _TEXT + "list":
                self.numbering.enter(element)
                for entry in element:
                    if entry.tag == _TEXT + "list-item":
                        plain = next((child.tag for child in entry if isinstance(child.tag, str)), None) in {_TEXT + "p", _TEXT + "h"}
                        self.blocks(entry, self.numbering.item(entry) if plain else "")
                    elif isinstance(entry.tag, str):
                        self.blocks(entry)
                self.numbering.leave()
            elif tag == _TABLE + "table":
                self._table(element)
            else:
                self.blocks(element, mark)

    def _heading(self, element: Any) -> None:
        written = element.get(_TEXT + "outline-level") or "1"
        level = int(written) if written.isdigit() else 1
        inline = self._inline(element)
        inline.text = inline.text.replace("\n", " ")
        number = self.numbering.heading(level) if inline.text.strip() and element.get(_TEXT + "is-list-header") != "true" else ""
        if number:
            inline.marked(number + " ")
        self.composer.add("heading", inline, level=level)
        self._boxes(element)

    def _boxes(self, element: Any) -> None:
        """Text boxes that hang on a paragraph or heading."""
        for box in element.iter(_DRAW + "text-box"):
            if next((a for a in box.iterancestors(_TEXT + "p", _TEXT + "h")), None) is element:
                self.blocks(box)

    def _inline(self, element: Any) -> Inline:
        inline = Inline()
        self._gather(element, inline)
        return inline

    def _gather(self, element: Any, inline: Inline) -> None:
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
                self._gather(child, inline)
                inline.link(start, child.get(_XLINK + "href") or "")
            elif isinstance(tag, str) and tag not in _SKIPPED and tag != _DRAW + "frame" and not tag.endswith("annotation"):
                raised = tag == _TEXT + "span" and child.get(_TEXT + "style-name") in self.numbering.raised
                if raised and inline.text[-1:].isdigit() and (child.text or "")[:1].isdigit():
                    inline.text += "^"  # 10³ is no 103
                self._gather(child, inline)
            inline.add(child.tail)

    def _table(self, element: Any) -> None:
        rows = []
        for row in element.iter(_TABLE + "table-row"):
            if next(row.iterancestors(_TABLE + "table")) is not element:
                continue
            line: list[str] = []
            for cell in row:
                if cell.tag not in {_TABLE + "table-cell", _TABLE + "covered-table-cell"}:
                    continue
                own = [p for p in cell.iter(_TEXT + "p", _TEXT + "h") if next(p.iterancestors(_TABLE + "table")) is element]
                text = " ".join(part for p in own if (part := self._inline(p).text.strip()))
                repeated = cell.get(_TABLE + "number-columns-repeated") or "1"
                line += [text] * (min(int(repeated), 64) if repeated.isdigit() else 1)
            rows.append(line)
        if len(rows) == 1 or max((len(row) for row in rows), default=0) <= 1:
            for row in element.iter(_TABLE + "table-row"):
                if next(row.iterancestors(_TABLE + "table")) is element:
                    for cell in row:
                        self.blocks(cell)
            return
        for sentence in rows_as_sentences(table_rows(rows)):
            self.composer.add("row", sentence)
        for nested in element.iter(_TABLE + "table"):
            if nested is not element and next(nested.iterancestors(_TABLE + "table")) is element:
                self._table(nested)
