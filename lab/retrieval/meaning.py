"""The small rule behind `defines=question`: does a question ask for a meaning, and of which terms that the collection defines?"""

from __future__ import annotations

import functools
import re

from lab.text import ngrams

# Words that ask for a meaning wherever they stand.
_STRONG = re.compile(
    r"\bmean(?:s|t|ing|ings)?\b|\bdefin(?:e|es|ed|ition|itions)\b|\b(?:counts?|counted|qualif(?:y|ies)|classed|regarded|considered|treated|understood|known|described)\s+as\b"
    r"|\brefers?\s+to\b|\bstands?\s+for\b|\b(?:term|word|expression|phrase|jargon|wording)\b|\bis\s+(?:it|that|this)\s+called\b|\bby\s+['\"“‘]"
    r"|\bsame\s+(?:thing\s+)?as\b|\bdifference\s+between\b|\bdiffers?\s+from\b|\bconsidered\b|\bexplain\b|\bunderst(?:and|ood)\b|\bsort\s+of\s+(?:thing|a)\b"
    r"|\bwhen\s+(?:is|are|does|do|can|may)\b|\bwhat\s+makes\b|\bwhat\s+exactly\b|\bwhat\s+on\s+earth\b",
    re.IGNORECASE,
)
# "What is a cold permit?": weak, since "what is the set pressure of …" asks for something else; so the term must follow at once.
_WEAK = re.compile(
    r"\b(?:what|who)(?:['’]s|\s+is|\s+are|\s+was|\s+were)\s+(?:an?\s+|the\s+|our\s+|your\s+|these\s+|those\s+|this\s+|that\s+|meant\s+by\s+|a\s+so-called\s+)?",
    re.IGNORECASE,
)
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
    after = {" ".join(ngram.split()) for match in _WEAK.finditer(question) for ngram in _leading(question[match.end() :])}
    bare = ngrams(question, 1)
    return [term for term in kept if term in after or len(bare) <= term.count(" ") + 2]


def _leading(text: str) -> list[str]:
    """Runs of 1 to 6 words at the start of a text, as term keys."""
    return [term for term, at in ngrams(text, _LONGEST).items() if at == 0]
