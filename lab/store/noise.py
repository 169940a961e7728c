"""Noise floors: how far runs that should be the same lie apart. Entered once, never changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg.types.json import Jsonb

from lab.store.connect import Store


def enter(store: Store, collection: str, gold_digest: str, settings_digest: str, measure: str, floor: float, report: Mapping[str, Any]) -> None:
    with store.connection() as connection:
        connection.execute(
            "insert into lab.noise (collection, gold_digest, settings_digest, measure, floor, report) values (%s, %s, %s, %s, %s, %s)",
            [collection, gold_digest, settings_digest, measure, floor, Jsonb(dict(report))],
        )


def floors(store: Store, collection: str, gold_digest: str, settings_digests: Sequence[str]) -> dict[str, float]:
    """Measure → the floor last measured with one of these settings, the larger where there are two; a measure that was never looked at is absent."""
    rows = store.rows(
        "select distinct on (measure, settings_digest) measure, floor from lab.noise where collection = %(c)s and gold_digest = %(g)s and settings_digest = any(%(s)s) "
        "order by measure, settings_digest, noise_id desc",
        {"c": collection, "g": gold_digest, "s": list(settings_digests)},
    )
    found: dict[str, float] = {}
    for measure, floor in rows:
        found[str(measure)] = max(float(floor), found.get(str(measure), 0.0))
    return found
