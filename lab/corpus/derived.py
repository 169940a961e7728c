"""What is derived from stored documents and can be built again at any time: links and indexes."""

from __future__ import annotations

from lab.codes import VERSION
from lab.corpus import linking
from lab.corpus.chunking import body_of
from lab.store import chunks, collections, documents
from lab.store.collections import Collection
from lab.store.connect import Store
from lab.store.links import LinkRow, replace_links
from lab.store.tenants import SHARED


def relink(store: Store, collection: Collection) -> dict[str, int]:
    """Rebuilds both link relations from what is stored; returns the number of mentions per relation, and of references left out: `external` to what is
    not in the collection, `unresolved` to a part of it that was not found."""
    spots = chunks.spots(store, collection)
    left_out = linking.LeftOut()
    rows: list[LinkRow] = []
    for tenant in documents.scopes(store, collection):  # a tenant's documents cite their own and the shared ones, as far as its login can see
        seen = sorted({tenant, SHARED}, key=lambda name: name or "")
        known = linking.places(documents.linkable(store, collection, seen), spots)
        rows += linking.link_rows(documents.linkable(store, collection, [tenant]), spots, known, left_out)
    found = replace_links(store, collection, rows, linking.EXTRACTOR)
    counts = {**found, "external": left_out.external, "unresolved": left_out.unresolved}
    collections.set_link_counts(store, collection, counts, linking.EXTRACTOR)
    return counts


def recode(store: Store, collection: Collection) -> None:
    """Makes side tokens and indexed text anew, where another version of the lab made them."""
    documents.recode(store, collection, lambda context, text: body_of(context, text, collection.ingest))


def reindex(store: Store, collection: Collection) -> None:
    """Rebuilds every derived index of a collection, and the side tokens where another version of the lab made them."""
    if collection.codes != VERSION:
        recode(store, collection)
    collections.build_indexes(store, collection)
