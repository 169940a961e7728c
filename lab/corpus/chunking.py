"""Chunkers: document → chunks. Every chunk quotes its document exactly: `chunk.text == document.text[chunk.start:chunk.end]`.

Heading lines stand in the context of the chunks below them, not in their text, so that one paragraph under two headings is still one passage.
"""

from __future__ import annotations

import bisect
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lab.corpus.sentences import sentences
from lab.records import Block, Chunk, Document
from lab.settings import IngestSettings

CountTokens = Callable[[str], int]
Span = tuple[int, int]
Atom = tuple[int, int, bool]  # start, end, whether it is kept whole up to the embedder's limit
_LIMIT_WITHOUT_TOKENIZER = 256
_TOKENS_PER_WORD = 1.3
_WORD = re.compile(r"\S+")
INDEXED = 60_000  # characters; more could exceed the megabyte that Postgres' text search takes


@dataclass(frozen=True, slots=True)
class _Section:
    """The blocks below one heading, up to the next heading of any level."""

    path: tuple[str, ...]
    blocks: tuple[Block, ...]


SIZES = ("chunk_size", "overlap", "window")
READ = {  # which of them a chunker reads
    "fixed": {"chunk_size", "overlap"}, "heading": {"chunk_size"}, "paragraph": {"chunk_size"}, "sentence-window": {"chunk_size", "window"}, "whole": set[str](),
}  # fmt: skip


def chunk(document: Document, settings: IngestSettings, count_tokens: CountTokens, limit: int | None) -> list[Chunk]:
    """The chunks of a document, in order. `limit` is the embedder's window in tokens (None: none, 256 is assumed).

    A document without a character that is not white space gives none.
    """
    spans: list[tuple[tuple[str, ...], Span]]
    window = limit or _LIMIT_WITHOUT_TOKENIZER
    if settings.chunker == "whole":
        spans = [((), span) for span in _trim(document.text, 0, len(document.text))]
    elif settings.chunker == "fixed":
        spans = _fixed(document, settings.chunk_size or 800, settings.overlap)
    elif settings.chunker == "paragraph":
        spans = _paragraphs(document, settings.chunk_size or 40, int((window - 2) / _TOKENS_PER_WORD), _at_least(lambda text: len(text.split())))
    elif settings.chunker == "sentence-window":
        spans = _sentences(document, min(settings.chunk_size or window - 2, window - 2), window - 2, _at_least(count_tokens))
    else:
        spans = _headings(document, settings.chunk_size, window, settings.context == "on", _at_least(count_tokens))
    windows = _windows([span for _, span in spans], settings.window) if settings.chunker == "sentence-window" else None
    pages = _Pages(document.pages)
    return [
        Chunk(
            document.source, n, start, end, document.text[start:end], context_line(document.title, path), path,
            pages.at(start), windows[n - 1] if windows else None,
        )
        for n, (path, (start, end)) in enumerate(spans, 1)
    ]  # fmt: skip


class _Pages:
    """The page of an offset."""

    def __init__(self, pages: Sequence[tuple[int, int]]) -> None:
        self._starts = [start for start, _ in pages]
        self._numbers = [number for _, number in pages]

    def at(self, offset: int) -> int | None:
        index = bisect.bisect_right(self._starts, offset) - 1
        return self._numbers[index] if index >= 0 else None


def _at_least(count: CountTokens) -> CountTokens:
    """`count`, but a unit for every 64 characters at least: a tokenizer takes a run without spaces, however long, for one unknown word."""
    return lambda text: max(count(text), len(text) // 64)


def context_line(title: str, path: Sequence[str]) -> str:
    """`title > heading > heading`; a heading that repeats the title is not said twice."""
    parts = [title, *path]
    if len(parts) > 1 and parts[0] == parts[1]:
        parts = parts[1:]
    return " > ".join(" ".join(part.split()) for part in parts if part.strip())


def body(chunk: Chunk, settings: IngestSettings) -> str:
    """What is embedded, reranked and (in plain signs) indexed of a chunk: its context and text, at most `INDEXED` characters."""
    return body_of(chunk.context, chunk.text, settings)


def body_of(context: str, text: str, settings: IngestSettings) -> str:
    """The same of a stored one."""
    return (f"{context}\n{text}" if settings.context == "on" and context else text)[:INDEXED]


# ── fixed and paragraph ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _fixed(document: Document, size: int, overlap: int) -> list[tuple[tuple[str, ...], Span]]:
    """Windows of `size` characters. An edge that would fall into a row or a block of code moves to that block's edge, unless the block alone is longer."""
    out: list[tuple[tuple[str, ...], Span]] = []
    text = document.text
    paths = _paths(document)
    kept = [(b.start, b.end) for b in document.blocks if b.kind in {"row", "code"} and b.end - b.start <= size]
    starts = [a for a, _ in kept]

    def around(offset: int) -> Span | None:
        at = bisect.bisect_left(starts, offset) - 1  # the last that begins before the offset
        return kept[at] if at >= 0 and kept[at][0] < offset < kept[at][1] else None

    start = 0
    while start < len(text):
        stop = min(start + size, len(text))
        block = around(stop)
        if block is not None and block[0] > start:
            stop = block[0]
        for span in _trim(text, start, stop):
            out.append((_path_at(paths, span[0]), span))
        if stop == len(text):
            break
        following = max(stop - overlap, start + 1)
        block = around(following)
        start = following if block is None else min(block[1], stop)
    return out


def _paragraphs(document: Document, most: int, hard: int, count: CountTokens) -> list[tuple[tuple[str, ...], Span]]:
    """Paragraphs of at most `most` words; a longer one is cut at sentence ends. A longer sentence gives pieces that share half of their words, so that
    what is said in a few words stands whole in one of them. Rows and code are cut from `hard` words on."""
    out = []
    for section in _sections(document):
        for block in section.blocks:
            atoms = [
                piece
                for a, b, keep in _atoms(document.text, block)
                for piece in ([(a, b, keep)] if keep or count(document.text[a:b]) <= most else _overlapping(document.text, (a, b), most))
            ]
            for span in _pack(document.text, atoms, most, most, max(most, hard), count):
                out.append((section.path, span))
    return out


def _overlapping(text: str, span: Span, most: int) -> list[Atom]:
    """Windows of `most` words, each beginning in the middle of the one before."""
    found = [match.span() for match in _WORD.finditer(text, *span)]
    step = max(1, most // 2)
    starts = range(0, max(1, len(found) - most + step), step)
    return [(found[at][0], found[min(at + most, len(found)) - 1][1], False) for at in starts] if found else [(*span, False)]


# ── sentence-window ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _sentences(document: Document, most: int, hard: int, count: CountTokens) -> list[tuple[tuple[str, ...], Span]]:
    """A sentence, row or block of code a chunk; a sentence of more than `most` tokens is cut, the others from `hard` tokens on."""
    return [
        (section.path, piece)
        for section in _sections(document)
        for block in section.blocks
        for a, b, keep in _atoms(document.text, block)
        for piece in _cut(document.text, (a, b), hard if keep else most, count)
    ]


def _windows(spans: Sequence[Span], reach: int) -> list[Span]:
    """From the start of the sentence `reach` places before to the end of the one `reach` places behind."""
    return [(spans[max(at - reach, 0)][0], spans[min(at + reach, len(spans) - 1)][1]) for at in range(len(spans))]


# ── heading ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _headings(document: Document, size: int, window: int, context: bool, count: CountTokens) -> list[tuple[tuple[str, ...], Span]]:
    """Leaf sections whole where they fit, else cut at sentence ends into pieces of about equal length."""
    out: list[tuple[tuple[str, ...], Span]] = []
    for section in _sections(document):
        used = count(context_line(document.title, section.path)) if context else 0
        # A context that eats the whole window would leave nothing to say: half of the window is kept for the text.
        target = min(512, max(window - used - 2, window // 2))
        if size:
            target = min(size, target)
        first, last = section.blocks[0].start, section.blocks[-1].end
        total = count(document.text[first:last])
        if total <= target:
            spans = _trim(document.text, first, last)
        else:
            atoms = [atom for block in section.blocks for atom in _atoms(document.text, block)]
            spans = _pack(document.text, atoms, target, math.ceil(total / math.ceil(total / target)), max(target, window - used - 2), count)
        out.extend((section.path, span) for span in spans)
    return out


def _sections(document: Document) -> list[_Section]:
    """Runs of blocks under one heading. A heading with nothing below it, not even another heading, is a block of its own."""
    sections: list[_Section] = []
    path: list[tuple[int, str]] = []
    blocks: list[Block] = []
    lonely: Block | None = None

    def close() -> None:
        nonlocal blocks
        if blocks:
            sections.append(_Section(tuple(words for _, words in path), tuple(blocks)))
            blocks = []

    for block in document.blocks or (Block("paragraph", 0, len(document.text)),):
        if block.kind == "heading":
            close()
            if lonely is not None and block.level <= lonely.level:
                sections.append(_Section(tuple(words for _, words in path), (lonely,)))
            while path and path[-1][0] >= block.level:
                path.pop()
            path.append((block.level, heading_words(document.text[block.start : block.end])))
            lonely = block
        elif document.text[block.start : block.end].strip():
            lonely = None
            blocks.append(block)
    close()
    if lonely is not None:
        sections.append(_Section(tuple(words for _, words in path), (lonely,)))
    return sections


def heading_words(raw: str) -> str:
    """The words of a heading without its marks (`## 4.2 *Pumps*` → `4.2 Pumps`)."""
    lines = [line.strip().strip("#").strip() for line in raw.splitlines()]
    words = " ".join(line for line in lines if line and any(ch.isalnum() for ch in line))
    return words.replace("**", "").replace("`", "").strip("*_ ")


def _atoms(text: str, block: Block) -> list[Atom]:
    """What is not cut if it can be helped: the sentences of a paragraph, a row, a whole block of code."""
    if block.kind in {"row", "code", "heading"}:
        return [(a, b, True) for a, b in _trim(text, block.start, block.end)]
    return [(a, b, False) for a, b in sentences(text, block.start, block.end)]


def _pack(text: str, atoms: Sequence[Atom], target: int, goal: int, hard: int, count: CountTokens) -> list[Span]:
    """Joins neighbouring atoms into spans of about `goal` and at most `target` units; an atom that is longer is cut at words, one that is kept whole
    only beyond `hard` units."""
    spans: list[Span] = []
    start = end = -1
    used = 0
    for a, b in [piece for x, y, keep in atoms for piece in _cut(text, (x, y), hard if keep else target, count)]:
        units = count(text[a:b])
        if start >= 0 and (used + units > target or used >= goal):
            spans.append((start, end))
            start, used = -1, 0
        if start < 0:
            start = a
        end = b
        used += units
    if start >= 0:
        spans.append((start, end))
    return spans


def _cut(text: str, atom: Span, target: int, count: CountTokens) -> list[Span]:
    """The atom itself, or pieces of at most `target` units, cut at line ends, else at white space, else between characters."""
    start, end = atom
    if count(text[start:end]) <= target:
        return [atom]
    pieces = []
    while start < end:
        # The longest prefix that fits: a reach that does not fit is sought by doubling, then halved; never the whole rest, which may be megabytes.
        low, high = 1, min(4 * target, end - start)
        while high < end - start and count(text[start : start + high]) <= target:
            low, high = high, min(2 * high, end - start)
        while low < high:
            middle = (low + high + 1) // 2
            if count(text[start : start + middle]) <= target:
                low = middle
            else:
                high = middle - 1
        stop = start + low
        if stop < end:
            for sign in ("\n", " "):
                at = text.rfind(sign, start + low // 2, stop + 1)
                if at > start:
                    stop = at
                    break
        pieces += _trim(text, start, stop)
        start = stop
    return pieces


def _trim(text: str, start: int, end: int) -> list[Span]:
    """The span without white space at its ends; nothing if nothing is left."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return [(start, end)] if end > start else []


def _paths(document: Document) -> list[tuple[int, tuple[str, ...]]]:
    """(offset, heading path from there on)."""
    out: list[tuple[int, tuple[str, ...]]] = [(0, ())]
    path: list[tuple[int, str]] = []
    for block in document.blocks:
        if block.kind == "heading":
            while path and path[-1][0] >= block.level:
                path.pop()
            path.append((block.level, heading_words(document.text[block.start : block.end])))
            out.append((block.start, tuple(words for _, words in path)))
    return out


def _path_at(paths: Sequence[tuple[int, tuple[str, ...]]], offset: int) -> tuple[str, ...]:
    return [path for start, path in paths if start <= offset][-1]
