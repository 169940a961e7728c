"""The links stage: passages that the top hits cite, and passages that define terms, placed by position, never by a made-up score."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lab.records import Candidate, Hit
from lab.retrieval.context import Context
from lab.retrieval.meaning import asks_for_meaning, candidate_terms


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A passage to bring in: directly below `parent` (an index of the list), or first when parent is −1."""

    hit: Hit
    parent: int
    why: str


def links(context: Context, candidates: list[Candidate]) -> list[Candidate]:
    """Brings in at most `links_max` linked passages.

    A linked passage stands directly below its best parent; the definition of the question's own term goes first when `defines` applies; a passage
    already higher stays where it is, one that is lower moves up; no twin of a listed passage is added.
    """
    s = context.settings
    if not s.links_on or not candidates:
        return list(candidates)
    wanted = _definitions(context, candidates) if s.defines != "off" else []
    if s.cites != "off" and s.link_parents > 0:
        wanted += _citations(context, candidates)
    # Own terms first, then what the best parent brings, in the order of its text.
    return _place(context, candidates, sorted(wanted, key=lambda want: want.parent))


def _definitions(context: Context, candidates: list[Candidate]) -> list[_Wanted]:
    """Definitions of the question's own terms, then (`always`) of terms that the top hits use."""
    s, lookups = context.settings, context.lookups
    rows = [row for row in lookups.defined(candidate_terms(context.question)) if context.passes(row[2])]
    named = {term for term, _, _ in rows}
    own = asks_for_meaning(context.question, list(dict.fromkeys(term for term, _, _ in rows)))
    wanted = []
    for term in own:
        hit = next(hit for t, _, hit in rows if t == term)
        wanted.append(_Wanted(hit, -1, f"defines:{term}"))
    if s.defines != "always" or s.link_parents == 0:
        return wanted
    parents = candidates[: s.link_parents]
    texts = lookups.texts([c.key for c in parents])
    hubs: dict[str, bool] = {}
    for index, parent in enumerate(parents):
        used = candidate_terms(texts[parent.key])
        for term, label, hit in lookups.defined(used):
            if hit.key == parent.key or not context.passes(hit):
                continue
            if term not in hubs and term in named:
                hubs[term] = False  # a term that the question names is exempt
            if term not in hubs:
                hubs[term] = lookups.term_users(label, s.link_hub_max + 1) > s.link_hub_max
                if hubs[term]:
                    context.notes.append(
                        f"the definition of {label!r} was not added: more than {s.link_hub_max} passages use the term, {_share(context)}"
                    )
            if not hubs[term]:
                wanted.append(_Wanted(hit, index, f"defines:{term}"))
    return wanted


def _share(context: Context) -> str:
    return f"more than {context.settings.link_hub_max / max(context.corpus.chunks, 1):.0%} of all"


def _citations(context: Context, candidates: list[Candidate]) -> list[_Wanted]:
    s = context.settings
    parents = candidates[: s.link_parents]
    index_of = {c.key: i for i, c in enumerate(parents)}
    rows = context.lookups.cited([c.key for c in parents])
    wanted = []
    for parent, hit, citing in rows:
        if not context.passes(hit):
            continue
        if citing > s.link_hub_max:
            context.notes.append(
                f"{hit.chunk_id} was not added: {citing} passages cite it ({citing / max(context.corpus.chunks, 1):.0%} of all), more than {s.link_hub_max}"
            )
        else:
            wanted.append(_Wanted(hit, index_of[parent], f"cites:{parents[index_of[parent]].hit.chunk_id}"))
    return wanted


def _place(context: Context, candidates: list[Candidate], wanted: list[_Wanted]) -> list[Candidate]:
    by_class = {c.hit.class_id: i for i, c in reversed(list(enumerate(candidates)))}
    inserts: dict[int, list[Candidate]] = {}
    moved: set[int] = set()
    entered: set[bytes] = set()
    for want in wanted:
        if len(entered) >= context.settings.links_max:
            break
        if want.hit.class_id in entered:
            continue
        at = by_class.get(want.hit.class_id)
        if at is not None and (at <= want.parent + 1 if want.parent >= 0 else at == 0):
            continue  # already as high as the link would put it
        parent = candidates[max(want.parent, 0)]
        relevance = parent.relevance
        if at is not None:
            moved.add(at)
            linked = replace(candidates[at], relevance=relevance, linked_by=want.why)
        else:
            hit, copies = _speaker(context, want.hit)
            linked = Candidate(hit, parent.score, relevance, None, {}, copies, want.why)
        entered.add(want.hit.class_id)
        inserts.setdefault(want.parent, []).append(linked)
    out = list(inserts.get(-1, ()))
    for index, candidate in enumerate(candidates):
        if index not in moved:
            out.append(candidate)
        out.extend(inserts.get(index, ()))
    return out


def _speaker(context: Context, hit: Hit) -> tuple[Hit, tuple[int, ...]]:
    """The copy that speaks for a linked passage, as dedup chooses it, and the keys of the others."""
    if context.settings.dedup == "off" or not hit.has_twins:
        return hit, ()
    members = [m for m in context.corpus.members([hit.class_id]).get(hit.class_id, [hit]) if context.passes(m)]
    return members[0], tuple(m.key for m in members[1:])
