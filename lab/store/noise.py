"""Noise: how far runs lay apart that should be the same. Entered once, never changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lab.store.connect import Store


@dataclass(frozen=True, slots=True)
class Repeated:
    """A run `a`, and `b` that repeated it in one way; `floor` is the difference of their means of a measure."""

    measure: str
    way: str
    floor: float
    a: str
    b: str


def enter(store: Store, collection: str, gold_digest: str, settings_digest: str, corpus_digest: str, repeats: Sequence[Repeated]) -> None:
    with store.connection() as connection, connection.cursor() as cursor:
        cursor.executemany(
            "insert into lab.noise (collection, gold_digest, settings_digest, corpus_digest, measure, way, floor, a, b) values (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
            [(collection, gold_digest, settings_digest, corpus_digest, r.measure, r.way, r.floor, r.a, r.b) for r in repeats],
        )


def newest(store: Store, collection: str, gold_digest: str, settings_digests: Sequence[str], corpus_digest: str) -> list[Repeated]:
    """The newest of each measure, way and settings, on these documents."""
    rows = store.rows(
        "select distinct on (measure, way, settings_digest) measure, way, floor, a, b from lab.noise where collection = %(c)s and gold_digest = %(g)s and corpus_digest = %(d)s "
        "and settings_digest = any(%(s)s) order by measure, way, settings_digest, noise_id desc",
        {"c": collection, "g": gold_digest, "d": corpus_digest, "s": list(settings_digests)},
    )
    return [Repeated(*row) for row in rows]
