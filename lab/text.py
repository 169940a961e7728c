"""Text as the lab compares it: normal forms, words, stems, facts and digests. Pure functions; one definition for the whole lab."""

from __future__ import annotations

import functools
import hashlib
import json
import re
import unicodedata
from typing import Any

# The stop words of Snowball's English list, which Postgres' `english` configuration uses too.
STOP_WORDS = frozenset(
    """
    i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers herself it its itself they
    them their theirs themselves what which who whom this that these those am is are was were be been being have has had having do does
    did doing a an the and but if or because as until while of at by for with about against between into through during before after
    above below to from up down in out on off over under again further then once here there when where why how all any both each few
    more most other some such no nor not only own same so than too very s t can will just don should now would could may might must
    shall
    """.split()
)

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?", re.UNICODE)
_SPACE = re.compile(r"\s+")
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_CODE = re.compile(r"\b(?=[A-Za-z0-9/_-]*\d)(?=[A-Za-z0-9/_-]*[A-Za-z])[A-Za-z0-9]+(?:[-_/][A-Za-z0-9]+)*\b|\b[A-Z]{2,}[A-Z0-9]*\b")
_NEGATION = re.compile(r"\b(?:not|no|never|none|neither|nor|without|cannot|except|unless|prohibited|forbidden)\b|n['’]t\b", re.IGNORECASE)
_MONTHS = frozenset(
    """
    january february march april may june july august september october november december
    jan feb mar apr jun jul aug sep sept oct nov dec
    """.split()
)


def digest(value: Any) -> str:
    """Hex sha256 of `value` as canonical JSON (sorted keys, no spaces)."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str).encode()).hexdigest()


def text_hash(text: str) -> bytes:
    """The 16-byte key of a text in the caches: its exact characters, nothing normalised."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


def normalise(text: str) -> str:
    """The form in which two passages are *exact* twins: Unicode NFKC, case folded, runs of white space made one space.

    Punctuation and numbers stay: they may change the meaning.
    """
    return _SPACE.sub(" ", unicodedata.normalize("NFKC", text).casefold()).strip()


class _Indexable(dict[int, str]):
    """What stands for a sign in the text index, found out once."""

    def __missing__(self, code: int) -> str:
        sign = chr(code)
        if sign in "\u2018\u2019\u201a\u201b\u02bc\u2032\u2039\u203a":
            found = "'"
        elif sign in "\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033":
            found = '"'
        elif sign in "\u00ad\ufeff\u200b\u200c\u200d\u2060":  # stand inside of words and are not seen
            found = ""
        elif code < 128 or unicodedata.category(sign)[0] not in "PSZC":
            found = sign
        else:
            found = " "
        self[code] = found
        return found


_HYPHEN = re.compile(r"(?<=[^\W_])[\u2010-\u2012](?=[^\W_])|(?<=[^\W\d_])[\u2013\u2212](?=[^\W\d_])")
_indexable = _Indexable()


def indexable(text: str) -> str:
    """A text as the text index is given it, and asked: typographic quotes and hyphens become plain ones, other signs outside of ASCII
    spaces (a dash between numbers too, lest 5–10 become 5 and −10). Where a database has the
    locale C, Postgres's parser takes every such sign for a letter, so that “valve” would be another word than valve.

    >>> indexable("the pump\u2019s \u201cquiet hour\u201d \u2014 5\u00a0bar, 2019\u20132021")
    'the pump\\'s "quiet hour"   5 bar, 2019 2021'
    """
    return text if text.isascii() else _HYPHEN.sub("-", text).translate(_indexable)


def class_id(text: str) -> bytes:
    """The 16-byte name of the exact class of `text`."""
    return text_hash(normalise(text))


def words(text: str) -> list[str]:
    """Lower-case words in order; an apostrophe's tail is dropped (`pump's` → `pump`)."""
    return [match.partition("'")[0].partition("’")[0] for match in WORD.findall(text.lower())]


@functools.cache
def _stemmer() -> Any:
    import snowballstemmer

    return snowballstemmer.stemmer("english")


@functools.lru_cache(maxsize=200_000)
def stem(word: str) -> str:
    """Snowball (Porter2) stem of a lower-case English word."""
    return str(_stemmer().stemWord(word))


def content_stems(text: str) -> list[str]:
    """Stems of the words that are not stop words, in order."""
    return [stem(word) for word in words(text) if word not in STOP_WORDS]


def term_key(term: str) -> str:
    """The normal form under which a defined term is stored and looked up: stems of its words, a leading article dropped.

    >>> term_key("The Cold Permits")
    'cold permit'
    """
    parts = words(term)
    while len(parts) > 1 and parts[0] in {"a", "an", "the"}:
        parts = parts[1:]
    return " ".join(stem(part) for part in parts)


def ngrams(text: str, longest: int = 6) -> dict[str, int]:
    """Every run of 1 to `longest` words of `text` as a term key → the position of its first word, first occurrence wins."""
    stems = [stem(word) for word in words(text)]
    found: dict[str, int] = {}
    for size in range(1, longest + 1):
        for at in range(len(stems) - size + 1):
            found.setdefault(" ".join(stems[at : at + size]), at)
    return found


def copied_share(question: str, passage: str) -> float:
    """Share of the question's content stems that stand in the passage, 0 to 1; 0 for a question without content words."""
    stems = content_stems(question)
    if not stems:
        return 0.0
    there = set(content_stems(passage))
    return sum(item in there for item in stems) / len(stems)


BANDS = ("copied", "natural", "paraphrased")


def copying_band(share: float) -> str:
    """`copied` (≥ 0.6), `paraphrased` (≤ 0.2) or `natural`."""
    if share >= 0.6:
        return "copied"
    return "paraphrased" if share <= 0.2 else "natural"


def facts(text: str) -> tuple[str, ...]:
    """The sorted multiset of numbers, codes, dates and negations of a passage.

    Two passages whose facts differ are never near twins, however alike their words are.
    """
    found = [match.group().strip(".,:/-") for match in _NUMBER.finditer(text)]
    found += [match.group().casefold() for match in _CODE.finditer(text)]
    found += ["not:" + match.group().casefold().replace("’", "'") for match in _NEGATION.finditer(text)]
    found += ["month:" + word for word in words(text) if word in _MONTHS and word not in {"may", "march"}]
    # "Pump A" and "Pump B": a single capital letter after a word names a thing.
    found += ["letter:" + match.group(1) for match in re.finditer(r"(?<=\w )([A-Z])\b(?!')", text)]
    return tuple(sorted(found))
