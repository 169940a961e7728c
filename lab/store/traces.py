"""Traces of searches that were served: what was asked where, how many passages each arm brought, what was returned, how long it took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg.types.json import Jsonb

from lab.store.connect import Store
from lab.text import text_hash

DAYS = 30  # how long a trace is kept


def write(
    store: Store, collection: str, question: str, *, with_text: bool, settings_digest: str, arms: Mapping[str, Any], results: Sequence[str],
    diagnostic: str | None, seconds: Mapping[str, float],
) -> None:  # fmt: skip
    """One row. The question's words are kept only `with_text`; else its hash, which tells equal questions. A tenant's login leaves no trace."""
    if store.tenant is not None:
        return
    with store.single() as connection:
        connection.execute(
            "insert into lab.searches (collection, question, question_hash, settings_digest, arms, results, diagnostic, seconds) "
            "values (%s, %s, %s, %s, %s, %s, %s, %s)",
            [
                collection, question if with_text else None, text_hash(question), settings_digest, Jsonb(dict(arms)), list(results), diagnostic,
                Jsonb(dict(seconds)),
            ],
        )  # fmt: skip


def prune(store: Store, days: float = DAYS) -> int:
    """Removes traces older than `days`; returns how many."""
    if store.tenant is not None:
        return 0
    with store.single() as connection:
        return connection.execute("delete from lab.searches where at < now() - make_interval(secs => %s)", [days * 86_400]).rowcount
