"""A part of a collection as a collection of its own, for measuring how search grows."""

from __future__ import annotations

from psycopg import sql

from lab.store import collections, documents
from lab.store.collections import Collection
from lab.store.connect import Store


def copy_part(store: Store, collection: Collection, name: str, rows: int) -> Collection:
    """`rows` passages, drawn by the hash of their source, with their documents, under a new name; indexed. Links and twins are left out."""
    if collections.find(store, name) is not None:
        collections.drop(store, name)
    part = collections.create(
        store,
        name,
        collection.ingest,
        embedder=collection.embedder,
        model_digest=collection.model_digest,
        dim=collection.dim,
        language=collection.language,
    )
    collections.set_codes(store, part, collection.codes)
    names = {"source": sql.Identifier(collection.schema), "target": sql.Identifier(part.schema)}
    with store.connection() as connection:
        connection.execute(sql.SQL("create temporary table drawn on commit drop as select key from {source}.chunks order by md5(source), n limit {rows}").format(
            **names, rows=sql.Literal(rows)))  # fmt: skip
        connection.execute(
            sql.SQL(
                "insert into {target}.files (source, root, format, title, text, content_hash, bytes, authority, metadata, given, status) "
                "select source, root, format, title, text, content_hash, bytes, authority, metadata, given, status from {source}.files "
                "where source in (select source from {source}.chunks join drawn using (key))"
            ).format(**names)
        )
        connection.execute(
            sql.SQL(
                'insert into {target}.chunks (source, n, start, "end", text, context, heading, body, class_id, codes, embedding) '
                'select source, n, start, "end", text, context, heading, body, class_id, codes, embedding from {source}.chunks join drawn using (key)'
            ).format(**names)
        )
    collections.build_indexes(store, part)
    documents.record_counts(store, part)
    return collections.get(store, name)
