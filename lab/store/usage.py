"""How much space the harness takes."""

from __future__ import annotations

from lab.store.connect import Store

_PARTS = {
    "database": "select pg_database_size(current_database())",
    "vector cache": "select pg_total_relation_size('lab.embeddings') + pg_total_relation_size('lab.token_vectors')",
    "runs": "select pg_total_relation_size('lab.runs') + pg_total_relation_size('lab.scores') + pg_total_relation_size('lab.results')",
    "ledger": "select pg_total_relation_size('lab.ledger') + pg_total_relation_size('lab.passages')",
}


def usage(store: Store) -> dict[str, int]:
    """Part → bytes."""
    return {name: int(store.rows(query)[0][0]) for name, query in _PARTS.items()}
