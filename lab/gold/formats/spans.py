"""Gold sets from a table of spans, CSV or TSV: what a person writes by hand, and what most annotated sets can be turned into.

question   the question's text, or its id where --questions names a queries.jsonl       also: query-id, query
id         its name; where it is absent, questions are named q001, q002 …               also: qid
source     the document                                                                also: corpus-id, file, document
quote      what answers, word for word                                                 also: text, answer, span
start, end offsets of the quote, code points; where they are absent, or stand for another text, the quote is looked for in the collection
grade      1 where absent; 0: judged, and does not answer                              also: score
kind, split, answerable; metadata (a JSON object)
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.errors import CannotJudge, UsageError
from lab.gold.files import new_folder, save_gold
from lab.gold.formats.shared import Texts, json_questions, read_text
from lab.progress import say
from lab.records import GoldSet, Judgment, Question
from lab.scratch import whole_file

_NAMES = {
    "question": ("question", "query-id", "query_id", "query", "qid", "id"), "id": ("id", "qid", "query-id", "query_id"), "source": ("source", "corpus-id", "corpus_id", "file", "document", "doc"),
    "quote": ("quote", "text", "answer", "span"), "start": ("start",), "end": ("end",), "grade": ("grade", "score"), "kind": ("kind",), "split": ("split",),
    "answerable": ("answerable",), "metadata": ("metadata",),
}  # fmt: skip
_HEAD = ("id", "question", "kind", "split", "answerable", "source", "start", "end", "grade", "quote", "metadata")


def read(path: Path, name: str, *, questions: Path | None = None, texts: Texts | None = None, to: Path | None = None, replace: bool = False) -> Path:
    """Writes the gold set and returns its folder. `texts` looks documents up, where offsets are to be found or checked.

    A row without a quote is a question without an answer: unanswerable where `answerable` says so, else unjudged. Raises UsageError naming the line of what cannot be.
    """
    target = new_folder(name, to, replace)
    rows, columns = _rows(path)
    spoken = {q.question_id: q for q in json_questions(questions)} if questions is not None else None
    sources = sorted({row[columns["source"]].strip() for _, row in rows if row[columns["source"]].strip()})
    known = texts(sources) if texts is not None else {}
    absent = [source for source in sources if texts is not None and source not in known]
    if absent:
        raise CannotJudge(f"{path} names {len(absent)} documents that the collection does not hold, as {absent[0]}: ingest them first.")
    asked: dict[str, Question] = {}
    ids: dict[str, str] = {}  # text of a question → its id, where the table holds texts
    judgments: list[Judgment] = []
    refused: list[Judgment] = []
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
            question_id, text, before = word, spoken[word].text, spoken[word]
        else:
            question_id, text, before = cell("id") or ids.setdefault(word, f"q{len(ids) + 1:03}"), word, Question("", "")
        answerable = cell("answerable").lower() not in {"false", "no", "0"} and before.answerable
        metadata = _metadata(cell("metadata"), f"{path} line {line}") or before.metadata
        asked.setdefault(question_id, Question(question_id, text, cell("kind") or before.kind, cell("split") or before.split, answerable, metadata))
        if asked[question_id].text != text:
            raise UsageError(f"{path} line {line} gives the id {question_id!r} to another question than before.")
        quote = row[columns["quote"]]
        if not (_whole(cell("start")) and _whole(cell("end")) and int(cell("end")) - int(cell("start")) == len(quote)):
            quote = quote.strip("\r\n")  # of a table written by hand
        if not quote.strip():
            continue
        grade = cell("grade") or "1"
        if not _whole(grade):
            raise UsageError(f"{path} line {line}: the grade {grade!r} is no whole number of at least 0.")
        if int(grade) and not (asked[question_id].answerable and answerable):
            raise UsageError(f"{path} line {line} quotes an answer to {word!r}, which is said to have none.")
        if not cell("source"):
            raise UsageError(f"{path} line {line} names no source.")
        start, end, found = _place(cell("source"), quote, cell("start"), cell("end"), known, f"{path} line {line}")
        moved += found
        (judgments if int(grade) else refused).append(Judgment(question_id, cell("source"), start, end, int(grade), quote))
    if not judgments and all(q.answerable for q in asked.values()):
        raise UsageError(f"{path} holds no quote: a table needs the columns question, source and quote.")
    if moved:
        say(f"{moved} of {len(judgments)} quotes were found in the collection, whose offsets the table lacks or has otherwise")
    save_gold(
        target, asked.values(), judgments,
        f"# {name}\n\nImported from the table `{path.name}`: {len(asked)} questions, {len(judgments)} judged spans. Who judged, and what a grade means, is told by those "
        "who made the table.\n",
        refused=refused,
    )  # fmt: skip
    return target


def _rows(path: Path) -> tuple[list[tuple[int, list[str]]], dict[str, int]]:
    """(line, cells) of the rows, and our name of a column → its place."""
    text = read_text(path, "name a CSV or TSV file")
    tabs = path.suffix.lower() in {".tsv", ".tab"} or "\t" in text.split("\n", 1)[0]
    try:
        # TSV files of annotations carry quotation marks as they are.
        csv.field_size_limit(max(csv.field_size_limit(), len(text)))  # a whole document may be one quote
        reader = (
            csv.reader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE)
            if tabs
            else csv.reader(io.StringIO(text), delimiter=_delimiter(text))
        )
        table, lines = [], []
        for row in reader:
            table.append(row)
            lines.append(reader.line_num)
    except csv.Error as error:
        raise UsageError(f"{path} is no table ({error}).") from None
    heads = [head.strip().lower() for head in table[0]] if table else []
    columns: dict[str, int] = {}
    for ours, theirs in _NAMES.items():
        place = next((heads.index(name) for name in theirs if name in heads), None)
        if place is not None and place not in columns.values():
            columns[ours] = place
    for needed in ("question", "source", "quote"):
        if needed not in columns:
            raise UsageError(f"{path} has no column {needed}: its first line must name question, source and quote (or {', '.join(_NAMES[needed])}).")
    body = [(line, row) for line, row in zip(lines[1:], table[1:], strict=True) if any(cell.strip() for cell in row)]
    for line, row in body:
        if len(row) != len(heads):
            raise UsageError(f"{path} line {line} has {len(row)} cells, the first line {len(heads)}.")
    return body, columns


def _delimiter(text: str) -> str:
    """A semicolon where the first line has those and no comma, as spreadsheets of many countries write it."""
    first = text.split("\n", 1)[0]
    return ";" if ";" in first and "," not in first else ","


def _metadata(cell: str, where: str) -> dict[str, Any]:
    try:
        value = json.loads(cell) if cell else {}
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise UsageError(f"{where}: the metadata {cell[:40]!r} is no JSON object.")
    return value


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


def write(gold: GoldSet, to: Path) -> list[str]:
    """Writes a CSV file, a row a judgment, that `read` takes back as it was; a question without judgments has a row without a quote. Loses nothing but the README."""
    if to.exists():
        raise UsageError(f"{to} exists: name a file that does not.")
    if to.suffix.lower() in {".tsv", ".tab"}:
        raise UsageError(f"{to}: a table with commas is written, and a file of that ending would be read with tabs: name a .csv.")
    table = io.StringIO()
    rows = csv.writer(table, lineterminator="\n")
    rows.writerow(_HEAD)
    named = bool(gold.metadata.get("imported_splits"))
    of: dict[str, list[Judgment]] = {}
    for j in (*gold.judgments, *gold.refused):
        of.setdefault(j.question_id, []).append(j)
    for q in gold.questions:
        metadata = json.dumps(q.metadata, ensure_ascii=False) if q.metadata else ""
        first = (q.question_id, q.text, q.kind, q.split if named else "", "true" if q.answerable else "false")
        spans: list[tuple[object, ...]] = [(j.source, j.start, j.end, j.grade, j.quote) for j in of.get(q.question_id, ())]
        for span in spans or [("",) * 5]:
            rows.writerow((*first, *span, metadata))
    whole_file(to, table.getvalue())
    return []
