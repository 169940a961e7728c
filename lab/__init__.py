"""The retrieval lab: does this change make retrieval better, for which questions, by how much, at what cost, and how sure are we?

The verbs are imported on first use, so that `import lab` costs nothing:

    lab.connect()  lab.ingest(…)  lab.search(…)  lab.load_gold(…)  lab.run(…)  lab.ablate(…)
    lab.compare(…)  lab.decide(…)  lab.tune(…)  lab.tune_floor(…)  lab.noise(…)  lab.gate(…)  lab.smoke(…)  lab.write_report(…)
    lab.handbook()  lab.diff(…)  lab.lost_questions(…)  lab.power(…)  lab.replay(…)  lab.load_runs(…)  lab.load_experiment(…)  lab.frame(…)

Results are small objects: `to_frame()` gives a tidy pandas frame, `plot_…()` matplotlib axes, and a notebook shows them as tables.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "connect": "lab.store.connect",
    "ingest": "lab.corpus.ingest",
    "search": "lab.retrieval.search",
    "load_gold": "lab.gold.files",
    "run": "lab.evaluation.run",
    "ablate": "lab.evaluation.experiment",
    "compare": "lab.evaluation.compare",
    "decide": "lab.evaluation.decision",
    "tune": "lab.evaluation.tuning",
    "tune_floor": "lab.evaluation.floors",
    "noise": "lab.evaluation.noise",
    "gate": "lab.evaluation.gate",
    "smoke": "lab.evaluation.smoke",
    "write_report": "lab.report.page",
    **dict.fromkeys(("diff", "frame", "handbook", "load_experiment", "load_runs", "lost_questions", "power", "replay"), "lab.api"),
    "Settings": "lab.settings",
}
__all__ = [
    "Settings",
    "__version__",
    "ablate",
    "compare",
    "connect",
    "decide",
    "diff",
    "frame",
    "gate",
    "handbook",
    "ingest",
    "load_experiment",
    "load_gold",
    "load_runs",
    "lost_questions",
    "noise",
    "power",
    "replay",
    "run",
    "search",
    "smoke",
    "tune",
    "tune_floor",
    "write_report",
]

if TYPE_CHECKING:
    from lab.api import diff, frame, handbook, load_experiment, load_runs, lost_questions, power, replay
    from lab.corpus.ingest import ingest
    from lab.evaluation.compare import compare
    from lab.evaluation.decision import decide
    from lab.evaluation.experiment import ablate
    from lab.evaluation.floors import tune_floor
    from lab.evaluation.gate import gate
    from lab.evaluation.noise import noise
    from lab.evaluation.run import run
    from lab.evaluation.smoke import smoke
    from lab.evaluation.tuning import tune
    from lab.gold.files import load_gold
    from lab.report.page import write_report
    from lab.retrieval.search import search
    from lab.settings import Settings
    from lab.store.connect import connect


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'lab' has no attribute {name!r}")
