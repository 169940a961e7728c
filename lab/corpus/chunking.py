"""Chunkers: document → chunks. Every chunk quotes its document exactly: `chunk.text == document.text[chunk.start:chunk.end]`.

Heading lines stand in the context of the chunks below them, not in their text, so that one paragraph under two headings is still one passage.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lab.corpus.sentences import sentences
from lab.records import Block, Chunk, Document
from lab.settings import IngestSettings

CountTokens = Callable[[str], int]
Span = tuple[int, int]
_LIMIT_WITHOUT_TOKENIZER = 256
INDEXED = 60_000  # characters; more could exceed the megabyte that Postgres' text search takes


@dataclass(frozen=True, slots=True)
class _Section:
    """The blocks below one heading, up to the next heading of any level."""

    path: tuple[str, ...]
    blocks: tuple[Block, ...]


def chunk(document: Document, settings: IngestSettings, count_tokens: CountTokens, limit: int | None) -> list[Chunk]:
    """The chunks of a document, in order. `limit` is the embedder's window in tokens (None: none, 256 is assumed).

    A document without a character that is not white space gives none.
    """
    spans: list[tuple[tuple[str, ...], Span]]
    if settings.chunker == "whole":
        spans = [((), span) for span in _trim(document.text, 0, len(document.text))]
    elif settings.chunker == "fixed":
        spans = _fixed(document, settings.chunk_size or 800, settings.overlap)
    elif settings.chunker == "paragraph":
        spans = _paragraphs(document, settings.chunk_size or 40, _at_least(lambda text: len(text.split())))
    else:
        window = limit or _LIMIT_WITHOUT_TOKENIZER
        spans = _headings(document, settings.chunk_size, window, settings.context == "on", _at_least(count_tokens))
    return [
        Chunk(document.source, n, start, end, document.text[start:end], context_line(document.title, path), path)
        for n, (path, (start, end)) in enumerate(spans, 1)
    ]


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
    """What is embedded and indexed of a chunk: its context and text, at most `INDEXED` characters."""
    return (f"{chunk.context}\n{chunk.text}" if settings.context == "on" and chunk.context else chunk.text)[:INDEXED]


# ── fixed and paragraph ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _fixed(document: Document, size: int, overlap: int) -> list[tuple[tuple[str, ...], Span]]:
    out: list[tuple[tuple[str, ...], Span]] = []
    text = document.text
    paths = _paths(document)
    start = 0
    while start < len(text):
        stop = min(start + size, len(text))
        for span in _trim(text, start, stop):
            out.append((_path_at(paths, span[0]), span))
        if stop == len(text):
            break
        start = stop - overlap
    return out


def _paragraphs(document: Document, most: int, count: CountTokens) -> list[tuple[tuple[str, ...], Span]]:
    """Paragraphs of at most `most` words; a longer one is cut at sentence ends, a longer sentence at words."""
    out = []
    for section in _sections(document):
        for block in section.blocks:
            for span in _pack(document.text, _atoms(document.text, block), most, most, count):
                out.append((section.path, span))
    return out


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
            spans = _pack(document.text, atoms, target, math.ceil(total / math.ceil(total / target)), count)
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


def _atoms(text: str, block: Block) -> list[Span]:
    """What is not cut if it can be helped: the sentences of a paragraph, a row, a whole block of code."""
    if block.kind in {"row", "code", "heading"}:
        return _trim(text, block.start, block.end)
    return sentences(text, block.start, block.end)


def _pack(text: str, atoms: Sequence[Span], target: int, goal: int, count: CountTokens) -> list[Span]:
    """Joins neighbouring atoms into spans of about `goal` and at most `target` units; an atom that is longer is cut at words."""
    spans: list[Span] = []
    start = end = -1
    used = 0
    for a, b in [piece for atom in atoms for piece in _cut(text, atom, target, count)]:
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
