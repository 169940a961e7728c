"""Citations of an answer: which passages its sentences name, and whether these hold the words of the sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lab.corpus.sentences import sentences
from lab.text import content_stems

_CITED = re.compile(r"\[(\d{1,3}(?:\s*[,;]\s*\d{1,3})*)\]")
SUPPORTED = 0.6  # share of a sentence's content stems that must stand in the passages which it cites


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
    """The numbers in brackets, each once, in their order.

    >>> cited("It opens at 12 bar [2][1, 3]. Twice [2].")
    (2, 1, 3)
    """
    numbers = [int(n) for match in _CITED.finditer(text) for n in re.split(r"\s*[,;]\s*", match[1])]
    return tuple(dict.fromkeys(numbers))


def check(answer: str, passages: Mapping[int, str]) -> list[Sentence]:
    """Every sentence of an answer, checked against the texts that it cites (number → text). A citation behind a full stop belongs to the sentence before it.

    A sentence is unsupported that cites nothing, that cites a number which was not retrieved, or of whose content words fewer than 60 % stand in what it cites. That is a proxy for faithfulness: it
    sees words, not meaning, but for numbers, of which every one must stand there.
    """
    text = re.sub(r"([.!?…][\"'”’)]*)\s*((?:\[\d[\d,; ]*\]\s*)+)", lambda m: f" {m[2].strip()}{m[1]} ", answer)
    found = []
    for start, end in sentences(text.strip()):
        sentence = text.strip()[start:end]
        cites = cited(sentence)
        plain = " ".join(_CITED.sub(" ", sentence).split())
        plain = re.sub(r"\s+([.!?…,;:])", r"\1", plain)
        if not re.search(r"\w", plain):
            continue
        found.append(Sentence(plain, cites, _why(plain, cites, passages)))
    return found


def _why(sentence: str, cites: Sequence[int], passages: Mapping[int, str]) -> str:
    if not cites:
        return "it cites no passage"
    absent = [n for n in cites if n not in passages]
    if absent:
        return f"[{absent[0]}] was not retrieved"
    held = " ".join(passages[n] for n in cites)
    numbers = set(re.findall(r"\d+(?:[.,]\d+)*", sentence)) - set(re.findall(r"\d+(?:[.,]\d+)*", held))
    if numbers:
        return f"{min(numbers)} does not stand in what it cites"
    wanted = set(content_stems(sentence))
    if wanted and len(wanted & set(content_stems(held))) / len(wanted) < SUPPORTED:
        return "its words do not stand in what it cites"
    return ""


def faithfulness(checked: Sequence[Sentence]) -> float | None:
    """The share of the sentences that are supported; None where there is none."""
    return sum(s.supported for s in checked) / len(checked) if checked else None
