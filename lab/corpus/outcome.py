"""What an ingest did, as it is returned and printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What an ingest did. `files` counts indexed, unchanged, replaced, missing, retired and refused ones."""

    collection: str
    files: Mapping[str, int]
    refused: Sequence[tuple[str, str]]
    missing: Sequence[str]
    chunks: int
    links: Mapping[str, int]
    links_left_out: Mapping[str, int]
    embedded: int
    without_vector: int
    over_limit: int
    seconds: float
    dry_run: bool = False

    def to_json(self) -> dict[str, Any]:
        """The object of `lab ingest --json`."""
        return {
            "schema_version": 1,
            "collection": self.collection,
            "files": dict(self.files),
            "refused": [{"source": source, "reason": reason} for source, reason in self.refused],
            "missing": list(self.missing),
            "chunks": self.chunks,
            "links": dict(self.links),
            "links_left_out": dict(self.links_left_out),
            "embedded": self.embedded,
            "without_vector": self.without_vector,
            "over_limit": self.over_limit,
            "dry_run": self.dry_run,
            "seconds": round(self.seconds, 3),
        }
