"""Collections known to `ir_datasets` (MacAvaney et al. 2021; https://ir-datasets.com), an extra: `pip install 'retrieval-lab[ir_datasets]'`.

It fetches what it does not have; the lab itself fetches nothing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lab.corpus.readers.beir import storable
from lab.errors import ServerError, UsageError
from lab.gold.files import new_folder, save_gold
from lab.gold.formats.shared import Texts, whole_documents
from lab.records import Question
from lab.scratch import whole_file


def read(dataset: str, name: str, *, texts: Texts | None = None, to: Path | None = None, replace: bool = False) -> Path:
    """A dataset (`beir/scifact/test`) as a gold set. Its documents are looked up in a collection by `texts`; without it they are written to
    `documents/corpus.jsonl` of the set's folder, ready to be ingested. Raises UsageError for an unknown dataset, or one without queries or qrels."""
    try:
        import ir_datasets  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        raise UsageError("--format ir_datasets needs a package more: pip install 'retrieval-lab[ir_datasets]'.") from None
    target = new_folder(name, to, replace)
    try:
        found = ir_datasets.load(dataset)
    except KeyError:
        raise UsageError(f"ir_datasets knows no dataset {dataset!r}: https://ir-datasets.com lists them.") from None
    for part in ("queries", "qrels", *(("docs",) if texts is None else ())):
        if not getattr(found, f"has_{part}")():
            raise UsageError(f"{dataset} has no {part}: name a dataset that has queries and qrels, as beir/scifact/test.")
    try:
        questions = [Question(str(q.query_id), storable(_text(q, "text", "title", "query", "description"))) for q in found.queries_iter()]
        grades = {(str(r.query_id), str(r.doc_id)): int(r.relevance) for r in found.qrels_iter()}
        known = {q.question_id for q in questions}
        wanted = sorted({source for _, source in grades})
        records: list[dict[str, str]] = []
        if texts is None:
            records = [
                {"_id": str(d.doc_id), "title": storable(str(getattr(d, "title", "") or "")), "text": storable(_body(d))} for d in found.docs_iter()
            ]
            stored = {record["_id"]: record["text"] for record in records}
        else:
            stored = dict(texts(wanted))
    except OSError as error:
        raise ServerError(f"ir_datasets could not read {dataset} ({error}): it may need the network.") from None
    judgments, refused = whole_documents(((q, d, g) for (q, d), g in grades.items() if q in known), stored, dataset)
    save_gold(
        target, questions, judgments,
        f"# {name}\n\nImported from `{dataset}` of ir_datasets {ir_datasets.__version__}: {len(questions)} questions, {len(judgments)} judgments of whole documents, {len(refused)} documents "
        "judged not to answer. Who judged, and what a grade means, is told by the publishers of the set.\n",
        refused=refused,
    )  # fmt: skip
    if records:
        whole_file(target / "documents" / "corpus.jsonl", "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))
    return target


def _text(record: Any, *fields: str) -> str:
    """The first of these fields that a record has, else all that it says by default."""
    for field in fields:
        if getattr(record, field, ""):
            return str(getattr(record, field))
    return str(record.default_text())


def _body(document: Any) -> str:
    return _text(document, "text", "body", "abstract", "contents")
