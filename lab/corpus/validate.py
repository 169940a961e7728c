"""From bytes to text, or a reason why not. A file is refused with one sentence, never read wrongly in silence."""

from __future__ import annotations

import codecs
import contextlib
import re

# Control characters that no text holds; a file with one of them is binary, whatever its name says.
_BINARY = frozenset(range(0x09)) | frozenset(range(0x0E, 0x1B)) | frozenset({0x7F})


_LEGACY = ("cp932", "euc_jp", "gb18030", "big5", "euc_kr", "cp1251", "koi8_r", "cp1253", "cp1255", "cp1256", "cp1250", "cp1254", "tis_620")


_CONTROL = re.compile("[\x00-\x08\x0e-\x1a\x7f]")
_NOTHING = " \t\n\r\f\v\u00a0\u00ad\u200b\u200c\u200d\u2060\ufeff"
_ODD = re.compile(r"(?<=[^\W\d_])[§¤¥¦¨©ª«¬®¯°±²³´µ¶¸¹º»¼½¾†‡•…‰‹›€™˜ˆ‚„ƒ](?=[^\W\d_])|(?<=[a-zß-ÿ])[ŠŒŽŸÀ-Þ](?=[a-zß-ÿ])")


class Refused(Exception):
    """The file cannot be read; the message says why."""


def decode(data: bytes) -> str:
    """The text of a file: UTF-8, UTF-16 or UTF-32 (with or without mark), else Windows-1252. Line ends become `\\n`."""
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
        wide = _wide(data)
        if wide is None:
            raise Refused("binary: the file holds NUL bytes")
        try:
            return _clean(data.decode(wide))
        except UnicodeDecodeError:
            raise Refused("binary: the file holds NUL bytes") from None
    if b"\x1b$B" in data or b"\x1b$@" in data:
        try:
            return _clean(data.decode("iso2022_jp"))
        except UnicodeDecodeError:
            raise Refused("encoding: marked as ISO-2022-JP but is not") from None
    try:
        return _clean(data.decode("utf-8"))
    except UnicodeDecodeError:
        pass
    try:  # UTF-16 surrogates written as UTF-8: pairs are characters, what stands alone is none
        wide_text = data.decode("utf-8", "surrogatepass").encode("utf-16", "surrogatepass")
        return _clean(wide_text.decode("utf-16", "replace"))
    except UnicodeDecodeError:
        pass
    if sum(byte in _BINARY for byte in data[:8192]) > 0:
        raise Refused("binary: the file holds control characters")
    return _clean(_legacy(data))


def _legacy(data: bytes) -> str:
    """Text in an encoding of one or two bytes a letter. Western text has few letters beyond ASCII; where they are many, charset-normalizer is asked, and
    where it is not sure the file is refused: a wrong guess would be stored as words that nobody wrote."""
    sample = data[:100_000]
    high = sum(byte >= 0x80 for byte in sample)
    letters = high + sum(65 <= byte <= 90 or 97 <= byte <= 122 for byte in sample)
    if high <= 0.25 * letters:
        try:
            western = data.decode("cp1252")
        except UnicodeDecodeError:
            western = ""
        # Signs between letters and capitals after small ones are what Mac Roman or DOS look like when read as Windows.
        if western and len(_ODD.findall(western[:100_000])) < 0.12 * high:
            return western
        if western:
            raise Refused("encoding: neither UTF-8 nor Windows-1252 (Mac Roman or DOS, it seems): convert it to UTF-8")
    from charset_normalizer import from_bytes

    best = from_bytes(data[:1_000_000], steps=10, chunk_size=4096, cp_isolation=list(_LEGACY)).best()
    if best is not None and best.percent_coherence >= 20:
        with contextlib.suppress(UnicodeDecodeError):
            text = data.decode(best.encoding)
            if len(_ODD.findall(text[:100_000])) < 0.12 * high:
                return text
    raise Refused("encoding: neither UTF-8 nor Windows-1252 nor surely another: convert it to UTF-8")


def _wide(data: bytes) -> str | None:
    """UTF-16 or UTF-32 without a mark, told by where the NUL bytes stand: in text with Latin letters, at every second (or three of every four) places."""
    sample = data[:8192]
    for width, encoding, at in ((4, "utf-32-le", (1, 2, 3)), (4, "utf-32-be", (0, 1, 2)), (2, "utf-16-le", (1,)), (2, "utf-16-be", (0,))):
        if len(data) % width or len(sample) < 2 * width:
            continue
        columns = [sample[i::width] for i in range(width)]
        shares = [column.count(0) / len(column) for column in columns]
        if all(share >= 0.4 if i in at else share <= 0.05 for i, share in enumerate(shares)):
            return encoding
    return None


def _clean(text: str) -> str:
    if "\0" in text:
        raise Refused("binary: the file holds NUL characters")
    if len(_CONTROL.findall(text)) > 8:
        raise Refused("binary: the file holds control characters")
    text = text.lstrip("\ufeff")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip(_NOTHING):
        raise Refused("empty: the file holds no text")
    return text
