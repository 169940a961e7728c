"""The nouns of the lab as frozen dataclasses: what moves between the store, the corpus, retrieval and evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np

# ── corpus ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

BlockKind = Literal["heading", "paragraph", "code", "row"]


@dataclass(frozen=True, slots=True)
class Block:
    """A run `[start, end)` of a document's text that a reader recognised.

    `level` is the depth of a heading (1 = title), 0 for all other kinds. A `row` (of a table) or `code` block is cut only where it alone is too long.
    """

    kind: BlockKind
    start: int
    end: int
    level: int = 0


@dataclass(frozen=True, slots=True)
class Hyperlink:
    """`[start, end)` of a document's text that its author made a reference to `target`: a URL, a path relative to the source, `#anchor`, or both."""

    start: int
    end: int
    target: str


@dataclass(frozen=True, slots=True)
class Document:
    """A file as ingested. Every offset in the lab is a code point of `text`.

    What the file tells besides its text: `pages` are (offset, page number) in order, `anchors` the places with a name (name → offset), `hyperlinks`
    the references its author made, `terms` the spans of what is marked as a term being defined, each with the end of its definition.
    `source_url`, `version` and `updated` (ISO date) are empty where the file does not tell.
    """

    source: str
    title: str
    text: str
    blocks: tuple[Block, ...] = ()
    format: str = "text"
    metadata: Mapping[str, Any] = field(default_factory=dict)
    pages: tuple[tuple[int, int], ...] = ()
    anchors: Mapping[str, int] = field(default_factory=dict)
    hyperlinks: tuple[Hyperlink, ...] = ()
    terms: tuple[tuple[int, int, int], ...] = ()
    source_url: str = ""
    version: str = ""
    updated: str = ""
    extractor: str = ""


@dataclass(frozen=True, slots=True)
class Chunk:
    """The unit of retrieval: `[start, end)` of its document, word for word in `text`; `context` stands outside of it.

    `page` is that of its first character; `window` the span around it that is returned for reading (sentence-window) and never scored.
    """

    source: str
    n: int
    start: int
    end: int
    text: str
    context: str
    heading: tuple[str, ...] = ()
    page: int | None = None
    window: tuple[int, int] | None = None

    @property
    def chunk_id(self) -> str:
        return f"{self.source}::{self.n}"


@dataclass(frozen=True, slots=True)
class Mention:
    """A place in a text that cites something: `label` as written, `kind` (section, rule, article, table …) and its number."""

    kind: str
    number: str
    label: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Definition:
    """A place in a text that defines `term`; `[start, end)` is the defining sentence."""

    term: str
    start: int
    end: int


# ── retrieval ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Hit:
    """A row of an arm: a stored chunk with the arm's own score. `key` is the chunk's primary key in its collection."""

    key: int
    source: str
    n: int
    start: int
    end: int
    class_id: bytes
    authority: int
    score: float
    has_twins: bool = False

    @property
    def chunk_id(self) -> str:
        return f"{self.source}::{self.n}"


@dataclass(frozen=True, slots=True)
class ArmList:
    """What one arm returned for one question, best first, ties broken by (source, n).

    `ranks[i]` is the rank of `hits[i]`: with classes, the number of distinct exact classes up to and including its own first copy.
    `engine` says how the list was made (`hnsw`, `exact`, `bm25` …); `abstained` why it holds nothing on purpose.
    """

    arm: str
    engine: str
    hits: tuple[Hit, ...]
    ranks: tuple[int, ...]
    asked: int
    got: int
    stopped: Literal["enough", "exhausted", "limit", "off", "abstained"]
    abstained: str | None = None
    server: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    fallback: str | None = None  # why it was made another way than asked for
    coded: Mapping[int, float] = field(
        default_factory=dict
    )  # key → share of the codes and sections that the question names, as wholes, 0 to 1, rare ones 1


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage on its way through the stages; the order of the list is the ranking.

    `score` is that of the last scoring stage, `relevance` what MMR compares (a linked passage takes its parent's).
    `similarity` is the cosine to the question (null when the dense arm did not see it). `copies` are the keys of its exact twins.
    """

    hit: Hit
    score: float
    relevance: float
    similarity: float | None = None
    arm_ranks: Mapping[str, int] = field(default_factory=dict)
    copies: tuple[int, ...] = ()
    linked_by: str | None = None
    reranked: float | None = None  # what the reranker said, where it saw the passage

    @property
    def key(self) -> int:
        return self.hit.key


@dataclass(frozen=True, slots=True)
class Window:
    """What is read around a sentence: `[start, end)` of its document."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a passage comes from, as far as its file tells: None for what it does not. `last_updated` is an ISO date."""

    title: str
    page: int | None = None
    source_url: str | None = None
    document_version: str | None = None
    last_updated: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    window: Window | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """One returned passage. `score` orders this list only; `similarity` (cosine, −1 to 1) has an absolute meaning."""

    rank: int
    chunk_id: str
    source: str
    start: int
    end: int
    text: str
    context: str
    score: float
    similarity: float | None
    authority: int
    class_id: bytes = b""
    key: int = 0
    copies: tuple[str, ...] = ()
    linked_by: str | None = None
    provenance: Provenance | None = None
    parts: tuple[
        tuple[str, float], ...
    ] = ()  # what made the score: the arms' shares, then what each step added, or (rerank and after) put in its place


@dataclass(frozen=True, slots=True)
class ContextBlock:
    """A stretch of one document to be read as a whole: the passages in it, best rank first."""

    source: str
    start: int
    end: int
    text: str
    chunk_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ledger:
    """Where every candidate stood: its rank in each arm and after each stage.

    `columns` are the arms, then the stages in order of execution. `hits[i]` is the passage of row i of `ranks`, int32 `(passages, columns)`; 0 = not
    in that list.
    """

    columns: tuple[str, ...]
    hits: Sequence[Hit]
    ranks: np.ndarray
    notes: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)

    def rank(self, key: int, column: str) -> int | None:
        """The rank of a chunk in one column, None when it was not there."""
        for hit, row in zip(self.hits, self.ranks, strict=True):
            if hit.key == key:
                return int(row[self.columns.index(column)]) or None
        return None


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Why a list is empty or poorer than asked for: the stage that decided it, and one sentence."""

    stage: str
    message: str


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The answer to one question."""

    question: str
    results: tuple[Result, ...]
    diagnostic: Diagnostic | None
    ledger: Ledger
    arms: Mapping[str, ArmList] = field(default_factory=dict)
    beyond: tuple[Hit, ...] = ()  # passages that were cut off although their score is that of the last result

    def to_json(self, *, explain: bool = False) -> dict[str, Any]:
        """The object of `lab search --json`; with `explain` the ledger too: every passage that any arm or stage saw, with its ranks (null: not in that list)."""
        ledger = self.ledger
        told = {
            "ledger": {
                "columns": list(ledger.columns),
                "passages": [
                    {"chunk_id": hit.chunk_id, "ranks": [int(rank) or None for rank in row]}
                    for hit, row in zip(ledger.hits, ledger.ranks, strict=True)
                ],
                "arms": {
                    name: {"engine": arm.engine, "asked": arm.asked, "got": arm.got, "stopped": arm.stopped, "server": dict(arm.server)}
                    for name, arm in self.arms.items()
                },
                "notes": list(ledger.notes),
                "seconds": dict(ledger.seconds),
            }
        }
        return {
            "schema_version": 1,
            "question": self.question,
            "results": [
                {
                    "rank": r.rank,
                    "chunk_id": r.chunk_id,
                    "source": r.source,
                    "start": r.start,
                    "end": r.end,
                    "context": r.context,
                    "text": r.text,
                    "score": r.score,
                    **({"parts": dict(r.parts)} if explain else {}),
                    "similarity": r.similarity,
                    "authority": r.authority,
                    "copies": list(r.copies),
                    "linked_by": r.linked_by,
                    **_told(r.provenance),
                }
                for r in self.results
            ],
            "diagnostic": None if self.diagnostic is None else {"stage": self.diagnostic.stage, "message": self.diagnostic.message},
            **(told if explain else {}),
        }

    def context_blocks(self) -> tuple[ContextBlock, ...]:
        """The results as they are read: each with its window, those whose windows touch in one block, in the order of their best rank."""
        spans: dict[str, list[tuple[int, int, str, Result]]] = {}
        for r in self.results:
            window = r.provenance.window if r.provenance is not None else None
            spans.setdefault(r.source, []).append((*((window.start, window.end, window.text) if window else (r.start, r.end, r.text)), r))
        blocks: list[tuple[int, ContextBlock]] = []
        for source, members in spans.items():
            ordered = sorted(members, key=lambda member: (member[0], member[1], member[3].rank))
            while ordered:
                start, end, text, first = ordered.pop(0)
                inside = [first]
                while ordered and ordered[0][0] < end:
                    a, b, words, r = ordered.pop(0)
                    text += words[end - a :]
                    end = max(end, b)
                    inside.append(r)
                inside.sort(key=lambda r: r.rank)
                blocks.append((inside[0].rank, ContextBlock(source, start, end, text, tuple(r.chunk_id for r in inside))))
        return tuple(block for _, block in sorted(blocks, key=lambda pair: pair[0]))

    def to_frame(self) -> Any:
        """One row a result (pandas)."""
        import pandas as pd

        columns = [
            "rank", "chunk_id", "source", "start", "end", "context", "text", "score", "similarity", "authority", "copies", "linked_by",
            *_told(None),
        ]  # fmt: skip
        return pd.DataFrame(self.to_json()["results"], columns=columns)

    def _repr_html_(self) -> str:
        frame = self.to_frame()
        return str(frame[["rank", "chunk_id", "score", "similarity", "text"]].to_html(index=False)) if len(frame) else "<p>no results</p>"


def _told(provenance: Provenance | None) -> dict[str, Any]:
    """Provenance as keys of a result's JSON object."""
    p = provenance or Provenance("")
    return {
        "title": p.title,
        "page": p.page,
        "source_url": p.source_url,
        "document_version": p.document_version,
        "last_updated": p.last_updated,
        "metadata": dict(p.metadata),
        "window": None if p.window is None else {"start": p.window.start, "end": p.window.end, "text": p.window.text},
    }


# ── gold ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Judgment:
    """A span `[start, end)` of a document that answers a question, with its words and a grade ≥ 1."""

    question_id: str
    source: str
    start: int
    end: int
    grade: int
    quote: str


@dataclass(frozen=True, slots=True)
class Question:
    """What a user asks. `answerable` False: the collection is known not to hold an answer."""

    question_id: str
    text: str
    kind: str = ""
    split: str = ""
    answerable: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GoldSet:
    """Questions and judgments, in file order."""

    name: str
    questions: tuple[Question, ...]
    judgments: tuple[Judgment, ...]
    digest: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    refused: tuple[Judgment, ...] = ()  # judged, and found not to answer: grade 0

    def of(self, question_id: str) -> tuple[Judgment, ...]:
        return tuple(j for j in self.judgments if j.question_id == question_id)
