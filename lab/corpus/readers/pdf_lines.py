"""From a PDF page's characters to pieces of lines with their places and type size. Points, origin at the lower left."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

from lab.corpus.readers.compose import clean


@dataclass(frozen=True, slots=True)
class Line:
    """A piece of a line: what stands on one baseline without a wide gap."""

    text: str
    left: float
    bottom: float
    right: float
    top: float
    size: float
    bold: bool
    upright: bool = True


def page_lines(page: Any) -> tuple[list[Line], bool, bool]:
    """(pieces of lines in the order of the file, whether the page has ruled lines enough for a table, whether it has an image)."""
    import pypdfium2
    from pypdfium2 import raw

    rules, image = 0, False
    try:
        for item in page.get_objects(filter=[raw.FPDF_PAGEOBJ_PATH, raw.FPDF_PAGEOBJ_IMAGE], max_depth=3):
            if item.type == raw.FPDF_PAGEOBJ_IMAGE:
                image = True
            elif rules < 8:
                left, bottom, right, top = item.get_bounds()
                rules += (
                    (right - left > 20 and top - bottom < 2.5)
                    or (top - bottom > 6 and right - left < 2.5)
                    or (right - left > 20 and top - bottom > 6)
                )
    except pypdfium2.PdfiumError:
        pass
    try:
        text = page.get_textpage()
    except pypdfium2.PdfiumError:
        return [], False, image
    try:
        return _pieces(text, raw), rules >= 4, image
    finally:
        text.close()


def _pieces(page: Any, raw: Any) -> list[Line]:
    left, right, bottom, top = (ctypes.c_double() for _ in range(4))
    out: list[Line] = []
    chars: list[str] = []
    box: list[float] = []
    previous: tuple[float, float, float, float] | None = None
    seen: set[tuple[str, int, int]] = set()
    size, bold, spaced = 0.0, False, False
    last = 0
    flags = ctypes.c_int()
    name = ctypes.create_string_buffer(256)

    def close() -> None:
        nonlocal previous
        text = clean("".join(chars)).strip(" ")
        if text and box:
            tall = box[3] - box[1] > 3 * max(box[2] - box[0], 0.1) and len(text) > 2
            out.append(Line(text, box[0], box[1], box[2], box[3], size or box[3] - box[1], bold, not tall))
        chars.clear()
        box.clear()
        previous = None

    for index in range(page.count_chars()):
        code = raw.FPDFText_GetUnicode(page, index)
        if code in {10, 13}:
            close()
            continue
        char = chr(code) if 0 < code < 0x110000 and not 0xD800 <= code <= 0xDFFF else ""
        if code == 0xFFFE or code == 2:
            char = "-"  # pdfium's sign for a hyphen at the end of a line
        if not char:
            continue
        if char.isspace() or raw.FPDFText_IsGenerated(page, index) == 1:
            spaced = True
            continue
        raw.FPDFText_GetCharBox(page, index, left, right, bottom, top)
        here = (left.value, bottom.value, right.value, top.value)
        # Bold made by drawing a letter twice, a fraction of a point apart. The letters of a ligature share one box.
        spot = (char, round(here[0] / 1.5), round(here[1] / 1.5))
        if spot in seen and here != previous:
            spaced = False
            continue
        seen.add(spot)
        if previous is not None and chars:
            em = max(size, 4.0)
            apart = here[0] - previous[2] if here[0] >= previous[0] else previous[0] - here[2]
            level = min(here[3], box[3]) - max(here[1], box[1])
            if apart > 1.2 * em or level < -0.6 * em:
                close()
        if spaced and chars and previous is not None and (here[0] < previous[0] or _apart(page, raw, last, index) > 0.08 * max(size, 4.0)):
            chars.append(" ")
        spaced = False
        if not box:
            size = _size(page, index, raw)
            length = raw.FPDFText_GetFontInfo(page, index, name, 256, flags)
            font = name.raw[: max(min(length, 256) - 1, 0)].decode("utf-8", "replace").lower()
            bold = (
                raw.FPDFText_GetFontWeight(page, index) >= 600 or "bold" in font or "black" in font or font.endswith(("-bd", ",bd")) or "cmbx" in font
            )
            box.extend(here)
        else:
            box[0], box[1] = min(box[0], here[0]), min(box[1], here[1])
            box[2], box[3] = max(box[2], here[2]), max(box[3], here[3])
        chars.append(char)
        previous, last = here, index
    close()
    return out


def _apart(page: Any, raw: Any, a: int, b: int) -> float:
    """The gap between two characters by their advance, in points: the ink of an "i" is narrow in a font of even width."""
    first, second = raw.FS_RECTF(), raw.FS_RECTF()
    raw.FPDFText_GetLooseCharBox(page, a, first)
    raw.FPDFText_GetLooseCharBox(page, b, second)
    return float(second.left - first.right)


def _size(page: Any, index: int, raw: Any) -> float:
    """The type size in points, the text matrix included."""
    matrix = raw.FS_MATRIX()
    size = float(raw.FPDFText_GetFontSize(page, index))
    if raw.FPDFText_GetMatrix(page, index, matrix):
        scale = (matrix.c**2 + matrix.d**2) ** 0.5
        return round(size * scale, 2) if scale > 0 else size
    return size
