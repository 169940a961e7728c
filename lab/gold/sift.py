"""Which drafts become questions, and what is said of those that do: each refusal has a code, nothing is dropped without one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lab.gold.copying import Copying, copying, stems_of
from lab.gold.cover import covers
from lab.gold.drafts import Draft, Material
from lab.records import ArmList, Hit
from lab.retrieval.context import Corpus
from lab.retrieval.search import ARMS, Shared
from lab.settings import Settings
from lab.store import arms as queries
from lab.text import content_stems, facts, words

_DANGLING = re.compile(
    r"\b(?:this|that|these|those|the\s+(?:above|following|same|said|present|preceding|latter|former))\s+(?:\w+\s+)?(?:section|rule|article|paragraph|chapter|table|figure|document|"
    r"procedure|passage|text|list|page|clause|manual|standard|sentence|case|subsection)s?\b|\b(?:above|below|hereof|herein|aforementioned|mentioned\s+here)\b|"
    r"\b(?:does|do|did|is|are|was|were|must|shall|should|may|can|could|will|would|has|have)\s+(?:it|they|he|she|this|that|these|those)\b"
    r"(?!\s+(?:allowed|permitted|possible|necessary|required|forbidden|safe|true|enough|\w+\s+(?:that|who|which|of)\b))",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"^\W*(?:who|whom|whose|what|when|where|why|which|how|is|are|was|were|do|does|did|can|could|may|might|must|shall|should|will|would|has|have|in|on|at|by|for|to|from|under|"
    r"within|define|explain|list|name|describe|say|tell)\b",
    re.IGNORECASE,
)
LIKE = 0.8  # share of the question's content words from which on another passage looks as if it answered
_ROUND_TRIP = 100


@dataclass(slots=True)
class Sifted:
    """A draft that is kept: its copying, the passages that look as if they answered too, whether no arm finds its passage."""

    draft: Draft
    copying: Copying | None = None
    rivals: list[str] = field(default_factory=list)
    hard: bool = False

    def metadata(self) -> dict[str, Any]:
        """What is stored with the question."""
        found = dict(self.draft.metadata)
        if self.copying is not None:
            found |= self.copying.to_json()
        if self.rivals:
            found |= {"incomplete": True, "to_review": self.rivals}
        if self.hard:
            found["hard"] = True
        return found


def reason(draft: Draft) -> str:
    """Why a draft is refused by itself: `quote_absent`, `too_short`, `not_a_question`, `dangling`, `heading_echo`; empty where it is not."""
    text = draft.text.strip()
    spoken = words(text)
    for judgment in draft.judgments:
        passage = draft.passage
        if passage is not None and passage.start <= judgment.start and judgment.end <= passage.end:
            if passage.text[judgment.start - passage.start : judgment.end - passage.start] != judgment.quote:
                return "quote_absent"
        elif judgment.end - judgment.start != len(judgment.quote):
            return "quote_absent"
    if len(spoken) < (2 if draft.kind == "keyword" else 3) or not content_stems(text):
        return "too_short"
    if draft.passage is not None and _echoes(text, draft.passage.heading):
        return "heading_echo"
    if draft.kind in {"keyword"}:
        return ""
    if not (text.endswith(("?", "?”", '?"')) or _ASKS.match(text)):
        return "not_a_question"
    quoted = re.sub(r"“[^”]*”", "“…”", text)  # what a question quotes may point where it likes
    return "dangling" if _DANGLING.search(quoted) else ""


def _echoes(question: str, heading: Sequence[str]) -> bool:
    """Whether a question has no content word that its passage's heading lacks."""
    if not heading:
        return False
    asked = set(content_stems(question))
    return (
        bool(asked)
        and asked <= set(content_stems(heading[-1])) | {"say", "requir", "mean", "defin"}
        and len(asked & set(content_stems(heading[-1]))) > 1
    )


class Seen:
    """Questions kept so far, so that one asked twice in other words is found: the same facts, and stems alike by 0.8 (Jaccard)."""

    def __init__(self) -> None:
        self._of: dict[tuple[tuple[str, ...], str], list[tuple[frozenset[str], str]]] = {}

    def twin(self, text: str) -> str:
        """The question that this one repeats; empty where there is none. The question is remembered."""
        stems, known = stems_of(text), facts(text)
        for stem in stems:
            for other, said in self._of.get((known, stem), ()):
                if len(stems & other) >= 0.8 * len(stems | other):
                    return said
        for stem in stems:
            self._of.setdefault((known, stem), []).append((stems, text))
        return ""


def examine(corpus: Corpus, draft: Draft, material: Material, settings: Settings, vector: Any) -> Sifted:
    """Searches a draft's question once, and says what the arms make of it. The gold stays what it was: what looks as if it answered is left to a person."""
    kept = Sifted(draft)
    if draft.passage is None:
        return kept
    shared = Shared(corpus, draft.text, vector)
    lists = shared.arms(settings)
    own = _own(lists, draft)
    kept.hard = all(rank > _ROUND_TRIP for rank in own.values())
    rivals: dict[int, Hit] = {}
    for arm in lists.values():
        for hit, rank in zip(arm.hits, arm.ranks, strict=True):
            if rank <= 3 and not _is_gold(hit, draft):
                rivals.setdefault(hit.key, hit)
    texts = {key: row.text for key, row in queries.texts(corpus.store, corpus.collection, sorted(rivals)).items()}
    asked = set(content_stems(draft.text))
    answer = {draft.passage.text} | {j.quote for j in draft.judgments}
    for key, hit in sorted(rivals.items()):
        text = texts.get(key, "")
        if text and text not in answer and asked and len(asked & set(content_stems(text))) >= LIKE * len(asked):
            kept.rivals.append(hit.chunk_id)
    first = own["lexical"] == 1 if "lexical" in own else None
    kept.copying = copying(draft.text, draft.passage.text, list(texts.values()), material.passages_with, first)
    return kept


def _own(lists: Mapping[str, ArmList], draft: Draft) -> dict[str, int]:
    """Arm → best rank of a passage that answers; 1,000,000 where it brings none."""
    return {
        name: min((rank for hit, rank in zip(arm.hits, arm.ranks, strict=True) if _is_gold(hit, draft)), default=1_000_000)
        for name, arm in lists.items()
        if name in ARMS
    }


def _is_gold(hit: Hit, draft: Draft) -> bool:
    return any(hit.source == j.source and covers(hit.start, hit.end, j) for j in draft.judgments)
