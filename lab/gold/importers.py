"""Gold sets from other people's files."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from lab.corpus.readers import beir
from lab.errors import UsageError, unknown
from lab.gold.files import new_folder, save_gold
from lab.progress import say
from lab.records import Judgment, Question


def import_beir(path: Path, name: str, split: str, to: Path | None = None, *, replace: bool = False) -> Path:
    """A BEIR folder (`corpus.jsonl`, `queries.jsonl`, `qrels/<split>.tsv`) as a gold set; several splits as `train,test`. Each relevant record is judged as a whole.

    A qrels score ≤ 0 is no judgment. Judged records without text cannot be returned by any search; they are left out and counted.
    """
    target = new_folder(name, to, replace)
    for file in ("corpus.jsonl", "queries.jsonl"):
        if not (path / file).is_file():
            raise UsageError(f"{path / file} does not exist: a BEIR folder holds corpus.jsonl, queries.jsonl and qrels/*.tsv.")
    splits = [word.strip() for word in split.split(",") if word.strip()]
    grades: dict[tuple[str, str], int] = {}
    split_of: dict[str, str] = {}
    for one in splits:
        for (question_id, source), grade in _qrels(path, one).items():
            if split_of.setdefault(question_id, one) != one:
                raise UsageError(f"question {question_id} stands in the splits {split_of[question_id]} and {one}: import one of them.")
            grades[question_id, source] = grade
    wanted = {source for (_, source), grade in grades.items() if grade > 0}
    texts = {document.source: document.text for document, _ in beir.records(path / "corpus.jsonl") if document.source in wanted}
    questions = []
    with (path / "queries.jsonl").open(encoding="utf-8") as handle:
        for number, line in enumerate(handle, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
                name_of, text = beir.storable(str(record["_id"])), beir.storable(str(record["text"]))
            except (ValueError, KeyError, TypeError):
                raise UsageError(f"{path / 'queries.jsonl'} line {number} is no question: it needs the JSON keys _id and text.") from None
            if name_of in split_of:
                questions.append(Question(name_of, text, split=split_of[name_of]))
    judgments, absent = [], 0
    for (question_id, source), grade in grades.items():
        if grade > 0 and texts.get(source, "").strip():
            judgments.append(Judgment(question_id, source, 0, len(texts[source]), grade, texts[source]))
        elif grade > 0:
            absent += 1
    if absent:
        say(f"{absent} judgments name records that are absent or empty: they are left out.")
    if not judgments:
        raise UsageError(f"{path / 'qrels'} holds no judgment of a record in corpus.jsonl: check the folder.")
    save_gold(
        target, questions, judgments,
        f"# {name}\n\nImported from a BEIR folder, split {' and '.join(f'`{one}`' for one in splits)}: {len(questions)} questions, {len(judgments)} judgments of whole records. "
        "Grades are those of the qrels; who judged, and how, is told by the publishers of the set.\n",
    )  # fmt: skip
    return target


def _qrels(path: Path, split: str) -> dict[tuple[str, str], int]:
    """(question, record) → score of one split; the last line of a pair counts."""
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
    return grades
