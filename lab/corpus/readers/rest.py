"""reStructuredText, as far as structure goes: sections by adornment, literal blocks, labels, references; the text stays as the author wrote it."""

from __future__ import annotations

import dataclasses
import re

from lab.corpus.readers.plain import structured
from lab.records import Document, Hyperlink

_LABEL = re.compile(r"^ *\.\. _(?P<name>`[^`\n]+`|[^:\n`]+):[ \t]*(?P<target>\S.*)?$", re.MULTILINE)
_ROLE = re.compile(r":(?P<role>ref|numref|doc|term|any|std:ref|std:doc):`(?:[^`<]*<(?P<inner>[^`>]+)>|(?P<plain>[^`]+))`")
_PHRASE = re.compile(r"`(?P<words>[^`<\n]*(?:\n[^`<\n]*)?)(?:<(?P<target>[^`>\n]+)>)?`__?")
_WORD = re.compile(r"(?<![\w`])(?P<word>[A-Za-z0-9][\w.-]*)_(?![\w_`])")
_TERM = re.compile(r"^(?P<indent> +)(?P<term>\S.*)\n(?P=indent) +\S", re.MULTILINE)
_FIELD = re.compile(r"^:(?P<name>[A-Za-z][\w -]*):[ \t]+(?P<value>\S.*)$", re.MULTILINE)


def read(source: str, text: str) -> Document:
    """Labels (`.. _name:`) become anchors, roles and references hyperlinks: `:ref:` to a label of the collection, `:doc:` to a document,
    a phrase to a label or section title of its own document or to a URL. `.. glossary::` lists its terms."""
    document = structured(source, text, "rest", numbered=False)
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
    for match in _PHRASE.finditer(text):
        if any(a <= match.start() < b for a, b in taken):
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
        version=fields.get("version", ""),
    )  # fmt: skip


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
