"""Copies of passages. *Exact* twins share their normalised text (`lab.text.class_id`, a column of the store); *near* twins are for display
and for `distinct@k` only: they never count as relevant.

Near: Jaccard ≥ 0.8 of their 5-word shingles (Broder 1997), and the same multiset of numbers, codes, dates, negations and defined terms: two rules that
differ in one of these are not the same rule. Which pairs are worth comparing, MinHash tells: 125 permutations in 25 bands of 5, so that a pair at 0.8 is
compared with probability 0.9999, one at 0.3 with 0.06.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from lab.groups import Groups
from lab.text import facts, ngrams, words

THRESHOLD = 0.8
SHINGLE = 5
BANDS, ROWS = 25, 5
_MULTIPLIERS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F], dtype=np.uint64)
_BEGINNINGS = np.arange(1, BANDS + 1, dtype=np.uint64) * np.uint64(0xE7037ED1A0B428DB)


def bands(text: str) -> list[int]:
    """25 signed 64-bit numbers; two passages that share one are compared. A text without words has none."""
    pieces = sorted(piece.encode() for piece in shingles(text))
    if not pieces:
        return []
    signature = _empty().copy()  # an empty one is dear: it draws its permutations
    signature.update_batch(pieces)
    rows = signature.hashvalues.astype(np.uint64).reshape(BANDS, ROWS)
    mixed = np.full(BANDS, 0x9E3779B97F4A7C15, dtype=np.uint64) * np.arange(
        1, BANDS + 1, dtype=np.uint64
    )  # the same values in another band are no match
    for column in range(ROWS):
        mixed = (mixed ^ rows[:, column]) * np.uint64(0x100000001B3)
        mixed ^= mixed >> np.uint64(29)
    return [int(value) for value in mixed.view(np.int64)]


@functools.cache
def _empty() -> Any:
    from datasketch import MinHash

    return MinHash(num_perm=BANDS * ROWS, seed=1)


def shingles(text: str) -> frozenset[str]:
    """Runs of 5 words; a shorter text is one shingle."""
    tokens = words(text)
    if not tokens:
        return frozenset()
    return frozenset(" ".join(tokens[i : i + SHINGLE]) for i in range(max(1, len(tokens) - SHINGLE + 1)))


def similarity(a: str, b: str) -> float:
    """Jaccard of the shingles of two texts, 0 where their facts differ."""
    left, right = shingles(a), shingles(b)
    share = len(left & right) / len(left | right) if left or right else 0.0
    return share if share >= THRESHOLD and facts(a) == facts(b) else 0.0


def same_terms(a: str, b: str, terms: frozenset[str]) -> bool:
    """Whether two texts name the same ones of the collection's defined terms."""
    return not terms or terms & set(ngrams(a)) == terms & set(ngrams(b))


def classes(
    members: Sequence[tuple[str, bytes]], pairs: Iterable[tuple[bytes, bytes]], texts: Mapping[bytes, str], terms: Iterable[str] = ()
) -> dict[str, str]:
    """Id → name of its near class (the smallest id in it), for (id, exact class) members. Classes are the connected parts of the near relation: `pairs`
    of exact classes whose `texts` name the same terms."""
    known = frozenset(terms)
    groups = Groups(name for name, _ in members)
    speaker: dict[bytes, str] = {}
    for name, exact in sorted(members):
        if exact in speaker:
            groups.join(speaker[exact], name)
        else:
            speaker[exact] = name
    for a, b in sorted(pairs):
        if a in speaker and b in speaker and groups.find(speaker[a]) != groups.find(speaker[b]) and same_terms(texts[a], texts[b], known):
            groups.join(speaker[a], speaker[b])
    return {name: groups.find(name) for name, _ in members}


def near_classes(passages: Sequence[tuple[str, bytes, str]], terms: Iterable[str] = ()) -> dict[str, str]:
    """The same from (id, exact class, text) alone, all in memory."""
    texts = {exact: text for _, exact, text in passages}
    holders: dict[int, list[bytes]] = {}
    candidates: set[tuple[bytes, bytes]] = set()
    for exact in sorted(texts):
        for band in bands(texts[exact]):
            candidates.update((other, exact) for other in holders.get(band, ()))
            holders.setdefault(band, []).append(exact)
    pairs = [(a, b) for a, b in candidates if similarity(texts[a], texts[b]) > 0]
    return classes([(name, exact) for name, exact, _ in passages], pairs, texts, terms)
