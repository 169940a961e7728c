"""What the formats have in common: questions as lines of JSON, and judgments of whole documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from lab.corpus.validate import Refused, decode
from lab.errors import CannotJudge, UsageError
from lab.gold.files import question_of
from lab.progress import say
from lab.records import GoldSet, Judgment, Question

Texts = Callable[[Sequence[str]], Mapping[str, str]]  # source → stored text, of those that the collection has


def read_text(path: Path, mend: str) -> str:
    """The text of a file in whatever encoding it has; UsageError with the mend where it cannot be read."""
    try:
        return decode(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): {mend}.") from None
    except Refused as error:
        raise UsageError(f"{path} is no text ({error}): save it as UTF-8.") from None


def json_questions(path: Path) -> list[Question]:
    """The questions of a `queries.jsonl` (`_id`, `text`, `metadata`), in file order; UsageError naming the line that is none, or that repeats one."""
    found: dict[str, Question] = {}
    for number, line in enumerate(read_text(path, "name a queries.jsonl").split("\n"), 1):
        if line.strip():
            question = question_of(line, f"{path} line {number}")
            if question.question_id in found:
                raise UsageError(f"{path} line {number} repeats the question {question.question_id!r}: keep one.")
            found[question.question_id] = question
    return list(found.values())


def whole_documents(grades: Iterable[tuple[str, str, int]], texts: Mapping[str, str], where: str) -> tuple[list[Judgment], list[Judgment]]:
    """(judgments, refused) of (question, source, grade): each of a document as a whole; grade 0 = judged not to answer, below 0 = neither, left out.

    Documents that are absent or empty can be returned by no search: they are left out and counted. CannotJudge where that leaves nothing.
    """
    judgments: list[Judgment] = []
    refused: list[Judgment] = []
    absent: list[str] = []
    neither = 0
    for question_id, source, grade in grades:
        text = texts.get(source, "")
        if grade < 0:
            neither += 1
        elif text.strip():
            (judgments if grade else refused).append(Judgment(question_id, source, 0, len(text), grade, text if grade else ""))
        elif grade:
            absent.append(source)
    if neither:
        say(f"{neither} judgments have a grade below 0, which says neither that a document answers nor that it does not: they are left out.")
    if absent:
        say(f"{len(absent)} judgments name documents that are absent or empty, as {absent[0]}: they are left out.")
    if not judgments:
        raise CannotJudge(f"{where} holds no judgment of a document that is there: check that both belong together.")
    return judgments, refused


def by_document(gold: GoldSet) -> Iterator[tuple[str, str, int]]:
    """(question, source, grade) for formats that judge documents: the highest grade of its spans, 0 where all of them were judged not to answer."""
    best: dict[tuple[str, str], int] = {}
    for j in (*gold.judgments, *gold.refused):
        best[j.question_id, j.source] = max(best.get((j.question_id, j.source), 0), j.grade)
    yield from ((question, source, grade) for (question, source), grade in best.items())


def merged(gold: GoldSet) -> list[str]:
    """What formats of whole documents lose beside the places of spans."""
    rows = list(by_document(gold))
    many = len(gold.judgments) + len(gold.refused) - len(rows)
    judged = {question for question, _, _ in rows}
    without = sum(q.answerable and q.question_id not in judged for q in gold.questions)
    said = [f"{many} judgments of a document that was judged for the same question already are one with it"] if many else []
    return said + ([f"{without} questions without a judgment are not in the qrels"] if without else [])


def partial(gold: GoldSet, texts: Mapping[str, str]) -> int:
    """How many judgments are spans of a document rather than the whole of it: what a format of whole documents loses."""
    return sum(j.start > 0 or j.end < len(texts.get(j.source, "")) for j in gold.judgments)
