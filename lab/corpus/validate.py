"""From bytes to text, or a reason why not. A file is refused with one sentence, never read wrongly in silence."""

from __future__ import annotations

import codecs

# Control characters that no text holds; a file with one of them is binary, whatever its name says.
_BINARY = frozenset(range(0x09)) | frozenset(range(0x0E, 0x1B)) | frozenset({0x7F})


class Refused(Exception):
    """The file cannot be read; the message says why."""


def decode(data: bytes) -> str:
    """The text of a file: UTF-8 (with or without mark), UTF-16 or UTF-32 with mark, else Windows-1252. Line ends become `\\n`."""
    if not data.strip():
        raise Refused("empty: the file holds no text")
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF32_LE, "utf-32"),
        (codecs.BOM_UTF32_BE, "utf-32"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if data.startswith(mark):
            try:
                return _clean(data.decode(encoding))
            except UnicodeDecodeError:
                raise Refused(f"encoding: the file is marked as {encoding} but is not") from None
    if b"\0" in data:
        raise Refused("binary: the file holds NUL bytes")
    try:
        return _clean(data.decode("utf-8"))
    except UnicodeDecodeError:
        pass
    if sum(byte in _BINARY for byte in data[:8192]) > 0:
        raise Refused("binary: the file holds control characters")
    try:
        return _clean(data.decode("cp1252"))
    except UnicodeDecodeError:
        raise Refused("encoding: the file is neither UTF-8 nor Windows-1252") from None


def _clean(text: str) -> str:
    if "\0" in text:
        raise Refused("binary: the file holds NUL characters")
    if sum(ord(ch) in _BINARY for ch in text[:8192]) > 8:
        raise Refused("binary: the file holds control characters")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise Refused("empty: the file holds no text")
    return text
