"""What a file is, told by its content. The name decides one thing only: whether a text is Markdown, reST or plain."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import PurePosixPath

from lab.corpus.validate import Refused

MAX_BYTES = 256 * 2**20  # of a file
MAX_UNPACKED = 512 * 2**20  # of all members of a packed file together
MAX_RATIO = 200  # unpacked to packed, from 16 MB unpacked on: a document is a few times smaller when packed, a bomb thousands of times
_ODF = "application/vnd.oasis.opendocument."
# Text that is no prose. A name is believed when it says so, since that refuses only.
_DATA = frozenset(
    """
    .json .jsonl .ndjson .csv .tsv .xml .svg .yaml .yml .toml .ini .cfg .conf .lock .css .js .mjs .ts .map .py .ipynb .sql .sh .c .h .java .go .rs
    .bib .tex .log .po .pot .properties .eml
    """.split()
)
_PACKED_NAMES = {".pdf": "pdf", ".docx": "docx", ".odt": "odt", ".epub": "epub"}
_HTML = re.compile(r"\s*(?:<\?xml[^>]*\?>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL)
_XML = re.compile(r"\s*<\?xml\b")


def kind(data: bytes, name: str) -> str:
    """The format of a file: `pdf`, `docx`, `odt`, `epub`, or `text` for whatever must be decoded first. Raises Refused for the rest."""
    if not data:
        raise Refused("empty: the file holds no byte")
    if len(data) > MAX_BYTES:
        raise Refused(f"too_large: {len(data) / 2**20:.0f} MB, the limit is {MAX_BYTES // 2**20} MB")
    if b"%PDF-" in data[:1024]:
        return "pdf"
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _packed(data)
    if data.startswith(bytes.fromhex("d0cf11e0a1b11ae1")):
        raise Refused("format: a binary Office file (doc, xls, ppt, or an encrypted docx): save it as DOCX without a password")
    if data.startswith(b"{\\rtf"):
        raise Refused("format: Rich Text Format: save it as DOCX or ODT")
    return "text"


def text_kind(text: str, name: str) -> str:
    """The format of decoded text: `html`, `markdown`, `rest` or `text`. Raises Refused for data, and where the name promises something packed."""
    ending = PurePosixPath(name).suffix.lower()
    if _HTML.match(text[:4096]):
        if ending in _PACKED_NAMES:
            raise Refused(f"mismatch: named {ending} but holds an HTML page, as servers send in place of a missing file")
        return "html"
    if ending in _PACKED_NAMES:
        raise Refused(f"mismatch: named {ending} but holds plain text")
    lower = PurePosixPath(name).name.lower()
    if lower.endswith((".md", ".markdown")):
        return "markdown"
    if lower.endswith((".rst", ".rst.txt")):
        return "rest"
    if ending in {".html", ".htm", ".xhtml"}:
        return "html"  # a fragment
    if ending in _DATA or _XML.match(text):
        raise Refused(f"format: data or code ({ending or 'XML'}), no text to read")
    return "text"


def _packed(data: bytes) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = set(archive.namelist())
            unpacked = sum(info.file_size for info in archive.infolist())
            if unpacked > MAX_UNPACKED or (unpacked > 16 * 2**20 and unpacked > MAX_RATIO * len(data)):
                raise Refused(f"bomb: {len(data) / 1000:,.0f} kB would unpack to {unpacked / 2**20:,.0f} MB")
            if any(info.flag_bits & 1 for info in archive.infolist()):
                raise Refused("encrypted: the file is packed with a password")
            if "mimetype" in names:
                mime = archive.read("mimetype")[:200].decode("ascii", "replace").strip()
                if mime == "application/epub+zip":
                    return "epub"
                if mime.startswith(_ODF + "text"):
                    return "odt"
                if mime.startswith(_ODF):
                    raise Refused(f"format: no reader for OpenDocument {mime.removeprefix(_ODF)}")
    except Refused:
        raise
    except Exception:  # zipfile lets many kinds through, from struct.error to NotImplementedError
        raise Refused("corrupt: the packed file cannot be opened") from None
    for folder, what in (("word/", "docx"), ("ppt/", "PowerPoint"), ("xl/", "Excel")):
        if any(member.startswith(folder) for member in names):
            if what == "docx":
                return what
            raise Refused(f"format: no reader for {what}")
    if "META-INF/container.xml" in names:
        return "epub"
    raise Refused("format: an archive (zip): unpack it first")


def name_of(data: bytes) -> str | None:
    """What `puremagic` takes a file for that is no text: a media type, None where it cannot tell."""
    import puremagic

    try:
        found = puremagic.magic_string(data[:65536])
    except (puremagic.PureError, ValueError):
        return None
    return next((str(match.mime_type) for match in found if match.mime_type), None)
