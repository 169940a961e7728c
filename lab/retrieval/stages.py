"""The ranking stages: `list[Candidate] -> list[Candidate]`; the order of the list is the ranking.

Laws, held for all of them by one battery of tests: the output is a subset of the input (or links' additions), each passage once, nothing is
mutated, the same input gives the same output, the off value is the identity, and 0 or 1 candidates are as good as any number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lab.errors import LabError
from lab.records import Candidate
from lab.retrieval.context import Context
from lab.retrieval.links import links
from lab.settings import Settings

_STEP = re.compile(r"(?m)^[ \t]*(?:\(?\d{1,2}[.)]|[Ss]tep[ \t]+\d{1,2}\b)[ \t]*\S")
Apply = Callable[[Context, list[Candidate]], list[Candidate]]


@dataclass(frozen=True, slots=True)
class Stage:
    """A named step. `on(settings)` False: the step is skipped, and its column in the ledger left out."""

    name: str
    apply: Apply
    on: Callable[[Settings], bool]


def codes(context: Context, candidates: list[Candidate]) -> list[Candidate]:
    """Adds weight × share × Σ(weights of the arms that answered)/(rrf_k + 1) to a passage that holds a code or section which the question names: a list that
    knows no codes cannot outvote the one that found it. The share is that of the codes asked for, less where a code is common."""
    s = context.settings
    if s.code_weight == 0 or not context.coded:
        return list(candidates)
    best = s.code_weight * context.arm_weight / (s.rrf_k + 1)
    return _by_score([_scored(c, c.score + best * context.coded[c.key]) if c.key in context.coded else c for c in candidates])


def codes_after(context: Context, candidates: list[Candidate]) -> list[Candidate]:
    """The same after a reranker, on (rrf_k + 1)/(rrf_k + rank) + weight × share, since reranker scores have no common scale and know no codes either."""
    s = context.settings
    if s.code_weight == 0 or s.reranker == "none" or not context.coded:
        return list(candidates)
    ranked = [(s.rrf_k + 1) / (s.rrf_k + rank) + s.code_weight * context.coded.get(c.key, 0.0) for rank, c in enumerate(candidates, 1)]
    order = sorted(range(len(candidates)), key=lambda i: (-ranked[i], i))
    return [_scored(candidates[i], ranked[i]) for i in order]


def authority(context: Context, candidates: list[Candidate]) -> list[Candidate]:
    """Adds weight × tier/T × Σ(weights of the arms that answered)/(rrf_k + 1) to the fused score.

    0.3 is thus 30 % of the best attainable fused score: at rrf_k 10 a top-tier passage at rank 5 in both arms passes a tier-0 one at rank 1
    (11/15 + 0.3 > 1), at rank 6 it does not (11/16 + 0.3 < 1); so does 0.08 at rrf_k 60 from rank 6 (61/66 + 0.08 > 1), not from rank 7.
    """
    s, top = context.settings, context.corpus.collection.top_tier
    if s.authority_weight == 0 or top == 0:
        return list(candidates)
    best = context.arm_weight / (s.rrf_k + 1)
    return _by_score([_scored(c, c.score + s.authority_weight * _tier(context, c) / top * best) for c in candidates])


def authority_after(context: Context, candidates: list[Candidate]) -> list[Candidate]:
    """The same after a reranker, on (rrf_k + 1)/(rrf_k + rank) + weight × tier/T, since reranker scores have no common scale."""
    s, top = context.settings, context.corpus.collection.top_tier
    if s.authority_weight == 0 or top == 0 or s.reranker == "none":
        return list(candidates)
    ranked = [(s.rrf_k + 1) / (s.rrf_k + rank) + s.authority_weight * _tier(context, c) / top for rank, c in enumerate(candidates, 1)]
    order = sorted(range(len(candidates)), key=lambda i: (-ranked[i], i))
    return [_scored(candidates[i], ranked[i]) for i in order]


def steps(context: Context, candidates: list[Candidate]) -> list[Candidate]:
    """Adds weight × Σ(weights of the arms that answered)/(rrf_k + 1) to passages with at least three numbered steps."""
    s = context.settings
    if s.steps_weight == 0 or not candidates:
        return list(candidates)
    texts = context.lookups.texts([c.key for c in candidates])
    bonus = s.steps_weight * context.arm_weight / (s.rrf_k + 1)
    return _by_score([_scored(c, c.score + bonus) if len(_STEP.findall(texts.get(c.key, ""))) >= 3 else c for c in candidates])


def dedup(context: Context, candidates: list[Candidate]) -> list[Candidate]:
    """One candidate per exact class, at its best place, spoken for by the copy of highest authority, fetched or not."""
    if context.settings.dedup == "off":
        return list(candidates)
    seen: set[bytes] = set()
    out = []
    for candidate in candidates:
        if candidate.hit.class_id in seen:
            continue
        seen.add(candidate.hit.class_id)
        members = context.members.get(candidate.hit.class_id)
        if members:
            speaker = members[0]
            hit = replace(speaker, score=candidate.hit.score)
            copies = tuple(m.key for m in members if m.key != speaker.key)
            # Copies differ in context, so in vector: the cosine shown is that of the copy shown, where the dense arm saw it.
            candidate = replace(candidate, hit=hit, copies=copies, similarity=context.similarities.get(speaker.key))
        out.append(candidate)
    return _one_a_near_class(context, out) if context.settings.dedup == "near" else out


def _one_a_near_class(context: Context, candidates: list[Candidate]) -> list[Candidate]:
    """One candidate per near class, at its best place, spoken for by the one of highest authority; the others are listed with it."""
    near = context.corpus.near_classes()
    if near is None:
        context.notes.append("near twins are not known here: equal texts alone were made one")
        return candidates
    groups: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        groups.setdefault(near.get(candidate.hit.chunk_id, candidate.hit.chunk_id), []).append(candidate)
    out = []
    for first, *others in groups.values():
        if not others:
            out.append(first)
            continue
        speaker = max((first, *others), key=lambda c: _tier(context, c))  # the first of equals
        copies = tuple(key for c in (first, *others) for key in (c.key, *c.copies) if key != speaker.key)
        out.append(replace(speaker, score=first.score, relevance=first.relevance, copies=copies))
    return out


def rerank(context: Context, candidates: list[Candidate]) -> list[Candidate]:
    """The first `rerank_depth` candidates in the order of the reranker's scores, the rest behind them as they were."""
    s = context.settings
    if s.reranker == "none" or not candidates:
        return list(candidates)
    if context.reranker is None:
        raise LabError(f"reranker {s.reranker} is not loaded.")
    head, tail = candidates[: s.rerank_depth], candidates[s.rerank_depth :]
    bodies = context.lookups.bodies([c.key for c in head])
    scores = context.reranker.score(context.question, [bodies[c.key] for c in head])
    if len(scores) != len(head) or not all(np.isfinite(scores)):
        raise LabError(f"reranker {s.reranker} returned {len(scores)} scores for {len(head)} passages, or NaN: check the model.")
    if len(head) > 1 and len(set(scores)) == 1:
        context.notes.append(f"reranker {s.reranker} gave every passage the same score: the order was kept")
    return _by_score([replace(_scored(c, float(score)), reranked=float(score)) for c, score in zip(head, scores, strict=True)]) + list(tail)


def mmr(context: Context, candidates: list[Candidate]) -> list[Candidate]:
    """Maximal marginal relevance over the first `mmr_pool`: λ·relevance − (1−λ)·max similarity to what was chosen (Carbonell & Goldstein 1998).

    Relevance is the score after the last scoring stage, min–max scaled over the pool (span 0 → all 1); where the list is not in its order,
    1/(rrf_k + rank) stands in for all. Similarity is the cosine of the stored vectors; a passage without one has 0. Ties by incoming rank.
    """
    s = context.settings
    if s.mmr_lambda == 1.0:
        return list(candidates)
    pool, tail = candidates[: s.mmr_pool], candidates[s.mmr_pool :]
    if len(pool) < 2:
        return list(candidates)
    relevance = _scaled([c.relevance for c in pool], s.rrf_k)
    stored = context.lookups.vectors([c.key for c in pool])
    matrix = np.zeros((len(pool), context.corpus.collection.dim or 1), dtype=np.float64)
    there = [row for row, candidate in enumerate(pool) if candidate.key in stored]
    if there:
        matrix[there] = np.stack([stored[pool[row].key] for row in there])
        matrix[there] /= np.linalg.norm(matrix[there], axis=1, keepdims=True)
    redundancy = (1 - s.mmr_lambda) * (matrix @ matrix.T)  # (pool, pool)
    gain = s.mmr_lambda * relevance  # −∞ once chosen
    nearest = np.zeros(len(pool))  # of the most similar one among the chosen; nothing chosen yet → 0
    chosen: list[int] = []
    for _ in pool:
        pick = int((gain - nearest).argmax())  # the first of equals: the incoming rank
        gain[pick] = -np.inf
        chosen.append(pick)
        nearest = redundancy[pick] if len(chosen) == 1 else np.maximum(nearest, redundancy[pick])
    return [pool[i] for i in chosen] + list(tail)


def _scaled(relevance: Sequence[float], rrf_k: int) -> np.ndarray:
    values = np.asarray(relevance, dtype=np.float64)
    if np.any(np.diff(values) > 0):
        values = 1.0 / (rrf_k + np.arange(1, len(values) + 1))
    span = values.max() - values.min()
    return np.ones(len(values)) if span == 0 else (values - values.min()) / span


def floor(context: Context, candidates: list[Candidate]) -> list[Candidate]:
    """Nothing, where the best cosine of the dense arm (or the best score of the reranker) is below the floor; a code or section that the question names, found
    as a whole, passes it. Independent of k."""
    s = context.settings
    if s.floor == "none" or not candidates or context.coded:
        return list(candidates)
    if s.floor_on == "rerank":
        values = [c.reranked for c in candidates if c.reranked is not None]
    else:
        values = list(context.similarities.values())
    best = max(values, default=None)
    if best is not None and best >= float(s.floor):
        return list(candidates)
    said = "nothing to compare with it" if best is None else f"the best is {best:.3f}"
    context.notes.append(f"the floor {s.floor} left nothing: {said}")
    return []


def cut(context: Context, candidates: list[Candidate]) -> list[Candidate]:
    """The first k."""
    return list(candidates[: context.settings.k])


STAGES: tuple[Stage, ...] = (
    Stage("codes", codes, lambda s: s.code_weight != 0 and s.codes == "on" and s.lexical_arm == "bm25"),
    Stage("authority", authority, lambda s: s.authority_weight != 0),
    Stage("steps", steps, lambda s: s.steps_weight != 0),
    Stage("dedup", dedup, lambda s: s.dedup != "off"),
    Stage("links", links, lambda s: s.links_on),
    Stage("rerank", rerank, lambda s: s.reranker != "none"),
    Stage("codes_after", codes_after, lambda s: s.reranker != "none" and s.code_weight != 0 and s.codes == "on" and s.lexical_arm == "bm25"),
    Stage("authority_after", authority_after, lambda s: s.reranker != "none" and s.authority_weight != 0),
    Stage("mmr", mmr, lambda s: s.mmr_lambda != 1.0),
    Stage("floor", floor, lambda s: s.floor != "none"),
    Stage("cut", cut, lambda s: True),
)


def _tier(context: Context, candidate: Candidate) -> int:
    """The tier of a candidate; of a class, that of its copy of highest authority, which stands first among the members."""
    if context.settings.dedup == "off":
        return candidate.hit.authority
    members = context.members.get(candidate.hit.class_id)
    return members[0].authority if members else candidate.hit.authority


def _scored(c: Candidate, score: float) -> Candidate:
    # The constructor, not `replace`: this runs for every candidate of every question.
    return Candidate(c.hit, score, score, c.similarity, c.arm_ranks, c.copies, c.linked_by, c.reranked)


def _by_score(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Best first; equals keep their order."""
    order = sorted(range(len(candidates)), key=lambda i: (-candidates[i].score, i))
    return [candidates[i] for i in order]
