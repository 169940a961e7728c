"""BEIR corpora: `corpus.jsonl`, one record a line with `_id`, `title`, `text`. A record is a document; its `_id` is the source."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path

from lab.errors import UsageError
from lab.records import Block, Document

_PARAGRAPH = re.compile(r"\S(?:.|\n(?![ \t]*(?:\n|\Z)))*(?<=\S)")


def storable(text: str) -> str:
    """`text` as Postgres can hold it: NUL becomes a space, a lone surrogate `?`."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")


def check(path: Path) -> None:
    """Raises UsageError for a line that is no record, and for an `_id` that stands twice."""
    seen: set[str] = set()
    for document, _ in records(path):
        if document.source in seen:
            raise UsageError(f"{path} holds the record {document.source!r} twice: keep one.")
        seen.add(document.source)


def records(path: Path) -> Iterator[tuple[Document, bytes]]:
    """(document, raw line) of every record, in file order. Raises UsageError naming the line that is no record."""
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
                source, text = str(record["_id"]), str(record["text"])
            except (ValueError, KeyError, TypeError):
                raise UsageError(f"{path} line {number} is no BEIR record: it needs the JSON keys _id and text.") from None
            source, text, title = storable(source), storable(text), storable(str(record.get("title") or ""))
            metadata = json.loads(storable(json.dumps(record.get("metadata"), ensure_ascii=False)).replace("\\u0000", " "))
            yield (
                Document(
                    source,
                    title,
                    text,
                    tuple(Block("paragraph", *match.span()) for match in _PARAGRAPH.finditer(text)),
                    "beir",
                    metadata if isinstance(metadata, dict) else {},
                ),
                line,
            )
