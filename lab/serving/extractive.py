"""The answerer that needs no model: sentences of the passages, quoted and cited, so that nothing is said which no passage says."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lab.corpus.claiming import unmarked
from lab.corpus.sentences import sentences
from lab.serving.prompt import Passage
from lab.text import content_stems

_QUOTED = 3  # sentences of an answer
_INNER = str.maketrans("“”", "‘’")  # quotation marks inside of a quotation
_LEAST = 0.5  # of what its best sentence has


def extract(question: str, block: Sequence[Passage], *, ranked: bool = True) -> str:
    """The sentences that share most of the question's rarer content words, quoted, each with its passage; in the order of their worth, at most three, none much weaker than the first.

    What the search ranked higher counts for more, by 1/√rank (not where the block is the whole collection: `ranked` False): on the handbook's dev questions that doubles the share of cited passages that answer (0.20 to 0.41).
    """
    wanted = set(content_stems(question))
    cut = [(p, p.text[a:b]) for p in block if not p.orders for a, b in sentences(p.text)]
    cut = [
        (p, text) for p, text in cut if not (p.cut and p.text.endswith(text))
    ] or cut  # half a sentence is no quotation, where there is a whole one
    stems = [set(content_stems(text)) for _, text in cut]
    often = {word: sum(word in s for s in stems) for word in wanted}
    weight = {word: math.log(1 + len(cut) / (1 + count)) for word, count in often.items()}
    shared = [sum(weight[w] for w in wanted & s) for s in stems]
    scored = sorted(
        (
            ((shared[at] / (1 + 0.1 * math.log(1 + len(s))) + 1e-3) / (math.sqrt(p.n) if ranked else 1.0), -at, p, text)
            for at, ((p, text), s) in enumerate(zip(cut, stems, strict=True))
            if s
        ),
        key=lambda entry: entry[:2],
        reverse=True,
    )
    kept = [entry for entry in scored if entry[0] >= _LEAST * scored[0][0]][
        : _QUOTED if any(shared) else 1
    ]  # no word is shared: the best passage was found by meaning
    quotes = []
    for _, _, p, text in kept:
        plain = unmarked(text).lstrip("#>-*• ").strip().translate(_INNER)
        plain = plain if plain.endswith((".", "!", "?", "…", ";", ":")) else plain + "."
        quotes.append(f"“{plain}” [{p.n}]")
    return " ".join(dict.fromkeys(quotes))
