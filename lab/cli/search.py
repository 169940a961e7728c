"""The search command."""

from __future__ import annotations

import shutil
import textwrap
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from lab.cli.output import line, print_json, print_table
from lab.cli.server import Json
from lab.cli.words import SearchFlags, passed
from lab.progress import say
from lab.records import Result, SearchResult

if TYPE_CHECKING:
    from lab.retrieval.context import Corpus
    from lab.settings import Settings


def search(
    collection: str,
    question: str,
    *,
    settings: Annotated[
        str, Parameter(help="named settings (default, dense-only, lexical-only, classic, deep) or a TOML file; flags override")
    ] = "default",
    explain: Annotated[bool, Parameter(negative=(), help="show each result's rank in every arm and after every stage")] = False,
    why: Annotated[str | None, Parameter(help="a chunk or a source: say which stage lost it, or how far it was from every arm's list")] = None,
    history: Annotated[list[str] | None, Parameter(help="a question asked before (repeat for more); read with --rewrite", negative=())] = None,
    sql: Annotated[bool, Parameter(negative=(), help="print the SQL of the arms, runnable in psql, and search nothing")] = False,
    json: Json = False,
    flags: SearchFlags = None,
) -> int:
    """Search a collection; best passage first.

    Parameters
    ----------
    collection
        The name of the collection.
    question
        The question, in one argument.
    """
    from lab.retrieval.search import open_corpus, statements
    from lab.retrieval.search import search as run_search
    from lab.settings import named
    from lab.store.connect import connect

    chosen = named(settings).with_words(passed(flags))
    with connect() as store:
        corpus = open_corpus(store, collection)
        if sql:
            said = statements(corpus, question, chosen)
            if json:
                print_json({"schema_version": 1, "question": question, "sql": said})
            else:
                line(said)
            return 0
        if why is not None:
            return _why(corpus, question, chosen, why, json)
        found = run_search(corpus, question, settings=chosen, history=history or ())
    if found.question != question:
        say(f"searched for: {found.question}")
    if json:
        print_json(found.to_json(explain=explain))
        return 0
    if found.diagnostic is not None:
        say(found.diagnostic.message if found.results else f"no results: {found.diagnostic.message}")
    if explain:
        _explain(found)
    else:
        _results(found)
    for note in found.ledger.notes:
        if found.diagnostic is None or note != found.diagnostic.message:
            say(f"note: {note}")
    return 0


def _why(corpus: Corpus, question: str, settings: Settings, target: str, json: bool) -> int:
    from lab.retrieval.why import why

    rows = why(corpus, question, settings, target)
    if json:
        passages = [{"chunk_id": row.chunk_id, "ranks": dict(row.ranks), "lost_at": row.lost_at, "reason": row.reason} for row in rows]
        print_json({"schema_version": 1, "question": question, "passages": passages})
        return 0
    columns = list(rows[0].ranks)
    cells = [(row.chunk_id, *(str(rank) if rank else "–" for rank in row.ranks.values()), row.lost_at or "–", row.reason) for row in rows]
    print_table(("passage", *columns, "lost at", "why"), cells, numeric=(False, *([True] * len(columns)), False, False))
    return 0


def _results(found: SearchResult) -> None:
    width = min(shutil.get_terminal_size((100, 24)).columns, 110)
    for r in found.results:
        parts = [f"score {r.score:.4f}"]
        parts += [f"similarity {r.similarity:.3f}"] if r.similarity is not None else []
        parts += [f"authority {r.authority}"] if r.authority else []
        parts += [f"brought by {r.linked_by}"] if r.linked_by else []
        parts += [f"also in {', '.join(c.rpartition('::')[0] for c in r.copies)}"] if r.copies else []
        if r.provenance is not None and r.provenance.page is not None:
            parts.insert(0, f"page {r.provenance.page}")
        line(f"{r.rank:>2}. {r.chunk_id}  [{r.start}, {r.end})  {'  '.join(parts)}")
        if r.context:
            line(f"    {r.context}")
        text = " ".join(r.text.split())
        for row in textwrap.wrap(text if len(text) <= 3 * width else text[: 3 * width].rsplit(" ", 1)[0] + " …", width - 4):
            line("    " + row)
        line("")


def _explain(found: SearchResult) -> None:
    ledger = found.ledger
    place = {hit.key: row for hit, row in zip(ledger.hits, ledger.ranks, strict=True)}
    rows = []
    for r in found.results:
        cells = [str(int(value)) if value else "–" for value in place[r.key]]
        why = r.linked_by or ""
        rows.append(
            (
                str(r.rank),
                r.chunk_id,
                *cells,
                f"{r.score:.4f}",
                f"{r.similarity:.3f}" if r.similarity is not None else "–",
                str(r.authority),
                _made_of(r),
                why,
            )
        )
    heads = ("rank", "passage", *ledger.columns, "score", "similarity", "authority", "made of", "brought by")
    print_table(heads, rows, numeric=(True, False, *([True] * len(ledger.columns)), True, True, True, False, False))
    arms = "; ".join(
        f"{name}: engine {arm.engine}, asked {arm.asked}, got {arm.got} ({arm.stopped})" + "".join(f", {k} {v}" for k, v in arm.server.items())
        for name, arm in found.arms.items()
    )
    line(f"arms     {arms}")
    line("seconds  " + ", ".join(f"{name} {value:.4f}" for name, value in ledger.seconds.items()))


def _made_of(r: Result) -> str:
    """The parts of a score: `dense .0164 + lexical .0161 + authority .0026`; what stands behind an arrow took the place of what was before."""
    said = ""
    for name, value in r.parts:
        replaces = name in {"rerank", "codes_after", "authority_after", "mmr"} and said
        said += (" → " if replaces else " + " if said else "") + f"{name} {value:.4f}".replace(" 0.", " .")
    return said
