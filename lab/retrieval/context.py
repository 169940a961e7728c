"""What the stages of one question share: the settings, the collection, look-ups in the store, and what they note."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from lab import filters
from lab.corpus.chunking import body_of
from lab.corpus.near import near_classes
from lab.models.external import Found
from lab.models.rerankers import Reranker
from lab.records import Hit
from lab.settings import Settings
from lab.store import arms
from lab.store.arms import Restriction
from lab.store.collections import Collection
from lab.store.connect import Store

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Corpus:
    """A collection as search needs it, looked up once a session and reused: open it anew after an ingest.

    The number of chunks decides whether HNSW or an exact scan is used. `twins` and `terms` fill as they are asked for.
    """

    store: Store
    collection: Collection
    chunks: int
    without_vector: int
    indexes: frozenset[str] | None = None  # valid derived indexes; None: not looked at
    restrictions: dict[str, Restriction] = field(default_factory=dict, compare=False)
    metadata: dict[str, list[str]] = field(default_factory=dict, compare=False)
    given: dict[str, Mapping[str, Sequence[Found]]] = field(default_factory=dict, compare=False)  # name of a list → question → its lines
    near: dict[str, str] = field(default_factory=dict, compare=False)
    twins: dict[bytes, list[Hit]] = field(default_factory=dict, compare=False)
    terms: dict[str, list[tuple[str, str, Hit]]] = field(default_factory=dict, compare=False)

    def lacks(self, index: str) -> bool:
        """Whether a derived index is missing or invalid, so that search must go another way."""
        return self.indexes is not None and index not in self.indexes

    def metadata_values(self) -> dict[str, list[str]]:
        """Key of the metadata → the values that documents have."""
        if not self.metadata:
            self.metadata.update(arms.metadata_values(self.store, self.collection))
        return self.metadata

    def restriction(self, text: str) -> Restriction | None:
        """The passages that pass some filters, None where there are none."""
        conditions = filters.parse(text)
        if not conditions:
            return None
        if text not in self.restrictions:
            self.restrictions[text] = arms.passing(self.store, self.collection, [condition.path for condition in conditions])
        return self.restrictions[text]

    def near_classes(self) -> Mapping[str, str] | None:
        """Chunk id → near class, None where near twins were not looked for."""
        if self.collection.ingest.twins != "near" or self.store.tenant is not None:
            return None
        if not self.near:
            self.near.update(near_classes(self.store, self.collection))  # one statement: whole, or not there
        return self.near

    def members(self, classes: Sequence[bytes]) -> dict[bytes, list[Hit]]:
        """The members of those classes, the copy that speaks for each first."""
        missing = sorted({c for c in classes if c not in self.twins})
        if missing:
            self.twins.update(arms.classes(self.store, self.collection, missing))
        return {c: self.twins[c] for c in classes if c in self.twins}

    def defined(self, terms: Sequence[str]) -> list[tuple[str, str, Hit]]:
        """(term, term as written, passage that defines it) for those of `terms` that the collection defines, in the order given."""
        missing = [term for term in terms if term not in self.terms]
        if missing:
            found: dict[str, list[tuple[str, str, Hit]]] = {term: [] for term in missing}
            for row in arms.defined(self.store, self.collection, missing):
                found[row[0]].append(row)
            self.terms.update(found)  # whole: another thread must not take a list for known that is still being filled
        return [row for term in terms for row in self.terms[term]]


class Lookups:
    """Reads from the store for one question, each done once: the members of a grid ask for the same texts, links and vectors."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self._known: dict[tuple[Any, ...], Any] = {}

    def _once(self, key: tuple[Any, ...], read: Callable[[], _T]) -> _T:
        if key not in self._known:
            self._known[key] = read()
        found: _T = self._known[key]
        return found

    def _each(self, name: str, keys: Sequence[int], read: Callable[[Sequence[int]], Mapping[int, _T]]) -> dict[int, _T]:
        """Key → what is read of it, those that are there; only what no earlier call has read is asked for: lists of neighbouring settings share most of their passages."""
        known: dict[int, _T | None] = self._known.setdefault((name,), {})
        missing = [key for key in keys if key not in known]
        if missing:
            found = read(missing)
            known.update({key: found.get(key) for key in missing})
        return {key: value for key in keys if (value := known[key]) is not None}

    def bodies(self, keys: Sequence[int]) -> dict[int, str]:
        """Key → context and text, as embedded."""
        ingest = self.corpus.collection.ingest
        return {key: body_of(row.context, row.text, ingest) for key, row in self._passages(keys).items()}

    def texts(self, keys: Sequence[int]) -> dict[int, str]:
        return {key: row.text for key, row in self._passages(keys).items()}

    def _passages(self, keys: Sequence[int]) -> dict[int, arms.Passage]:
        return self._each("texts", keys, lambda missing: arms.texts(self.corpus.store, self.corpus.collection, missing))

    def vectors(self, keys: Sequence[int]) -> dict[int, np.ndarray]:
        return self._each("vectors", keys, lambda missing: arms.vectors(self.corpus.store, self.corpus.collection, missing))

    def defined(self, terms: Sequence[str]) -> list[tuple[str, str, Hit]]:
        return self._once(("defined", *terms), lambda: self.corpus.defined(terms))

    def cited(self, parents: Sequence[int]) -> list[tuple[int, Hit, int]]:
        return self._once(("cited", *parents), lambda: arms.cited(self.corpus.store, self.corpus.collection, parents))

    def term_users(self, term: str, cap: int) -> int:
        return self._once(("users", term, cap), lambda: arms.term_users(self.corpus.store, self.corpus.collection, term, cap))


@dataclass(slots=True)
class Context:
    """Handed to every stage. `notes` collects sentences for the ledger; nothing else is written."""

    question: str
    settings: Settings
    corpus: Corpus
    lookups: Lookups
    reranker: Reranker | None = None
    members: Mapping[bytes, list[Hit]] = field(default_factory=dict)  # classes with more than one member, their speaker first
    similarities: Mapping[int, float] = field(default_factory=dict)  # cosines of the dense arm by chunk key
    allowed: frozenset[int] | None = None  # keys of the passages that pass the filters; None: no filter
    coded: Mapping[int, float] = field(default_factory=dict)  # key → share of the codes and sections that the question names
    arm_weight: float = 0.0  # Σ of the weights of the arms that are on and did not abstain
    notes: list[str] = field(default_factory=list)

    def passes(self, hit: Hit) -> bool:
        """Whether a passage that no arm brought may enter."""
        return self.allowed is None or hit.key in self.allowed
