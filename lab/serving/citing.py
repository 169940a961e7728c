"""Citations of an answer: which passages its sentences name, and whether these hold the words of the sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lab.corpus.sentences import sentences
from lab.serving.support import unsupported

_CITED = re.compile(r"\[(\d{1,6}(?:\s*[,;]\s*\d{1,6})*)\]")
_QUOTED = re.compile(r"“[^“”]*”(?=\s*[.!?…]?\s*\[\d)")  # what stands in brackets inside is the passage's own
_APART = str.maketrans("[]", "\ue000\ue001")
_BACK = str.maketrans("\ue000\ue001", "[]")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of an answer with the passages that it cites. `why` it is not supported; empty where it is."""

    text: str
    cites: tuple[int, ...]
    why: str

    @property
    def supported(self) -> bool:
        return not self.why


def cited(text: str) -> tuple[int, ...]:
    """The numbers in brackets, each once, in their order; those inside of a quotation that is cited itself are no citations.

    >>> cited("It opens at 12 bar [2][1, 3]. Twice [2]."), cited("“As was shown [7].” [4]")
    ((2, 1, 3), (4,))
    """
    numbers = [int(n) for match in _CITED.finditer(_set_apart(text)) for n in re.split(r"\s*[,;]\s*", match[1])]
    return tuple(dict.fromkeys(numbers))


def _set_apart(text: str) -> str:
    return _QUOTED.sub(lambda match: match[0].translate(_APART), text)


def check(answer: str, passages: Mapping[int, str], question: str = "") -> list[Sentence]:
    """Every sentence of an answer, checked against the texts that it cites (number → text). A citation behind a full stop belongs to the sentence before it.

    A sentence is unsupported that cites nothing, that cites a number which was not retrieved, or that what it cites does not say (`lab.serving.support`, which sees words and no meaning: a proxy).
    """
    text = re.sub(r"([.!?…][\"'”’)]*)\s*((?:\[\d[\d,; ]*\]\s*)+)", lambda m: f" {m[2].strip()}{m[1]} ", _set_apart(answer))
    found = []
    for start, end in sentences(text.strip()):
        sentence = text.strip()[start:end]
        cites = cited(sentence)
        plain = " ".join(_CITED.sub(" ", sentence).split())
        plain = re.sub(r"\s+([.!?…,;:])", r"\1", plain)
        if not re.search(r"\w", plain):
            continue
        plain = plain.translate(_BACK)
        found.append(Sentence(plain, cites, _why(plain, cites, passages, question)))
    return found


def _why(sentence: str, cites: Sequence[int], passages: Mapping[int, str], question: str) -> str:
    if not cites:
        return "it cites no passage"
    absent = [n for n in cites if n not in passages]
    if absent:
        return f"[{absent[0]}] was not retrieved"
    return unsupported(sentence, "\n\n".join(passages[n] for n in cites), question)


def faithfulness(checked: Sequence[Sentence]) -> float | None:
    """The share of the sentences that are supported; None where there is none."""
    return sum(s.supported for s in checked) / len(checked) if checked else None
