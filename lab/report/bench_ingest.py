"""`lab bench ingest [FOLDER]` and `lab bench embed`: how fast documents become chunks, without and with vectors."""

from __future__ import annotations

import json
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import psutil

from lab.corpus.ingest import ingest
from lab.gold.documents import write_documents
from lab.models.embedders import embedder
from lab.models.minilm import MiniLM
from lab.models.sentence import SentenceModel
from lab.progress import say
from lab.resources import folder
from lab.store import chunks, collections, embeddings
from lab.store.connect import Store, connect

_RECORDS = 20_000
_EMBEDDED = 48  # documents: all of the handbook


def ingest_speed(path: Path | None = None) -> dict[str, float]:
    """Chunks a second from a BEIR corpus into Postgres, indexes included, without vectors; with exact twins only, and with near ones."""
    figures: dict[str, float] = {}
    with connect() as store, tempfile.TemporaryDirectory() as made:
        corpus = path or _records(Path(made))
        for twins in ("exact", "near"):
            name = f"bench_ingest_{twins}"
            _drop(store, name)
            start = time.perf_counter()
            report = ingest(corpus, name, store=store, format="beir", chunker="whole", embedder="none", twins=twins)
            seconds = time.perf_counter() - start
            figures |= {
                "chunks": float(report.chunks),
                f"chunks a second, {twins} twins": report.chunks / seconds,
                f"seconds, {twins} twins": seconds,
            }
            _drop(store, name)
    figures["most memory of this process, MB"] = _most_memory()
    return figures


def embedding_share(times: int = 2) -> dict[str, float]:
    """The whole of an ingest with vectors as a share of the model's own time on the same texts; both in turn, medians."""
    model = embedder(str(MiniLM().folder))
    assert isinstance(model, SentenceModel)
    alone, whole = [], []
    with connect() as store, tempfile.TemporaryDirectory() as made:
        root = Path(made)
        handbook = write_documents(str(folder("gold") / "handbook"))[0]
        for source in sorted(handbook.rglob("*.md"))[:_EMBEDDED]:
            shutil.copy(source, root / source.name)
        bodies: list[str] = []
        for turn in range(times + 1):
            _drop(store, "bench_embed")
            embeddings.forget(store, model.digest)
            start = time.perf_counter()
            ingest(root, "bench_embed", store=store, embedder=model.name)
            seconds = time.perf_counter() - start
            bodies = bodies or chunks.chunk_bodies(store, collections.get(store, "bench_embed"))
            start = time.perf_counter()
            model.model.encode(bodies, batch_size=32, show_progress_bar=False, normalize_embeddings=True)
            if turn:  # the first turn loads the model
                whole.append(seconds)
                alone.append(time.perf_counter() - start)
                say(f"ingest {whole[-1]:.2f} s, model.encode {alone[-1]:.2f} s")
        _drop(store, "bench_embed")
        embeddings.forget(store, model.digest)
    return {
        "chunks": float(len(bodies)),
        "model.encode alone, seconds": statistics.median(alone),
        "ingest with vectors, seconds": statistics.median(whole),
        "ingest as a multiple of model.encode": statistics.median(whole) / statistics.median(alone),
    }


def _records(made: Path) -> Path:
    """A corpus of short records made from the handbook's sentences."""
    handbook = write_documents(str(folder("gold") / "handbook"))[0]
    sentences = sorted({s.strip() for p in sorted(handbook.rglob("*.md")) for s in p.read_text(encoding="utf-8").split(". ") if len(s) > 30})
    with (made / "corpus.jsonl").open("w", encoding="utf-8") as file:
        for n in range(_RECORDS):
            a, b = sentences[n % len(sentences)], sentences[(n * 7 + n // len(sentences)) % len(sentences)]
            file.write(json.dumps({"_id": f"r{n:05}", "title": "", "text": f"{a}. {b}."}) + "\n")
    return made


def _drop(store: Store, name: str) -> None:
    if collections.find(store, name) is not None:
        collections.drop(store, name)


def _most_memory() -> float:
    """Peak resident memory in MB, where the system tells it; else the present one."""
    try:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    except ImportError:
        return float(psutil.Process().memory_info().rss) / 2**20
