"""What a gold set favours, counted."""

from __future__ import annotations

from lab.records import GoldSet, Question
from lab.text import copied_share, copying_band


def copied_band(gold: GoldSet, question: Question) -> str:
    """`copied`, `natural` or `paraphrased`, as stored with the question, else by the quote of its highest-graded judgment; empty where there is none."""
    stored = str(question.metadata.get("band", ""))
    if stored:
        return stored
    judged = [j for j in gold.judgments if j.question_id == question.question_id]
    return copying_band(copied_share(question.text, max(judged, key=lambda j: j.grade).quote)) if judged else ""


def by_kind(gold: GoldSet) -> list[tuple[str, ...]]:
    """Rows of kind, questions, questions a band, unanswerable, incomplete and hard ones, and the share (of those that know it) that the lexical arm ranks first."""
    best: dict[str, str] = {}
    for j in sorted(gold.judgments, key=lambda j: j.grade):
        best[j.question_id] = j.quote
    rows = []
    for kind in sorted({q.kind for q in gold.questions}):
        asked = [q for q in gold.questions if q.kind == kind]
        bands = [
            str(q.metadata.get("band") or (copying_band(copied_share(q.text, best[q.question_id])) if q.question_id in best else "")) for q in asked
        ]
        told = [bool(q.metadata["lexical_first"]) for q in asked if q.metadata.get("lexical_first") is not None]
        rows.append(
            (
                kind or "–", str(len(asked)), *(str(bands.count(band)) for band in ("copied", "natural", "paraphrased")), str(sum(not q.answerable for q in asked)),
                str(sum(bool(q.metadata.get("incomplete")) for q in asked)), str(sum(bool(q.metadata.get("hard")) for q in asked)),
                f"{sum(told) / len(told):.2f}" if told else "–",
            )
        )  # fmt: skip
    return rows
