"""One file: unchanged, refused with a reason, or a document read within its limits."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from lab.corpus import readers, sniff
from lab.corpus.readers.worker import Worker
from lab.corpus.sources import File
from lab.corpus.validate import Refused
from lab.records import Document
from lab.store.ledger import FileRow

_LARGE = 200_000  # bytes; from here on a text too could take its parser long


@dataclass(frozen=True, slots=True)
class Outcome:
    """`document` None: the file is as it was. `digest` is the sha256 of its bytes."""

    document: Document | None
    digest: bytes
    size: int


def read(file: File, row: FileRow | None, worker: Worker, password: str | None) -> Outcome:
    """Reads a file, unless `row` says that it was read before, by this version of its reader, with the same bytes. Raises Refused."""
    try:
        size = file.path.stat().st_size
        if size > sniff.MAX_BYTES:
            raise Refused(f"too_large: {size / 2**20:.0f} MB, the limit is {sniff.MAX_BYTES // 2**20} MB")
        data = file.path.read_bytes()
    except OSError as error:
        raise Refused(f"unreadable: {error.strerror}") from None
    digest = hashlib.sha256(data).digest()
    if row is not None and row.content_hash == digest and row.status in {"indexed", "missing"} and _current(row):
        return Outcome(None, digest, size)
    kind, text = readers.format_of(data, file.path.name)
    if readers.FORMATS[kind].heavy or size > _LARGE:
        document = worker.read(file.source, data, kind, text, password)
    else:
        try:
            document = readers.read(file.source, data, kind, text)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:  # a fault of ours costs this file, not the others
            raise Refused(f"crash: the reader has a fault ({type(error).__name__}: {str(error)[:200]})") from None
    return Outcome(document, digest, size)


def _current(row: FileRow) -> bool:
    """Whether what is stored was read by the present version of its reader."""
    form = readers.FORMATS.get(row.format)
    return form is not None and row.extractor == f"{row.format}-{form.version}"
