"""SQuAD: `data → paragraphs → context, qas → id, question, answers (text, answer_start), is_impossible` (Rajpurkar et al. 2016, 2018)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from lab.corpus.readers.beir import storable
from lab.errors import UsageError
from lab.gold.files import new_folder, save_gold
from lab.gold.formats.shared import read_text
from lab.records import GoldSet, Judgment, Question
from lab.scratch import whole_file

_NEEDED = "it needs data → paragraphs → context and qas (id, question, answers with text and answer_start)"


def read(path: Path, name: str, *, known: Iterable[tuple[str, str]] | None = None, to: Path | None = None, replace: bool = False) -> Path:
    """SQuAD JSON as a gold set. Each different answer of a question is a judgment of grade 1 (or of its `grade`, where one stands with it).

    `known` are (source, text) of a collection's documents: paragraphs are looked for in them, word for word. Without it the paragraphs become documents themselves, in
    `documents/corpus.jsonl` of the set's folder, ready to be ingested. Raises UsageError naming the question that cannot be read.
    """
    target = new_folder(name, to, replace)
    try:
        data = json.loads(read_text(path, "name a SQuAD JSON file"))
    except ValueError as error:
        raise UsageError(f"{path} is no JSON ({error}).") from None
    paragraphs = list(_paragraphs(data, path))
    places = _records(paragraphs) if known is None else _located(paragraphs, known, path)
    questions: dict[str, Question] = {}
    judgments: dict[tuple[str, str, int, int], Judgment] = {}
    for (_, context, qas), (source, at) in zip(paragraphs, places, strict=True):
        for qa in qas:
            question, answers = _question(qa, path)
            if question.question_id in questions and questions[question.question_id].text != question.text:
                raise UsageError(f"{path}: two questions have the id {question.question_id!r}.")
            questions.setdefault(question.question_id, question)
            for start, text, grade in answers:
                if context[start : start + len(text)] != text:
                    raise UsageError(f"{path}: the answer {text[:40]!r} of question {question.question_id} does not stand at {start} of its context.")
                judgment = Judgment(question.question_id, source, at + start, at + start + len(text), grade, text)
                judgments.setdefault((question.question_id, source, judgment.start, judgment.end), judgment)
    if not judgments:
        raise UsageError(f"{path} holds no answer: {_NEEDED}.")
    save_gold(
        target, questions.values(), judgments.values(),
        f"# {name}\n\nImported from the SQuAD file `{path.name}`: {len(questions)} questions, {len(judgments)} answers. The answers are spans that people marked while they read the "
        "paragraph; other passages that answer as well are unjudged.\n",
    )  # fmt: skip
    if known is None:
        records = [{"_id": source, "title": title, "text": context} for (title, context, _), (source, _) in zip(paragraphs, places, strict=True)]
        unique = {record["_id"]: record for record in records if record["text"].strip()}
        whole_file(target / "documents" / "corpus.jsonl", "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in unique.values()))
    return target


def _paragraphs(data: Any, path: Path) -> Iterator[tuple[str, str, list[Any]]]:
    articles = data.get("data") if isinstance(data, dict) else data
    if not isinstance(articles, list):
        raise UsageError(f"{path} is no SQuAD file: {_NEEDED}.")
    for number, article in enumerate(articles, 1):
        if not isinstance(article, dict) or not isinstance(article.get("paragraphs"), list):
            raise UsageError(f"{path}: article {number} has no paragraphs: {_NEEDED}.")
        for paragraph in article["paragraphs"]:
            if not isinstance(paragraph, dict) or not isinstance(paragraph.get("context"), str) or not isinstance(paragraph.get("qas"), list):
                raise UsageError(f"{path}: a paragraph of article {number} has no context or no qas: {_NEEDED}.")
            yield storable(str(article.get("title") or f"article {number}")), storable(paragraph["context"]), paragraph["qas"]


def _question(qa: Any, path: Path) -> tuple[Question, list[tuple[int, str, int]]]:
    try:
        question_id, text, metadata = str(qa["id"]), storable(str(qa["question"])), dict(qa.get("metadata") or {})
        impossible = bool(qa.get("is_impossible", False))
        answers = [
            (int(a["answer_start"]), storable(str(a["text"])), int(a.get("grade", 1))) for a in qa.get("answers") or () if str(a["text"]).strip()
        ]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise UsageError(f"{path}: a question lacks id, question or an answer's text and answer_start: {str(qa)[:80]}") from None
    kind, split = str(metadata.pop("kind", "")), str(metadata.pop("split", ""))
    return Question(question_id, text, kind, split, not impossible, metadata), [] if impossible else answers


def _records(paragraphs: list[tuple[str, str, list[Any]]]) -> list[tuple[str, int]]:
    """A source for each paragraph: title and number; the same paragraph twice under one title is one."""
    names: dict[tuple[str, str], str] = {}
    count: dict[str, int] = {}
    found = []
    for title, context, _ in paragraphs:
        if (title, context) not in names:
            clean = re.sub(r"[^\w.-]+", "_", title).strip("_") or "article"
            count[clean] = count.get(clean, 0) + 1  # by the cleaned title: C and C++ are two articles under one name
            names[title, context] = f"{clean}/{count[clean]}"
        found.append((names[title, context], 0))
    return found


def _located(paragraphs: list[tuple[str, str, list[Any]]], known: Iterable[tuple[str, str]], path: Path) -> list[tuple[str, int]]:
    """Where each paragraph stands in the documents of a collection: the first document in order of source that holds it."""
    wanted: dict[str, tuple[str, int]] = {}
    open_ = {context for _, context, _ in paragraphs if context}
    for source, text in known:
        for context in sorted(open_):
            at = text.find(context)
            if at >= 0:
                wanted[context] = (source, at)
        open_ -= wanted.keys()
        if not open_:
            break
    for title, context, qas in paragraphs:
        if context not in wanted and any(qa.get("answers") for qa in qas if isinstance(qa, dict)):
            raise UsageError(
                f"{path}: a paragraph of {title!r} stands in no document of the collection word for word ({context[:60]!r} …): ingest its documents, or leave -c out."
            )
    return [wanted.get(context, ("", 0)) for _, context, _ in paragraphs]


def write(gold: GoldSet, texts: Mapping[str, str], to: Path) -> list[str]:
    """Writes one JSON file: an article a document, with the document as its one paragraph. What SQuAD has no place for (kind, split, grade, metadata) stands in keys of
    our own, which its readers skip. Returns a sentence for each thing that is lost."""
    if to.exists():
        raise UsageError(f"{to} exists: name a file that does not.")
    by_source: dict[str, dict[str, list[Judgment]]] = {}
    for j in gold.judgments:
        by_source.setdefault(j.source, {}).setdefault(j.question_id, []).append(j)
    asked = {q.question_id: q for q in gold.questions}
    articles: list[dict[str, Any]] = []
    absent = sorted(by_source.keys() - texts.keys())
    for source in sorted(by_source.keys() & texts.keys()):
        qas = [_qa(gold, asked[question], judgments) for question, judgments in by_source[source].items()]
        articles.append({"title": source, "paragraphs": [{"context": texts[source], "qas": qas}]})
    without = [_qa(gold, q, []) for q in gold.questions if not gold.of(q.question_id)]
    if without:
        articles.append({"title": "", "paragraphs": [{"context": "", "qas": without}]})
    whole_file(to, json.dumps({"version": "v2.0", "data": articles}, ensure_ascii=False) + "\n")
    said = [f"{len(absent)} judged documents are not in the collection, as {absent[0]}: their answers are left out"] if absent else []
    if gold.refused:
        said.append(f"{len(gold.refused)} passages that were judged not to answer are left out: SQuAD has no place for them")
    return said


def _qa(gold: GoldSet, q: Question, judgments: list[Judgment]) -> dict[str, Any]:
    metadata: dict[str, Any] = {"kind": q.kind} if q.kind else {}
    metadata |= {"split": q.split} if q.split and gold.metadata.get("imported_splits") else {}
    metadata |= dict(q.metadata)
    answers = [{"text": j.quote, "answer_start": j.start, **({"grade": j.grade} if j.grade != 1 else {})} for j in judgments]
    return {
        "id": q.question_id,
        "question": q.text,
        "answers": answers,
        "is_impossible": not q.answerable,
        **({"metadata": metadata} if metadata else {}),
    }
