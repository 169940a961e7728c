"""The small rule behind `defines=question`: does a question ask for a meaning, and of which terms that the collection defines?"""

from __future__ import annotations

import functools
import re

from lab.text import ngrams

# Words that ask for a meaning wherever they stand.
_STRONG = re.compile(
    r"\bmean(?:s|t|ing|ings)?\b|\bdefin(?:e|es|ed|ition|itions)\b"
    r"|\b(?:counts?|counted|qualif(?:y|ies)|classed|regarded|considered|treated|understood|known|described)\s+as\b"
    r"|\brefers?\s+to\b|\bstands?\s+for\b|\b(?:term|word|expression|phrase|jargon)\b|\bsame\s+(?:thing\s+)?as\b|\bdifference\s+between\b|\bdiffers?\s+from\b",
    re.IGNORECASE,
)
# "What is a cold permit?", "explain quiet hour": weak, since "what is the set pressure of …" asks for something else; so the term must follow at once
# and nothing but a preposition, a comma or the end may follow the term.
_WEAK = re.compile(
    r"\b(?:what|who)(?:\s+(?:exactly|on\s+earth|actually|really))?(?:['’]s|\s+is|\s+are|\s+was|\s+were)\s+(?:exactly\s+)?|\bexplain\s+|\bwhat\s+(?:sort|kind)\s+of\s+thing\s+is\s+",
    re.IGNORECASE,
)
_DETERMINER = re.compile(r"(?:(?:an?|the|our|your|these|those|this|that|so-called|called)\s+|[\"'“‘«*`]+)*", re.IGNORECASE)
_AFTER = re.compile(
    r"[\"'”’»*`]*\s*(?:$|[?.,;:!()–—-]|(?:in|at|on|for|under|here|around|exactly|please|and|or|when|if|as|to|from|by|with|within|supposed|actually)\b)",
    re.IGNORECASE,
)
# "When is a line proved empty?", "what makes a lift a heavy lift": the term must be the last word said.
_STATE = re.compile(r"^\W*(?:when|what\s+makes|is\s+it|is\s+this|is\s+that)\b", re.IGNORECASE)
_LONGEST = 6


@functools.lru_cache(maxsize=256)
def _candidate_terms(question: str) -> tuple[str, ...]:
    found = ngrams(question, _LONGEST)
    return tuple(sorted(found, key=lambda term: (-term.count(" "), found[term], term)))


def candidate_terms(question: str) -> list[str]:
    """Normal forms of every run of words in the question that could be a defined term, longest first, then in order of the text."""
    return list(_candidate_terms(question))


def asks_for_meaning(question: str, terms: list[str]) -> list[str]:
    """Those of `terms` (all named in the question, longest first) whose meaning is asked for; none when it asks for something else.

    A term inside a longer one is not asked for: "cold permit" leaves no "permit".
    """
    if not terms:
        return []
    positions = ngrams(question, _LONGEST)
    taken: list[tuple[int, int]] = []
    kept = []
    for term in terms:
        start = positions.get(term)
        if start is None:
            continue
        stop = start + term.count(" ") + 1
        if any(a <= start and stop <= b for a, b in taken):
            continue
        taken.append((start, stop))
        kept.append(term)
    if _STRONG.search(question):
        return kept
    spans = [(match.start(), match.end()) for match in re.finditer(r"[^\W_]+(?:['’][^\W_]+)?", question)]
    asked = []
    for term in kept:
        first = positions[term]
        start, end = spans[first][0], spans[first + term.count(" ")][1]
        alone = len(spans) <= term.count(" ") + 2
        follows = any(
            match.end() <= start and _DETERMINER.fullmatch(question, match.end(), start) and _AFTER.match(question, end)
            for match in _WEAK.finditer(question)
        )
        last = bool(_STATE.match(question)) and not re.search(r"\w", question[end:])
        if alone or follows or last:
            asked.append(term)
    return asked
