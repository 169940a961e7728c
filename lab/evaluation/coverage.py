"""Which result covers which judgment. The unit of relevance is the judgment, credited once, at its first covering rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lab.errors import UsageError
from lab.gold.cover import covers
from lab.records import Judgment
from lab.store.chunks import Spot


@dataclass(frozen=True, slots=True)
class Target:
    """A judgment as a ranking can meet it: the exact classes whose members cover it, and the chunks that do so themselves."""

    judgment: Judgment
    classes: frozenset[bytes]
    keys: frozenset[int]


def targets(judgments: Sequence[Judgment], spots: Mapping[str, Sequence[Spot]]) -> list[Target]:
    """One target a judgment, in the same order."""
    found = []
    for judgment in judgments:
        chunks = [spot for spot in spots.get(judgment.source, ()) if covers(spot.start, spot.end, judgment)]
        found.append(Target(judgment, frozenset(c.class_id for c in chunks), frozenset(c.key for c in chunks)))
    return found


@dataclass(frozen=True, slots=True)
class Credit:
    """What the result at one rank newly covers: indexes of the question's targets, highest grade first; `by_twin` when only a copy does."""

    newly: tuple[int, ...]
    grade: int
    by_twin: bool


_NOTHING = Credit((), 0, False)


def judged(results: Sequence[tuple[int, bytes]], known: Sequence[Target]) -> list[bool]:
    """Of each result, whether it, or an exact twin of it, covers any of the judgments, whatever these say."""
    keys = {key for target in known for key in target.keys}
    classes = {cls for target in known for cls in target.classes}
    return [key in keys or cls in classes for key, cls in results]


def credit(results: Sequence[tuple[int, bytes]], wanted: Sequence[Target]) -> list[Credit]:
    """One entry a result, for results given as (key, exact class), best first. Raises UsageError for a key that stands twice."""
    keys = [key for key, _ in results]
    if len(set(keys)) < len(keys):
        twice = sorted({key for key in keys if keys.count(key) > 1})
        raise UsageError(f"the ranking holds the same passage twice ({', '.join(map(str, twice))}): a ranking must hold each once.")
    by_key: dict[int, list[int]] = {}
    by_class: dict[bytes, list[int]] = {}
    for i, target in enumerate(wanted):
        for chunk in target.keys:
            by_key.setdefault(chunk, []).append(i)
        for cls in target.classes:
            by_class.setdefault(cls, []).append(i)
    left = set(range(len(wanted)))
    credits = []
    for key, cls in results:
        if key not in by_key and cls not in by_class:
            credits.append(_NOTHING)
            continue
        newly = sorted(left & {*by_key.get(key, ()), *by_class.get(cls, ())}, key=lambda i: (-wanted[i].judgment.grade, i))
        left.difference_update(newly)
        by_twin = bool(newly) and not any(key in wanted[i].keys for i in newly)
        credits.append(Credit(tuple(newly), wanted[newly[0]].judgment.grade if newly else 0, by_twin))
    return credits
