"""Readers: bytes → `Document`. One registry, one file a format.

`reader_for(path)` chooses by the ending of the name; a new format is one entry in `_BY_ENDING` and one module.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath

from lab.corpus.readers import markdown, plain, rest
from lab.records import Document

Reader = Callable[[str, str], Document]

# The longest ending wins: Sphinx ships its reST sources as *.rst.txt.
_BY_ENDING: dict[str, Reader] = {
    ".md": markdown.read,
    ".markdown": markdown.read,
    ".rst": rest.read,
    ".rst.txt": rest.read,
    ".txt": plain.read,
    ".text": plain.read,
}


def reader_for(name: str) -> Reader | None:
    """The reader for a file name, or None."""
    lower = PurePosixPath(name).name.lower()
    endings = sorted((ending for ending in _BY_ENDING if lower.endswith(ending)), key=len)
    return _BY_ENDING[endings[-1]] if endings else None


def known_endings() -> list[str]:
    return sorted(_BY_ENDING)
