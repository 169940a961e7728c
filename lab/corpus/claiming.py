"""Claims by rules: single facts of a text, each with the sentence that says it. No model, the same result each time.

definition    a sentence that says what a term means (`lab.corpus.links.find_definitions`)
limit         an obligation or a state with a number, a unit or a span of time, and a word that bounds it (at most, within, not exceed …)
requirement   any other sentence with must, shall, may not, is required to, is prohibited …
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lab.corpus.links import find_definitions
from lab.corpus.sentences import sentences

EXTRACTOR = "rules-1"
LONGEST = 200  # characters of a statement
_LEAST_WORDS, _MOST_CHARACTERS = 4, 1_000

_OBLIGES = re.compile(
    r"\b(?:must|shall|may (?:not|only)|must not|shall not|cannot|can only|(?:is|are) (?:not )?(?:required|obliged|obligated|permitted|allowed|entitled|forbidden|prohibited)(?: to)?|"
    r"(?:has|have) to|(?:is|are) to be|need(?:s)? to|only (?:a|the|an)\b[^.]{0,60}\bmay|no (?:one|person|[a-z]+) may|never)\b",
    re.IGNORECASE,
)
_NUMBER = r"(?:\d+(?:[.,]\d+)*|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|sixty|ninety|half an?)"
_UNIT = (
    r"(?:%|per ?cent|percent|°\s?[CF]|degrees?|[kMG]?(?:Pa|W|V|Hz|B)\b|m?bar\b|psi|k?g\b|mg(?:/[lL])?|µg|m[mlgL]\b|[ck]?m(?:[²³23/]|\b)|lit(?:re|er)s?|l\b|ppm|ppb|dB(?:\(A\))?|NTU|pH|volts?|"
    r"amp(?:ere)?s?|[mk]?[AΩ]\b|metres?|meters?|kilo\w+|tonnes?|tons?|euros?|EUR|USD|[€$£]|seconds?|minutes?|hours?|working days?|calendar days?|days?|weeks?|months?|years?|shifts?|times|persons?|people|"
    r"characters?|bytes?|rpm|ohms?|lux|lumens?)"
)
_AMOUNT = re.compile(rf"(?:[€$£]\s?\d|\b{_NUMBER}\s*(?:[-–]\s*{_NUMBER}\s*)?{_UNIT}|\bpH\s+(?:of\s+)?{_NUMBER})", re.IGNORECASE)
_BOUNDS = re.compile(
    r"\b(?:at (?:most|least|the latest)|no (?:more|less|fewer|later|longer|higher|lower|earlier) than|not (?:more|less|fewer|later|longer|exceed|be (?:more|less|above|below))\b|(?:more|less|fewer|longer|"
    r"higher|lower) than|up to|within|exceed(?:s|ing)?|above|below|under|over|beyond|maximum|minimum|max\.|min\.|limit(?:ed)?|not before|every|each|between|for \d|from \d)\b",
    re.IGNORECASE,
)
_NO_SENTENCE = re.compile(r"^\s*(?:#{1,6}\s|\||```|~~~|:::|[=\-*_]{3,}\s*$)")
_MARKS = re.compile(r"^\s*(?:[-*•]\s+|\(?[0-9]{1,3}[.)]\s+|\(?[a-z][.)]\s+|>\s+)|(?<!\w)[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}(?!\w)")
_CONFIDENCE = {"definition": 0.9, "limit": 0.8, "requirement": 0.7}


@dataclass(frozen=True, slots=True)
class Found:
    """A fact of a text: `[start, end)` is the sentence that says it, `statement` that sentence without marks, at most 200 characters; `subject` the term that a definition defines."""

    kind: str
    statement: str
    subject: str
    start: int
    end: int
    confidence: float


def find_claims(text: str) -> list[Found]:
    """The claims of a text in its order: a sentence makes one, or one a term that it defines.

    >>> [(c.kind, c.statement) for c in find_claims("The pump must be stopped. It opens at 12 bar at most. A spill is a leak.")]
    [('requirement', 'The pump must be stopped.'), ('limit', 'It opens at 12 bar at most.')]
    """
    defined: dict[tuple[int, int], list[str]] = {}
    for definition in find_definitions(text):
        defined.setdefault((definition.start, definition.end), []).append(definition.term)
    found = []
    taken = 0  # what a definition's item holds is no other claim
    for start, end in sentences(text):
        if start < taken:
            continue
        sentence = text[start:end]
        original = (start, end)
        kind = "definition" if original in defined else kind_of(sentence)
        if kind is None:
            continue
        if kind == "definition":
            start, end = item(text, start, end)
            sentence = text[start:end]
        statement = stated(sentence)
        if statement:
            subjects = defined[original] if kind == "definition" else [""]
            found += [Found(kind, statement, subject, start, end, _CONFIDENCE[kind]) for subject in subjects]
            taken = end
    return found


_NUMBERED = re.compile(r"[ \t]*(?P<mark>\(\d{1,3}\)|\d{1,3}[.)]|[a-z][.)]|\([a-z]\)|[-*•])[ \t]+")
_NEXT_ITEM = re.compile(r"^[ \t]*(?:\(\d{1,3}\)[ \t]|#{1,6}[ \t])", re.MULTILINE)
_LONGEST_ITEM = 3_000


def item(text: str, start: int, end: int) -> tuple[int, int]:
    """The span of a definition with the number before it; in a list of definitions, "(16) ‘main establishment’ means: (a) …", the whole of its item."""
    line = text.rfind("\n", 0, start) + 1
    numbered = _NUMBERED.match(text, line)
    if numbered is None or not (numbered.end() == start or (numbered.start() <= start < numbered.end())):
        return start, end
    begin = numbered.start("mark")
    if not numbered["mark"].startswith("(") or not numbered["mark"][1].isdigit():
        return (begin, end) if numbered["mark"][0].isdigit() else (start, end)
    following = _NEXT_ITEM.search(text, numbered.end())
    stop = len(text[: following.start() if following else len(text)].rstrip())
    return (begin, stop) if end <= stop <= begin + _LONGEST_ITEM else (begin, end)


def kind_of(sentence: str) -> str | None:
    """limit, requirement, or None for a sentence that says neither (a question, a heading, a row of a table, a fragment)."""
    if (
        _NO_SENTENCE.match(sentence)
        or sentence.rstrip().endswith(("?", ":"))
        or len(sentence) > _MOST_CHARACTERS
        or len(sentence.split()) < _LEAST_WORDS
    ):
        return None
    if _AMOUNT.search(sentence) and _BOUNDS.search(sentence):
        return "limit"
    return "requirement" if _OBLIGES.search(sentence) else None


def unmarked(sentence: str) -> str:
    """The sentence without list marks and emphasis, on one line."""
    return " ".join(_MARKS.sub("", sentence).split())


def stated(sentence: str) -> str:
    """The same, cut at a word where it is longer than a statement may be."""
    plain = unmarked(sentence)
    if len(plain) <= LONGEST:
        return plain
    return plain[: LONGEST - 1].rsplit(" ", 1)[0].rstrip(",;:–-") + "…"


def within(found: Found, chunks: Sequence[tuple[int, int]]) -> int | None:
    """The place of the chunk `[start, end)` that holds most of a claim's sentence, the first of equals; None where none holds any of it."""
    best, at = 0, None
    for place, (start, end) in enumerate(chunks):
        shared = min(end, found.end) - max(start, found.start)
        if shared > best:
            best, at = shared, place
    return at
