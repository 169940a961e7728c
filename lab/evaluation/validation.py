"""Published references, reproduced: what the lab measures on public sets beside what others measured there."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.corpus.ingest import ingest
from lab.errors import UsageError
from lab.evaluation.run import run
from lab.gold.files import load_gold
from lab.gold.formats import beir
from lab.progress import say
from lab.store.connect import Store

BM25 = {"dense": "none", "codes": "off", "authority_weight": "0"}
DENSE = {"lexical": "none", "authority_weight": "0"}


@dataclass(frozen=True, slots=True)
class Reference:
    """One figure: settings on a set, what is published for them (None: nothing), and how far from it ours may lie."""

    data: str
    what: str
    flags: Mapping[str, str]
    published: float | None = None
    tolerance: float = 0.0
    source: str = ""
    minus1: str = ""  # cranfield, the paper that a question was written from (code −1): `out` of the ranking, or `relevant`
    measure: str = "nDCG@10"


REFERENCES = (
    Reference("scifact", "BM25", BM25, 0.679, 0.02, "Lucene, BEIR (Thakur et al. 2021; Kamalloo et al. 2023)"),
    Reference("scifact", "all-MiniLM-L6-v2", DENSE, 0.645, 0.005, "MTEB (Muennighoff et al. 2023)"),
    Reference("scifact", "both, default settings", {}),
    Reference("xquad", "BM25", BM25),
    Reference("xquad", "all-MiniLM-L6-v2", DENSE),
    Reference("xquad", "both, default settings", {}),
    Reference("cranfield", "BM25, the paper a question was written from kept out", BM25, minus1="out"),
    Reference("cranfield", "BM25, that paper relevant", BM25, minus1="relevant"),
    Reference("cranfield", "both, default settings, that paper kept out", {}, minus1="out"),
    Reference("cranfield", "both, default settings, that paper relevant", {}, minus1="relevant"),
)


@dataclass(frozen=True, slots=True)
class Validated:
    """A reference and what was measured. `agrees` is None where nothing is published."""

    reference: Reference
    value: float
    questions: int

    @property
    def agrees(self) -> bool | None:
        r = self.reference
        return None if r.published is None else abs(self.value - r.published) <= r.tolerance

    def to_json(self) -> dict[str, Any]:
        r = self.reference
        return {
            "data": r.data, "settings": r.what, "flags": dict(r.flags), "measure": r.measure, "value": self.value, "questions": self.questions, "published": r.published,
            "tolerance": r.tolerance if r.published is not None else None, "source": r.source or None, "agrees": self.agrees,
        }  # fmt: skip


def validate(store: Store, data: Path, sets: Sequence[str] = (), *, vectors: bool = True) -> list[Validated]:
    """Measures every reference whose set lies under `data` in BEIR layout (`scifact/`, `xquad/beir/`, `cranfield/`), into collections `validate_…`. Vectors are cached: the second
    call embeds nothing; without `vectors` only the lexical ones are measured. Raises UsageError where none of the sets is there."""
    wanted = [r for r in REFERENCES if (not sets or r.data in sets) and (vectors or r.flags.get("dense") == "none")]
    folders = {r.data: place for r in wanted if (place := _folder(data, r.data)) is not None}
    if not folders:
        raise UsageError(f"{data} holds none of {', '.join(sorted({r.data for r in REFERENCES}))} in BEIR layout: name the folder that does.")
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        for name, folder in sorted(folders.items()):
            collection = f"validate_{name}" + ("" if vectors else "_words")
            ingest(
                folder / "corpus.jsonl",
                collection,
                store=store,
                format="beir",
                chunker="whole",
                twins="exact",
                embedder="minilm" if vectors else "none",
            )
            for reference in (r for r in wanted if r.data == name):
                gold = _gold(folder, name, reference.minus1, Path(scratch))
                done = run(collection, load_gold(gold), store=store, measures=[reference.measure], **reference.flags)
                found.append(Validated(reference, done.scores[reference.measure], done.questions))
                say(f"{name}, {reference.what}: {reference.measure} {found[-1].value:.4f}")
    return found


def _gold(folder: Path, name: str, minus1: str, scratch: Path) -> Path:
    """The gold set of a folder under one reading of Cranfield's code −1."""
    source = folder / "qrels" / "source_minus1.tsv"
    if minus1 == "relevant":
        merged = scratch / f"{name}-relevant-folder"
        if not merged.exists():
            (merged / "qrels").mkdir(parents=True)
            for file in ("corpus.jsonl", "queries.jsonl"):
                shutil.copyfile(folder / file, merged / file)
            rows = (folder / "qrels" / "test.tsv").read_text(encoding="utf-8").rstrip("\n").split("\n")
            (merged / "qrels" / "test.tsv").write_text("\n".join(rows + source.read_text(encoding="utf-8").split("\n")[1:]), encoding="utf-8")
        folder = merged
    return beir.read(folder, f"{name}-{minus1 or 'plain'}", "test", scratch, ignore=source if minus1 == "out" else None, replace=True)


def _folder(data: Path, name: str) -> Path | None:
    for place in (data / name / "beir", data / name):
        if (place / "corpus.jsonl").is_file():
            return place
    return None
