"""Dense search, BM25, MMR and near twins against brute force."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pytest

from lab.corpus.twins import near_classes, shingles
from lab.retrieval.search import open_corpus, question_vectors, search
from lab.store import arms
from lab.store.connect import Store
from lab.text import class_id, stem, words

POSTGRES_STOP = frozenset(
    """i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers herself it its itself they them
    their theirs themselves what which who whom this that these those am is are was were be been being have has had having do does did doing a an the
    and but if or because as until while of at by for with about against between into through during before after above below to from up down in out
    on off over under again further then once here there when where why how all any both each few more most other some such no nor not only own same
    so than too very s t can will just don should now""".split()
)


def test_exact_dense_search_is_the_cosine_order(handbook: Store) -> None:
    corpus = open_corpus(handbook, "handbook")
    stored = handbook.rows("select key, source, n, embedding from kb_handbook.chunks")
    matrix = np.array([row[3].to_numpy() for row in stored], dtype=np.float64)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    for question in ("who may enter a confined space", "chlorine leak", "how long is a log kept"):
        vector = question_vectors(corpus, [question])[0]
        assert vector is not None
        cosine = matrix @ (vector.astype(np.float64) / np.linalg.norm(vector.astype(np.float64)))
        expected = [stored[i][0] for i in sorted(range(len(stored)), key=lambda i: (-cosine[i], stored[i][1], stored[i][2]))[:50]]
        found = arms.dense(handbook, corpus.collection, vector, engine="exact", ef_search=200, candidates=50, by_class=False, chunks=corpus.chunks)
        assert [h.key for h in found.hits] == expected
        assert [h.score for h in found.hits] == pytest.approx(sorted(cosine, reverse=True)[:50], abs=1e-5)


def test_bm25_is_the_formula(store: Store) -> None:
    """k1 1.2, b 0.75, idf = ln(1 + (N − n + 0.5)/(n + 0.5)); on short texts, where the index stores lengths exactly."""
    import tempfile
    from pathlib import Path

    from lab.corpus.ingest import ingest

    draw = random.Random(7)
    vocabulary = "valve pump gauge relief seal motor crew panel log permit steam drain".split()
    texts = {f"{i:03}": " ".join(draw.choices(vocabulary, k=draw.randint(3, 30))) for i in range(150)}
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts.items():
            (Path(folder) / f"{name}.txt").write_text(text)
        ingest(folder, "c", store=store, embedder="none", chunker="whole", context="off")
    lists = {name: [stem(w) for w in words(text) if w not in POSTGRES_STOP] for name, text in texts.items()}
    average = sum(map(len, lists.values())) / len(lists)
    frequency = Counter(w for tokens in lists.values() for w in set(tokens))

    def bm25(question: str, tokens: list[str]) -> float:
        total = 0.0
        for w in {stem(w) for w in words(question) if w not in POSTGRES_STOP}:
            tf = tokens.count(w)
            idf = math.log(1 + (len(lists) - frequency[w] + 0.5) / (frequency[w] + 0.5))
            total += idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * len(tokens) / average))
        return total

    for question in ("relief valve of the pump", "steam drain log", "who is at the panel with a permit"):
        found = search("c", question, store=store, dense="none", dedup="off", k=150, candidates=150).arms["lexical"]
        expected = {name: bm25(question, tokens) for name, tokens in lists.items()}
        got = {h.source.removesuffix(".txt"): h.score for h in found.hits}
        assert set(got) == {name for name, value in expected.items() if value > 0}
        for name, value in got.items():
            assert value == pytest.approx(expected[name], rel=0.02), name


def test_mmr_is_the_greedy_of_the_paper(handbook: Store) -> None:
    corpus = open_corpus(handbook, "handbook")
    for lam in (0.0, 0.3, 0.7):
        plain = search(corpus, "what must be done before pump work", settings=None, k=30, dense="exact", authority_weight=0)
        vectors = arms.vectors(handbook, corpus.collection, [r.key for r in plain.results])
        matrix = np.array([vectors[r.key] / np.linalg.norm(vectors[r.key]) for r in plain.results], dtype=np.float64)
        scores = np.array([r.score for r in plain.results])
        relevance = (scores - scores.min()) / (scores.max() - scores.min())
        chosen: list[int] = []
        while len(chosen) < 30:
            rest = [i for i in range(30) if i not in chosen]
            value = {i: lam * relevance[i] - (1 - lam) * max((float(matrix[i] @ matrix[j]) for j in chosen), default=0.0) for i in rest}
            chosen.append(max(rest, key=lambda i: (round(value[i], 12), -i)))
        found = search(corpus, "what must be done before pump work", k=30, dense="exact", authority_weight=0, mmr_lambda=lam, mmr_pool=30)
        assert [r.key for r in found.results] == [plain.results[i].key for i in chosen]


def test_near_twins_are_pairs_of_high_jaccard() -> None:
    draw = random.Random(3)
    vocabulary = [f"w{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(600)]
    base = [draw.choices(vocabulary, k=120) for _ in range(20)]
    texts = []
    for tokens in base:
        texts.append(" ".join(tokens))
        for changes in (1, 2, 6, 30):
            other = list(tokens)
            for at in draw.sample(range(120), changes):
                other[at] = draw.choice(vocabulary)
            texts.append(" ".join(other))
    found = near_classes([(f"{i:03}", class_id(t), t) for i, t in enumerate(texts)])
    sets = [shingles(t) for t in texts]
    for i in range(0, len(texts), 5):
        for j in range(i + 1, i + 5):
            jaccard = len(sets[i] & sets[j]) / len(sets[i] | sets[j])
            together = found[f"{i:03}"] == found[f"{j:03}"]
            if jaccard >= 0.8:
                assert together, jaccard
            if jaccard <= 0.5:
                assert not together, jaccard
