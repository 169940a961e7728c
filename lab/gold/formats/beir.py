"""BEIR: `corpus.jsonl`, `queries.jsonl`, `qrels/<split>.tsv` (query-id, corpus-id, score). It judges documents as a whole (Thakur et al. 2021)."""

from __future__ import annotations

import csv
import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from lab.corpus.readers import beir
from lab.errors import UsageError, unknown
from lab.gold.files import line_of, new_folder, save_gold
from lab.gold.formats.shared import by_document, json_questions, merged, partial, whole_documents
from lab.progress import say
from lab.records import GoldSet
from lab.scratch import whole_folder


def read(path: Path, name: str, split: str, to: Path | None = None, *, ignore: Path | None = None, replace: bool = False) -> Path:
    """A BEIR folder as a gold set; several splits as `train,test`. A score of 0 says that a record was judged and does not answer.

    `ignore` names one more qrels file: what it lists for a question is neither relevant nor irrelevant, and is kept out of the rankings that are scored (the paper a
    Cranfield question was written from). Judged records without text can be returned by no search; they are left out and counted.
    """
    target = new_folder(name, to, replace)
    for file in ("corpus.jsonl", "queries.jsonl"):
        if not (path / file).is_file():
            raise UsageError(f"{path / file} does not exist: a BEIR folder holds corpus.jsonl, queries.jsonl and qrels/*.tsv.")
    splits = [word.strip() for word in split.split(",") if word.strip()]
    grades: dict[tuple[str, str], int] = {}
    split_of: dict[str, str] = {}
    for one in splits:
        for (question_id, source), grade in _qrels(_split(path, one)).items():
            if split_of.setdefault(question_id, one) != one:
                raise UsageError(f"question {question_id} stands in the splits {split_of[question_id]} and {one}: import one of them.")
            grades[question_id, source] = grade
    apart: dict[str, list[str]] = {}
    for question_id, source in _qrels(ignore) if ignore is not None else ():
        apart.setdefault(question_id, []).append(source)
    wanted = {source for (_, source), grade in grades.items() if grade >= 0}
    texts = {document.source: document.text for document, _ in beir.records(path / "corpus.jsonl") if document.source in wanted}
    strangers = sorted(question for question in apart if question not in split_of)
    if strangers:
        say(f"{len(strangers)} questions of {ignore} are not in the split, as {strangers[0]}: they are left out.")
    bare = sorted(
        {q for (q, s), grade in grades.items() if grade > 0} - {q for (q, s), grade in grades.items() if grade > 0 and s not in apart.get(q, ())}
    )
    if bare:
        say(f"{len(bare)} questions have no judgment beside what is to be ignored, as {bare[0]}: they are unjudged.")
    judgments, refused = whole_documents(
        ((question, source, grade) for (question, source), grade in grades.items() if source not in apart.get(question, ())),
        texts, f"{path / 'qrels'}",
    )  # fmt: skip
    questions = []
    for q in json_questions(path / "queries.jsonl"):
        if q.question_id in split_of or not q.answerable:
            extra = {"ignore": apart[q.question_id]} if q.question_id in apart else {}
            told = split_of.get(q.question_id, q.split or splits[0])
            questions.append(dataclasses.replace(q, text=beir.storable(q.text), split=told, metadata={**q.metadata, **extra}))
    save_gold(
        target, questions, judgments,
        f"# {name}\n\nImported from a BEIR folder, split {' and '.join(f'`{one}`' for one in splits)}: {len(questions)} questions, {len(judgments)} judgments of whole records. "
        + (f"{sum(map(len, apart.values()))} records are neither relevant nor irrelevant to a question (`{ignore.name}`), and kept out of its ranking. " if ignore else "")
        + "Grades are those of the qrels; who judged, and how, is told by the publishers of the set.\n",
        refused=refused,
    )  # fmt: skip
    return target


def _split(path: Path, split: str) -> Path:
    qrels = path / "qrels" / f"{split}.tsv"
    if not qrels.is_file():
        raise unknown("split", split, [p.stem for p in sorted((path / "qrels").glob("*.tsv"))])
    return qrels


def _qrels(qrels: Path) -> dict[tuple[str, str], int]:
    """(question, record) → score of one file; the last line of a pair counts."""
    grades: dict[tuple[str, str], int] = {}
    try:
        handle = qrels.open(encoding="utf-8", newline="")
    except OSError as error:
        raise UsageError(f"{qrels} cannot be read ({error.strerror}): name a qrels file.") from None
    with handle:
        for number, row in enumerate(csv.reader(handle, delimiter="\t"), 1):
            if not row or (number == 1 and not row[-1].lstrip("-").isdigit()):
                continue
            try:
                grades[row[0], row[1]] = int(row[2])
            except (ValueError, IndexError):
                raise UsageError(f"{qrels} line {number} is no judgment: it needs query-id, corpus-id and score, tab-separated.") from None
    return grades


def write(gold: GoldSet, documents: Iterable[tuple[str, str, str]], to: Path) -> list[str]:
    """Writes a BEIR folder of a gold set and the documents (source, title, text) of its collection; the folder appears whole or not at all.

    Returns a sentence for each thing that the format cannot hold. Questions keep all that is known of them in `metadata`; splits that nobody named are written as `test`.
    """
    judged = {j.source for j in gold.judgments}
    texts: dict[str, str] = {}
    named = bool(gold.metadata.get("imported_splits"))
    split_of = {q.question_id: q.split if named else "test" for q in gold.questions}
    with whole_folder(to) as fresh:
        with (fresh / "corpus.jsonl").open("w", encoding="utf-8", newline="\n") as file:
            for source, title, text in documents:
                file.write(json.dumps({"_id": source, "title": title, "text": text}, ensure_ascii=False) + "\n")
                if source in judged:
                    texts[source] = text
        with (fresh / "queries.jsonl").open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(line_of(q if named else dataclasses.replace(q, split="")) + "\n" for q in gold.questions)
        _write_qrels(fresh / "qrels", list(by_document(gold)), split_of)
    lost = partial(gold, texts)
    absent = sorted(judged - texts.keys())
    said = [f"{lost} of {len(gold.judgments)} judgments are spans; BEIR judges whole documents, so where they stand is lost"] if lost else []
    said += merged(gold)
    if not named and any(q.split for q in gold.questions):
        said.append("the set names no splits: all questions are in qrels/test.tsv")
    return said + ([f"{len(absent)} judged documents are not in the collection, as {absent[0]}"] if absent else [])


def _write_qrels(folder: Path, rows: Sequence[tuple[str, str, int]], split_of: Mapping[str, str]) -> None:
    folder.mkdir()
    for split in sorted(set(split_of.values())):
        with (folder / f"{split}.tsv").open("w", encoding="utf-8", newline="\n") as file:
            file.write("query-id\tcorpus-id\tscore\n")
            file.writelines(f"{question}\t{source}\t{grade}\n" for question, source, grade in rows if split_of[question] == split)
