"""`lab rerank train`: a small cross-encoder from the user's own judgments, trained on one split, chosen on held-out questions of it, judged on another."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import __version__
from lab.config import home
from lab.errors import CannotJudge, UsageError
from lab.evaluation.coverage import Target, credit
from lab.evaluation.measures import Ranking, mean, parse, score
from lab.evaluation.recorded import Run
from lab.evaluation.run import answerable, as_gold, execute, targets_of
from lab.gold.check import fit
from lab.gold.splits import components, may_learn
from lab.models import rerankers, training
from lab.models.training import Example, Recipe, Trained
from lab.progress import Progress, say
from lab.records import GoldSet, Question, SearchResult
from lab.retrieval.context import Corpus, Lookups
from lab.retrieval.search import Shared, open_corpus, question_vectors, rank
from lab.settings import Settings
from lab.store.connect import Store
from lab.text import digest, text_hash

MEASURE = parse("nDCG@10")
_HELD = 0.15  # share of the training questions that choose the best epoch and are not trained on
_HELD_MOST = 100


@dataclass(frozen=True, slots=True)
class Report:
    """A trained reranker and what it is worth. `test` holds the runs without and with it; `changed`: questions whose top 10 differs."""

    name: str
    folder: Path
    trained: Trained
    questions: int
    held: int
    pairs: int
    test_split: str | None
    test: tuple[Run, ...]
    changed: int
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """The object of `lab rerank train --json`."""
        return {
            "schema_version": 1,
            "reranker": f"cross-encoder:{self.name}",
            "folder": str(self.folder),
            "questions": self.questions,
            "held_out": self.held,
            "pairs": self.pairs,
            "held_out_ndcg": list(self.trained.dev),
            "best_epoch": self.trained.best,
            "stopped": self.trained.stopped,
            "seconds": self.seconds,
            "test": {
                "split": self.test_split,
                "questions": self.test[0].questions if self.test else 0,
                "rankings_changed": self.changed,
                "without": dict(self.test[0].scores) if self.test else {},
                "with": dict(self.test[1].scores) if self.test else {},
                "runs": [run.run_id for run in self.test],
            },
        }


def train(
    collection: str, gold: str | GoldSet, *, store: Store, name: str, split: str = "train", test: str | None = "test",
    recipe: Recipe | None = None, negatives: int = 4, depth: int = 50, settings: Settings | None = None,
) -> Report:  # fmt: skip
    """Trains `LAB_HOME/rerankers/<name>` on the questions of `split`: for each judgment a passage that covers it, against `negatives` passages drawn from the
    first `depth` that the arms bring and that cover nothing.

    Raises UsageError for the split `test`, a name that is taken, and for missing packages; CannotJudge where the gold set does not fit.
    """
    training.require()
    recipe, settings = recipe or Recipe(), settings or Settings()
    may_learn(split, test)
    folder = place(name)
    if folder.exists():
        raise UsageError(f"{folder} exists: choose another name behind --as, or remove it.")
    start = time.monotonic()
    corpus = open_corpus(store, collection)
    whole = as_gold(gold, None)
    fitted = fit(store, corpus.collection, as_gold(whole, split)).gold
    judged = as_gold(whole, test) if test is not None else None
    asked = answerable(fitted)
    kept_apart = {q.text for q in judged.questions} if judged is not None else set()
    leaking = [q for q in asked if q.text in kept_apart]
    if leaking:  # some published sets ask the same in both splits
        say(f"{len(leaking)} questions of the split {split} stand in {test} word for word, as {leaking[0].question_id}: they are not trained on")
        asked = [q for q in asked if q.text not in kept_apart]
    held = _held_out(asked, fitted, recipe.seed)
    wanted = targets_of(corpus, fitted, asked)
    pools = _pools(corpus, asked, settings, depth)
    examples = _examples(corpus, [q for q in asked if q.question_id not in held], pools, wanted, negatives, recipe.seed)
    if not examples:
        raise CannotJudge(f"no question of the split {split} has a judged passage and others to tell it from: nothing can be learnt.")
    chooser = _chooser(corpus, [q for q in asked if q.question_id in held], pools, wanted, settings.rerank_depth)
    seen = {"questions": sorted(text_hash(q.text).hex() for q in asked)}
    pairs = sum(len(e.passages) for e in examples)
    facts = {
        "lab": __version__, "made": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"), "gold": fitted.name, "gold_digest": fitted.digest, "split": split,
        "collection": collection, "corpus_digest": corpus.collection.corpus_digest, "settings": settings.digest, "negatives": negatives, "depth": depth,
        "recipe": dataclasses.asdict(recipe), "pairs": pairs, "held_out": len(held),
    }  # fmt: skip
    work = home() / "rerankers" / f".{name}-{digest({k: v for k, v in facts.items() if k != 'made'})[:12]}"
    trained = training.train(work / "model", examples, chooser, recipe, work)
    card = {**facts, **seen, "held_out_ndcg": list(trained.dev), "best_epoch": trained.best, "stopped": trained.stopped}
    (work / "model" / rerankers.CARD).write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    (work / "model").rename(folder)
    training.discard(work)
    rerankers.named.cache_clear()
    runs: list[Run] = []
    changed = 0
    if judged is not None:
        both = [({}, settings), ({"reranker": f"cross-encoder:{name}"}, settings.with_words({"reranker": f"cross-encoder:{name}"}))]
        runs = execute(corpus, judged, both, measures=[MEASURE, parse("hit@5"), parse("hit@1")])
        changed = sum(ranking != runs[1].rankings[q] for q, ranking in runs[0].rankings.items())
    return Report(name, folder, trained, len(examples), len(held), pairs, test, tuple(runs), changed, time.monotonic() - start)


def place(name: str) -> Path:
    """The folder of a trained reranker of that name."""
    if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
        raise UsageError(f"{name!r} cannot name a reranker: use letters, digits, - and _.")
    return home() / "rerankers" / name


def _held_out(asked: Sequence[Question], gold: GoldSet, seed: int) -> frozenset[str]:
    """Questions that choose the epoch: whole components, in hash order, up to 15 % of all and at most 100."""
    most = min(_HELD_MOST, round(_HELD * len(asked)))
    names = {q.question_id for q in asked}
    held: list[str] = []
    for group in components(asked, [j for j in gold.judgments if j.question_id in names]):
        if len(held) + len(group) <= most:
            held += group
    if not held:
        raise CannotJudge(f"{len(asked)} questions are too few, or hang together too much, to hold some out: give a larger split.")
    return frozenset(held)


def _pools(corpus: Corpus, asked: Sequence[Question], settings: Settings, depth: int) -> dict[str, SearchResult]:
    """What comes before the reranker, per question, `depth` passages at most."""
    wide = settings.with_words({"reranker": "none", "mmr_lambda": "1", "k": str(depth), "floor": "none"})
    vectors = question_vectors(corpus, [q.text for q in asked]) if wide.dense_arm != "none" else [None] * len(asked)
    found = {}
    with corpus.store.held(), Progress("passages to learn from", len(asked), "questions") as bar:
        for question, vector in zip(asked, vectors, strict=True):
            found[question.question_id] = rank(Shared(corpus, question.text, vector), wide, texts=False)
            bar.advance()
    return found


def _examples(
    corpus: Corpus, asked: Sequence[Question], pools: Mapping[str, SearchResult], wanted: Mapping[str, Sequence[Target]], negatives: int, seed: int
) -> list[Example]:
    """One list a question: the passages that cover its judgments (at most as many as there are others), then others drawn from its pool."""
    chosen: list[tuple[Question, list[tuple[int, float]]]] = []
    for question in asked:
        draw = random.Random(f"{seed}/{question.question_id}")
        held = wanted[question.question_id]
        grades: dict[int, float] = {}
        for target in sorted(held, key=lambda t: -t.judgment.grade):
            for key in sorted(target.keys)[:1]:
                grades.setdefault(key, float(target.judgment.grade))
        positives = [(key, grade) for key, grade in grades.items() if grade > 0][:negatives]
        others = [r.key for r in pools[question.question_id].results if not any(r.key in t.keys or r.class_id in t.classes for t in held)]
        if positives and others:
            drawn = sorted(draw.sample(range(len(others)), min(negatives, len(others))))
            chosen.append((question, positives + [(others[at], 0.0) for at in drawn]))
    bodies = Lookups(corpus).bodies(sorted({key for _, pairs in chosen for key, _ in pairs}))
    return [Example(q.text, [bodies[key] for key, _ in pairs], [grade for _, grade in pairs]) for q, pairs in chosen]


def _chooser(
    corpus: Corpus, held: Sequence[Question], pools: Mapping[str, SearchResult], wanted: Mapping[str, Sequence[Target]], depth: int
) -> Callable[[rerankers.CrossEncoder], float]:
    """nDCG@10 of the held-out questions when a model orders the first `depth` of their pools."""
    tops = {q.question_id: pools[q.question_id].results[:depth] for q in held}
    bodies = Lookups(corpus).bodies(sorted({r.key for top in tops.values() for r in top}))

    def judge(model: rerankers.CrossEncoder) -> float:
        values = {}
        with Progress("held-out questions", len(held), "questions") as bar:
            for question in held:
                top = tops[question.question_id]
                scores = model.score(question.text, [bodies[r.key] for r in top])
                order = sorted(range(len(top)), key=lambda at: (-scores[at], at))
                credits = credit([(top[at].key, top[at].class_id) for at in order], wanted[question.question_id])
                grades = [t.judgment.grade for t in wanted[question.question_id]]
                values[question.question_id] = score(MEASURE, Ranking(credits, [], [], grades)) or 0.0
                bar.advance()
        value = mean(values)
        say(f"held-out nDCG@10 {value:.4f} ({len(held)} questions)")
        return value

    return judge
