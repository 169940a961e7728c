"""Claims: taking them out of documents, and finding them."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from lab.cli.output import line, print_json, print_table
from lab.cli.server import Json
from lab.progress import say


def extract(
    collection: str, *, embed: Annotated[bool, Parameter(help="give the statements vectors too, for --semantic")] = True, json: Json = False
) -> int:
    """Take definitions, limits and requirements out of the documents by rules; only what is new or changed is read."""
    from lab.corpus.claims import extract as take
    from lab.store.connect import connect

    with connect() as store:
        done = take(store, collection, embed=embed)
    if json:
        print_json(done.to_json())
    else:
        line(
            f"{done.documents} documents read, {done.unchanged} unchanged: {done.new} new claims, {done.kept} that hold again, {done.embedded} embedded"
        )
    return 0


def search(
    collection: str, question: str, *, k: Annotated[int, Parameter(help="how many claims")] = 10,
    semantic: Annotated[bool, Parameter(negative=(), help="by vector in place of words; by words again where no embedder can be had")] = False,
    min_similarity: Annotated[float, Parameter(name="--min-similarity", help="semantic: the least cosine")] = 0.3,
    kind: Annotated[str | None, Parameter(help="only these kinds, as definition,limit")] = None,
    min_confidence: Annotated[float, Parameter(name="--min-confidence", help="from 0 to 1")] = 0.0,
    min_authority: Annotated[int, Parameter(name="--min-authority", help="tier of the document, 0 to 9")] = 0,
    status: Annotated[str, Parameter(help="candidate, verified, rejected, stale, or several")] = "verified", json: Json = False,
) -> int:  # fmt: skip
    """Find claims that answer a question, each with the passage that says it. Without --semantic no model is loaded."""
    from lab.retrieval.recall import recall
    from lab.store.connect import connect

    def listed(words: str | None) -> list[str]:
        return [word.strip() for word in (words or "").split(",") if word.strip()]

    with connect() as store:
        found = recall(
            store, collection, question, k=k, semantic=semantic, floor=min_similarity, kinds=listed(kind), confidence=min_confidence, authority=min_authority,
            statuses=listed(status),
        )  # fmt: skip
    if json:
        print_json(found.to_json())
        return 0
    if found.said:
        say(found.said)
    for c in found.claims:
        near = f", similarity {c.similarity:.3f}" if c.similarity is not None else ""
        line(f"{c.statement}\n  {c.kind}, confidence {c.confidence:.2g}, authority {c.authority}{near}: {c.chunk_id} [{c.start}, {c.end})")
    return 0


def stats(collection: str, *, json: Json = False) -> int:
    """How many claims a collection has, by kind and status."""
    from lab.store import claims, collections
    from lab.store.connect import connect

    with connect() as store:
        found = claims.counts(store, collections.get(store, collection))
    if json:
        print_json(
            {
                "schema_version": 1,
                "collection": collection,
                "claims": [{"kind": kind, "status": status, "claims": count} for kind, status, count in found],
            }
        )
    else:
        print_table(("kind", "status", "claims"), [(kind, status, str(count)) for kind, status, count in found], numeric=(False, False, True))
    return 0
