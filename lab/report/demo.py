"""The demo: ingest the handbook, check its gold set, ablate three flags, write the report."""

from __future__ import annotations

from pathlib import Path

from lab.corpus.ingest import ingest
from lab.evaluation.experiment import Experiment, ablate
from lab.gold.check import require
from lab.gold.documents import write_documents
from lab.gold.files import load_gold
from lab.progress import say
from lab.report.page import write_report
from lab.resources import folder
from lab.store import collections
from lab.store.connect import Store

COLLECTION = "handbook"
ROOT = "shipped:handbook"  # the same documents wherever the lab is installed
FACTORS = {"authority_weight": ["0", "0.3"], "defines": ["off", "question"], "dense": ["none", "hnsw"]}


def demo(store: Store, *, to: Path | None = None, command: str = "lab demo") -> tuple[Experiment, Path]:
    """Runs the whole loop and returns the experiment and the report's folder. Everything is executed again each time, under new run ids; only
    vectors come from the cache. Raises CannotJudge when a quote of the gold set does not stand where it should."""
    documents, _ = write_documents(str(folder("gold") / COLLECTION))
    say("1/4 ingest the handbook (the first time it is embedded: about half a minute)")
    report = ingest(documents, COLLECTION, store=store, root=ROOT)
    say(f"    {report.chunks} chunks, {report.links['cites']} citations, {report.links['defines']} definitions; {report.embedded} texts embedded")
    gold = load_gold(folder("gold") / COLLECTION)
    say("2/4 check the gold set")
    counts = require(store, collections.get(store, COLLECTION), gold).counts
    say(f"    {len(gold.questions)} questions, {counts['intact']} judgments, all of them where they should be")
    say("3/4 run 2 × 2 × 2 settings: authority weight, definition links, dense arm")
    experiment = ablate(COLLECTION, gold, FACTORS, store=store, command=command)
    say("4/4 write the report")
    return experiment, write_report(experiment, store=store, to=to)
