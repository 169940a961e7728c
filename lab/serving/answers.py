"""Grounded answers: search, floor, context block, an answer from that block alone, its citations checked.

Two answerers. `extractive` quotes the sentences that share most with the question, so that it works without a model and is faithful by construction; `chat` asks the chat model of the
surroundings. Where nothing passes the floor no model is called.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lab.corpus.claiming import unmarked
from lab.corpus.sentences import sentences
from lab.errors import UsageError
from lab.models.chat import Chat, configured
from lab.models.embedders import embedder
from lab.retrieval.search import open_corpus, search
from lab.serving import citing, prompt
from lab.serving.citing import Sentence
from lab.serving.prompt import Passage
from lab.settings import Settings, named
from lab.store import collections
from lab.store.connect import Store
from lab.text import content_stems

BUDGET = 3_000  # tokens of the context block
ANSWERERS = ("extractive", "chat")
_QUOTED = 3  # sentences of an extractive answer
_LEAST = 0.5  # of what its best sentence has


@dataclass(frozen=True, slots=True)
class Answer:
    """`status`: ok, no_relevant_context (nothing passed the floor, or the model said that the context does not suffice), unsupported (withheld: less faithful than was asked for).
    `passages` are those of the block; `sources` the numbers that the answer cites."""

    question: str
    collection: str
    status: str
    answer: str | None
    sources: Sequence[int]
    passages: Sequence[Passage]
    sentences: Sequence[Sentence]
    message: str = ""
    escalation: str = ""
    answerer: str = "extractive"
    cost: Mapping[str, int] = field(default_factory=dict)

    @property
    def faithfulness(self) -> float | None:
        """By the proxy of `lab.serving.citing`."""
        return citing.faithfulness(self.sentences)

    def to_json(self) -> dict[str, Any]:
        """The object of `lab answer --json`."""
        by_number = {p.n: p for p in self.passages}
        faithful = self.faithfulness
        return {
            "schema_version": 1, "question": self.question, "collection": self.collection, "answer": self.answer, "retrieval_status": self.status, "answerer": self.answerer,
            "sources": [
                {"n": n, "chunk_id": by_number[n].result.chunk_id, "source": by_number[n].result.source, "section": by_number[n].section, "updated": by_number[n].updated} for n in self.sources
            ],
            "unsupported": [{"sentence": s.text, "why": s.why} for s in self.sentences if not s.supported],
            "faithfulness_proxy": None if faithful is None else round(faithful, 4),
            "flagged": [{"n": p.n, "chunk_id": p.result.chunk_id, "why": p.orders} for p in self.passages if p.orders],
            "message": self.message or None, "suggested_escalation": self.escalation or None, "cost": dict(self.cost),
        }  # fmt: skip

    @property
    def words(self) -> str:
        """The answer with its list of sources, as people read it."""
        if self.answer is None:
            return self.message + (f" {self.escalation}" if self.escalation else "")
        by_number = {p.n: p for p in self.passages}
        lines = [self.answer, "", "Sources:"]
        for n in self.sources:
            p = by_number[n]
            section = p.section if p.section and p.section != p.title else ""
            lines.append(f"[{n}] {p.title}" + (f", {section}" if section else "") + (f" (updated {p.updated})" if p.updated else ""))
        return "\n".join(lines)


def answer(
    store: Store, name: str, question: str, *, answerer: str = "extractive", settings: Settings | str | None = None, budget: int = BUDGET, min_faithfulness: float = 0.0,
    chat: Chat | None = None, **flags: str | float,
) -> Answer:  # fmt: skip
    """Answers from a collection. `flags` are those of search. Raises UsageError for an unknown collection, flag or answerer, and (chat) where no model is named."""
    if answerer not in ANSWERERS:
        raise UsageError(f"--answerer cannot be {answerer!r}: it takes {' or '.join(ANSWERERS)}.")
    if not 0 <= min_faithfulness <= 1:
        raise UsageError(f"--min-faithfulness {min_faithfulness:g} is no share: from 0 to 1.")
    if budget < 50:
        raise UsageError(f"--budget {budget} leaves no room for a passage: at least 50 tokens.")
    if not question.strip():
        raise UsageError("the question is empty.")
    model = (chat or configured()) if answerer == "chat" else None
    corpus = open_corpus(store, name)
    base = named(settings) if isinstance(settings, str) else settings or Settings()
    chosen = base.with_words({flag: str(value) for flag, value in flags.items()})
    if corpus.collection.dim is None and chosen.dense != "none":
        chosen = chosen.with_words({"dense": "none"})
    found = search(corpus, question, settings=chosen)
    escalation = collections.escalation(store, corpus.collection)
    if not found.results:
        said = found.diagnostic.message if found.diagnostic else ""
        return Answer(
            question,
            name,
            "no_relevant_context",
            None,
            (),
            (),
            (),
            f"Nothing in {name} is near enough to this question ({said.rstrip('.')}).",
            escalation,
            answerer,
        )
    block, _ = prompt.passages(found.results, budget, embedder(corpus.collection.embedder).count_tokens)
    if model is None:
        text, cost = _extract(question, block), {}
    else:
        reply = model.ask(prompt.SYSTEM, prompt.prompt(question, block), prompt.SCHEMA)
        text = " ".join(str(reply.value["answer"]).split()) if reply.value["sufficient"] else ""
        cost = {"calls": reply.calls, "prompt_tokens": reply.asked, "completion_tokens": reply.answered}
    if not text:
        told = "The passages that were found do not suffice to answer this question."
        return Answer(question, name, "no_relevant_context", None, (), block, (), told, escalation, answerer, cost)
    checked = citing.check(text, {p.n: f"{p.section} {p.result.text}" for p in block})
    known = {p.n for p in block}
    sources = [n for n in citing.cited(text) if n in known]
    faithful = citing.faithfulness(checked) or 0.0
    if faithful < min_faithfulness:
        told = f"The answer is withheld: by the proxy {faithful:.2f} of its sentences are supported by what they cite, {min_faithfulness:g} were asked for."
        return Answer(question, name, "unsupported", None, sources, block, checked, told, escalation, answerer, cost)
    return Answer(question, name, "ok", text, sources, block, checked, "", "", answerer, cost)


def _extract(question: str, block: Sequence[Passage]) -> str:
    """The sentences that share most of the question's rarer content words, quoted, each with its passage; in the order of their worth, at most three, none much weaker than the first."""
    wanted = set(content_stems(question))
    cut = [(p, p.text[a:b]) for p in block if not p.orders for a, b in sentences(p.text)]
    stems = [set(content_stems(text)) for _, text in cut]
    often = {word: sum(word in s for s in stems) for word in wanted}
    weight = {word: math.log(1 + len(cut) / (1 + count)) for word, count in often.items()}
    scored = sorted(
        (
            (sum(weight[w] for w in wanted & s) / (1 + 0.1 * math.log(1 + len(s))) + 1e-3 / p.n, -at, p, text)
            for at, ((p, text), s) in enumerate(zip(cut, stems, strict=True))
            if s
        ),
        key=lambda entry: entry[:2],
        reverse=True,
    )
    kept = [entry for entry in scored if wanted and entry[0] >= _LEAST * scored[0][0]][:_QUOTED]
    kept = kept or scored[:1]  # no word is shared: the best passage was found by meaning
    quotes = []
    for _, _, p, text in kept:
        plain = unmarked(text).lstrip("#>-*• ").strip()
        plain = plain if plain.endswith((".", "!", "?", "…", ";", ":")) else plain + "."
        quotes.append(f"“{plain}” [{p.n}]")
    return " ".join(dict.fromkeys(quotes))
