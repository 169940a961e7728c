"""Resolving: what citations, hyperlinks and definitions point to, among the headings, captions and anchors of the whole collection.

A second pass over stored text, so that the order of ingest does not matter. What points out of the collection is left out and counted.
"""

from __future__ import annotations

import bisect
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote, urldefrag

from lab.corpus.links import find_citations, find_definitions, heading_number
from lab.records import Hyperlink, Mention
from lab.store.chunks import Spot
from lab.store.documents import Linkable
from lab.store.links import LinkRow
from lab.store.tenants import bare, prefix
from lab.text import term_key

EXTRACTOR = "rules-3"
_CAPTION = re.compile(r"^[ \t*_]*(?P<kind>Table|Figure|Fig\.)[ \t]+(?P<number>\d+(?:[.-]\d+)*|[A-Z](?:[.-]?\d+)+)\s*[.:–—]", re.MULTILINE)
_OF = re.compile(r",?\s+(?:of|in|from)\s+(?:the\s+|our\s+|its\s+)?[\"'“‘*_]*")
_NUMBERED_HEADINGS_ONLY = frozenset({"table", "figure", "annex", "appendix", "paragraph", "article"})


@dataclass(slots=True)
class LeftOut:
    """How many references became no link: `external` to what is not in the collection, `unresolved` to what looks as if it should be."""

    external: int = 0
    unresolved: int = 0


@dataclass(slots=True)
class Places:
    """Everything that can be pointed to. Filled from the documents once, then only read (`taken` and `works` fill as they are asked for)."""

    numbers: dict[tuple[str, str], dict[str, Spot]] = field(default_factory=dict)  # (kind, number) → source → the first chunk below that heading
    anchors: dict[str, Mapping[str, int]] = field(default_factory=dict)  # source → name → offset
    labels: dict[str, list[tuple[str, int]]] = field(default_factory=dict)  # names that hold in the whole collection (reST) → places
    urls: dict[str, str] = field(default_factory=dict)  # URL → source
    paths: dict[str, list[str]] = field(default_factory=dict)  # source without its ending → sources
    titles: dict[str, list[str]] = field(default_factory=dict)  # title in lower case → sources
    taken: dict[str, dict[str, set[str]]] = field(default_factory=dict)  # kind → source, or its folder and / → the numbers it has
    works: dict[tuple[str, str, str], bool] = field(default_factory=dict)

    def one_work(self, kind: str, source: str, other: str) -> bool:
        """Whether two documents can be parts of one numbered whole: no number stands in both. Where they lie in different folders, no number stands in both
        folders: two manuals that both have a section 1 are two works, and a section 8 that only the other has is not meant."""
        key = (kind, source, other)
        if key not in self.works:
            numbers = self.taken.get(kind) or self._numbers(kind)
            folders = (posixpath.dirname(source) + "/", posixpath.dirname(other) + "/")
            a, b = (source, other) if folders[0] == folders[1] else folders
            self.works[key] = numbers.get(a, set()).isdisjoint(numbers.get(b, set()))
        return self.works[key]

    def _numbers(self, kind: str) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for (its, number), sources in self.numbers.items():
            if its == kind:
                for source in sources:
                    found.setdefault(source, set()).add(number)
                    found.setdefault(posixpath.dirname(source) + "/", set()).add(number)
        self.taken[kind] = found
        return found


def places(documents: Iterable[Linkable], spots: Mapping[str, Sequence[Spot]]) -> Places:
    found = Places()
    for document in documents:
        chunks = spots.get(document.source, ())
        if not chunks:
            continue
        for chunk in chunks:
            for heading in (document.title, *chunk.heading):
                number = heading_number(heading)
                if number is not None:
                    found.numbers.setdefault(number, {}).setdefault(document.source, chunk)
        for match in _CAPTION.finditer(document.text):
            spot = chunk_from(chunks, match.start())
            if spot is not None:
                kind = "table" if match["kind"] == "Table" else "figure"
                found.numbers.setdefault((kind, match["number"]), {}).setdefault(document.source, spot)
        if document.anchors:
            found.anchors[document.source] = document.anchors
            for name, offset in document.anchors.items():
                if name.startswith("label:"):
                    found.labels.setdefault(name, []).append((document.source, offset))
        if document.source_url:
            found.urls.setdefault(urldefrag(document.source_url).url.rstrip("/"), document.source)
        if " " in document.title.strip():  # one word is too little to know a document by
            found.titles.setdefault(" ".join(document.title.lower().split()), []).append(document.source)
        found.paths.setdefault(stem(bare(document.source, document.tenant)), []).append(document.source)
    return found


def stem(path: str) -> str:
    """A path without what readers and sites add: `a/b.rst.txt`, `a/b.html` and `a/b` are one place."""
    return re.sub(r"(?:\.(?:md|markdown|rst|txt|html?|xhtml|pdf|docx|odt|epub))+$", "", path, flags=re.IGNORECASE)


def link_rows(
    documents: Iterable[Linkable], spots: Mapping[str, Sequence[Spot]], known: Places, left_out: LeftOut | None = None
) -> Iterator[LinkRow]:
    """The links of every document: its hyperlinks and citations, the author's own first; its definitions, marked or worded, at the chunk that holds them."""
    out = left_out if left_out is not None else LeftOut()
    for document in documents:
        chunks = spots.get(document.source, ())
        if not chunks:
            continue
        yield from _citations(document, chunks, spots, known, out)
        yield from _definitions(document, chunks)


def _citations(document: Linkable, chunks: Sequence[Spot], spots: Mapping[str, Sequence[Spot]], known: Places, out: LeftOut) -> Iterator[LinkRow]:
    taken: list[tuple[int, int]] = []
    linked: dict[int, str] = {}  # where a hyperlink begins → the document it leads to
    for link in document.hyperlinks:
        taken.append((link.start, link.end))  # the author said what is meant, here or elsewhere
        place = _place(document, link, known)
        if place is not None and place[0] != document.source:
            linked[link.start] = place[0]
        here = chunk_at(chunks, link.start, link.end)
        if place is None:
            outside = re.match(r"(?i)[a-z][a-z0-9+.-]*:|//", link.target) is not None and not link.target.startswith(
                ("label:", "title:", "doc:", "term:")
            )
            out.external += outside
            out.unresolved += not outside
            continue
        there = chunk_from(spots.get(place[0], ()), place[1])
        if here is not None and there is not None and here.key != there.key:
            yield LinkRow("cites", here.key, None, there.key, link.start, link.end, document.text[link.start : link.end][:200], document.tenant)
    external: list[Mention] = []
    found = find_citations(document.text, external)
    for mention in [*found, *external]:
        named = _of_linked(mention, document.text, linked) or _of_titled(mention, document, known)
        if any(a < mention.end and mention.start < b for a, b in taken) or (named is None and mention in external):
            continue
        here = chunk_at(chunks, mention.start, mention.end)
        there = resolve(mention, document.source, known) if named is None else _inside(mention, named, known)
        if there is None:
            out.unresolved += 1
        elif here is not None and here.key != there.key:
            yield LinkRow("cites", here.key, None, there.key, mention.start, mention.end, mention.label, document.tenant)
    out.external += sum((_of_linked(mention, document.text, linked) or _of_titled(mention, document, known)) is None for mention in external)


def _of_linked(mention: Mention, text: str, linked: Mapping[int, str]) -> str | None:
    """The document that a mention names by a hyperlink right behind it: "section 2.1 of the [guide](guide.md)"."""
    match = _OF.match(text, mention.end)
    return linked.get(match.end()) if match else None


def _definitions(document: Linkable, chunks: Sequence[Spot]) -> Iterator[LinkRow]:
    marked: list[tuple[str, int, int]] = []
    for start, end, close in document.terms:
        label = " ".join(document.text[start:end].strip(" *_`\"'“”‘’:").split())
        key = term_key(label)
        here = chunk_at(chunks, start, close)
        if key and len(label) <= 80 and here is not None:
            marked.append((key, start, close))
            yield LinkRow("defines", None, key, here.key, start, close, label, document.tenant)
    for definition in find_definitions(document.text):
        key = term_key(definition.term)
        if any(key == other and a < definition.end and definition.start < b for other, a, b in marked):
            continue
        here = chunk_at(chunks, definition.start, definition.end)
        if here is not None:
            yield LinkRow("defines", None, key, here.key, definition.start, definition.end, definition.term, document.tenant)


def _of_titled(mention: Mention, document: Linkable, known: Places) -> str | None:
    """The document whose title stands right behind a mention: "section 1 of the Omega Handbook"."""
    match = _OF.match(document.text, mention.end)
    if match is None:
        return None
    words = re.split(r"\s+", document.text[match.end() : match.end() + 160].lower())
    for many in range(min(len(words), 14), 1, -1):
        sources = known.titles.get(" ".join(words[:many]).rstrip(".,;:)\"'”’*_"), [])
        others = [source for source in sources if source != document.source]
        if len(others) == 1:
            return others[0]
    return None


def _inside(mention: Mention, source: str, known: Places) -> Spot | None:
    """The chunk of one document that a mention points to."""
    return known.numbers.get((mention.kind, mention.number), {}).get(source) or known.numbers.get(("", mention.number), {}).get(source)


def resolve(mention: Mention, source: str, known: Places) -> Spot | None:
    """The chunk a mention points to: in its own document first, else in the only other document of the same work that has this number."""
    for key in ((mention.kind, mention.number), ("", mention.number)):
        if key == ("", mention.number) and mention.kind in _NUMBERED_HEADINGS_ONLY:
            continue
        by_source = known.numbers.get(key, {})
        if source in by_source:
            return by_source[source]
        parts = [spot for other, spot in by_source.items() if known.one_work(key[0], source, other)]
        if len(parts) == 1:
            return parts[0]
    return None


def _place(document: Linkable, link: Hyperlink, known: Places) -> tuple[str, int] | None:
    """(source, offset) of a hyperlink's target, None where the collection does not hold it."""
    target, own = link.target, known.anchors.get(document.source, {})
    here = posixpath.dirname(bare(document.source, document.tenant))
    if target in own:
        return document.source, own[target]
    if target.startswith("label:"):
        found = known.labels.get(target, [])
        return found[0] if len(found) == 1 else None
    if target.startswith(("title:", "term:")):
        return None
    if target.startswith("doc:"):
        path = target.removeprefix("doc:")
        joined = path.lstrip("/") if path.startswith("/") else posixpath.join(here, path)
        source = _only(known.paths.get(stem(posixpath.normpath(joined)), []), document.source)
        return (source, 0) if source is not None else None
    if re.match(r"(?i)[a-z][a-z0-9+.-]*:|//", target):
        url, fragment = urldefrag(target)
        source = known.urls.get(url.rstrip("/"))
        return _anchored(source, fragment, known) if source is not None else None
    path, fragment = urldefrag(target)
    path = unquote(path.split("?")[0])
    if not path:
        return None
    joined = path.lstrip("/") if path.startswith("/") else posixpath.normpath(posixpath.join(here, path))
    if joined in own:  # a chapter of the same book, at an anchor that it lacks
        return document.source, own[joined]
    source = _only(known.paths.get(stem(joined), []), document.source, prefix(document.tenant) + joined)
    return _anchored(source, fragment, known) if source is not None else None


def _anchored(source: str, fragment: str, known: Places) -> tuple[str, int]:
    """The anchor's place, else the document's beginning."""
    return source, known.anchors.get(source, {}).get(f"#{unquote(fragment)}", 0) if fragment else 0


def _only(sources: Sequence[str], own: str, exact: str = "") -> str | None:
    """The source named exactly, else the one with the ending of the citing document, else the only one."""
    if exact in sources:
        return exact
    alike = [source for source in sources if source.rpartition(".")[2] == own.rpartition(".")[2]]
    for found in (alike, sources):
        if len(found) == 1:
            return found[0]
    return None


def chunk_at(chunks: Sequence[Spot], start: int, end: int) -> Spot | None:
    """The chunk that holds most of the span, the first of equals."""
    best, most = None, 0
    for chunk in chunks[max(0, bisect.bisect_left(chunks, start, key=_end) - 1) :]:
        if chunk.start >= end:
            break
        shared = min(end, chunk.end) - max(start, chunk.start)
        if shared > most:
            best, most = chunk, shared
    return best


def chunk_from(chunks: Sequence[Spot], offset: int) -> Spot | None:
    """The chunk at an offset: the one that holds it, else the next, as below a heading, else the last."""
    if not chunks:
        return None
    return chunks[min(bisect.bisect_right(chunks, offset, key=_end), len(chunks) - 1)]


_end: Callable[[Spot], int] = lambda chunk: chunk.end  # noqa: E731  (ends rise with the chunks, whatever the chunker)
