"""HTML and XHTML: the main content in document order, no navigation.

Parsed by lxml (libxml2) without network and without entities of the file's own. Where the page says what is main (`<main>`, role, `<article>`) that
is taken; else everything but what its element, role, class or id calls navigation. On a page without such marks trafilatura (Barbaresi 2021) decides
which blocks of links are boilerplate.
"""

from __future__ import annotations

import codecs
import contextlib
import posixpath
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import webencodings

from lab.corpus.readers import html_main as main_content
from lab.corpus.readers.compose import Composer, Inline, clean, iso_date, table_rows
from lab.corpus.readers.html_main import BLOCKS, DROPPED, HEADINGS
from lab.corpus.readers.html_tables import grid, in_body, is_data
from lab.corpus.readers.numbering import numeral
from lab.corpus.readers.tables import rows_as_sentences
from lab.corpus.validate import Refused, decode
from lab.records import Document

_CHARSET = re.compile(
    rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]{2,40})|^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]{2,40})""", re.IGNORECASE
)
_ENTITY = re.compile(r"<!ENTITY", re.IGNORECASE)
_DEPTH = 400  # nested elements; deeper ones are read as if they stood beside each other


# Labels mean on the web what browsers made of them (https://encoding.spec.whatwg.org); where Python's codec is narrower, the wider one.
_WIDER = {"gbk": "gb18030", "gb2312": "gb18030", "shift_jis": "cp932", "euc-kr": "cp949", "big5": "big5hkscs"}


def decoded(data: bytes) -> str:
    """The text of an HTML file: by its byte order mark, as UTF-8, as the charset it names, else as any text."""
    if not data.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and b"\0" not in data[:1024]:
        named = _CHARSET.search(data[:4096])
        label = webencodings.lookup((named[1] or named[2]).decode("ascii", "replace")) if named is not None else None
        if label is not None and label.name not in {"utf-8", "utf-16le", "utf-16be", "replacement", "x-user-defined"}:
            try:
                data.decode("utf-8")  # what is valid UTF-8 and not ASCII alone is UTF-8, whatever it says
            except UnicodeDecodeError:
                with contextlib.suppress(LookupError, UnicodeError):
                    text = data.decode(_WIDER.get(label.name) or label.codec_info.name)
                    return text.replace("\r\n", "\n").replace("\r", "\n")
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

    if _ENTITY.search(re.sub(r"<!--.*?-->", "", re.split(r"(?i)<html", text[: 2**20], maxsplit=1)[0], flags=re.DOTALL)):
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


@dataclass(slots=True)
class _Pending:
    """Terms of a definition list that wait for their definition; spans within `inline`."""

    inline: Inline = field(default_factory=Inline)
    terms: list[tuple[int, int]] = field(default_factory=list)


@dataclass(slots=True)
class _Ordered:
    """A numbered list: the number of its next item."""

    kind: str
    next: int
    step: int


class _Walk:
    """Document order, block by block. An element's inline text gathers until a block begins or ends."""

    def __init__(self, composer: Composer, prefix: str, kept: frozenset[str] | None) -> None:
        self.composer = composer
        self.prefix = prefix
        self.kept = kept
        self.inline = Inline()
        self.mark = ""  # sign of a list item that waits for its text
        self.lists: list[_Ordered | None] = []  # the lists around this place; None: without numbers
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
            linked = sum(link.end - link.start for link in inline.links)
            # Only what looks like boilerplate, mostly links. Text stays, whatever another library thinks of it.
            if linked > 0.5 * len(inline.text) and sum(word in self.kept for word in words) < 0.8 * len(words):
                return None
        if mark:
            inline.marked(mark)
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
        block = tag in BLOCKS or tag in HEADINGS or tag == "pre"
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
                self.mark = self._sign(element)
            elif tag in {"ol", "ul", "menu", "dir"}:
                self.lists.append(_ordered(element) if tag == "ol" else None)
            if tag == "sup" and self.inline.text[-1:].isdigit() and (element.text_content() or "x").strip()[:1].isdigit():
                self.inline.text += "^"  # 10³ is no 103
            start = len(self.inline.text)
            self._children(element, depth)
            if tag == "a" and element.get("href") and not _is_way_back(element):
                self.inline.link(start, self._target(element.get("href")))
            elif tag == "dfn":
                self.inline.term(start)
            elif tag in {"ol", "ul", "menu", "dir"}:
                self._flush()
                self.lists.pop()
        if block:
            self._flush()
            if tag == "li":
                self.mark = ""

    def _sign(self, item: Any) -> str:
        """What stands before a list item: its number, as a browser counts, or a dash."""
        around = self.lists[-1] if self.lists else None
        if around is None:
            return "- "
        given = item.get("value") or ""
        if re.fullmatch(r"-?\d{1,6}", given.strip()):
            around.next = int(given)
        number = around.next
        around.next += around.step
        return numeral(number, item.get("type") or around.kind) + ". "

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
        pending = _Pending()
        self._list(element, depth, glossary, pending)
        self._close(pending)

    def _close(self, pending: _Pending) -> None:
        """Adds terms that no definition followed."""
        if pending.inline.text.strip():
            self.inline, pending.inline = pending.inline, Inline()
            self._flush()
        pending.terms.clear()

    def _list(self, element: Any, depth: int, glossary: bool, pending: _Pending) -> None:
        """The children of a definition list, or of what is wrapped around some of them. Nothing is left out, wherever it stands."""
        self.inline.add(element.text)
        for item in list(element):
            if item.tag == "dt":
                self._flush()
                self._term(item, depth, pending)
            elif item.tag == "dd":
                self._flush()
                self._meaning(item, depth, glossary, pending)
            elif isinstance(item.tag, str) and item.find(".//dt") is None and item.find(".//dd") is None:
                self._close(pending)
                self._element(item, depth + 1)
            elif isinstance(item.tag, str) and depth < _DEPTH:
                self._flush()
                self._list(item, depth + 1, glossary, pending)
            self.inline.add(item.tail)
        self._flush()

    def _term(self, item: Any, depth: int, pending: _Pending) -> None:
        if pending.inline.text.strip():
            pending.inline.add("; ")
        self.inline = pending.inline
        self._anchors(item)
        begin = len(self.inline.text)
        self._children(item, depth + 1)
        pending.terms.append((begin, len(self.inline.text.rstrip())))
        pending.inline, self.inline = self.inline, Inline()

    def _meaning(self, item: Any, depth: int, glossary: bool, pending: _Pending) -> None:
        """A definition: with its term in one block where it begins with text or a paragraph."""
        lead = next((child for child in item if isinstance(child.tag, str)), None)
        plain = (item.text or "").strip() or lead is None or lead.tag == "p" or lead.tag not in BLOCKS | {"pre", "table"} | set(HEADINGS)
        if not pending.inline.text.strip() or not plain:
            self._close(pending)
            self._element(item, depth + 1)
            return
        text = pending.inline.text.rstrip()
        pending.inline.text = text + ("" if text[-1:] in ":.?!" else ":") + " "
        self.inline, pending.inline = pending.inline, Inline()
        self._anchors(item)
        before = self.composer.length
        if lead is not None and lead.tag == "p" and not (item.text or "").strip():
            self._anchors(lead)
            self._children(lead, depth + 1)
            span = self._flush()
            tail = lead.tail
            item.remove(lead)
            item.text = tail
            self._element(item, depth + 1)
        else:
            self._children(item, depth + 1)
            span = self._flush()
        if glossary and span is not None and span[0] >= before:
            for a, b in pending.terms:
                self.composer.term((span[0] + a, span[0] + b), span[1])
        pending.terms.clear()

    def _table(self, element: Any, depth: int) -> None:
        rows = [row for row in element.iter("tr") if next(row.iterancestors("table")) is element]
        cells = [[cell for cell in row if cell.tag in {"td", "th"}] for row in rows]
        if not is_data(element, cells):
            self._children(element, depth)
            return
        caption = element.find("caption")
        if caption is not None:
            self._element(caption, depth + 1)
            self._flush()
        for child in element.iterdescendants():
            self._anchors(child)
        heads = next((at for at, row in enumerate(cells) if any(cell.tag == "td" for cell in row) and in_body(row)), 0)
        for sentence in rows_as_sentences(table_rows(grid(cells)), heads):  # a page that has heads marks them
            self.composer.add("row", sentence)


def _ordered(element: Any) -> _Ordered:
    start, style = (
        (element.get("start") or "").strip(),
        re.search(r"list-style(?:-type)?\s*:[^;]*?\b(none|lower|upper)\b-?(\w*)", element.get("style") or ""),
    )
    kind = element.get("type") or "1"
    if style is not None and style[1] != "none":
        kind = {"roman": "i", "alpha": "a", "latin": "a"}.get(style[2], "1")
        kind = kind.upper() if style[1] == "upper" else kind
    back = element.get("reversed") is not None
    first = int(start) if re.fullmatch(r"-?\d{1,6}", start) else sum(child.tag == "li" for child in element) if back else 1
    return _Ordered(kind, first, -1 if back else 1)


def _is_way_back(element: Any) -> bool:
    """Whether a link leads from a footnote back to its mark: that is no reference."""
    return "backref" in (element.get("class") or "") or (element.get("role") or "") == "doc-backlink"
