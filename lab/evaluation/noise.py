"""The noise floor: how many questions flip between runs that should be the same, and why.

again       the same run once more
shuffled    the questions in another order
threads     several searchers at once
rebuilt     the same settings after the indexes were built anew (an HNSW graph depends on how it was built)
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.errors import CannotJudge, UsageError
from lab.evaluation.compare import PRIMARY
from lab.evaluation.measures import DEFAULT, of_rankings, parse
from lab.evaluation.recorded import Run
from lab.evaluation.run import SEED, as_gold, execute
from lab.evaluation.shown import Shown
from lab.progress import say
from lab.records import GoldSet
from lab.retrieval.search import open_corpus
from lab.settings import Settings, resolved
from lab.store import collections
from lab.store import noise as store_noise
from lab.store import runs as store_runs
from lab.store.connect import Store, connect

WAYS = ("again", "shuffled", "threads", "rebuilt")
_JOBS = 4


@dataclass(frozen=True, slots=True)
class Repeat:
    """One repetition against the first run: questions whose list differs at all, whose score flips, and the difference of the means."""

    way: str
    run_id: str
    lists: int
    flips: Sequence[str]
    delta: float

    def to_json(self) -> dict[str, Any]:
        return {"way": self.way, "run_id": self.run_id, "lists_that_differ": self.lists, "flips": list(self.flips), "delta": self.delta}


@dataclass(frozen=True, slots=True, repr=False)
class Noise(Shown):
    """`floor`: the largest difference of means among the repetitions. Differences below it say nothing."""

    collection: str
    gold: str
    measure: str
    questions: int
    run_id: str
    repeats: Sequence[Repeat]

    @property
    def floor(self) -> float:
        return max((abs(r.delta) for r in self.repeats), default=0.0)

    def to_frame(self) -> Any:
        """One row a repetition (pandas)."""
        import pandas as pd

        rows = [{"repeated": r.way, "lists_that_differ": r.lists, "flips": len(r.flips), "delta": r.delta, "run_id": r.run_id} for r in self.repeats]
        return pd.DataFrame(rows)

    def to_json(self) -> dict[str, Any]:
        """The object of `lab noise --json`."""
        return {
            "schema_version": 1, "collection": self.collection, "gold": self.gold, "measure": self.measure, "questions": self.questions, "run_id": self.run_id,
            "floor": self.floor, "repeats": [r.to_json() for r in self.repeats],
        }  # fmt: skip


def noise(
    collection: str, gold: str | GoldSet, *, store: Store | None = None, settings: Settings | str | None = None, ways: Sequence[str] = WAYS, measure: str = PRIMARY,
    split: str | None = None, **flags: str | float,
) -> Noise:  # fmt: skip
    """Runs the same settings again in each way, and keeps the floor for the gate: a margin below it cannot be judged. `rebuilt` builds the collection's indexes anew. Raises UsageError for an unknown way or flag."""
    if store is None:
        with connect() as opened:
            return noise(collection, gold, store=opened, settings=settings, ways=ways, measure=measure, split=split, **flags)
    if not ways:
        raise UsageError(f"--ways is empty: name some of {', '.join(WAYS)}.")
    for way in ways:
        if way not in WAYS:
            raise UsageError(f"{way!r} is no way to repeat a run: {', '.join(WAYS)}.")
    name = str(of_rankings(measure))
    loaded = as_gold(gold, split)
    words = {Settings.flag(flag).name: str(value) for flag, value in flags.items()}
    chosen = resolved(settings).with_words(words)
    wanted = [parse(m) for m in dict.fromkeys([*DEFAULT, name])]

    def once(asked: GoldSet, jobs: int = 1) -> Run:
        return execute(open_corpus(store, collection), asked, [(words, chosen)], measures=wanted, jobs=jobs)[0]

    first = once(loaded)
    if name not in first.scores:
        raise CannotJudge(f"{name} is about none of the questions of {loaded.name!r}: name another --measure.")
    shuffled = list(loaded.questions)
    random.Random(SEED).shuffle(shuffled)
    repeats = []
    for way in ways:
        say(f"repeated: {way}")
        if way == "rebuilt":
            collections.build_indexes(store, collections.get(store, collection))
        other = once(dataclasses.replace(loaded, questions=tuple(shuffled)) if way == "shuffled" else loaded, _JOBS if way == "threads" else 1)
        repeats.append(_against(first, other, way, name))
    found = Noise(collection, loaded.name, name, first.questions, first.run_id, repeats)
    row = store_runs.get_run(store, first.run_id)
    kept = [store_noise.Repeated(name, r.way, abs(r.delta), first.run_id, r.run_id) for r in repeats]
    store_noise.enter(store, collection, row.gold_digest, row.settings_digest, str(row.inputs.get("corpus_digest")), kept)
    return found


def _against(first: Run, other: Run, way: str, measure: str) -> Repeat:
    ours, theirs = _scores(first, measure), _scores(other, measure)
    flips = sorted(q for q in ours if ours[q] != theirs.get(q))
    lists = sum(first.rankings[q] != other.rankings[q] for q in first.rankings)
    return Repeat(way, other.run_id, lists, flips, other.scores[measure] - first.scores[measure])


def _scores(run: Run, measure: str) -> Mapping[str, float]:
    return {q: values[measure] for q, values in run.by_question.items() if measure in values}
