"""Readers: bytes → `Document`. One registry, one file a format; what a file is, `sniff` tells by its content.

A new format is one entry in `FORMATS`, one module, and a sign in `sniff`.
"""

from __future__ import annotations

import dataclasses
import importlib
from dataclasses import dataclass

from lab.corpus import sniff
from lab.corpus.readers.plain import stem_title
from lab.corpus.validate import Refused, decode
from lab.records import Document


@dataclass(frozen=True, slots=True)
class Format:
    """A reader: `module.read`, given the decoded text or the bytes. `version` rises with every change of what it stores. A `heavy` one is run in a
    process of its own, with a limit on its time and memory."""

    module: str
    version: int
    binary: bool = False
    heavy: bool = False
    takes_password: bool = False


FORMATS: dict[str, Format] = {
    "markdown": Format("markdown", 3),
    "rest": Format("rest", 3),
    "text": Format("plain", 2),
    "html": Format("html", 2, binary=True, heavy=True),
    "pdf": Format("pdf", 1, binary=True, heavy=True, takes_password=True),
    "docx": Format("docx", 2, binary=True, heavy=True),
    "odt": Format("odt", 2, binary=True, heavy=True),
    "epub": Format("epub", 2, binary=True, heavy=True),
}


def format_of(data: bytes, name: str) -> tuple[str, str]:
    """(name of the format, decoded text or ""). Raises Refused where no reader takes the file."""
    kind = sniff.kind(data, name)
    if kind != "text":
        return kind, ""
    try:
        text = decode(data)
    except Refused as refusal:
        if str(refusal).startswith("encoding") and sniff.text_kind(data[:4096].decode("latin-1"), name) == "html":
            return "html", ""  # its head says in which encoding it is
        known = sniff.name_of(data) if str(refusal).startswith(("binary", "encoding")) else None
        if known and not known.startswith("text/"):
            raise Refused(f"format: no reader for {known}") from None
        raise
    return sniff.text_kind(text, name), text


def read(source: str, data: bytes, kind: str, text: str, password: str | None = None) -> Document:
    """The document in a file of that format. Raises Refused."""
    form = FORMATS[kind]
    module = importlib.import_module(f"lab.corpus.readers.{form.module}")
    if form.takes_password:
        document: Document = module.read(source, data, password)
    elif kind == "html":
        document = module.read(source, module.decoded(data))
    else:
        document = module.read(source, data if form.binary else text)
    if not document.text.strip() or (kind == "markdown" and not document.blocks):  # front matter alone is no text
        raise Refused("empty: the file holds no text")
    return dataclasses.replace(document, title=document.title or stem_title(source), extractor=f"{kind}-{form.version}")
