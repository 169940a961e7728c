"""reStructuredText, as far as structure goes: sections by adornment, literal blocks; the text stays as the author wrote it."""

from __future__ import annotations

from lab.corpus.readers.plain import structured
from lab.records import Document


def read(source: str, text: str) -> Document:
    return structured(source, text, "rest", numbered=False)
