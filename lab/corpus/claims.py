"""Taking claims out of the documents of a collection: resumable, a document a transaction, only what is new or changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lab.corpus import vectors
from lab.corpus.claiming import EXTRACTOR, find_claims, within
from lab.models.embedders import embedder
from lab.progress import Progress
from lab.store import claims, collections, documents
from lab.store.claims import NewClaim
from lab.store.collections import Collection
from lab.store.connect import Store
from lab.store.documents import Spot

_BATCH = 256  # statements embedded and written together


@dataclass(frozen=True, slots=True)
class Extraction:
    """What one call did: documents that were read, and those that were left alone; claims that are new, and that were there already."""

    collection: str
    extractor: str
    documents: int
    unchanged: int
    new: int
    kept: int
    embedded: int

    def to_json(self) -> dict[str, Any]:
        """The object of `lab claims extract --json`."""
        return {"schema_version": 1, **{name: getattr(self, name) for name in self.__slots__}}


def extract(store: Store, name: str, *, embed: bool = True) -> Extraction:
    """Takes the claims of every document that the rules have not seen in its present state. A claim by rules is verified at once: its quote stands in the passage word for word.

    With `embed` statements get vectors too, where the collection has an embedder. A second call changes nothing. UsageError for an unknown collection.
    """
    collection = collections.get(store, name)
    with collections.locked(store, name):
        known = claims.passes(store, collection, EXTRACTOR)
        there = claims.documents(store, collection)
        todo = [(source, content) for source, content in there if known.get(source) != content]
        new = kept = 0
        with Progress(f"claims of {name}", len(todo), "documents") as bar:
            for source, content in todo:
                made, again = claims.enter(store, collection, source, content, EXTRACTOR, _of_document(store, collection, source))
                new, kept = new + made, kept + again
                bar.advance()
        embedded = _embed(store, collection) if embed and collection.dim is not None else 0
    return Extraction(name, EXTRACTOR, len(todo), len(there) - len(todo), new, kept, embedded)


def _of_document(store: Store, collection: Collection, source: str) -> list[NewClaim]:
    text = next((text for _, _, text in documents.texts(store, collection, [source])), "")
    spots: list[Spot] = documents.spots(store, collection, [source]).get(source, [])
    places = [(spot.start, spot.end) for spot in spots]
    found = []
    for claim in find_claims(text):
        at = within(claim, places)
        if at is None:
            continue  # no passage holds it: there is nothing that it could point to
        found.append(
            NewClaim(
                source,
                spots[at].n,
                spots[at].key,
                claim.start,
                claim.end,
                text[claim.start : claim.end],
                claim.statement,
                claim.subject,
                claim.kind,
                claim.confidence,
                "verified",
            )
        )
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
