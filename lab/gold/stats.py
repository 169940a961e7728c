"""What a gold set favours, counted."""

from __future__ import annotations

from lab.records import GoldSet, Judgment
from lab.text import copied_share, copying_band


def bands(gold: GoldSet) -> dict[str, str]:
    """Question → `copied`, `natural` or `paraphrased`: as stored with it, else by the quote of its highest-graded, first-listed judgment; questions without one are left out."""
    best: dict[str, Judgment] = {}
    for judgment in gold.judgments:
        if judgment.question_id not in best or judgment.grade > best[judgment.question_id].grade:
            best[judgment.question_id] = judgment
    found = {}
    for q in gold.questions:
        if q.metadata.get("band"):
            found[q.question_id] = str(q.metadata["band"])
        elif q.question_id in best:
            found[q.question_id] = copying_band(copied_share(q.text, best[q.question_id].quote))
    return found


def by_kind(gold: GoldSet) -> list[tuple[str, ...]]:
    """Rows of kind, questions, questions a band, unanswerable, incomplete and hard ones, and the share (of those that know it) that the lexical arm ranks first."""
    known = bands(gold)
    rows = []
    for kind in sorted({q.kind for q in gold.questions}):
        asked = [q for q in gold.questions if q.kind == kind]
        of = [known.get(q.question_id, "") for q in asked]
        told = [bool(q.metadata["lexical_first"]) for q in asked if q.metadata.get("lexical_first") is not None]
        rows.append(
            (
                kind or "–", str(len(asked)), *(str(of.count(band)) for band in ("copied", "natural", "paraphrased")), str(sum(not q.answerable for q in asked)),
                str(sum(bool(q.metadata.get("incomplete")) for q in asked)), str(sum(bool(q.metadata.get("hard")) for q in asked)),
                f"{sum(told) / len(told):.2f}" if told else "–",
            )
        )  # fmt: skip
    return rows
