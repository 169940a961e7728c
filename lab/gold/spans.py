"""Gold sets from a table of spans, CSV or TSV: what a person writes by hand, and what most annotated sets can be turned into.

question   the question's text, or its id where --questions names a queries.jsonl       also: query-id, query, id
source     the document                                                                also: corpus-id, file, document
quote      what answers, word for word                                                 also: text, answer, span
start, end offsets of the quote, code points; where they are absent, or stand for another text, the quote is looked for in the collection
grade      1 where absent                                                              also: score
kind, split, answerable
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from lab.corpus.validate import Refused, decode
from lab.errors import CannotJudge, UsageError
from lab.gold.files import new_folder, save_gold
from lab.progress import say
from lab.records import Judgment, Question

_NAMES = {
    "question": ("question", "query-id", "query_id", "query", "qid", "id"), "source": ("source", "corpus-id", "corpus_id", "file", "document", "doc"),
    "quote": ("quote", "text", "answer", "span"), "start": ("start",), "end": ("end",), "grade": ("grade", "score"), "kind": ("kind",), "split": ("split",),
    "answerable": ("answerable",),
}  # fmt: skip
Texts = Callable[[Sequence[str]], Mapping[str, str]]  # source → stored text, of those that the collection has


def import_spans(
    path: Path, name: str, *, questions: Path | None = None, texts: Texts | None = None, to: Path | None = None, replace: bool = False
) -> Path:
    """Writes the gold set and returns its folder. `texts` looks documents up, where offsets are to be found or checked.

    A row without a quote is a question without an answer: unanswerable where `answerable` says so, else unjudged. Raises UsageError naming the line of what cannot be.
    """
    target = new_folder(name, to, replace)
    rows, columns = _rows(path)
    spoken = _questions(questions) if questions is not None else None
    sources = sorted({row[columns["source"]].strip() for _, row in rows if row[columns["source"]].strip()})
    known = texts(sources) if texts is not None else {}
    absent = [source for source in sources if texts is not None and source not in known]
    if absent:
        raise CannotJudge(f"{path} names {len(absent)} documents that the collection does not hold, as {absent[0]}: ingest them first.")
    asked: dict[str, Question] = {}
    ids: dict[str, str] = {}  # text of a question → its id, where the table holds texts
    judgments: list[Judgment] = []
    moved = 0
    for line, row in rows:

        def cell(column: str, row: Sequence[str] = row) -> str:
            return row[columns[column]].strip() if column in columns else ""

        word = cell("question")
        if not word:
            raise UsageError(f"{path} line {line} has no question.")
        if spoken is not None:
            if word not in spoken:
                raise UsageError(f"{path} line {line}: {questions} holds no question {word!r}.")
            question_id, text = word, spoken[word]
        else:
            question_id, text = ids.setdefault(word, f"q{len(ids) + 1:03}"), word
        answerable = cell("answerable").lower() not in {"false", "no", "0"}
        asked.setdefault(question_id, Question(question_id, text, cell("kind"), cell("split"), answerable))
        quote = row[columns["quote"]].strip("\r\n")
        if not quote.strip():
            continue
        if not asked[question_id].answerable or not answerable:
            raise UsageError(f"{path} line {line} quotes an answer to {word!r}, which is said to have none.")
        if not cell("source"):
            raise UsageError(f"{path} line {line} names no source.")
        start, end, found = _place(cell("source"), quote, cell("start"), cell("end"), known, f"{path} line {line}")
        moved += found
        grade = cell("grade") or "1"
        if not _whole(grade) or int(grade) < 1:
            raise UsageError(f"{path} line {line}: the grade {grade!r} is no whole number of at least 1.")
        judgments.append(Judgment(question_id, cell("source"), start, end, int(grade), quote))
    if not judgments:
        raise UsageError(f"{path} holds no quote: a table needs the columns question, source and quote.")
    if moved:
        say(f"{moved} of {len(judgments)} quotes were found in the collection, whose offsets the table lacks or has otherwise")
    save_gold(
        target, asked.values(), judgments,
        f"# {name}\n\nImported from the table `{path.name}`: {len(asked)} questions, {len(judgments)} judged spans. Who judged, and what a grade means, is told by those "
        "who made the table.\n",
    )  # fmt: skip
    return target


def _rows(path: Path) -> tuple[list[tuple[int, list[str]]], dict[str, int]]:
    """(line, cells) of the rows, and our name of a column → its place."""
    try:
        text = decode(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): name a CSV or TSV file.") from None
    except Refused as error:
        raise UsageError(f"{path} is no text ({error}): save it as UTF-8.") from None
    tabs = path.suffix.lower() in {".tsv", ".tab"} or "\t" in text.split("\n", 1)[0]
    try:
        # TSV files of annotations carry quotation marks as they are.
        table = list(csv.reader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE) if tabs else csv.reader(io.StringIO(text)))
    except csv.Error as error:
        raise UsageError(f"{path} is no table ({error}).") from None
    heads = [head.strip().lower() for head in table[0]] if table else []
    columns: dict[str, int] = {}
    for ours, theirs in _NAMES.items():
        place = next((heads.index(name) for name in theirs if name in heads), None)
        if place is not None:
            columns[ours] = place
    for needed in ("question", "source", "quote"):
        if needed not in columns:
            raise UsageError(f"{path} has no column {needed}: its first line must name question, source and quote (or {', '.join(_NAMES[needed])}).")
    body = [(line, row) for line, row in enumerate(table[1:], 2) if any(cell.strip() for cell in row)]
    for line, row in body:
        if len(row) != len(heads):
            raise UsageError(f"{path} line {line} has {len(row)} cells, the first line {len(heads)}.")
    return body, columns


def _questions(path: Path) -> dict[str, str]:
    """Id → text of a queries.jsonl."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): name a queries.jsonl behind --questions.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8: save it as UTF-8.") from None
    found = {}
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                record = json.loads(line)
                found[str(record["_id"])] = str(record["text"])
            except (ValueError, KeyError, TypeError):
                raise UsageError(f"{path} line {number} is no question: it needs the JSON keys _id and text.") from None
    return found


def _place(source: str, quote: str, start: str, end: str, known: Mapping[str, str], where: str) -> tuple[int, int, bool]:
    """[start, end) of a quote, and whether it had to be looked for."""
    given = (int(start), int(end)) if _whole(start) and _whole(end) else None
    text = known.get(source)
    if given is not None and given[1] - given[0] == len(quote) and (text is None or text[given[0] : given[1]] == quote):
        return *given, False
    if text is None:
        raise UsageError(
            f"{where}: "
            + ("start and end do not fit the quote" if given else "there are no offsets")
            + ": say -c COLLECTION, and the quote is looked for there."
        )
    times = text.count(quote)
    if times == 0:
        raise UsageError(f"{where}: the quote does not stand in {source} word for word: copy it from the document.")
    if times > 1:
        near = min((at for at in _all(text, quote)), key=lambda at: (abs(at - given[0]), at)) if given else None
        if near is None:
            raise UsageError(f"{where}: the quote stands {times} times in {source}: quote more of it, or give start and end.")
        return near, near + len(quote), True
    at = text.index(quote)
    return at, at + len(quote), True


def _whole(word: str) -> bool:
    return word.isascii() and word.isdecimal()


def _all(text: str, quote: str) -> list[int]:
    found, at = [], text.find(quote)
    while at >= 0:
        found.append(at)
        at = text.find(quote, at + 1)
    return found
