"""PDF: the text layer in reading order, with page numbers, headings and tables. Nothing is drawn, no script is run, nothing is fetched.

pypdfium2 gives the characters with their places (`pdf_lines` makes lines of them, `pdf_page` puts a page's lines in order); headings are known by
the document's outline, by size, or by a number in bold; lines that return at the same height from page to page are running heads. Where a page
has ruled lines, pdfplumber looks for tables.
"""

from __future__ import annotations

import functools
import io
import re
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from lab.corpus.readers.compose import Composer, as_metadata, clean, iso_date, table_rows
from lab.corpus.readers.pdf_lines import Line, page_lines
from lab.corpus.readers.pdf_page import in_order, numbered_apart, paragraphs, running_heads
from lab.corpus.readers.tables import rows_as_sentences
from lab.corpus.validate import Refused
from lab.records import Document

MAX_PAGES = 5_000
_TABLE_SECONDS = 45.0  # pdfplumber is slow; pages beyond this budget keep their tables as lines
_NUMBERED = re.compile(r"(?:(?:chapter|section|article|part|annex|appendix|§)\s+)?((?:\d{1,3}|[A-Z])(?:[.\-–]\d{1,3}){0,5})[.)]?\s+\S", re.IGNORECASE)
_LEADER = re.compile(r"(?:\.\s?){5,}\s*(?P<page>[ivxlc]+|[A-Z]?-?\d+)?\s*$|…{2,}\s*(?P<page2>\d+)?\s*$")
_PAGE_ALONE = re.compile(r"(?:\d{1,4}|[ivxlc]{1,6})$")
_ENDS_IN_PAGE = re.compile(r"\s(?:\d{1,4}|[ivxlc]{1,6})\s*$")
_CONTENTS = re.compile(r"(?i)\s*(?:table of )?contents(?:\s*[-—(]?\s*continued\)?)?\s*$")
_NO_TITLE = re.compile(r"(?i)^\s*(?:untitled|microsoft word|powerpoint|document\d*\s*$)|\.(?:docx?|indd|qxd|pdf|tex|dvi|pptx?|xlsx?|rtf|odt|fm)\b")
_VERSION = re.compile(r"\b(?:Version|Release|Revision|Rev\.)\s*:?\s+(v?\d[\w.:+~-]*[\w])")
_BULLET = re.compile(r"^[•‣◦▪●○■□–—*·-]\s+|^\(?(?:\d{1,2}|[a-z])[.)]\s+")


def read(source: str, data: bytes, password: str | None = None) -> Document:
    import pypdfium2

    try:
        opened = pypdfium2.PdfDocument(data, password=password)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise Refused("encrypted: the PDF needs " + ("another password" if password else "a password: give it with --password")) from None
        raise Refused("corrupt: the PDF cannot be opened") from None
    try:
        return _read(source, data, opened, password)
    finally:
        opened.close()


def _read(source: str, data: bytes, opened: Any, password: str | None) -> Document:
    count = len(opened)
    if count > MAX_PAGES:
        raise Refused(f"too_large: {count} pages, the limit is {MAX_PAGES}")
    pages: list[list[Line]] = []
    sizes: list[tuple[float, float]] = []
    ruled: list[int] = []
    broken = images = 0
    for number in range(count):
        try:
            page = opened[number]
        except Exception:  # a damaged page; the others are still worth reading
            broken += 1
            pages.append([])
            sizes.append((1.0, 1.0))
            continue
        lines, has_rules, has_image = page_lines(page)
        images += has_image and not lines
        if has_rules:
            ruled.append(number)
        pages.append(lines)
        sizes.append(page.get_size())
        page.close()
    if not any(lines for lines in pages):
        if broken == count:
            raise Refused("corrupt: no page of the PDF can be read")
        raise Refused(f"no_text: {count} pages without a text layer{' (images only)' if images else ''}: run OCR first")
    composer = Composer(source, "pdf")
    about = opened.get_metadata_dict()
    composer.updated = iso_date(about.get("ModDate")) or iso_date(about.get("CreationDate"))
    composer.metadata = as_metadata(
        {
            "author": clean(about.get("Author", "")),
            "subject": clean(about.get("Subject", "")),
            "keywords": clean(about.get("Keywords", "")),
            "pages": count,
        }
    )
    if broken or images:
        composer.metadata["pages_without_text"] = broken + images
    first = " ".join(line.text for lines in pages[:2] for line in lines)
    version = _VERSION.search(first)
    composer.version = version[1] if version else ""

    heads = running_heads(pages, sizes)
    kept = [[line for at, line in enumerate(lines) if (number, at) not in heads] for number, lines in enumerate(pages)]
    tables = _tables(data, ruled, sizes, password)
    _compose(composer, kept, tables, _outline(opened))
    if not composer.length:
        raise Refused(f"no_text: {count} pages without a text layer: run OCR first")
    title = clean(about.get("Title") or "").strip()
    composer.title = title if title and not _NO_TITLE.search(title) else _largest(pages[0] if pages else [])
    return composer.document()


def _largest(lines: Sequence[Line]) -> str:
    """The words in the largest type of the first page, where that is larger than the rest."""
    wordy = [line for line in lines if line.upright and sum(ch.isalpha() for ch in line.text) >= 3 and not _CONTENTS.match(line.text)]
    if not wordy:
        return ""
    most = max(line.size for line in wordy)
    found = [line for line in wordy if line.size >= most - 0.3]
    text = " ".join(line.text for line in found)
    usual = statistics.median(line.size for line in wordy)
    return text[:200] if len(text) <= 300 and (most >= 1.12 * usual or len(wordy) == 1) else ""


def _outline(opened: Any) -> dict[int, dict[str, int]]:
    """Page → key of a title in the PDF's bookmarks → its level, from 1."""
    found: dict[int, dict[str, int]] = {}
    try:
        for item in opened.get_toc(max_depth=12):
            destination = item.get_dest()
            page = destination.get_index() if destination is not None else None
            if page is not None and item.get_title():
                found.setdefault(page, {})[_key(item.get_title())] = item.level + 1
    except Exception:  # a damaged outline is no reason to lose the text
        return {}
    return found


def _key(title: str) -> str:
    """Letters and digits of a title, its number left out."""
    bare = re.sub(
        r"^\s*(?:(?i:chapter|section|article|part|annex|appendix)\s+)?(?:\d+(?:\.\d+)*|[A-Z](?:\.\d+)+|[A-Z](?=[.):]))[.):]?\s+(?=\S)", "", title
    )
    return "".join(ch for ch in (bare or title).casefold() if ch.isalnum())


def _compose(
    composer: Composer,
    pages: Sequence[Sequence[Line]],
    tables: dict[int, list[tuple[tuple[float, ...], list[list[str]]]]],
    outline: dict[int, dict[str, int]],
) -> None:
    weights: Counter[float] = Counter()
    for lines in pages:
        for line in lines:
            weights[round(line.size * 2) / 2] += len(line.text)
    body = weights.most_common(1)[0][0] if weights else 10.0
    large = sorted({round(line.size) for lines in pages for line in lines if line.size >= body * 1.12 and len(line.text) < 160}, reverse=True)
    words = _vocabulary(pages)
    for number, lines in enumerate(pages):
        composer.page(number + 1)
        boxes = tables.get(number, [])
        free = [line for line in lines if not any(_inside(line, box) for box, _ in boxes)]
        items: list[tuple[str, Any]] = []
        placed = [False] * len(boxes)
        columns = in_order(free)
        if _is_contents([line for column in columns for line in column]):
            lines = [line for column in columns for line in column]
            mostly = sum(bool(_LEADER.search(line.text)) for line in lines) >= 0.4 * len(lines)
            columns = [] if mostly else [[line for line in column if not _of_contents(line)] for column in columns]
        known = outline.get(number, {})
        for group in numbered_apart(paragraphs(columns, functools.partial(_level, body=body, large=large, known=known))):
            for at, (box, rows) in enumerate(boxes):
                if not placed[at] and group.lines[0].bottom < box[1]:
                    placed[at] = True
                    items.append(("table", rows))
            items.append(("lines", group))
        items += [("table", rows) for at, (_, rows) in enumerate(boxes) if not placed[at]]
        for what, content in items:
            if what == "table":
                for sentence in rows_as_sentences(content):
                    composer.add("row", sentence)
                continue
            text = _joined(content.lines, words)
            if content.level:
                composer.add("heading", text.replace("\n", " "), level=content.level)
            else:
                composer.add("paragraph", text, item=bool(_BULLET.match(text)))


def _is_contents(lines: Sequence[Line]) -> bool:
    """Whether a page is one of a table of contents: many lines lead by dots to a page number. On a form they lead to nothing."""
    leaders = [match for line in lines if (match := _LEADER.search(line.text))]
    numbers = sum(bool(match["page"] or match["page2"]) for match in leaders) + sum(bool(_PAGE_ALONE.fullmatch(line.text.strip())) for line in lines)
    return len(leaders) >= 3 and len(leaders) >= 0.2 * len(lines) and numbers >= 0.5 * len(leaders)


def _of_contents(line: Line) -> bool:
    text = line.text.strip()
    return bool(_LEADER.search(text) or _ENDS_IN_PAGE.search(text) or _CONTENTS.match(text) or _PAGE_ALONE.fullmatch(text))


def _level(line: Line, body: float, large: Sequence[int], known: dict[str, int]) -> int:
    """The heading level of a line, 0 for none."""
    text = line.text.strip()
    letters = sum(ch.isalpha() for ch in text)
    if letters < 2 or len(text) > 200 or not line.upright:  # a stamp in the margin heads nothing
        return 0
    if known:
        level = known.get(_key(text))
        if level:
            return level
    numbered = _NUMBERED.match(text)
    if line.size >= body * 1.12:
        if numbered:
            return numbered[1].count(".") + numbered[1].count("-") + numbered[1].count("–") + 1
        return min(1 + large.index(round(line.size)), 6) if round(line.size) in large else 6
    if line.bold and numbered and len(text) <= 120 and not text.endswith((".", ",", ";")):
        return numbered[1].count(".") + numbered[1].count("-") + numbered[1].count("–") + 1
    return 0


def _vocabulary(pages: Sequence[Sequence[Line]]) -> Counter[str]:
    return Counter(word for lines in pages for line in lines for word in re.findall(r"[^\W\d_]+(?:-[^\W\d_]+)*", line.text.lower()))


def _joined(lines: Sequence[Line], words: Counter[str]) -> str:
    """The lines of a paragraph as running text; a word divided at a line's end is put together unless the hyphen is its own."""
    out = ""
    for line in lines:
        text = line.text.strip()
        if not out:
            out = text
            continue
        match = re.search(r"([^\W\d_]+)[-\u2010\u00ad\x02\ufffe]$", out)
        follow = re.match(r"[^\W\d_]+", text)
        if match and follow and follow[0][0].islower():
            whole, divided = (match[1] + follow[0]).lower(), f"{match[1]}-{follow[0]}".lower()
            hyphen = words[divided] > words[whole]
            out = out[:-1] + ("-" if hyphen else "") + text
        else:
            out += " " + text
    return out.replace("\x02", "-").replace("\ufffe", "-")


def _inside(line: Line, box: tuple[float, ...]) -> bool:
    x, y = (line.left + line.right) / 2, (line.bottom + line.top) / 2
    return box[0] <= x <= box[2] and box[1] <= y <= box[3]


def _tables(
    data: bytes, ruled: Sequence[int], sizes: Sequence[tuple[float, float]], password: str | None
) -> dict[int, list[tuple[tuple[float, ...], list[list[str]]]]]:
    """Page → (box (left, bottom, right, top) in points, rows) of its ruled tables."""
    if not ruled:
        return {}
    import logging

    import pdfplumber

    logging.getLogger("pdfminer").setLevel(logging.CRITICAL)
    found: dict[int, list[tuple[tuple[float, ...], list[list[str]]]]] = {}
    start = time.monotonic()
    try:
        with pdfplumber.open(io.BytesIO(data), password=password or "") as opened:
            for number in ruled:
                if time.monotonic() - start > _TABLE_SECONDS:
                    break
                page = opened.pages[number]
                width, height = sizes[number]
                if page.rotation or abs(float(page.width) - width) > 1 or abs(float(page.height) - height) > 1 or page.bbox[0] or page.bbox[1]:
                    continue
                for table in page.find_tables():
                    rows = table_rows([[cell or "" for cell in row] for row in table.extract() or []])
                    cells = [cell for row in rows for cell in row]
                    if len(rows) < 2 or len(rows[0]) < 2 or statistics.mean(bool(cell) for cell in cells) < 0.5 or max(map(len, cells)) > 1500:
                        continue
                    left, top, right, bottom = table.bbox
                    found.setdefault(number, []).append(((left, height - bottom, right, height - top), rows))
                page.close()
    except Exception:  # pdfminer is stricter than pdfium: then the tables stay lines
        return found
    return found
