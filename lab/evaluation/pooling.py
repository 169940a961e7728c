"""Pooled judging: the passages that several runs returned and nobody has judged, queued for review, so that a new arm is not punished for finding them
(Spärck Jones & van Rijsbergen 1975)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab.errors import UsageError
from lab.evaluation.coverage import targets
from lab.gold.cover import covers
from lab.gold.review import QUEUE, read, read_queue, standing
from lab.records import GoldSet, Judgment
from lab.store import chunks, collections, documents, runs
from lab.store.connect import Store


def pool(store: Store, gold: GoldSet, run_ids: Sequence[str], depth: int = 10) -> tuple[list[dict[str, Any]], int]:
    """(what is new in the queue, how long the queue is now). A passage waits once, with the runs that returned it among their first `depth`; one that covers a judgment,
    or an exact twin of one that does, is judged already.

    Raises UsageError for an unknown run, or one of another gold set.
    """
    folder = Path(str(gold.metadata["path"]))
    rows = [runs.get_run(store, run_id) for run_id in run_ids]
    for row in rows:
        if row.gold != gold.name:
            raise UsageError(f"run {row.run_id} was scored with {row.gold!r}, not with {gold.name!r}: pool runs of one gold set.")
    collection = collections.get(store, rows[0].collection)
    judged: dict[str, list[Judgment]] = {}
    for j in (*gold.judgments, *gold.refused):
        judged.setdefault(j.question_id, []).append(j)
    spots = chunks.spots(store, collection, sorted({j.source for rows in judged.values() for j in rows}))
    classes = {question: {cls for target in targets(rows, spots) for cls in target.classes} for question, rows in judged.items()}
    queue = read_queue(folder)
    known = {(e["question"], e["source"], e["start"]) for e in queue}
    known |= {(d.question, d.source, d.start) for d in standing(read(folder)).values() if d.action == "judge"}
    asked = {q.question_id for q in gold.questions}
    found: dict[tuple[str, str, int, int], list[str]] = {}
    for run_id, question, source, start, end, cls in runs.returned(store, run_ids, depth):
        new = question in asked and (question, source, start) not in known
        if new and cls not in classes.get(question, ()) and not any(j.source == source and covers(start, end, j) for j in judged.get(question, ())):
            found.setdefault((question, source, start, end), []).append(run_id)
    fresh: list[dict[str, Any]] = []
    for (question, source, start, end), named in sorted(found.items()):
        quote = documents.text_between(store, collection, source, start, end)
        if quote:
            fresh.append({"question": question, "source": source, "start": start, "end": end, "quote": quote, "runs": sorted(set(named))})
    if fresh:
        with (folder / QUEUE).open("a", encoding="utf-8", newline="\n") as file:
            file.writelines(json.dumps(entry, ensure_ascii=False) + "\n" for entry in fresh)
    return fresh, len(queue) + len(fresh)
