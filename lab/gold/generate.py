"""`lab gold generate`: a gold set made of a collection without a model; drawn by seed, sifted, and open about how it was made."""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import __version__
from lab.codes import VERSION
from lab.errors import CannotJudge, UsageError, unknown
from lab.gold import asking, sift
from lab.gold.drafts import Draft, gather, place
from lab.gold.files import new_folder, save_gold
from lab.gold.generators import GENERATORS
from lab.models.chat import Chat
from lab.progress import Progress
from lab.records import Judgment, Question
from lab.retrieval.search import open_corpus, question_vectors
from lab.settings import Settings
from lab.store.connect import Store

SHARES = {"section": 0.2, "definition": 0.2, "fact": 0.25, "citation": 0.1, "keyword": 0.15, "unanswerable": 0.1}
_DOCUMENT = 0.1  # share of the questions that one document may have, where there are enough others
_BATCH = 64


@dataclass(frozen=True, slots=True)
class Asked:
    """The chat model that writes questions, how many a passage, in how many other words each is said again, and what it costs."""

    chat: Chat
    cost: asking.Cost
    per: int = 2
    paraphrases: int = 1


@dataclass(frozen=True, slots=True)
class Generated:
    """What came of it: questions kept per kind, drafts refused per reason, how many kept ones are flagged."""

    path: Path
    kinds: Mapping[str, int]
    rejected: Mapping[str, int]
    incomplete: int
    hard: int
    bands: Mapping[str, int]
    cost: Mapping[str, Any] | None = None  # of the chat model, where one was asked

    @property
    def kept(self) -> int:
        return sum(self.kinds.values())

    def to_json(self) -> dict[str, Any]:
        """The object of `lab gold generate --json`."""
        return {
            "schema_version": 1, "path": str(self.path), "kept": self.kept, "rejected": dict(self.rejected), "kinds": dict(self.kinds), "bands": dict(self.bands),
            "incomplete": self.incomplete, "hard": self.hard, **({"cost": dict(self.cost)} if self.cost is not None else {}),
        }  # fmt: skip


def generate(
    collection: str,
    name: str,
    *,
    store: Store,
    questions: int = 200,
    kinds: Sequence[str] = (),
    seed: int = 13,
    to: Path | None = None,
    replace: bool = False,
    asked: Asked | None = None,
) -> Generated:
    """Makes `questions` questions of a collection. Every document that brings a draft has at least one where there are as many questions, and none more than a tenth of
    them; what a kind cannot fill goes to the others. With `asked` a chat model writes them in place of the rules.

    Raises CannotJudge with the counts where none is kept.
    """
    if asked is not None and kinds:
        raise UsageError("--kinds belongs to the rules: a chat model says itself of what kind a question is.")
    chosen = list(dict.fromkeys(kinds)) or list(GENERATORS)
    for kind in chosen:
        if kind not in GENERATORS:
            raise unknown("kind", kind, GENERATORS)
    if questions < 1:
        raise UsageError(f"-n {questions} is too few: at least 1.")
    target = new_folder(name, to, replace)
    corpus = open_corpus(store, collection)
    if corpus.chunks == 0:
        raise CannotJudge(f"collection {collection!r} holds no passage: ingest something into it.")
    if corpus.collection.codes != VERSION:
        raise UsageError(f"the side tokens of {collection!r} are those of another version of the lab: run `lab index {collection}` first.")
    material = gather(store, corpus.collection, max(20 * questions, 2000), seed)
    settings = Settings() if corpus.collection.dim is not None else Settings().with_words({"dense": "none"})
    rejected: Counter[str] = Counter()
    if asked is not None:
        chosen, quotas = ["model"], {"model": questions}
        sources = {"model": asking.drafts(asked.chat, material, asked.cost, per=asked.per, paraphrases=asked.paraphrases, seed=seed)}
    else:
        sources = {kind: _turns(GENERATORS[kind](store, corpus.collection, material, seed), seed, questions, rejected) for kind in chosen}
        quotas = _quotas(chosen, questions)
    cap = max(math.ceil(_DOCUMENT * questions), math.ceil(questions / max(material.documents, 1)) + 1)
    seen, per_document = sift.Seen(), Counter[str]()
    kept: list[sift.Sifted] = []
    filled: Counter[str] = Counter()
    with store.held(), Progress(f"questions of {collection}", questions, "questions") as bar:
        open_kinds = list(chosen)
        while open_kinds and len(kept) < questions:
            for kind in list(open_kinds):
                wanted = min(quotas[kind] - filled[kind], questions - len(kept), _BATCH)
                if wanted <= 0:
                    open_kinds.remove(kind)
                    continue
                batch = list(itertools.islice(_sifted(sources[kind], seen, per_document, cap, rejected), wanted))
                if len(batch) < wanted:
                    open_kinds.remove(kind)
                for draft, vector in zip(batch, _vectors(corpus, settings, batch), strict=True):
                    kept.append(sift.examine(corpus, draft, material, settings, vector))
                    filled[kind] += 1
                    bar.advance()
            if not open_kinds and len(kept) < questions:  # what some kinds lack, the others give
                more = [kind for kind in chosen if filled[kind] == quotas[kind]]
                spare = questions - len(kept)
                for kind in more:
                    quotas[kind] += math.ceil(spare / len(more))
                open_kinds = more
    if asked is not None:
        rejected += asked.cost.rejected
    if not kept:
        counts = ", ".join(f"{count} {why}" for why, count in sorted(rejected.items())) or "no passage fits a rule"
        raise CannotJudge(f"0 kept: {counts}. Try other --kinds, or a collection with longer passages.")
    return _saved(target, name, collection, corpus.collection.corpus_digest, kept, rejected, seed, questions, chosen, asked)


def _quotas(kinds: Sequence[str], questions: int) -> dict[str, int]:
    """Questions a kind, in proportion to the usual shares, the largest remainders first."""
    whole = sum(SHARES[kind] for kind in kinds)
    exact = {kind: questions * SHARES[kind] / whole for kind in kinds}
    found = {kind: math.floor(value) for kind, value in exact.items()}
    for kind in sorted(kinds, key=lambda kind: (found[kind] - exact[kind], kind))[: questions - sum(found.values())]:
        found[kind] += 1
    return found


def _turns(drafts: Iterator[Draft], seed: int, questions: int, rejected: Counter[str]) -> Iterator[Draft]:
    """Drafts document by document in turn, so that the first ones are of as many documents as there are."""
    of: dict[str, list[tuple[str, Draft]]] = {}
    for draft in drafts:
        source = draft.passage.source if draft.passage is not None else ""
        of.setdefault(source, []).append((place(seed, source, draft.text), draft))
    lists = [sorted(group, key=lambda pair: pair[0]) for _, group in sorted(of.items(), key=lambda item: place(seed, item[0]))]
    for round_ in itertools.zip_longest(*lists):
        yield from (pair[1] for pair in round_ if pair is not None)


def _sifted(drafts: Iterator[Draft], seen: sift.Seen, per_document: Counter[str], cap: int, rejected: Counter[str]) -> Iterator[Draft]:
    for draft in drafts:
        why = sift.reason(draft)
        if not why and draft.passage is not None and per_document[draft.passage.source] >= cap:
            why = "document_full"
        if not why and seen.twin(draft.text):
            why = "duplicate"
        if why:
            rejected[why] += 1
            continue
        if draft.passage is not None:
            per_document[draft.passage.source] += 1
        yield draft


def _vectors(corpus: Any, settings: Settings, batch: Sequence[Draft]) -> Sequence[Any]:
    return question_vectors(corpus, [draft.text for draft in batch]) if settings.dense_arm != "none" and batch else [None] * len(batch)


def _saved(
    target: Path,
    name: str,
    collection: str,
    corpus_digest: str,
    kept: Sequence[sift.Sifted],
    rejected: Mapping[str, int],
    seed: int,
    wanted: int,
    chosen: Sequence[str],
    asked: Asked | None,
) -> Generated:
    questions: list[Question] = []
    judgments: list[Judgment] = []
    ids: dict[str, str] = {}
    for number, one in enumerate(sorted(kept, key=lambda s: (s.draft.kind, place(seed, s.draft.text))), 1):
        question_id = f"g{number:0{max(3, len(str(len(kept))))}}"
        ids[one.draft.text] = question_id
        questions.append(Question(question_id, one.draft.text, one.draft.kind, "", one.draft.answerable, one.metadata()))
        judgments += [dataclasses.replace(j, question_id=question_id) for j in one.draft.judgments]
    questions = [_with_parent(question, ids) for question in questions]
    kinds = dict(sorted(Counter(one.draft.kind for one in kept).items()))
    bands = dict(sorted(Counter(one.copying.band for one in kept if one.copying is not None).items()))
    incomplete, hard = sum(bool(one.rivals) for one in kept), sum(one.hard for one in kept)
    report = Generated(target, kinds, dict(sorted(rejected.items())), incomplete, hard, bands, asked.cost.to_json() if asked is not None else None)
    save_gold(target, questions, judgments, _readme(report, name, collection, corpus_digest, seed, wanted, chosen, asked))
    return report


def _with_parent(question: Question, ids: Mapping[str, str]) -> Question:
    """A paraphrase names its original by id, where that was kept; its words are its own affair else."""
    known = dict(question.metadata)
    original = known.pop("parent_text", None)
    if original in ids:
        known["parent"] = ids[original]
    return dataclasses.replace(question, metadata=known)


def _readme(
    report: Generated, name: str, collection: str, corpus_digest: str, seed: int, wanted: int, chosen: Sequence[str], asked: Asked | None
) -> str:
    def table(counts: Mapping[str, int]) -> str:
        return "".join(f"| {key} | {count} |\n" for key, count in counts.items())

    maker = (
        f"rules, without a model, by lab {__version__}"
        if asked is None
        else f"the chat model `{asked.chat.model}` (prompts `{asking.VERSION}`, temperature 0, seed {seed})"
    )
    flags = f"--kinds {','.join(chosen)}" if asked is None else f"--chat --per {asked.per} --paraphrases {asked.paraphrases}"
    favours = (
        "- A rule turns the passage's own words round, so these questions flatter lexical search; compare bands before you compare arms.\n"
        "- `definition` questions come from definition links and `citation` ones from citations: they cannot judge the flags `defines` and `cites`.\n"
        "- `unanswerable` says that a code, section or term is absent from the collection, and no more.\n"
        if asked is None
        else "- The model saw the passage while it wrote, so these questions flatter what finds passages by their own words or by a model of the same family; `paraphrase` questions "
        "do without the passage's rare words, and are closest to what people ask.\n"
        f"- {report.cost['calls'] if report.cost else 0} calls in the last command, {report.cost['tokens'] if report.cost else 0} tokens; {report.cost['cached'] if report.cost else 0} answers from the cache.\n"
    )
    return (
        f"# {name}\n\nMade by {maker} on {dt.date.today().isoformat()}: `lab gold generate {collection} --as {name} -n {wanted} {flags} --seed {seed}`, from the collection "
        f"`{collection}` with corpus digest `{corpus_digest}`. Grade 2: the passage that the question was made of. Nobody has read these questions.\n\n"
        f"| kind | questions |\n| --- | ---: |\n{table(report.kinds)}\n| copying | questions |\n| --- | ---: |\n{table(report.bands)}\n"
        f"Refused drafts: {', '.join(f'{count} {why}' for why, count in report.rejected.items()) or 'none'}. {report.incomplete} questions are `incomplete`: other passages "
        f"look as if they answered, and wait in `metadata.to_review`. {report.hard} are `hard`: no arm has the passage among its first hundred.\n\n"
        f"## What follows from how it was made\n\n{favours}"
    )
