"""Gold sets from other people's files."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

from lab.config import home
from lab.corpus.readers import beir
from lab.errors import UsageError, unknown
from lab.gold.files import save_gold
from lab.progress import say
from lab.records import Judgment, Question


def import_beir(path: Path, name: str, split: str, to: Path | None = None, *, replace: bool = False) -> Path:
    """A BEIR folder (`corpus.jsonl`, `queries.jsonl`, `qrels/<split>.tsv`) as a gold set: each relevant record is judged as a whole.

    A qrels score ≤ 0 is no judgment. Judged records without text cannot be returned by any search; they are left out and counted.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise UsageError(f"{name!r} cannot name a gold set: use letters, digits, dots, - and _.")
    target = (to or home() / "gold") / name
    if target.exists() and not replace:
        raise UsageError(f"{target} exists: name another gold set behind --as, or say --replace.")
    for file in ("corpus.jsonl", "queries.jsonl"):
        if not (path / file).is_file():
            raise UsageError(f"{path / file} does not exist: a BEIR folder holds corpus.jsonl, queries.jsonl and qrels/*.tsv.")
    qrels = path / "qrels" / f"{split}.tsv"
    if not qrels.is_file():
        raise unknown("split", split, [p.stem for p in sorted((path / "qrels").glob("*.tsv"))])
    grades: dict[tuple[str, str], int] = {}
    with qrels.open(encoding="utf-8", newline="") as handle:
        for number, row in enumerate(csv.reader(handle, delimiter="\t"), 1):
            if not row or (number == 1 and not row[-1].lstrip("-").isdigit()):
                continue
            try:
                grades[row[0], row[1]] = int(row[2])
            except (ValueError, IndexError):
                raise UsageError(f"{qrels} line {number} is no judgment: it needs query-id, corpus-id and score, tab-separated.") from None
    wanted = {source for (_, source), grade in grades.items() if grade > 0}
    texts = {document.source: document.text for document, _ in beir.records(path / "corpus.jsonl") if document.source in wanted}
    asked = {question for question, _ in grades}
    questions = []
    with (path / "queries.jsonl").open(encoding="utf-8") as handle:
        for number, line in enumerate(handle, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
                question = Question(beir.storable(str(record["_id"])), beir.storable(str(record["text"])), split=split)
            except (ValueError, KeyError, TypeError):
                raise UsageError(f"{path / 'queries.jsonl'} line {number} is no question: it needs the JSON keys _id and text.") from None
            if question.question_id in asked:
                questions.append(question)
    judgments, absent = [], 0
    for (question_id, source), grade in grades.items():
        if grade > 0 and texts.get(source, "").strip():
            judgments.append(Judgment(question_id, source, 0, len(texts[source]), grade, texts[source]))
        elif grade > 0:
            absent += 1
    if absent:
        say(f"{absent} judgments name records that are absent or empty: they are left out.")
    if not judgments:
        raise UsageError(f"{qrels} holds no judgment of a record in corpus.jsonl: check the folder.")
    save_gold(
        target, questions, judgments,
        f"# {name}\n\nImported from a BEIR folder, split `{split}`: {len(questions)} questions, {len(judgments)} judgments of whole records. "
        "Grades are those of the qrels; who judged, and how, is told by the publishers of the set.\n",
    )  # fmt: skip
    return target
