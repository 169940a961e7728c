"""Gold sets from and to other people's files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lab.cli.evaluate import SplitBy
from lab.cli.output import line, print_json
from lab.cli.server import Json
from lab.errors import UsageError, unknown
from lab.progress import say
from lab.store.collections import Collection
from lab.store.connect import Store

READS = ("beir", "spans", "csv", "trec", "squad", "ir_datasets")
WRITES = ("beir", "csv", "trec", "squad")


def import_(
    path: Path,
    *,
    as_: Annotated[str, Parameter(name="--as", help="name of the new gold set")],
    format: Annotated[
        str,
        Parameter(
            help="beir: a folder of corpus.jsonl, queries.jsonl, qrels/*.tsv; spans (or csv): a CSV or TSV with question, source and quote; trec: qrels, with --questions and -c; "
            "squad: a JSON file; ir_datasets: the name of a dataset"
        ),
    ] = "beir",
    questions: Annotated[
        Path | None, Parameter(help="trec: the topics; spans: a queries.jsonl, where the table holds ids in place of questions")
    ] = None,
    collection: Annotated[
        str | None, Parameter(name=["--collection", "-c"], help="where the documents are looked up: spans, trec, squad, ir_datasets")
    ] = None,
    split: Annotated[str, Parameter(help="beir: which qrels file; several as train,test")] = "test",
    ignore: Annotated[
        Path | None, Parameter(help="beir: a qrels file of what is neither relevant nor irrelevant, and kept out of the rankings")
    ] = None,
    to: Annotated[Path | None, Parameter(help="folder to put it in; default: LAB_HOME/gold")] = None,
    replace: Annotated[bool, Parameter(negative=(), help="overwrite a gold set of that name")] = False,
    json: Json = False,
) -> int:
    """Import a gold set from other people's files."""
    from lab.gold.files import load_gold
    from lab.gold.formats import beir, irds, spans, squad, trec

    if format not in READS:
        raise unknown("format", format, READS)
    takes = {"beir": {"split", "ignore"}, "trec": {"questions", "collection"}, "squad": {"collection"}, "ir_datasets": {"collection"}}
    given = {"questions": questions, "collection": collection, "ignore": ignore, "split": None if split == "test" else split}
    for option, value in given.items():
        if value is not None and option not in takes.get(format, {"questions", "collection"}):
            raise UsageError(f"--{option} does not belong to --format {format}.")

    def with_documents(make: Callable[[Store | None, Collection | None], Path]) -> Path:
        if collection is None:
            return make(None, None)
        from lab.store import collections
        from lab.store.connect import connect

        with connect() as store:
            return make(store, collections.get(store, collection))

    if format == "beir":
        target = beir.read(path, as_, split, to, ignore=ignore, replace=replace)
    elif format == "trec":
        if questions is None or collection is None:
            raise UsageError("--format trec needs the topics behind --questions, and the collection of the documents behind -c.")
        topics = questions
        target = with_documents(lambda store, known: trec.read(path, as_, topics=topics, texts=_texts(store, known), to=to, replace=replace))
    elif format == "squad":
        target = with_documents(
            lambda store, known: squad.read(path, as_, known=_all(store, known) if known is not None else None, to=to, replace=replace)
        )
    elif format == "ir_datasets":
        target = with_documents(
            lambda store, known: irds.read(path.as_posix(), as_, texts=_texts(store, known) if known is not None else None, to=to, replace=replace)
        )
    else:
        target = with_documents(
            lambda store, known: spans.read(
                path, as_, questions=questions, texts=_texts(store, known) if known is not None else None, to=to, replace=replace
            )
        )
    gold = load_gold(target)
    documents = target / "documents" / "corpus.jsonl"
    if json:
        answer = {"schema_version": 1, "name": as_, "path": str(target), "questions": len(gold.questions), "judgments": len(gold.judgments)}
        print_json(answer | {"documents": str(documents) if documents.is_file() else None})
    else:
        line(f"{as_}: {len(gold.questions)} questions, {len(gold.judgments)} judgments in {target}")
        if documents.is_file():
            line(f"its documents: lab ingest {documents} --format beir -c {as_.replace('-', '_')}")
    return 0


def export(
    gold: str,
    *,
    format: Annotated[str, Parameter(help="beir, trec (both: a folder), squad, csv (both: a file)")],
    to: Annotated[Path, Parameter(help="the folder or file to write; it may not be there yet")],
    collection: Annotated[
        str | None, Parameter(name=["--collection", "-c"], help="where the documents are; default: the collection of the same name")
    ] = None,
    split: Annotated[str | None, Parameter(help="only the questions of this split")] = None,
    split_by: SplitBy = "component",
    json: Json = False,
) -> int:
    """Write a gold set in other people's formats; what a format cannot hold is said."""
    from lab.gold.files import load_gold
    from lab.gold.formats import beir, spans, squad, trec
    from lab.store import collections, documents
    from lab.store.connect import connect

    if format not in WRITES:
        raise unknown("format", format, WRITES)
    loaded = load_gold(gold, split=split, split_by=split_by)
    if format == "csv":
        lost = spans.write(loaded, to)
    else:
        with connect() as store:
            known = collections.get(store, collection or loaded.name.replace("-", "_"))
            if format == "beir":
                lost = beir.write(loaded, documents.texts(store, known), to)
            else:
                judged = _texts(store, known)(sorted({j.source for j in loaded.judgments}))
                lost = (trec if format == "trec" else squad).write(loaded, judged, to)
    for sentence in lost:
        say(f"note: {sentence}.")
    if json:
        print_json({"schema_version": 1, "path": str(to), "format": format, "questions": len(loaded.questions), "lost": lost})
    else:
        line(f"{loaded.name}: {len(loaded.questions)} questions in {to}")
    return 0


def _texts(store: Store | None, known: Collection | None) -> Callable[[Sequence[str]], Mapping[str, str]]:
    from lab.store import documents

    assert store is not None and known is not None
    return lambda sources: {source: text for source, _, text in documents.texts(store, known, sources)}


def _all(store: Store | None, known: Collection | None) -> list[tuple[str, str]]:
    from lab.store import documents

    assert store is not None and known is not None
    return [(source, text) for source, _, text in documents.texts(store, known)]
