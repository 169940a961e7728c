"""DOCX (Office Open XML), read with python-docx: headings by style or outline level, lists, tables, text in shapes, foot- and endnotes at the end.

Headers and footers stand outside of the body and are not read. A DOCX has no pages of its own; the heading path says where a passage stands.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

from lab.corpus.readers import docx_numbering
from lab.corpus.readers.compose import Composer, Inline, as_metadata, iso_date, table_rows
from lab.corpus.readers.tables import rows_as_sentences
from lab.corpus.validate import Refused
from lab.records import Document

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_HEADING = re.compile(r"(?:heading|überschrift|titre|título|titolo|kop|rubrik|nagłówek|заголовок)\s*(\d)", re.IGNORECASE)


def read(source: str, data: bytes) -> Document:
    import docx

    try:
        opened = docx.Document(io.BytesIO(data))
        body = opened.element.body
    except Exception:  # python-docx lets KeyError, ValueError, lxml's and zipfile's errors through
        raise Refused("corrupt: the DOCX cannot be opened") from None
    composer = Composer(source, "docx")
    core = opened.core_properties
    composer.title = core.title or ""
    composer.version = core.version or ""
    if any(str(part.partname) == "/docProps/core.xml" and part.blob for part in opened.part.package.iter_parts()):
        composer.updated = core.modified.date().isoformat() if core.modified else iso_date(str(core.created or ""))
    composer.metadata = as_metadata({"author": core.author, "subject": core.subject, "keywords": core.keywords, "category": core.category})
    reader = _Reader(
        composer, {rel.rId: rel.target_ref for rel in opened.part.rels.values() if rel.is_external}, _levels(opened), docx_numbering.of(opened)
    )
    reader.blocks(body)
    for part in opened.part.package.iter_parts():
        if str(part.partname) in {"/word/footnotes.xml", "/word/endnotes.xml"}:
            reader.notes(part.blob)
    return composer.document()


def _levels(opened: Any) -> dict[str, int]:
    """Style id → heading level, through the chain of styles that a style is based on."""
    levels: dict[str, int] = {}
    styles = {element.get(_W + "styleId"): element for element in opened.styles.element.iter(_W + "style") if element.get(_W + "type") == "paragraph"}
    for name in styles:
        at, seen = name, set()
        while at in styles and at not in seen:
            seen.add(at)
            element = styles[at]
            title = element.find(_W + "name")
            word = (title.get(_W + "val") if title is not None else at) or ""
            outline = element.find(f"{_W}pPr/{_W}outlineLvl")
            match = _HEADING.match(word)
            if match and match[1] != "0":
                levels[name] = int(match[1])
            elif word.lower() == "title":
                levels[name] = 1
            elif outline is not None and (outline.get(_W + "val") or "9").isdigit() and int(outline.get(_W + "val") or "9") < 9:
                levels[name] = int(outline.get(_W + "val")) + 1
            if name in levels:
                break
            based = element.find(_W + "basedOn")
            at = based.get(_W + "val") if based is not None else None
    return levels


class _Reader:
    def __init__(self, composer: Composer, targets: dict[str, str], levels: dict[str, int], numbering: docx_numbering.Numbering) -> None:
        self.numbering = numbering
        self.composer = composer
        self.targets = targets
        self.levels = levels

    def blocks(self, parent: Any) -> None:
        for element in parent:
            if element.tag == _W + "p":
                self.paragraph(element)
            elif element.tag == _W + "tbl":
                self.table(element)
            elif element.tag in {_W + "sdt", _W + "sdtContent", _W + "customXml", _W + "ins", _W + "smartTag"}:
                if element.find(f"{_W}sdtPr/{_W}docPartObj/{_W}docPartGallery") is not None and "Table of Contents" in (
                    element.find(f"{_W}sdtPr/{_W}docPartObj/{_W}docPartGallery").get(_W + "val") or ""
                ):
                    continue  # generated from the headings
                self.blocks(element)

    def paragraph(self, element: Any) -> None:
        style = element.find(f"{_W}pPr/{_W}pStyle")
        name = style.get(_W + "val") if style is not None else ""
        if re.match(r"(?i)toc\s*\d", name or ""):
            return
        inline = Inline()
        shapes: list[Any] = []
        self.inline(element, inline, shapes)
        level = self.levels.get(name or "", 0)
        own = element.find(f"{_W}pPr/{_W}outlineLvl")
        if own is not None and (own.get(_W + "val") or "").isdigit() and int(own.get(_W + "val")) < 9:
            level = int(own.get(_W + "val")) + 1
        written = bool(inline.text.strip())
        label = self.numbering.label(element, name or "") if written else None
        if level and len(inline.text.strip()) <= 300:
            inline.text = inline.text.replace("\n", " ")
            if label is not None and label[0]:
                inline.marked(label[0] + " ")
            self.composer.add("heading", inline, level=level)
        else:
            item = label is not None or (name or "").lower().startswith("list")
            if item and written:
                inline.marked((label[0] if label is not None and label[0] else "-") + " ")
            self.composer.add("paragraph", inline, item=item)
        for shape in shapes:
            self.blocks(shape)

    def inline(self, parent: Any, inline: Inline, shapes: list[Any]) -> None:
        for element in parent:
            tag = element.tag
            if tag == _W + "t":
                # Runs keep their spaces: a word may be split over several of them.
                raised = parent.find(f"{_W}rPr/{_W}vertAlign")
                if (
                    raised is not None
                    and raised.get(_W + "val") == "superscript"
                    and inline.text[-1:].isdigit()
                    and (element.text or "")[:1].isdigit()
                ):
                    inline.text += "^"  # 10³ is no 103
                inline.add(element.text)
            elif tag in {_W + "tab", _W + "ptab"} and parent.tag == _W + "r":
                inline.add(" ")
            elif tag in {_W + "br", _W + "cr"}:
                inline.newline()
            elif tag == _W + "noBreakHyphen":
                inline.text += "-"
            elif tag == _W + "txbxContent":
                shapes.append(element)
            elif tag == _W + "bookmarkStart":
                inline.anchors.append((f"#{element.get(_W + 'name')}", len(inline.text)))
            elif tag == _W + "hyperlink":
                start = len(inline.text)
                self.inline(element, inline, shapes)
                target = self.targets.get(element.get(_R + "id") or "", "")
                anchor = element.get(_W + "anchor")
                inline.link(start, target + (f"#{anchor}" if anchor else ""))
            elif tag in {_W + "del", _W + "moveFrom", _W + "instrText", _W + "pPr", _W + "rPr", _FALLBACK} or not isinstance(tag, str):
                continue
            else:
                self.inline(element, inline, shapes)

    def table(self, element: Any) -> None:
        rows: list[list[str]] = []
        shapes: list[Any] = []
        cells_per_row = []
        merged: dict[int, str] = {}
        for row in _rows(element):
            before = row.find(f"{_W}trPr/{_W}gridBefore")
            skipped = before.get(_W + "val") or "0" if before is not None else "0"
            line: list[str] = [""] * (min(int(skipped), 64) if skipped.isdigit() else 0)
            for cell in _cells(row):
                inline = Inline()
                for paragraph in cell.iter(_W + "p"):
                    if next(paragraph.iterancestors(_W + "tc")) is cell:
                        self.inline(paragraph, inline, shapes)
                        inline.add(" ")
                text = inline.text.strip()
                span = cell.find(f"{_W}tcPr/{_W}gridSpan")
                merge = cell.find(f"{_W}tcPr/{_W}vMerge")
                if merge is not None and merge.get(_W + "val") != "restart":
                    text = merged.get(len(line), "")
                elif merge is not None:
                    merged[len(line)] = text
                line.append(text)
                width = int(span.get(_W + "val") or 1) if span is not None and (span.get(_W + "val") or "1").isdigit() else 1
                line += [""] * (min(width, 64) - 1)
            cells_per_row.append(len(_cells(row)))
            rows.append(line)
        if max(cells_per_row, default=0) <= 1 or len(rows) == 1:  # a frame around text
            for row in _rows(element):
                for cell in _cells(row):
                    self.blocks(cell)
            return
        for sentence in rows_as_sentences(table_rows(rows)):
            self.composer.add("row", sentence)
        for nested in element.iter(_W + "tbl"):
            if nested is not element and next(nested.iterancestors(_W + "tbl")) is element:
                self.table(nested)
        for shape in shapes:
            self.blocks(shape)

    def notes(self, blob: bytes) -> None:
        import lxml.etree

        try:
            root = lxml.etree.fromstring(blob, lxml.etree.XMLParser(resolve_entities=False, no_network=True))
        except lxml.etree.XMLSyntaxError:
            return
        for note in root:
            if note.get(_W + "type") in {"separator", "continuationSeparator", "continuationNotice"}:
                continue
            self.blocks(note)


def _rows(table: Any) -> Iterator[Any]:
    for element in table:
        if element.tag == _W + "tr":
            yield element
        elif element.tag in {_W + "sdt", _W + "sdtContent", _W + "ins"}:
            yield from _rows(element)


def _cells(row: Any) -> list[Any]:
    out = []
    for element in row:
        if element.tag == _W + "tc":
            out.append(element)
        elif element.tag in {_W + "sdt", _W + "sdtContent"}:
            out += _cells(element)
    return out
