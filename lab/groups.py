"""Connected parts of a relation (union–find), in a total order that does not depend on the order of joining; and even draws from a list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

_T = TypeVar("_T")


def evenly(items: Sequence[_T], most: int) -> list[_T]:
    """At most so many of the items, at even distances from the first to the last.

    >>> evenly(range(10), 4), evenly("ab", 4)
    ([0, 3, 6, 9], ['a', 'b'])
    """
    if len(items) <= most:
        return list(items)
    return [items[round(at * (len(items) - 1) / max(most - 1, 1))] for at in range(most)]


class Groups:
    """Items that hang together. A group is named by its smallest item."""

    def __init__(self, items: Iterable[str] = ()) -> None:
        self._parent = {item: item for item in items}

    def find(self, item: str) -> str:
        """The name of the group of an item; an unknown one becomes a group of its own."""
        parent = self._parent
        parent.setdefault(item, item)
        while parent[item] != item:
            parent[item] = parent[parent[item]]
            item = parent[item]
        return item

    def join(self, a: str, b: str) -> None:
        first, second = sorted((self.find(a), self.find(b)))
        self._parent[second] = first
