"""What generators make questions of, and what they make: passages of a collection drawn by seed, and drafts of questions."""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lab.gold.copying import stems_of
from lab.records import Judgment
from lab.store import documents
from lab.store.collections import Collection
from lab.store.connect import Store


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk as it is asked about; `heading` is its path, outermost first."""

    key: int
    source: str
    n: int
    start: int
    end: int
    text: str
    heading: tuple[str, ...]
    title: str


@dataclass(frozen=True, slots=True)
class Draft:
    """A question that has not been sifted yet."""

    text: str
    kind: str
    judgments: tuple[Judgment, ...]  # question_id still empty
    passage: Passage | None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    answerable: bool = True


@dataclass(frozen=True, slots=True)
class Material:
    """The passages drawn, in an order that the seed decides; the stems of all passages; the number of documents."""

    passages: Sequence[Passage]
    passages_with: Mapping[str, int]
    documents: int
    chunks: int


def place(seed: int, *names: object) -> str:
    """Where something stands in the order of a seed: has nothing to do with what it is about, and is the same on every machine."""
    return hashlib.sha256("/".join(map(str, (seed, *names))).encode()).hexdigest()


def gather(store: Store, collection: Collection, most: int, seed: int) -> Material:
    """Draws at most `most` passages, and one of each document beside them where there are no more documents than that; one pass, memory by `most`."""
    heap: list[tuple[str, int]] = []  # the smallest places, negated by their digits' complement
    held: dict[int, tuple[str, Passage]] = {}
    first: dict[str, tuple[str, Passage]] = {}
    stems: Counter[str] = Counter()
    seen_documents: set[str] = set()
    chunks = 0
    for key, source, n, start, end, text, heading, title in documents.asked_about(store, collection):
        chunks += 1
        seen_documents.add(source)
        stems.update(stems_of(text))
        at = place(seed, source, n)
        passage = Passage(key, source, n, start, end, text, tuple(heading), title)
        if len(heap) < most:
            heapq.heappush(heap, (_reversed(at), key))
            held[key] = (at, passage)
        elif _reversed(at) > heap[0][0]:
            _, gone = heapq.heapreplace(heap, (_reversed(at), key))
            del held[gone]
            held[key] = (at, passage)
        if len(first) <= most and (source not in first or at < first[source][0]):
            first[source] = (at, passage)
    if len(first) <= most:
        for at, passage in first.values():
            held.setdefault(passage.key, (at, passage))
    ordered = [passage for _, passage in sorted(held.values(), key=lambda pair: pair[0])]
    return Material(ordered, stems, len(seen_documents), chunks)


def _reversed(at: str) -> str:
    """Hex digits whose order is turned round, so that a heap of the smallest keeps the largest on top."""
    return at.translate(str.maketrans("0123456789abcdef", "fedcba9876543210"))
