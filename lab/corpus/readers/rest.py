"""reStructuredText, as far as structure goes: sections by adornment, literal blocks, tables, labels, references; all else stays as the author wrote it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from lab.corpus.readers.compose import iso_date
from lab.corpus.readers.plain import structured
from lab.corpus.readers.rest_parts import rewritten
from lab.records import Block, Document, Hyperlink

_LABEL = re.compile(r"^ *\.\. _(?P<name>`[^`\n]+`|[^:\n`]+):[ \t]*(?P<target>\S.*)?$", re.MULTILINE)
_ROLE = re.compile(r":(?P<role>ref|numref|doc|term|any|std:ref|std:doc):`(?:[^`<]*<(?P<inner>[^`>]+)>|(?P<plain>[^`]+))`")
_PHRASE = re.compile(r"`(?P<words>[^`<\n]*(?:\n[^`<\n]*)?)(?:<(?P<target>[^`>\n]+)>)?`__?")
_ANONYMOUS = re.compile(r"^[ \t]*(?:\.\. __:|__)[ \t]+(?P<target>\S.*)$", re.MULTILINE)
_WORD = re.compile(r"(?<![\w`])(?P<word>[A-Za-z0-9][\w.-]*)_(?![\w_`])")
_TERM = re.compile(r"^(?P<indent> +)(?P<term>\S.*)\n(?P=indent) +\S", re.MULTILINE)
_FIELD = re.compile(r"^:(?P<name>[A-Za-z][\w -]*):[ \t]+(?P<value>\S.*)$", re.MULTILINE)


def read(source: str, text: str) -> Document:
    """Labels (`.. _name:`) become anchors, roles and references hyperlinks: `:ref:` to a label of the collection, `:doc:` to a document,
    a phrase to a label or section title of its own document or to a URL. `.. glossary::` lists its terms."""
    text, rows = rewritten(text)
    document = _with_rows(structured(source, text, "rest", numbered=False), rows)
    anchors: dict[str, int] = {}
    targets: dict[str, str] = {}
    for match in _LABEL.finditer(text):
        name = _key(match["name"])
        if match["target"]:
            targets[name] = match["target"].strip()
        else:
            anchors[f"label:{name}"] = _next_block(document, match.end())
    for block in document.blocks:
        if block.kind == "heading":
            words = [line for line in text[block.start : block.end].splitlines() if any(ch.isalnum() for ch in line)]
            anchors.setdefault(f"title:{_key(words[0])}" if words else "", block.start)
    anchors.pop("", None)
    links: list[Hyperlink] = []
    taken: list[tuple[int, int]] = []
    for match in _ROLE.finditer(text):
        name = (match["inner"] or match["plain"] or "").strip()
        taken.append(match.span())
        target = f"doc:{name}" if match["role"].endswith("doc") else f"term:{name}" if match["role"] == "term" else f"label:{_key(name)}"
        links.append(Hyperlink(match.start(), match.end(), target))
    nameless = iter([m["target"].strip() for m in _ANONYMOUS.finditer(text)])
    for match in _PHRASE.finditer(text):
        if any(a <= match.start() < b for a, b in taken):
            continue
        if match[0].endswith("__") and not match["target"]:  # the first `words`__ means the first __ target, and so on
            link = next(nameless, "")
            if link:
                links.append(Hyperlink(match.start(), match.end(), link if not link.endswith("_") else f"label:{_key(link[:-1])}"))
            continue
        name = _key(match["words"])
        target = (match["target"] or "").strip()
        if target.endswith("_"):
            target = targets.get(_key(target[:-1]), f"label:{_key(target[:-1])}")
        target = target or targets.get(name) or (f"label:{name}" if f"label:{name}" in anchors else f"title:{name}")
        links.append(Hyperlink(match.start(), match.end(), target))
    for match in _WORD.finditer(text):
        name = _key(match["word"])
        if name in targets or f"label:{name}" in anchors:
            links.append(Hyperlink(match.start(), match.end(), targets.get(name) or f"label:{name}"))
    fields = {m["name"].lower(): m["value"].strip() for m in _FIELD.finditer(text[:2000])}
    return dataclasses.replace(
        document, anchors=anchors, hyperlinks=tuple(sorted(links, key=lambda link: (link.start, link.end))), terms=tuple(_glossary(text)),
        version=fields.get("version", ""), updated=iso_date(next((fields[name] for name in ("last-updated", "updated", "revised", "date") if name in fields), "")),
    )  # fmt: skip


def _with_rows(document: Document, rows: Sequence[tuple[int, int]]) -> Document:
    """Table rows as blocks of their own, in place of the paragraph that they look like."""
    if not rows:
        return document
    blocks = [block for block in document.blocks if not any(a < block.end and block.start < b for a, b in rows)]
    blocks += [Block("row", start, end) for start, end in rows]
    return dataclasses.replace(document, blocks=tuple(sorted(blocks, key=lambda block: block.start)))


def _key(name: str) -> str:
    return " ".join(name.strip().strip("`").lower().split())


def _next_block(document: Document, offset: int) -> int:
    return next((block.start for block in document.blocks if block.start >= offset), offset)


def _glossary(text: str) -> list[tuple[int, int, int]]:
    """(start, end of a term, end of its definition) in every `.. glossary::`."""
    found = []
    for opening in re.finditer(r"^(?P<indent> *)\.\. glossary::.*\n", text, re.MULTILINE):
        deep = len(opening["indent"])
        stop = re.compile(rf"^ {{0,{deep}}}\S", re.MULTILINE).search(text, opening.end())
        end = stop.start() if stop else len(text)
        terms = list(_TERM.finditer(text, opening.end(), end))
        if not terms:
            continue
        least = min(len(m["indent"]) for m in terms)
        terms = [m for m in terms if len(m["indent"]) == least]
        for at, match in enumerate(terms):
            close = terms[at + 1].start() if at + 1 < len(terms) else end
            found.append((match.start("term"), match.end("term"), match.start() + len(text[match.start() : close].rstrip())))
    return found
