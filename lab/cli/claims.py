"""Claims: taking them out of documents, and finding them."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from lab.cli.output import line, print_json, print_table
from lab.cli.server import Json
from lab.corpus.grading import Grading
from lab.errors import UsageError
from lab.gold.review import Item
from lab.progress import say
from lab.records import GoldSet, Question
from lab.store.collections import Collection
from lab.store.connect import Store
from lab.text import digest


def extract(
    collection: str, *, by: Annotated[str, Parameter(help="rules: definitions, limits, requirements; chat: the model of LAB_CHAT_URL, 5 to 15 claims a document")] = "rules",
    budget: Annotated[int, Parameter(help="chat: tokens at most, 0 for no limit; the same command goes on")] = 0,
    embed: Annotated[bool, Parameter(help="give the statements vectors too, for --semantic")] = True, json: Json = False,
) -> int:  # fmt: skip
    """Take single facts out of the documents; only what is new or changed is read. Claims by rules are verified at once; those of a model when their document passes (`lab claims grade`,
    `lab claims review`)."""
    from lab.corpus.claims import extract as take
    from lab.store.connect import connect

    with connect() as store:
        done = take(store, collection, by=by, budget=budget, embed=embed)
    code = 3 if done.malformed or done.left else 0
    if json:
        print_json(done.to_json())
        return code
    line(
        f"{done.documents} documents read, {done.unchanged} unchanged: {done.new} new claims, {done.kept} that hold again, {done.embedded} embedded"
        + (f"; {done.left} documents are left" if done.left else "")
    )
    for reason, count in done.rejected.items():
        line(f"{count} rejected: {reason}")
    if done.malformed:
        say(f"of {done.malformed} documents the model made no JSON of claims, twice: use another model for them.")
    if done.cost:
        line(_cost(done.cost))
    return code


def _cost(cost: Mapping[str, Any]) -> str:
    return f"{cost['calls']} calls, {cost['tokens']:,} tokens, {cost['cached']} answers from the cache"


def grade(
    collection: str, *, least: Annotated[float | None, Parameter(name="--pass", help="the least score, from 0 to 1; without it 0.8, and grades that were given stay")] = None,
    budget: Annotated[int, Parameter(help="tokens at most, 0 for no limit; the same command goes on")] = 0, json: Json = False,
) -> int:  # fmt: skip
    """Have the model of LAB_CHAT_URL grade the claims of each document: those of a document that passes become verified."""
    from lab.corpus.grading import grade as run_grade
    from lab.store.connect import connect

    with connect() as store:
        done = run_grade(store, collection, least=least, budget=budget)
    if json:
        print_json(done.to_json())
    else:
        _graded(done)
        line(_cost(done.cost))
    return 3 if done.unjudged or done.left else 0


def _graded(done: Grading) -> None:
    line(
        f"{done.grader}: {done.passed} documents passed, {done.failed} failed"
        + (f", {done.unchanged} as before" if done.unchanged else "")
        + (f", of {done.unjudged} no grade was to be had" if done.unjudged else "")
        + (f", {done.left} are left" if done.left else "")
    )
    for source, feedback in done.feedback.items():
        line(f"  {source}: {feedback}")


def review(
    collection: str, *, who: Annotated[str | None, Parameter(help="who decides; default: the login name")] = None,
    least: Annotated[float | None, Parameter(name="--pass", help="the least share of accepted claims with which a document passes; without it 0.8, and grades that were given stay")] = None,
    html: Annotated[Path | None, Parameter(help="write one page to this file, for a person without Python, and review nothing")] = None,
    take: Annotated[Path | None, Parameter(help="add the decisions of a file that was saved by such a page")] = None, json: Json = False,
) -> int:  # fmt: skip
    """Accept or reject a model's claims in the terminal or on a page, as questions are in `lab gold review`. A document whose claims are all decided is graded by the share that was accepted."""
    from lab.cli.review import sit, write_page
    from lab.config import home
    from lab.corpus.grading import by_people, check
    from lab.gold.review import read, standing, when
    from lab.gold.sheet import take as take_in
    from lab.store import collections
    from lab.store.connect import connect

    if html is not None and take is not None:
        raise UsageError("--html and --take are one command each: call them one after the other.")
    check(least)
    person = who or getpass.getuser()
    folder = home() / "claims" / collection
    with connect() as store:
        known = collections.get(store, collection)
        folder.mkdir(parents=True, exist_ok=True)
        everything = _to_decide(store, known)
        as_set = GoldSet(f"claims-{collection}", tuple(item.question for item in everything), (), digest([item.name for item in everything]))
        if html is not None:
            write_page(store, known, as_set, everything, f"lab claims review {collection}", html)
            if json:
                print_json({"schema_version": 1, "page": str(html), "items": len(everything)})
            else:
                line(f"{len(everything)} claims on {html}; what is saved there comes back by `lab claims review {collection} --take FILE`")
            return 0
        if take is not None:
            made, gone = take_in(folder, as_set, take, gone=True, actions=("accept", "reject", "undo"))
            if gone:
                say(f"{gone} decisions are about claims that no passage holds any more: they were left out.")
        else:
            made = sit(store, known, folder, person, everything)[0]
        decisions = sorted(read(folder), key=lambda d: when(d.at))  # an old page that is taken late undoes nothing newer
        people: dict[str, dict[str, tuple[str, str]]] = {d.who: {} for d in decisions}
        for (whose, item), d in standing(decisions).items():
            people[whose][item.removeprefix("q:")] = d.action, d.at
        shown = {person} if take is None else {d.who for d in decisions}
        done = [one for one in by_people(store, collection, people, least) if one.grader.removeprefix("person:") in shown]
    if json:
        print_json({"schema_version": 1, "decided": made, "grades": [one.to_json() for one in done]})
        return 0
    line(f"{made} decisions")
    for one in done:
        _graded(one)
    return 0


def _to_decide(store: Store, known: Collection) -> list[Item]:
    from lab.store import grades

    return [
        Item(
            f"q:{c.claim_id}", Question(c.claim_id, c.statement, c.kind), c.source, c.start, c.end, c.quote,
            f"confidence {c.confidence:.2g}, by {c.extractor}", claim=True,
        )
        for one in grades.waiting(store, known, people=True) for c in one.claims
    ]  # fmt: skip


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
    from lab.store import claims, collections, grades
    from lab.store.connect import connect

    with connect() as store:
        known = collections.get(store, collection)
        found, (passed, failed) = claims.counts(store, known), grades.counts(store, known)
    if json:
        print_json(
            {
                "schema_version": 1,
                "collection": collection,
                "claims": [{"kind": kind, "status": status, "claims": count} for kind, status, count in found],
                "documents": {"passed": passed, "failed": failed},
            }
        )
    else:
        print_table(("kind", "status", "claims"), [(kind, status, str(count)) for kind, status, count in found], numeric=(False, False, True))
        if passed or failed:
            line(f"graded documents: {passed} passed, {failed} failed")
    return 0
