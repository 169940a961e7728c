"""Which passages quote the source of an answer: for `primary_first`, which asks whether a summary pushes what it quotes out of its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lab.evaluation.coverage import Target
from lab.retrieval.context import Corpus
from lab.store import chunks, documents
from lab.text import words

RUN = 8  # words in a row that make a quotation


@dataclass(frozen=True, slots=True)
class Quoted:
    """Exact classes of the passages that hold the answer in its primary source, and of those that quote it from a source of lower authority."""

    primary: frozenset[bytes]
    quoting: frozenset[bytes]


def quoted(corpus: Corpus, wanted: Mapping[str, Sequence[Target]]) -> dict[str, Quoted]:
    """Question → who quotes whom, for the questions whose answer is quoted at all.

    The primary source is that of the highest-graded judgment, of the highest tier among equals, first listed among those. A passage of a document of lower tier
    quotes it when both share 8 words in a row.
    """
    tiers = documents.tiers(corpus.store, corpus.collection)
    best: dict[str, Target] = {}
    asked: dict[tuple[str, ...], list[str]] = {}
    for question, targets in wanted.items():
        if not targets:
            continue
        best[question] = max(targets, key=lambda t: (t.judgment.grade, tiers.get(t.judgment.source, 0)))
        for run in _runs(best[question].judgment.quote):
            asked.setdefault(run, []).append(question)
    found: dict[str, set[bytes]] = {}
    for class_id, source, text in chunks.classed_texts(corpus.store, corpus.collection):
        for run in _runs(text) & asked.keys():
            for question in asked[run]:
                if tiers.get(source, 0) < tiers.get(best[question].judgment.source, 0) and class_id not in best[question].classes:
                    found.setdefault(question, set()).add(class_id)
    return {question: Quoted(best[question].classes, frozenset(quoting)) for question, quoting in sorted(found.items())}


def _runs(text: str) -> set[tuple[str, ...]]:
    spoken = words(text)
    return {tuple(spoken[at : at + RUN]) for at in range(len(spoken) - RUN + 1)}
