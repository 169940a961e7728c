"""Clusters: questions that are alike because they are about one document, or say one thing in other words. They are no independent evidence."""

from __future__ import annotations

from collections.abc import Sequence

from lab.records import Judgment, Question


def clusters(questions: Sequence[Question], judgments: Sequence[Judgment]) -> dict[str, str]:
    """Question → its cluster: that of its paraphrase parent, else the document of its highest-graded, first-listed judgment; a question without judgments is its own."""
    best: dict[str, Judgment] = {}
    for j in judgments:
        if j.question_id not in best or j.grade > best[j.question_id].grade:
            best[j.question_id] = j
    parents = {q.question_id: str(q.metadata["parent"]) for q in questions if q.metadata.get("parent")}

    def of(question: str) -> str:
        seen = {question}
        while question in parents and parents[question] not in seen:  # a circle of parents ends where it began
            question = parents[question]
            seen.add(question)
        if question in best:
            return f"document {best[question].source}"
        return f"question {question}"

    return {q.question_id: of(q.question_id) for q in questions}
