"""TREC: topics (`<top>`, or a line `id<TAB>text` each) and qrels (`question 0 document grade`). It judges documents as a whole
(trec_eval; https://trec.nist.gov/data/qrels_eng/)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape, unescape

from lab.errors import UsageError
from lab.gold.files import new_folder, save_gold
from lab.gold.formats.shared import Texts, by_document, json_questions, merged, partial, read_text, whole_documents
from lab.records import GoldSet, Question
from lab.scratch import whole_folder

_TOP = re.compile(r"<top>(.*?)</top>", re.DOTALL | re.IGNORECASE)
_FIELD = re.compile(r"<(num|title|desc|narr)>(.*?)(?=<(?:/?(?:num|title|desc|narr)|/top)>|\Z)", re.DOTALL | re.IGNORECASE)


def read(qrels: Path, name: str, *, topics: Path, texts: Texts, to: Path | None = None, replace: bool = False) -> Path:
    """Qrels and topics as a gold set; the documents are looked up in a collection. Questions that the qrels do not judge are kept, as unjudged.

    Grade 0: judged, and does not answer. A grade below 0 says nothing, as in trec_eval. Raises UsageError naming the line that cannot be read.
    """
    target = new_folder(name, to, replace)
    questions = read_topics(topics)
    grades = read_qrels(qrels)
    known = {q.question_id for q in questions}
    strangers = sorted({question for question, _ in grades} - known)
    if not known & {question for question, _ in grades}:
        raise UsageError(
            f"{qrels} judges none of the {len(known)} questions of {topics} ({strangers[0]} is not there): check that both belong together."
        )
    found = texts(sorted({source for _, source in grades}))
    rows = ((question, source, grade) for (question, source), grade in grades.items() if question in known)
    judgments, refused = whole_documents(rows, found, str(qrels))
    save_gold(
        target, questions, judgments,
        f"# {name}\n\nImported from the TREC files `{qrels.name}` and `{topics.name}`: {len(questions)} questions, {len(judgments)} judgments of whole documents, {len(refused)} documents "
        "judged not to answer. Who judged, and what a grade means, is told by the publishers of the set.\n",
        refused=refused,
    )  # fmt: skip
    return target


def read_topics(path: Path) -> list[Question]:
    """Topics in any of three forms: `<top>` with `<num>` and `<title>` (`<desc>` and `<narr>` go to the metadata), `queries.jsonl`, or `id<TAB>text` lines."""
    if path.suffix == ".jsonl":
        return json_questions(path)
    text = read_text(path, "name the topics behind --questions")
    found: dict[str, Question] = {}
    tops = _TOP.findall(text)
    if tops:
        for place, top in enumerate(tops, 1):
            fields = {key.lower(): _plain(value) for key, value in _FIELD.findall(top)}
            number = re.sub(r"^number:\s*", "", fields.get("num", ""), flags=re.IGNORECASE)
            asked = re.sub(r"^topic:\s*", "", fields.get("title", ""), flags=re.IGNORECASE) or _without(fields, "desc", "description")
            if not number or not asked:
                raise UsageError(f"topic {place} of {path} has no {'<title>' if number else '<num>'}.")
            more = {"description": _without(fields, "desc", "description"), "narrative": _without(fields, "narr", "narrative")}
            _add(
                found,
                Question(number, asked, metadata={key: value for key, value in more.items() if value and value != asked}),
                f"topic {place} of {path}",
            )
        return list(found.values())
    for place, line in enumerate(text.split("\n"), 1):
        if line.strip():
            name, tab, asked = line.partition("\t")
            if not tab or not name.strip() or not asked.strip():
                raise UsageError(f"{path} line {place} is no topic: it needs <top> elements, or a question's id, a tab and its text.")
            _add(found, Question(name.strip(), asked.strip()), f"{path} line {place}")
    if not found:
        raise UsageError(f"{path} holds no topic.")
    return list(found.values())


def _add(found: dict[str, Question], question: Question, where: str) -> None:
    if question.question_id in found:
        raise UsageError(f"{where} repeats the question {question.question_id!r}: keep one.")
    found[question.question_id] = question


def _plain(text: str) -> str:
    return " ".join(unescape(text, {"&quot;": '"', "&apos;": "'"}).split())


def _without(fields: Mapping[str, str], field: str, label: str) -> str:
    return re.sub(rf"^{label}:\s*", "", fields.get(field, ""), flags=re.IGNORECASE)


def read_qrels(path: Path) -> dict[tuple[str, str], int]:
    """(question, document) → grade; the last line of a pair counts. A document's name may hold what stands for white space (%20)."""
    grades: dict[tuple[str, str], int] = {}
    for number, line in enumerate(read_text(path, "name a qrels file").split("\n"), 1):
        parts = line.split()
        if not parts:
            continue
        try:
            question, _, document, grade = parts
            grades[_unspaced(question), _unspaced(document)] = int(grade)
        except ValueError:
            raise UsageError(f"{path} line {number} is no judgment: it needs question, 0, document and grade, as in `17 0 guide.md 1`.") from None
    if not grades:
        raise UsageError(f"{path} holds no judgment: name a qrels file.")
    return grades


def spaced(name: str) -> str:
    """A name as a column that holds no white space can hold it: white space and % as %XX.

    >>> spaced("a b.md"), _unspaced(spaced("50% x.md"))
    ('a%20b.md', '50% x.md')
    """
    return re.sub(r"[\s%]", lambda m: "".join(f"%{byte:02X}" for byte in m[0].encode()), name)


def _unspaced(name: str) -> str:
    return re.sub(r"(?:%[0-9A-F]{2})+", lambda m: bytes.fromhex(m[0].replace("%", "")).decode("utf-8", "replace"), name)


def write(gold: GoldSet, texts: Mapping[str, str], to: Path) -> list[str]:
    """Writes `topics.txt` and `qrels.txt`; returns a sentence for each thing that these cannot hold. `texts` (empty: unknown) tells which spans are whole documents."""
    with whole_folder(to) as fresh:
        with (fresh / "topics.txt").open("w", encoding="utf-8", newline="\n") as file:
            for q in gold.questions:
                file.write(f"<top>\n<num> Number: {q.question_id}\n<title> {escape(' '.join(q.text.split()))}\n")
                for tag, key, label in (("desc", "description", "Description"), ("narr", "narrative", "Narrative")):
                    if q.metadata.get(key):
                        file.write(f"<{tag}> {label}: {escape(' '.join(str(q.metadata[key]).split()))}\n")
                file.write("</top>\n\n")
        with (fresh / "qrels.txt").open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{spaced(question)} 0 {spaced(source)} {grade}\n" for question, source, grade in by_document(gold))
    said = []
    if lost := partial(gold, texts):
        said.append(f"{lost} of {len(gold.judgments)} judgments are spans; qrels judge whole documents, so where they stand is lost")
    said += merged(gold)
    if any(re.search(r"[\s%]", j.source) for j in gold.judgments):
        said.append("white space and % in names of documents are written as %XX, since qrels have columns by white space")
    if any(q.kind or q.split or not q.answerable for q in gold.questions):
        said.append("kinds, splits and the mark of unanswerable questions are left out: topics have no place for them")
    return said
