"""Taking claims out of the documents of a collection: resumable, a document a transaction, only what is new or changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lab.corpus import claim_chat, vectors
from lab.corpus.claiming import EXTRACTOR, find_claims, within
from lab.corpus.grading import again
from lab.errors import UsageError
from lab.models.asked import Spent
from lab.models.chat import Chat, configured
from lab.models.embedders import embedder
from lab.progress import Progress, say
from lab.store import chunks, claims, collections, documents
from lab.store.chunks import Spot
from lab.store.claims import NewClaim
from lab.store.collections import Collection
from lab.store.connect import Store

_BATCH = 256  # statements embedded and written together


METHODS = ("rules", "chat")


@dataclass(frozen=True, slots=True)
class Extraction:
    """What one call did: documents that were read, and those that were left alone; claims that are new, and that were there already; of both together those that were rejected, by
    reason. `malformed`: documents of which the model made no JSON; `left`: those that the budget did not reach."""

    collection: str
    extractor: str
    documents: int
    unchanged: int
    new: int
    kept: int
    embedded: int
    rejected: Mapping[str, int] = field(default_factory=dict)
    malformed: int = 0
    left: int = 0
    cost: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The object of `lab claims extract --json`."""
        return {"schema_version": 1, **{name: getattr(self, name) for name in self.__slots__}}


def extract(store: Store, name: str, *, by: str = "rules", chat: Chat | None = None, budget: int = 0, embed: bool = True) -> Extraction:
    """Takes the claims of every document that the extractor has not seen in its present state. A claim by rules is verified at once: its quote stands in the passage word for word. One of
    the chat model is a candidate until its document passes (`lab.corpus.grading`).

    With `embed` statements get vectors too, where the collection has an embedder. A second call changes nothing. `budget` in tokens of the model (0: none). UsageError for an unknown
    collection or method, and (chat) where no model is named.
    """
    if by not in METHODS:
        raise UsageError(f"--by cannot be {by!r}: it takes {' or '.join(METHODS)}.")
    if budget < 0:
        raise UsageError(f"--budget {budget} is no number of tokens.")
    model = (chat or configured()) if by == "chat" else None
    extractor = EXTRACTOR if model is None else claim_chat.extractor(model)
    collection = collections.get(store, name)
    if embed and collection.dim is not None:
        embedder(collection.embedder)  # one that this process cannot have is told before anything is written
    spent = Spent(budget)
    new = kept = malformed = read = 0
    rejected: Counter[str] = Counter()
    with collections.locked(store, name):
        known = claims.passes(store, collection, extractor)
        there = claims.documents(store, collection)
        todo = [(source, content) for source, content in there if known.get(source) != content]
        with Progress(f"claims of {name}", len(todo), "documents") as bar:
            for source, content in todo:
                before = spent.calls, spent.asked + spent.answered
                malformed_before = spent.rejected["malformed"]
                found = None if spent.over else _of_document(store, collection, source, model, spent)
                if found is None and spent.rejected["malformed"] == malformed_before:
                    say(f"the budget of {budget:,} tokens is spent: the same command with a larger --budget goes on from here")
                    break
                bar.advance()
                read += 1
                if found is None:
                    malformed += 1
                    continue
                cost = {"calls": spent.calls - before[0], "tokens": spent.asked + spent.answered - before[1]} if model is not None else None
                made, held = claims.enter(store, collection, source, content, extractor, found, cost)
                new, kept = new + made, kept + held
                rejected.update(claim.reason for claim in found if claim.reason)
        if model is not None:
            again(store, collection)
        if spent.rejected[claim_chat.NO_CLAIM]:
            rejected[claim_chat.NO_CLAIM] = spent.rejected[claim_chat.NO_CLAIM]
        embedded = _embed(store, collection) if embed and collection.dim is not None else 0
    return Extraction(
        name, extractor, read, len(there) - len(todo), new, kept, embedded, dict(sorted(rejected.items())), malformed, len(todo) - read,
        spent.to_json() if model is not None else {},
    )  # fmt: skip


def _of_document(store: Store, collection: Collection, source: str, model: Chat | None, spent: Spent) -> list[NewClaim] | None:
    title, text = next(((title, text) for _, title, text in documents.texts(store, collection, [source])), ("", ""))
    spots: list[Spot] = chunks.spots(store, collection, [source]).get(source, [])
    if model is not None:
        return claim_chat.of_document(model, spent, source, title, text, spots)
    places = [(spot.start, spot.end) for spot in spots]
    found = []
    for claim in find_claims(text):
        at = within(claim, places)
        if at is None:
            continue  # no passage holds it: there is nothing that it could point to
        quote = text[claim.start : claim.end]
        found.append(
            NewClaim(
                source, spots[at].n, spots[at].key, claim.start, claim.end, quote, claim.statement, claim.subject, claim.kind, claim.confidence, "verified"
            )
        )  # fmt: skip
    return found


def _embed(store: Store, collection: Collection) -> int:
    """Gives vectors to the claims that have none; what the model maps to zero stays without."""
    todo = claims.without_vector(store, collection)
    if not todo:
        return 0
    model, prefix = embedder(collection.embedder), vectors.prefix_of(collection.ingest, "passage")
    with Progress("embedding claims", len(todo), "claims") as bar:
        for at in range(0, len(todo), _BATCH):
            part = todo[at : at + _BATCH]
            found, _ = vectors.embed(store, model, [text for _, text in part], prefix=prefix)
            claims.set_vectors(store, collection, {name: vector for (name, _), vector in zip(part, found, strict=True) if vector is not None})
            bar.advance(len(part))
    return len(todo)
