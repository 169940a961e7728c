"""Whether a text says a sentence, judged by words alone: a proxy for entailment that is named as one wherever it is printed.

It sees what is countable: numbers with their signs, and what they are said of; words that no passage has; a negation or an “only” that was lost or added; opposites. It does not see meaning: what is said in wholly other
words counts as unsupported, and two things that change places in a sentence are not seen.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lab.corpus.sentences import sentences
from lab.text import STOP_WORDS, stem, words

SHARE = 0.65  # of a clause's content words that must stand in the text
_WORDS = {
    word: str(n) for n, word in enumerate("two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty".split(), 2)
} | {word: str(n) for n, word in zip(range(30, 100, 10), "thirty forty fifty sixty seventy eighty ninety".split(), strict=True)}  # fmt: skip
_NUMBER = re.compile(r"((?<![\w)\]%.,])[-−–])?(\d+(?:[.,]\d+)*)")
_RANGE = re.compile(r"(?<=\d)\s?[-−–]\s?(?=\d)")  # 3-5, 3 – 5: no sign
_MINUS = re.compile(r"\bminus\s+(\w+)", re.IGNORECASE)
_TOKEN = re.compile(r"\d+(?:[.,]\d+)*[.,]?|[^\W\d_]+|%|[^\w\s]")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}\b")  # inside of a sentence
_NOT = re.compile(r"\b(?:not|no|never|none|neither|nor|nobody|nothing|without|cannot|prohibited|forbidden)\b|n['’]t\b", re.IGNORECASE)
_BOUND = re.compile(
    r"\b(?:no|not|never) (?:more|less|fewer|longer|later|sooner|higher|lower|earlier|nearer|closer|greater|larger|smaller|above|below|over|exceed\w*)\b",
    re.IGNORECASE,
)
_ONLY = re.compile(r"\b(?:only|alone|solely|exclusively)\b", re.IGNORECASE)
_LEAD = re.compile(r"^(?:yes|no)\s*(?:[,:;–-]\s*|[.!]?$)", re.IGNORECASE)
_CLAUSE = re.compile(
    r"[;:]\s+|\s[–—-]\s|,\s+(?:and|but|because|so|while|which|where|when|then|in|for|at|if)\s+|,\s+|\s+(?=(?:and|but|or)\s+(?:not|never|no)\b)"
)
_UNITS = frozenset(
    "second minute hour day week month year shift quarter mm cm m km kg g mg t l ml litre liter bar kpa mpa pa v kv a kw mw w °c °f ° % percent ppm db hz rpm euro eur usd metre meter gram tonne degree".split()
)  # singular
_OPPOSITES = [
    frozenset(pair.split("/")) for pair in "more/less more/fewer above/below over/under before/after first/last open/shut open/close largest/smallest highest/lowest longest/shortest most/least maximum/minimum "
    "always/never start/stop begin/end near/far left/right day/night up/down increase/decrease inside/outside".split()
]  # fmt: skip


def unsupported(sentence: str, text: str, question: str = "") -> str:
    """Why a sentence is not said by a text; empty where nothing speaks against it. Words of the question are no news.

    >>> unsupported("The valve opens at 16 bar.", "The relief valve opens at 12 bar. It is blue.")
    '16 does not stand in what it cites'
    >>> unsupported("The valve is not blue.", "The relief valve opens at 12 bar. It is a blue valve.")
    'it denies what it cites, or the other way round'
    >>> unsupported("The relief valve opens at 12 bar.", "The relief valve opens at 12 bar. It is blue.")
    ''
    """
    plain = _LEAD.sub("", sentence)
    if _quotes(plain, text):
        return ""
    absent = _numbers(plain) - _numbers(text) - _numbers(question)
    if absent:
        return f"{min(absent)} does not stand in what it cites"
    names = {n for n in _NAME.findall(plain) if n.lower() not in {*words(text), *words(question)}}
    if names:
        return f"{min(names)} does not stand in what it cites"
    held, asked = set(_content(text)), set(_content(question))
    if not set(_content(plain)):
        return ""  # Yes.
    said = [text[a:b] for a, b in sentences(text)]
    parts = [clause for sentence in said for clause in _clauses(sentence, 2)]
    if not parts:
        return "its words do not stand in what it cites"
    for clause in _clauses(plain, 3):
        stems = _content(clause)
        news = [s for s in stems if s not in asked]
        if news and sum(s in held for s in news) / len(news) < SHARE:
            return "its words do not stand in what it cites"
        other = _elsewhere(clause, parts, question)
        if other:
            return f"{other} is said of something else in what it cites"
    for clause in _clauses(plain, 2):
        stems = _content(clause)
        best = _nearest(stems, parts)
        if _alike(stems, _content(best)) >= SHARE:
            if _denies(clause) != _denies(best):
                return "it denies what it cites, or the other way round"
            if _ONLY.search(clause) and not _ONLY.search(best):
                return "it says only where what it cites does not"
            if _ONLY.search(best) and not _ONLY.search(clause):
                return "it leaves out an only of what it cites"
            if _opposed(clause, best):
                return "it says the opposite of what it cites"
    return ""


def _quotes(sentence: str, text: str) -> bool:
    """Whether it is a whole sentence of the text, or up to three in a row, word for word and with the same numbers: what is said by a part of a sentence may be denied by the rest."""
    ours = words(sentence)
    said = [(words(text[a:b]), text[a:b]) for a, b in sentences(text)]
    for at in range(len(said)):
        for end in range(at + 1, min(at + 3, len(said)) + 1):
            theirs = [word for part, _ in said[at:end] for word in part]
            if len(theirs) > len(ours):
                break
            if theirs == ours and _numbers(sentence) == {n for _, part in said[at:end] for n in _numbers(part)}:
                return bool(ours)
    return False


def _elsewhere(clause: str, parts: Sequence[str], question: str) -> str:
    """A number of the clause that the text says of something else: it has another unit there, or the part of a sentence where it stands has less than half of the clause's words that a part with
    another number has."""
    numbers = _numbers(clause)
    units: dict[str, set[str]] = {}
    for part in parts:
        for number, unit in _units(part):
            units.setdefault(number, set()).add(unit)
    for number, unit in _units(clause):
        if unit and number in units and "" not in units[number] and unit not in units[number]:
            return number
    stems = [s for s in _content(clause) if s not in numbers]
    shares = [(_numbers(part), _alike(stems, _content(part))) for part in parts]
    for number in sorted(numbers - _numbers(question)):
        own = [share for held, share in shares if number in held]
        most = max((share for held, share in shares if held and number not in held), default=0.0)
        if own and max(own) < most / 2:
            return number
    return ""


def _units(text: str) -> list[tuple[str, str]]:
    """(number, the unit right after it, or nothing where it has none) in their order."""
    found = _TOKEN.findall(text)
    return [
        (_WORDS.get(a.lower(), a.rstrip(".,")), _unit(b) if a[-1:] not in ".," else "")
        for a, b in zip(found, [*found[1:], ""], strict=True)
        if a[0].isdigit() or a.lower() in _WORDS
    ]


def _unit(word: str) -> str:
    plain = word.lower()
    return next((form for form in (plain, plain.removesuffix("s")) if form in _UNITS), "")


def _denies(clause: str) -> bool:
    """Whether it holds a negation; a bound, as in no more than, is none."""
    return bool(_NOT.search(_BOUND.sub(" ", clause)))


def _nearest(stems: Sequence[str], said: Sequence[str]) -> str:
    """What shares most of these words, the first of equals."""
    return max(said, key=lambda other: _alike(stems, _content(other)))


def _content(text: str) -> list[str]:
    return [_WORDS.get(w, stem(w)) for w in words(text) if w not in STOP_WORDS]


def _numbers(text: str) -> set[str]:
    text = _RANGE.sub(" to ", _MINUS.sub(lambda match: f"-{_WORDS.get(match[1].lower(), match[1])}", text))
    return {("-" if sign else "") + n.rstrip(".,") for sign, n in _NUMBER.findall(text)} | {_WORDS[w] for w in words(text) if w in _WORDS}


def _clauses(sentence: str, least: int) -> list[str]:
    """The parts of a sentence; one of fewer content words goes with the part before it."""
    found: list[str] = []
    at = 0
    for end in [*(m.span() for m in _CLAUSE.finditer(sentence)), (len(sentence), len(sentence))]:
        part = sentence[at : end[0]]
        if found and len(_content(part)) < least:
            found[-1] = f"{found[-1]}, {part}"
        elif part.strip():
            found.append(part)
        at = end[1]
    if len(found) > 1 and len(_content(found[0])) < least:
        found[:2] = [f"{found[0]}, {found[1]}"]
    return found


def _alike(a: Sequence[str], b: Sequence[str]) -> float:
    """The share of `a`'s words that `b` has."""
    return sum(word in b for word in a) / len(a) if a else 0.0


def _opposed(clause: str, best: str) -> bool:
    ours, theirs = set(words(clause)), set(words(best))
    return any(len(pair & ours) == 1 and len(pair & theirs) == 1 and pair & ours != pair & theirs for pair in _OPPOSITES)
