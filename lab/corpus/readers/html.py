"""HTML and XHTML: the main content in document order, no navigation.

Parsed by lxml (libxml2) without network and without entities of the file's own. Where the page says what is main (`<main>`, role, `<article>`) that
is taken; else everything but what its element, role, class or id calls navigation. On a page without such marks trafilatura (Barbaresi 2021) decides
which blocks are boilerplate.
"""

from __future__ import annotations

import codecs
import posixpath
import re
from typing import Any
from urllib.parse import unquote

from lab.corpus.readers import html_main as main_content
from lab.corpus.readers.compose import Composer, Inline, clean, iso_date, table_rows
from lab.corpus.readers.html_main import DROPPED, HEADINGS
from lab.corpus.readers.tables import rows_as_sentences
from lab.corpus.validate import Refused, decode
from lab.records import Document

_BLOCKS = frozenset(
    """
    address article aside blockquote body center dd details dialog div dl dt fieldset figcaption figure footer form header hgroup hr html legend li main
    menu nav ol p section summary table tbody td tfoot th thead tr ul caption
    """.split()
)
_CHARSET = re.compile(
    rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]{2,40})|^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]{2,40})""", re.IGNORECASE
)
_ENTITY = re.compile(r"<!ENTITY", re.IGNORECASE)
_DEPTH = 400  # nested elements; deeper ones are read as if they stood beside each other


def decoded(data: bytes) -> str:
    """The text of an HTML file: by its byte order mark, as UTF-8, as the charset it names, else as Windows-1252."""
    if not data.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and b"\0" not in data[:1024]:
        named = _CHARSET.search(data[:4096])
        if named is not None:
            encoding = (named[1] or named[2]).decode("ascii", "replace").lower()
            if encoding not in {"utf-8", "utf8", "utf-16", "iso-8859-1", "latin-1", "us-ascii", "ascii"}:
                try:
                    return data.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
                except (LookupError, UnicodeDecodeError):
                    pass
    return decode(data)


def read(source: str, text: str) -> Document:
    composer = Composer(source, "html")
    tree = parse(text)
    head(composer, tree)
    compose(composer, tree, text=text)
    return composer.document()


def parse(text: str) -> Any:
    """The tree of a page. Raises Refused for one that declares entities, and for one without an element."""
    import lxml.etree
    import lxml.html

    if _ENTITY.search(text[: 2**20].split("<html", 1)[0].split("<HTML", 1)[0]):
        raise Refused("unsafe: the page declares entities of its own")
    stripped = re.sub(r"^\s*<\?xml[^>]*\?>", "", text, count=1)  # lxml refuses text with an encoding declaration
    parser = lxml.html.HTMLParser(no_network=True, remove_comments=True, remove_pis=True, huge_tree=True)
    try:
        tree = lxml.html.document_fromstring(clean(stripped), parser=parser)
    except (lxml.etree.LxmlError, ValueError, AssertionError):
        raise Refused("corrupt: the page cannot be parsed as HTML") from None
    if any("depth" in entry.message for entry in parser.error_log):
        raise Refused("corrupt: elements are nested too deeply, what lies below would be lost")
    return tree


def head(composer: Composer, tree: Any) -> None:
    """Title, URL, date and version from the page's head."""
    title = tree.find(".//title")
    composer.title = " ".join(title.text_content().split()) if title is not None else ""
    canonical = tree.xpath("string(.//link[@rel='canonical']/@href)") or _meta(tree, "og:url")
    composer.source_url = str(canonical) if re.match(r"https?://", str(canonical)) else ""
    for name in (
        "article:modified_time",
        "dcterms.modified",
        "dc.date.modified",
        "last-modified",
        "article:published_time",
        "dcterms.date",
        "dc.date",
        "date",
    ):
        composer.updated = composer.updated or iso_date(_meta(tree, name))
    composer.version = _meta(tree, "version") or _meta(tree, "docsearch:version") or _meta(tree, "dcterms.hasversion")
    author = _meta(tree, "author") or _meta(tree, "dc.creator")
    if author:
        composer.metadata["author"] = author


def _meta(tree: Any, name: str) -> str:
    for element in tree.iter("meta"):
        if (element.get("name") or element.get("property") or element.get("http-equiv") or "").lower() == name:
            return " ".join((element.get("content") or "").split())
    return ""


def compose(composer: Composer, tree: Any, *, prefix: str = "", text: str = "") -> None:
    """Adds the main content of a page. `prefix` stands before anchors and local targets (the chapter of a book)."""
    body = tree.find("body")
    root = body if body is not None else tree
    root, marked = main_content.main(root)
    total = max(1, len(root.text_content()))
    marked = main_content.drop_navigation(root, total) or marked
    kept = None if marked or not text else main_content.boilerplate_judge(text, total)
    _Walk(composer, prefix, kept).walk(root)


class _Walk:
    """Document order, block by block. An element's inline text gathers until a block begins or ends."""

    def __init__(self, composer: Composer, prefix: str, kept: frozenset[str] | None) -> None:
        self.composer = composer
        self.prefix = prefix
        self.kept = kept
        self.inline = Inline()
        self.mark = ""  # sign of a list item that waits for its text
        self.glossary: list[bool] = []
        self.section = ""

    def walk(self, root: Any) -> None:
        self._element(root, 0)
        self._flush()

    def _flush(self) -> tuple[int, int] | None:
        inline, mark = self.inline, self.mark
        self.inline = Inline()
        if not inline.text.strip():
            if inline.anchors:
                for name, _ in inline.anchors:
                    self.composer.anchor(name)
            return None
        self.mark = ""
        if self.kept is not None:
            words = list(main_content.words(inline.text))
            if words and sum(word in self.kept for word in words) < 0.8 * len(words):
                return None
        if mark:
            shift = len(mark)
            inline.text = mark + inline.text.lstrip()
            inline.links = [type(link)(link.start + shift, link.end + shift, link.target) for link in inline.links]
            inline.anchors = [(name, at + shift if at else 0) for name, at in inline.anchors]
            inline.terms = [(a + shift, b + shift) for a, b in inline.terms]
        return self.composer.add("paragraph", inline, item=bool(mark))

    def _anchors(self, element: Any) -> None:
        for name in {element.get("id"), element.get("name") if element.tag == "a" else None} - {None, ""}:
            if self.inline.text.strip():
                self.inline.anchors.append((f"{self.prefix}#{name}", len(self.inline.text)))
            else:
                self.composer.anchor(f"{self.prefix}#{name}")

    def _element(self, element: Any, depth: int) -> None:
        tag = element.tag
        if not isinstance(tag, str) or tag in DROPPED:
            return
        if depth > _DEPTH:
            self.inline.add(element.text_content())
            return
        block = tag in _BLOCKS or tag in HEADINGS or tag == "pre"
        if block:
            self._flush()
        self._anchors(element)
        if tag in HEADINGS:
            self._heading(element, HEADINGS[tag])
        elif tag == "pre":
            for child in element.iterdescendants():
                self._anchors(child)
            for br in element.iter("br"):
                br.tail = "\n" + (br.tail or "")
            self.composer.add("code", clean(element.text_content().replace("\r", "")))
        elif tag == "table":
            self._table(element, depth)
        elif tag == "br":
            self.inline.newline()
        elif tag == "img":
            alt = element.get("alt") or ""
            if len(alt.split()) > 2:
                self.inline.add(f" {alt} ")
        elif tag == "dl":
            self._definitions(element, depth)
        else:
            if tag == "li":
                self.mark = "- "
            start = len(self.inline.text)
            self._children(element, depth)
            if tag == "a" and element.get("href") and not _is_way_back(element):
                self.inline.link(start, self._target(element.get("href")))
            elif tag == "dfn":
                self.inline.term(start)
        if block:
            self._flush()
            if tag == "li":
                self.mark = ""

    def _children(self, element: Any, depth: int) -> None:
        self.inline.add(element.text)
        for child in element:
            self._element(child, depth + 1)
            if isinstance(child.tag, str) or child.tail:
                self.inline.add(child.tail)

    def _heading(self, element: Any, level: int) -> None:
        self._children(element, 0)
        inline, self.inline = self.inline, Inline()
        inline.text = re.sub(r"\s*[¶#🔗]+\s*$", "", inline.text.replace("\n", " "))
        self.section = inline.text
        self.composer.add("heading", inline, level=level)

    def _target(self, href: str) -> str:
        href = href.strip()
        if href.startswith("#"):
            return self.prefix + href
        if self.prefix and not re.match(r"(?i)[a-z][a-z0-9+.-]*:|/", href):  # from one chapter of a book to another
            path, sign, fragment = href.partition("#")
            return posixpath.normpath(posixpath.join(posixpath.dirname(self.prefix), unquote(path))) + sign + fragment
        return href

    def _definitions(self, element: Any, depth: int) -> None:
        """A definition list: "term: meaning". Where list or heading say that it is a glossary, its terms are definitions."""
        said = f"{element.get('class') or ''} {self.section}".lower()
        glossary = re.search(r"gloss|definition|terminolog|\bterms\b|abbreviation|acronym", said.replace("definition-list", "")) is not None
        terms: list[tuple[int, int]] = []
        pending = Inline()
        items = [item for child in element for item in ([child] if child.tag in {"dt", "dd"} else child if child.tag == "div" else [])]
        for item in items:
            if item.tag == "dt":
                if pending.text.strip():
                    pending.add("; ")
                self.inline = pending
                self._anchors(item)
                begin = len(pending.text)
                self._children(item, depth + 1)
                pending = self.inline
                terms.append((begin, len(pending.text.rstrip())))
                self.inline = Inline()
            elif item.tag == "dd":
                lead = next((child for child in item if isinstance(child.tag, str)), None)
                simple = (item.text or "").strip() or lead is None or lead.tag not in _BLOCKS | {"pre", "table"} | set(HEADINGS) or lead.tag == "p"
                if pending.text.strip() and simple:
                    pending.text = pending.text.rstrip() + ("" if pending.text.rstrip()[-1:] in ":.?!" else ":") + " "
                    self.inline, pending = pending, Inline()
                    first = self.composer.length
                    if lead is not None and lead.tag == "p" and not (item.text or "").strip():
                        self._anchors(item)
                        self._anchors(lead)
                        self._children(lead, depth + 1)
                        span = self._flush()
                        item.remove(lead)
                        self._element(item, depth + 1)
                    else:
                        self._children(item, depth + 1)
                        span = self._flush()
                    if span is None and self.composer.length > first:
                        span = None
                    if glossary and span is not None:
                        for a, b in terms:
                            self.composer.term((span[0] + a, span[0] + b), span[1])
                else:
                    self.inline = pending
                    self._flush()
                    pending = Inline()
                    self._element(item, depth + 1)
                terms = []
        self.inline = pending
        self._flush()

    def _table(self, element: Any, depth: int) -> None:
        rows = [row for row in element.iter("tr") if next(row.iterancestors("table")) is element]
        cells = [[cell for cell in row if cell.tag in {"td", "th"}] for row in rows]
        if not _is_data(element, cells):
            self._children(element, depth)
            return
        caption = element.find("caption")
        if caption is not None:
            self._element(caption, depth + 1)
            self._flush()
        for child in element.iterdescendants():
            self._anchors(child)
        for sentence in rows_as_sentences(table_rows(grid(cells))):
            self.composer.add("row", sentence)


def _is_way_back(element: Any) -> bool:
    """Whether a link leads from a footnote back to its mark: that is no reference."""
    return "backref" in (element.get("class") or "") or (element.get("role") or "") == "doc-backlink"


def _is_data(table: Any, cells: list[list[Any]]) -> bool:
    """Whether a table holds data; else it lays out a page. Nested tables, headings and blocks in cells speak for layout."""
    if (table.get("role") or "").lower() in {"presentation", "none"} or table.find(".//table") is not None:
        return False
    filled = [row for row in cells if sum(bool(cell.text_content().strip()) for cell in row) >= 2]
    if len(filled) < 2:
        return False
    if any(cell.find(f".//{tag}") is not None for row in cells for cell in row for tag in ("h1", "h2", "h3", "pre", "ul", "dl")):
        return False
    texts = [len(cell.text_content()) for row in filled for cell in row]
    return table.find(".//th") is not None or max(texts) <= 600


def grid(cells: list[list[Any]]) -> list[list[str]]:
    """The texts of a table's cells with spans filled in: a cell over several rows or columns is repeated over rows, empty over further columns."""
    out: list[list[str]] = []
    open_spans: dict[int, tuple[int, str]] = {}  # column → rows left, text
    for row in cells:
        line: list[str] = []
        waiting = list(row)
        while waiting or (len(line) in open_spans):
            at = len(line)
            if at in open_spans:
                left, text = open_spans.pop(at)
                line.append(text)
                if left > 1:
                    open_spans[at] = (left - 1, text)
                continue
            cell = waiting.pop(0)
            text = _cell_text(cell)
            across, down = _span(cell, "colspan"), _span(cell, "rowspan")
            for n in range(across):
                line.append(text if n == 0 else "")
                if down > 1:
                    open_spans[at + n] = (down - 1, text if n == 0 else "")
        out.append(line)
    return out


def _cell_text(cell: Any) -> str:
    gathered = Inline()
    for piece in cell.itertext():
        gathered.add(piece)
    parts = [gathered.text] if not len(cell) else ["".join(cell.itertext())]
    return " ".join(clean(" ".join(parts)).split())


def _span(cell: Any, name: str) -> int:
    word = (cell.get(name) or "1").strip()
    return max(1, min(int(word), 100)) if word.isdigit() else 1
