"""Grounded answers: search, floor, context block, an answer from that block alone, its citations checked.

Two answerers. `extractive` quotes the sentences that share most with the question, so that it works without a model and is faithful by construction; `chat` asks the chat model of the
surroundings. Where nothing passes the floor no model is called.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lab.corpus.fences import harmless
from lab.errors import UsageError
from lab.models.chat import Chat, configured
from lab.models.embedders import counter
from lab.retrieval.context import Corpus
from lab.retrieval.everything import everything
from lab.retrieval.search import open_corpus, search
from lab.serving import citing, prompt
from lab.serving.citing import Sentence
from lab.serving.extractive import extract
from lab.serving.prompt import Passage
from lab.settings import Settings, resolved
from lab.store import chunks, collections
from lab.store.connect import Store

_DEEPEST = 1_000  # results of one search
_BARRED = "what was found may not be answered from"
BUDGET = 3_000  # tokens of the context block
ANSWERERS = ("extractive", "chat")


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


@dataclass(frozen=True, slots=True)
class Context:
    """What a question is answered from: the passages of the block, numbered, best first where they are `ranked`; `said` tells why there is none, `left_out` how many did not fit."""

    question: str
    collection: str
    passages: Sequence[Passage]
    said: str = ""
    escalation: str = ""
    left_out: int = 0
    ranked: bool = True


def answer(
    store: Store, name: str, question: str, *, answerer: str = "extractive", settings: Settings | str | None = None, budget: int = BUDGET, min_faithfulness: float = 0.0,
    chat: Chat | None = None, stuff: bool = False, history: Sequence[str] = (), **flags: str | float,
) -> Answer:  # fmt: skip
    """Answers from a collection. `flags` are those of search; `history` are the questions asked before, which `rewrite` reads: what is answered is the question made to stand alone. With `stuff` nothing is searched, and the whole collection is the context. Raises UsageError for an unknown
    collection, flag or answerer, and (chat) where no model is named; with `stuff` where the collection does not fit into the budget."""
    check(answerer, min_faithfulness, budget)
    for flag in flags:
        Settings.flag(flag)  # an unknown one is told as such
    model = (chat or configured()) if answerer == "chat" else None
    context = retrieve(store, name, question, settings=settings, budget=budget, stuff=stuff, history=history, without=(), **flags)
    return synthesise(context, model, min_faithfulness)


def block_texts(block: Sequence[Passage]) -> dict[int, str]:
    """Number → what a citation of it can rest on: the passage with its section."""
    return {p.n: f"{p.section}\n\n{p.result.text}" for p in block}


def check(answerer: str, min_faithfulness: float = 0.0, budget: int = BUDGET) -> None:
    """UsageError for what is no answerer, no share, or no budget."""
    if answerer not in ANSWERERS:
        raise UsageError(f"--answerer cannot be {answerer!r}: it takes {' or '.join(ANSWERERS)}.")
    if not 0 <= min_faithfulness <= 1:
        raise UsageError(f"--min-faithfulness {min_faithfulness:g} is no share: from 0 to 1.")
    if budget < 50:
        raise UsageError(f"--budget {budget} leaves no room for a passage: at least 50 tokens.")


def retrieve(
    store: Store, name: str, question: str, *, settings: Settings | str | None = None, budget: int = BUDGET, stuff: bool = False,
    history: Sequence[str] = (), without: Collection[str] = (), **flags: str | float,
) -> Context:  # fmt: skip
    """Search, floor, and the passages that fit into the budget. With `stuff` every passage of the collection, in the order of its documents. `without`: sources that may not be answered from;
    the search goes deeper by as many passages as they have. An exact twin of one of theirs may go with it."""
    if not question.strip():
        raise UsageError("the question is empty.")
    corpus = open_corpus(store, name)
    count = counter(corpus.collection.embedder)
    escalation = collections.escalation(store, corpus.collection)
    if stuff:
        if flags:
            raise UsageError(f"--stuff searches nothing, so --{min(flags).replace('_', '-')} has no meaning beside it: leave one of them out.")
        return barred(Context(question, name, _stuffed(corpus, budget, count), escalation=escalation, ranked=False), without)
    base = resolved(settings)
    chosen = base.with_words({flag: str(value) for flag, value in flags.items()})
    if corpus.collection.dim is None and chosen.dense != "none":
        chosen = chosen.with_words({"dense": "none"})
    taken = sum(map(len, chunks.spots(store, corpus.collection, sorted(without)).values())) if without else 0
    deeper = replace(chosen, k=min(chosen.k + taken, max(_DEEPEST, chosen.k)))
    found = search(corpus, question, settings=deeper, history=history)
    question = found.question
    results = [result for result in found.results if result.source not in without][: chosen.k]
    if not results:
        return Context(question, name, (), found.diagnostic.message if found.diagnostic else _BARRED, escalation)
    kept, left_out = prompt.passages(results, budget, count)
    return Context(question, name, kept, "", escalation, left_out)


def barred(context: Context, without: Collection[str]) -> Context:
    """The context without the passages of some sources, numbered anew."""
    left = [p for p in context.passages if p.result.source not in without]
    return replace(context, passages=[replace(p, n=n) for n, p in enumerate(left, 1)], said="" if left else _BARRED) if without else context


def _stuffed(corpus: Corpus, budget: int, count: Callable[[str], int]) -> list[Passage]:
    found = everything(corpus)
    kept, left_out = prompt.passages(found, budget, count)
    if left_out or (kept and kept[0].text != harmless(kept[0].result.text.strip())):
        needed = sum(prompt.tokens(p, count) for p in prompt.passages(found, sys.maxsize, lambda _: 0)[0])
        raise UsageError(
            f"{corpus.collection.name} has {needed:,} tokens, more than --budget {budget}: say --budget {needed} if the model reads so much, or leave --stuff out."
        )
    return kept


def synthesise(context: Context, model: Chat | None = None, min_faithfulness: float = 0.0) -> Answer:
    """An answer from those passages alone, by the model (None: extractive), its citations checked. Without a passage no model is called."""
    question, name, block, escalation = context.question, context.collection, context.passages, context.escalation
    answerer = "extractive" if model is None else "chat"
    if not block:
        told = f"Nothing in {name} is near enough to this question ({context.said.rstrip('.')})."
        return Answer(question, name, "no_relevant_context", None, (), (), (), told, escalation, answerer)
    if model is None:
        text, cost = extract(question, block, ranked=context.ranked), {}
    else:
        reply = model.ask(prompt.SYSTEM, prompt.prompt(question, block), prompt.SCHEMA)
        text = " ".join(str(reply.value["answer"]).split()) if reply.value["sufficient"] else ""
        cost = {"calls": reply.calls, "prompt_tokens": reply.asked, "completion_tokens": reply.answered}
    checked = citing.check(text, block_texts(block), question)
    if not checked:  # nothing, or nothing but citations
        told = "The passages that were found do not suffice to answer this question."
        return Answer(question, name, "no_relevant_context", None, (), block, (), told, escalation, answerer, cost)
    known = {p.n for p in block}
    sources = [n for n in citing.cited(text) if n in known]
    faithful = citing.faithfulness(checked) or 0.0
    if faithful < min_faithfulness:
        told = f"The answer is withheld: by the proxy {faithful:.2f} of its sentences are supported by what they cite, {min_faithfulness:g} were asked for."
        return Answer(question, name, "unsupported", None, sources, block, checked, told, escalation, answerer, cost)
    return Answer(question, name, "ok", text, sources, block, checked, "", "", answerer, cost)
