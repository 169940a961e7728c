"""Benchmarks that users can repeat: `lab bench help`, `lab bench search`."""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import time

import numpy as np

from lab.corpus.ingest import ingest
from lab.gold.documents import write_documents
from lab.gold.files import load_gold
from lab.progress import Progress, say
from lab.records import Chunk, Document
from lab.report.demo import ROOT
from lab.resources import folder
from lab.retrieval.search import Shared, open_corpus, question_vectors, rank
from lab.settings import IngestSettings, Settings
from lab.store import chunks, collections, documents
from lab.store.connect import Store, connect

_CHUNKS = 10_000
_SEED = 11


def start_up(times: int = 15) -> dict[str, float]:
    """Whole-process seconds of `lab --help`."""
    seconds = []
    for _ in range(times + 1):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "lab", "--help"], check=True, capture_output=True)
        seconds.append(time.perf_counter() - start)
    return {"lab --help, median seconds": statistics.median(seconds[1:]), "lab --help, slowest seconds": max(seconds[1:])}


def search_speed() -> dict[str, float]:
    """Milliseconds a question in the database and in Python, at 10,000 chunks made from the handbook's sentences, with all its questions."""
    with connect() as store:
        _collection(store)
        corpus = open_corpus(store, "bench_search")
        gold = load_gold(folder("gold") / "handbook")
        texts = [q.text for q in gold.questions]
        vectors = question_vectors(corpus, texts)
        settings = Settings(authority_weight=0.0)
        dense, lexical, stages = [], [], []
        with store.held(), Progress("search bench_search", len(texts), "questions") as bar:
            for text, vector in zip(texts, vectors, strict=True):
                start = time.perf_counter()
                found = rank(Shared(corpus, text, vector), settings, texts=False)
                whole = time.perf_counter() - start
                dense.append(1000 * found.arms["dense"].seconds)
                lexical.append(1000 * found.arms["lexical"].seconds)
                stages.append(1000 * whole - dense[-1] - lexical[-1])
                bar.advance()
        both = [a + b for a, b in zip(dense, lexical, strict=True)]
        return {
            "chunks": float(corpus.chunks),
            "questions": float(len(texts)),
            "dense arm (HNSW, ef_search 200, top 100), p50 ms": statistics.median(dense),
            "lexical arm (BM25, top 100), p50 ms": statistics.median(lexical),
            "both arms, p50 ms": statistics.median(both),
            "both arms, p95 ms": statistics.quantiles(both, n=20)[-1],
            "fusion, stages and ledger, p50 ms": statistics.median(stages),
        }


def _collection(store: Store) -> None:
    """`bench_search`: passages of two handbook sentences each, vectors near that of a handbook chunk. Made once."""
    if collections.find(store, "bench_search") is not None:
        return
    handbook = write_documents(str(folder("gold") / "handbook"))[0]
    ingest(handbook, "handbook", store=store, root=ROOT)
    source = collections.get(store, "handbook")
    parts = chunks.chunk_texts(store, source)
    sentences = [sentence.strip() for text in parts for sentence in text.split(". ") if len(sentence) > 30]
    stored = chunks.vectors_of(store, source)
    draw, noise = random.Random(_SEED), np.random.default_rng(_SEED)
    target = collections.create(
        store,
        "bench_search",
        IngestSettings(chunker="whole"),
        embedder=source.embedder,
        model_digest=source.model_digest,
        dim=source.dim,
        language="english",
    )
    say(f"making {_CHUNKS:,} passages …")
    loads = []
    for n in range(_CHUNKS):
        text = f"{draw.choice(sentences)}. {draw.choice(sentences)}."
        vector = stored[n % len(stored)] + noise.normal(0, 0.02, stored.shape[1])
        name = f"passage-{n:05}"
        chunk = Chunk(name, 1, 0, len(text), text, "")
        unit = (vector / np.linalg.norm(vector)).astype(np.float16)
        loads.append(documents.Load(Document(name, "", text), "bench", n.to_bytes(4, "big"), len(text), 0, [chunk], [text], [unit]))
    documents.store_batch(store, target, loads)
    collections.build_indexes(store, target)
