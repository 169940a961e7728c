"""The answer command."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from lab.cli.evaluate import Named
from lab.cli.output import line, print_json
from lab.cli.server import Json
from lab.cli.words import SearchFlags, passed
from lab.progress import say


def answer(
    collection: str, question: str, *, answerer: Annotated[str, Parameter(help="extractive: sentences quoted from the passages, without a model; chat: the model of LAB_CHAT_URL")] = "extractive",
    budget: Annotated[int, Parameter(help="tokens of the context at most, by the embedder's tokenizer")] = 3000,
    min_faithfulness: Annotated[float, Parameter(name="--min-faithfulness", help="withhold an answer of which a smaller share of sentences is supported by what it cites")] = 0.0,
    stuff: Annotated[bool, Parameter(negative=(), help="search nothing: the whole collection is the context, where --budget holds it")] = False,
    history: Annotated[list[str] | None, Parameter(help="a question asked before (repeat for more); read with --rewrite", negative=())] = None,
    settings: Named = "default", json: Json = False, flags: SearchFlags = None,
) -> int:  # fmt: skip
    """Answer a question from a collection, with citations that are checked, or say that it has no answer."""
    from lab.serving.answers import answer as give
    from lab.store.connect import connect

    with connect() as store:
        found = give(
            store,
            collection,
            question,
            answerer=answerer,
            settings=settings,
            budget=budget,
            min_faithfulness=min_faithfulness,
            stuff=stuff,
            history=history or (),
            **passed(flags),
        )
    if json:
        print_json(found.to_json())
        return 0
    line(found.words)
    for s in found.sentences:
        if not s.supported:
            say(f"unsupported: {s.text} ({s.why})")
    for p in found.passages:
        if p.orders:
            say(f"flagged: [{p.n}] {p.result.chunk_id} {p.orders}")
    return 0
