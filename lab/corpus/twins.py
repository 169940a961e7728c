"""Copies of passages. *Exact* twins share their normalised text (`lab.text.class_id`, a column of the store); *near* twins are for display
and for `distinct@k` only: they never count as relevant.

Near: MinHash over 5-word shingles (128 permutations, Broder 1997), estimated Jaccard ≥ 0.8, and the same multiset of numbers, codes, dates,
negations and defined terms: two rules that differ in one of these are not the same rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lab.groups import Groups
from lab.text import facts, ngrams, words

PERMUTATIONS = 128
THRESHOLD = 0.8
SHINGLE = 5


def near_classes(passages: Sequence[tuple[str, bytes, str]], terms: Iterable[str] = ()) -> dict[str, str]:
    """Id → name of its near class (the smallest id in it), for (id, exact class, text) passages.

    Exact twins are always in one class. Classes are the connected parts of the near relation.
    """
    known = frozenset(terms)
    groups = Groups(name for name, _, _ in passages)
    ordered = sorted(passages)
    speaker: dict[bytes, str] = {}
    text_of: dict[str, str] = {}
    for name, exact, text in ordered:
        if exact in speaker:
            groups.join(speaker[exact], name)
        else:
            speaker[exact] = name
            text_of[name] = text
    for a, b in _similar(text_of):
        if groups.find(a) != groups.find(b) and _same_facts(text_of[a], text_of[b], known):
            groups.join(a, b)
    return {name: groups.find(name) for name, _, _ in ordered}


def _similar(texts: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """Pairs with estimated Jaccard ≥ 0.8, in sorted order. Locality-sensitive hashing proposes, the signatures decide."""
    from datasketch import MinHash, MinHashLSH

    names = sorted(texts)
    index = MinHashLSH(threshold=THRESHOLD - 0.1, num_perm=PERMUTATIONS)
    hashes: dict[str, MinHash] = {}
    for name in names:
        shingles = sorted(_shingles(texts[name]))
        if not shingles:
            continue
        signature = MinHash(num_perm=PERMUTATIONS, seed=1)
        signature.update_batch(shingles)
        for other in sorted(index.query(signature)):
            if signature.jaccard(hashes[other]) >= THRESHOLD:
                yield other, name
        hashes[name] = signature
        index.insert(name, signature)


def _shingles(text: str) -> set[bytes]:
    """Runs of 5 words; a shorter text is one shingle."""
    tokens = words(text)
    if not tokens:
        return set()
    return {" ".join(tokens[i : i + SHINGLE]).encode() for i in range(max(1, len(tokens) - SHINGLE + 1))}


def _same_facts(a: str, b: str, terms: frozenset[str]) -> bool:
    if facts(a) != facts(b):
        return False
    return not terms or terms & set(ngrams(a)) == terms & set(ngrams(b))
