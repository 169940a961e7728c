"""The files of a gold set, readable by others:

    questions.jsonl   one object a line: `_id`, `text`, `metadata` (`kind`, `split`, `answerable`: false, `copied`, `band`, …)
    judgments.tsv     header `question source start end grade quote`; `\\t`, `\\n` and `\\\\` escaped in the quote; grade 0: judged, and does not answer
    README.md         who or what wrote it, what a grade means
    documents/        the texts, where we wrote them

Offsets are code points of the stored text of the document.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lab.config import home
from lab.errors import CannotJudge, UsageError, unknown
from lab.gold.splits import LARGEST, assign, largest_share
from lab.records import GoldSet, Judgment, Question
from lab.resources import folder
from lab.text import digest

HEADER = ("question", "source", "start", "end", "grade", "quote")


def known_sets() -> dict[str, Path]:
    """Every gold set that a name reaches: ./gold, then LAB_HOME/gold, then what the lab ships; the first wins."""
    found: dict[str, Path] = {}
    for place in (Path("gold"), home() / "gold", folder("gold")):
        if place.is_dir():
            for path in sorted(place.iterdir()):
                if (path / "questions.jsonl").is_file() and not path.name.startswith("."):
                    found.setdefault(path.name, path)
    return found


def check_set_name(name: str) -> str:
    """The name, where it can name the folder of a gold set; else UsageError."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise UsageError(f"{name!r} cannot name a gold set: use letters, digits, dots, - and _.")
    return name


def new_folder(name: str, to: Path | None, replace: bool) -> Path:
    """Where a set of that name is to be written: in `to`, else in LAB_HOME. UsageError where one is there that is not to be replaced."""
    target = (to or home() / "gold") / check_set_name(name)
    if target.exists() and not replace:
        raise UsageError(f"{target} exists: name another gold set behind --as, or say --replace.")
    return target


def locate(name: str | Path) -> Path:
    """The folder of a gold set, by path or by name."""
    path = Path(name)
    if (path / "questions.jsonl").is_file():
        return path
    sets = known_sets()
    if path.is_dir() and str(name) not in sets:
        raise UsageError(
            f"{path} holds no questions.jsonl, so it is no gold set: see README for its files, or name one of {', '.join(sorted(sets))}."
        )
    if str(name) not in sets:
        raise unknown("gold set", str(name), sets, mend="make one with `lab gold import DIR --format beir --as NAME`.")
    return sets[str(name)]


def load_gold(name: str | Path, *, split: str | None = None, split_by: str = "component") -> GoldSet:
    """The gold set of that name or path; with `split` only its questions. Raises UsageError naming the line that cannot be read.

    Questions whose file names no split get ours: `dev` and `test`, half of the questions each, whole components (questions that share a document or a
    parent) together. Where one component holds more than 20 % of the questions the halves would not be comparable: asking for a split then raises
    CannotJudge, unless `split_by` is "question".
    """
    path = locate(name)
    questions = _questions(path / "questions.jsonl")
    rows = _judgments(path / "judgments.tsv", {q.question_id for q in questions})
    judgments, refused = [j for j in rows if j.grade], [j for j in rows if not j.grade]
    digest = gold_digest(questions, rows)
    imported = any(q.split for q in questions)
    share = largest_share(questions, judgments) if not imported else 0.0
    questions = assign(questions, judgments, by=split_by)
    metadata = {
        "path": str(path),
        "relocate": (path / "made-for.json").is_file(),
        "largest_component": share,
        "split_by": split_by,
        "imported_splits": imported,
    }
    gold = GoldSet(path.name, tuple(questions), tuple(judgments), digest, metadata, tuple(refused))
    return only(gold, split) if split is not None else gold


def only(gold: GoldSet, split: str) -> GoldSet:
    """The questions of one split, with their judgments."""
    splits = sorted({q.split for q in gold.questions})
    if split not in splits:
        raise unknown("split", split, splits)
    share, by = float(gold.metadata.get("largest_component", 0.0)), str(gold.metadata.get("split_by", "component"))
    if share > LARGEST and by == "component":
        raise CannotJudge(
            f"{share:.0%} of the questions of {gold.name!r} hang together through shared documents, so no fair half exists: use --split-by question."
        )
    questions = tuple(q for q in gold.questions if q.split == split)
    kept = {q.question_id for q in questions}
    label = split if by == "component" else f"{split} by {by}"
    judgments, refused = (tuple(j for j in rows if j.question_id in kept) for rows in (gold.judgments, gold.refused))
    return replace(gold, questions=questions, judgments=judgments, refused=refused, metadata={**gold.metadata, "split": label})


def gold_digest(questions: Sequence[Question], judgments: Sequence[Judgment]) -> str:
    """Names the content of a gold set: 16 hex digits over questions and judgments in sorted order, with what changes a score (`needs`, `ignore`) or a test (`parent`).
    Splits and how a question was made do not count."""
    return digest(
        [
            sorted([q.question_id, q.text, q.kind, q.answerable, *([told] if (told := _scored(q)) else [])] for q in questions),
            sorted([j.question_id, j.source, j.start, j.end, j.grade, j.quote] for j in judgments),
        ]
    )[:16]


def _scored(question: Question) -> dict[str, Any]:
    return {key: question.metadata[key] for key in ("ignore", "needs", "parent") if question.metadata.get(key)}


def save_gold(path: Path, questions: Iterable[Question], judgments: Iterable[Judgment], readme: str, *, refused: Iterable[Judgment] = ()) -> None:
    """Writes a gold set; the folder appears whole or not at all. `refused` were judged not to answer."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=".new-", dir=path.parent))
    try:
        fresh.chmod(0o755)
        with (fresh / "questions.jsonl").open("w", encoding="utf-8", newline="\n") as file:
            for q in questions:
                file.write(line_of(q) + "\n")
        _write_judgments(fresh / "judgments.tsv", [*judgments, *refused])
        (fresh / "README.md").write_text(readme, encoding="utf-8")
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    if path.exists():
        old = Path(tempfile.mkdtemp(prefix=".old-", dir=path.parent)) / path.name
        path.rename(old)
        fresh.rename(path)
        for entry in old.iterdir():  # documents, a baseline: what is no part of the set that was replaced
            if entry.name not in {"questions.jsonl", "judgments.tsv", "README.md", "made-for.json"}:
                entry.rename(path / entry.name)
        shutil.rmtree(old.parent)
    else:
        fresh.rename(path)


def line_of(question: Question) -> str:
    """A question as a line of a `questions.jsonl`, with all that is known of it."""
    metadata: dict[str, Any] = {"kind": question.kind} if question.kind else {}
    metadata |= {"split": question.split} if question.split else {}
    metadata |= {} if question.answerable else {"answerable": False}
    return json.dumps({"_id": question.question_id, "text": question.text, "metadata": metadata | dict(question.metadata)}, ensure_ascii=False)


def save_judgments(path: Path, judgments: Iterable[Judgment]) -> None:
    """Replaces the judgments of a gold set, whole or not at all."""
    fresh = path / "judgments.tsv.new"
    _write_judgments(fresh, judgments)
    fresh.replace(path / "judgments.tsv")


def _write_judgments(path: Path, judgments: Iterable[Judgment]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\t".join(HEADER) + "\n")
        for j in judgments:
            file.write("\t".join([j.question_id, _escape(j.source), str(j.start), str(j.end), str(j.grade), _escape(j.quote)]) + "\n")


def _questions(path: Path) -> list[Question]:
    questions = []
    seen: set[str] = set()
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        question = question_of(line, f"{path} line {number}")
        if question.question_id in seen:
            raise UsageError(f"{path} line {number} repeats the question {question.question_id!r}: keep one.")
        seen.add(question.question_id)
        questions.append(question)
    return questions


def question_of(line: str, where: str) -> Question:
    """A line of a `questions.jsonl` (or of a BEIR `queries.jsonl`); UsageError naming `where` for what is none. gold/schema.json describes it."""
    try:
        record = json.loads(line)
        question_id, text = str(record["_id"]), str(record["text"])
        metadata: Mapping[str, Any] = dict(record.get("metadata") or {})
    except (ValueError, KeyError, TypeError):
        raise UsageError(f"{where} is no question: it needs the JSON keys _id and text.") from None
    for key, wanted, said in (
        ("kind", str, "a text"),
        ("split", str, "a text"),
        ("answerable", bool, "true or false"),
        ("ignore", list, "a list of sources"),
    ):
        if key in metadata and not isinstance(metadata[key], wanted):
            raise UsageError(f"{where}: metadata.{key} is {json.dumps(metadata[key])}, and must be {said}.")
    rest = {key: value for key, value in metadata.items() if key not in {"kind", "split", "answerable"}}
    return Question(question_id, text, metadata.get("kind", ""), metadata.get("split", ""), metadata.get("answerable", True), rest)


def _judgments(path: Path, questions: set[str]) -> list[Judgment]:
    if not path.is_file():
        return []
    judgments = []
    lines = _lines(path)
    if not lines or tuple(lines[0].split("\t")) != HEADER:
        raise UsageError(f"{path} must begin with the header line {' '.join(HEADER)} (tab-separated).")
    for number, line in enumerate(lines[1:], 2):
        if not line:
            continue
        try:
            question_id, source, start, end, grade, quote = line.split("\t")
            judgment = Judgment(question_id, _unescape(source), int(start), int(end), int(grade), _unescape(quote))
        except ValueError:
            raise UsageError(f"{path} line {number} is no judgment: it needs {', '.join(HEADER)}, tab-separated.") from None
        if judgment.question_id not in questions:
            raise UsageError(f"{path} line {number} judges the question {judgment.question_id!r}, which questions.jsonl does not hold.")
        if not 0 <= judgment.start < judgment.end or judgment.grade < 0:
            raise UsageError(f"{path} line {number} needs 0 ≤ start < end and a grade of at least 0.")
        judgments.append(judgment)
    return judgments


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8: save it as UTF-8.") from None


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def _unescape(text: str) -> str:
    out, escaped = [], False
    for ch in text:
        if escaped:
            out.append({"t": "\t", "n": "\n", "r": "\r"}.get(ch, ch))
            escaped = False
        elif ch == "\\":
            escaped = True
        else:
            out.append(ch)
    return "".join(out)


def kinds(questions: Sequence[Question]) -> dict[str, int]:
    """Kind → number of questions, in sorted order."""
    counts: dict[str, int] = {}
    for question in questions:
        counts[question.kind] = counts.get(question.kind, 0) + 1
    return dict(sorted(counts.items()))
