"""Runs as files: one JSON object that another database takes back whole (a baseline for CI), and TREC files for other people's tools."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab.errors import CannotJudge, UsageError
from lab.evaluation.compare import unit_of
from lab.evaluation.measures import parse
from lab.evaluation.repeat import gold_of
from lab.evaluation.run import answerable, targets_of
from lab.gold.check import fit
from lab.gold.formats.trec import spaced
from lab.records import Question
from lab.retrieval.search import open_corpus
from lab.scratch import whole_file, whole_folder
from lab.settings import Settings
from lab.store import recording, runs
from lab.store.connect import Store

KIND = "retrieval-lab run"
_NEEDED = {"run", "questions", "scores", "results", "lost"}


def export_run(store: Store, run_id: str, to: Path) -> int:
    """Writes a run with its questions, scores, rankings and losses, without the ledger; returns the number of scored questions. Lines are kept short, so that two files can be
    compared by eye. UsageError for an unknown run, CannotJudge for an unfinished one."""
    row = runs.get_run(store, run_id)
    if row.status == "incomplete":
        raise CannotJudge(f"{run_id} is incomplete: run it again, and export that run.")
    whole_file(to, _text(store, row))
    return row.questions


def _text(store: Store, row: runs.RunRow) -> str:
    head = {name: getattr(row, name) for name in row.__slots__}
    head |= {name: head[name].isoformat() if head[name] is not None else None for name in ("created_at", "finished_at")}
    parts: dict[str, list[Any]] = {
        "questions": [
            {"id": q.question_id, "text": q.text, "kind": q.kind, "split": q.split, "answerable": q.answerable, "metadata": dict(q.metadata)}
            for q in runs.questions(store, row.gold_digest)
        ],
        "scores": [[question, measure, value] for _, question, measure, value in runs.scores(store, [row.run_id])],
        "results": [list(result) for result in runs.results(store, row.run_id)],
        "lost": [list(entry) for entry in runs.lost_at(store, row.run_id)],
    }
    lines = [f'{{"kind": {json.dumps(KIND)}, "schema_version": 1,', f'"run": {json.dumps(head, ensure_ascii=False, sort_keys=True)},']
    for number, (name, rows) in enumerate(parts.items()):
        body = ",\n".join(json.dumps(one, ensure_ascii=False) for one in rows)
        lines.append(f'"{name}": [\n{body}\n]' + ("," if number < len(parts) - 1 else "}"))
    return "\n".join(lines) + "\n"


def import_run(store: Store, path: Path) -> tuple[str, bool]:
    """Enters an exported run under its own id; returns (id, whether it was new). UsageError where the file is none, or the id is taken by another run."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): name a file of `lab runs export`.") from None
    except ValueError:
        raise UsageError(f"{path} is no JSON: name a file of `lab runs export`.") from None
    if isinstance(data, dict) and data.get("kind") == KIND and data.get("schema_version", 1) != 1:
        raise UsageError(f"{path} has the format {data.get('schema_version')!r}, this lab reads 1: upgrade the lab, or export the run anew.")
    if not isinstance(data, dict) or data.get("kind") != KIND or not data.keys() >= _NEEDED:
        raise UsageError(f"{path} is no exported run: make one by `lab runs export RUN --to FILE`.")
    try:
        head = dict(data["run"])
        Settings(**head["settings"])
        head |= {name: dt.datetime.fromisoformat(head[name]) for name in ("created_at", "finished_at")}
        row = runs.RunRow(**{name: head[name] for name in runs.RunRow.__slots__})
        questions = [Question(q["id"], q["text"], q["kind"], q["split"], q["answerable"], q["metadata"]) for q in data["questions"]]
        scores = [(str(q), str(m), float(v)) for q, m, v in data["scores"]]
        results = [runs.StoredResult(*one) for one in data["results"]]
        if (
            any(len(bytes.fromhex(r.class_id)) == 0 for r in results)
            or len({(q, m) for q, m, _ in scores}) < len(scores)
            or len({(r.question_id, r.rank) for r in results}) < len(results)
        ):
            raise ValueError("a score or a rank stands twice")
        lost = [(str(q), str(stage), int(rank)) for q, stage, rank in data["lost"]]
        _check(row, questions, scores, results, lost)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{path} is damaged, or was written by another version of the lab ({error}): export the run anew.") from None
    if store.rows("select from lab.runs where run_id = %(r)s", {"r": row.run_id}):
        if json.loads(_text(store, runs.get_run(store, row.run_id))) == data:
            return row.run_id, False
        raise UsageError(f"another run has the id {row.run_id} here, or one with other figures: it cannot be imported beside it.")
    recording.record_questions(store, row.gold_digest, questions)
    recording.enter_run(store, row, scores, results, lost)
    return row.run_id, True


def _check(
    row: runs.RunRow,
    questions: Sequence[Question],
    scores: Sequence[tuple[str, str, float]],
    results: Sequence[runs.StoredResult],
    lost: Sequence[tuple[str, str, int]],
) -> None:
    """ValueError where the parts of an exported run do not fit each other: nothing of such a file is entered."""
    for name in ("settings", "passed", "inputs", "environment", "server", "engines", "timings", "health"):
        if not isinstance(getattr(row, name), dict):
            raise ValueError(f"{name} is no object")
    if row.status not in {"ok", "degraded"}:
        raise ValueError(f"status is {row.status!r}")
    known = {q.question_id for q in questions}
    strange = next((q for q in (*(s[0] for s in scores), *(r.question_id for r in results), *(entry[0] for entry in lost)) if q not in known), None)
    if strange is not None:
        raise ValueError(f"question {strange!r} is scored and not listed")
    if len({q for q, _, _ in scores}) != row.questions:
        raise ValueError(f"{row.questions} questions are promised, {len({q for q, _, _ in scores})} are scored")
    first: dict[str, int] = {}
    for r in results:
        if r.grade > 0:
            first[r.question_id] = min(r.rank, first.get(r.question_id, r.rank))
    for question, measure, value in scores:
        if not 0 <= value <= unit_of(measure):  # NaN too
            raise ValueError(f"{measure} of {question} is {value}")
        known_measure = parse(measure)
        if known_measure.name == "hit" and (value == 1) != (0 < first.get(question, 0) <= known_measure.k):
            raise ValueError(f"{measure} of {question} is {value:g}, which does not follow from its results")


def export_trec(store: Store, run_id: str, to: Path, gold: str | None = None) -> int:
    """Writes `run.txt` and `qrels.txt` (documents are chunks) into a new folder; returns the number of questions. Scores fall strictly, in the order in which the run returned,
    so that no tool orders ties anew.

    Raises CannotJudge where collection or gold set are no longer what the run saw: which chunks answer is read from them.
    """
    row = runs.get_run(store, run_id)
    corpus = open_corpus(store, row.collection)
    if corpus.collection.corpus_digest != row.inputs.get("corpus_digest"):
        raise CannotJudge(f"collection {row.collection!r} is no longer what {run_id} saw: run it again, and export that run.")
    judged = fit(store, corpus.collection, gold_of(store, row, gold)).gold
    asked = answerable(judged)
    wanted = targets_of(corpus, judged, asked)
    names = runs.chunk_names(store, corpus.collection, sorted({key for targets in wanted.values() for t in targets for key in t.keys}))
    lists: dict[str, list[runs.StoredResult]] = {}
    for result in runs.results(store, run_id):
        lists.setdefault(result.question_id, []).append(result)
    with whole_folder(to) as fresh:
        with (fresh / "run.txt").open("w", encoding="utf-8", newline="\n") as file:
            for question in sorted(lists):
                for result, score in zip(lists[question], falling([r.score for r in lists[question]]), strict=True):
                    file.write(f"{spaced(question)} Q0 {spaced(result.chunk_id)} {result.rank} {score!r} {run_id}\n")
        with (fresh / "qrels.txt").open("w", encoding="utf-8", newline="\n") as file:
            for q in sorted(asked, key=lambda q: q.question_id):
                best: dict[str, int] = {}
                for target in wanted[q.question_id]:
                    for key in target.keys:
                        best[names[key]] = max(best.get(names[key], 0), target.judgment.grade)
                file.writelines(f"{spaced(q.question_id)} 0 {spaced(name)} {grade}\n" for name, grade in sorted(best.items()))
    return len(lists)


def falling(scores: Sequence[float]) -> list[float]:
    """The scores, each lowered just below the one before it where it is not already.

    >>> falling([3.0, 3.0, 5.0, 1.0])[2] < falling([3.0, 3.0, 5.0, 1.0])[1] < 3.0
    True
    """
    found: list[float] = []
    for score in scores:
        found.append(score if not found or score < found[-1] else float(math.nextafter(found[-1], -math.inf)))
    return found


def to_json(run_id: str, path: Path, questions: int) -> dict[str, Any]:
    """What `lab runs export --json` prints."""
    return {"schema_version": 1, "run_id": run_id, "path": str(path), "questions": questions}
