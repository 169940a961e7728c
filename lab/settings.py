"""Every flag of the lab, declared once: default, off value, unit, meaning, source.

The command line's options, the axes of a grid, the digest, the table in README and the columns of `lab.runs` all come from the
fields below. A flag is a field of `Settings` (how a question is searched) or of `IngestSettings` (how documents become chunks).

`Settings` holds the canonical value (`lab.flags` makes it of a typed word); what was typed is kept apart as `passed`.
"""

from __future__ import annotations

import dataclasses
import math
import tomllib
from dataclasses import dataclass
from pathlib import Path

from lab import filters
from lab.errors import UsageError, unknown
from lab.flags import Flags, Value, check, declared


@dataclass(frozen=True, slots=True)
class Settings(Flags):
    """How a question is searched. Constructing checks types and ranges, so that a settings object is always runnable."""

    dense: str = declared(
        "hnsw",
        "dense arm: hnsw (runs exact at ≤ 2,000 chunks; the engine is recorded) or exact",
        off="none",
        choices=("none", "hnsw", "exact"),
        reaches=("dense",),
        source="Malkov & Yashunin 2020",
    )
    lexical: str = declared(
        "bm25",
        "lexical arm: bm25 (k1 1.2, b 0.75), ts_rank or ts_rank_cd",
        off="none",
        choices=("none", "bm25", "ts_rank", "ts_rank_cd"),
        reaches=("lexical",),
        source="Robertson & Zaragoza 2009",
    )
    query_mode: str = declared(
        "any",
        "how the question's words combine in the lexical arm: any word, all words, or web search syntax",
        choices=("any", "all", "websearch"),
        reaches=("lexical",),
    )
    codes: str = declared(
        "on",
        "bm25 also looks for codes, section numbers, numbers and parts of compounds as such: PRV-2041 = PRV 2041, 4.2 → 4.2.1, inlet/outlet",
        off="off",
        choices=("off", "on"),
        reaches=("lexical",),
    )
    code_weight: float = declared(
        0.5,
        "bonus of a passage that holds a code or section which the question names, as a share of the best attainable fused score, less where it is common",
        off=0.0,
        low=0,
        high=10,
        reaches=("codes", "codes_after"),
    )
    candidates: int = declared(
        100,
        "rows (with dedup: exact classes) an arm contributes",
        low=1,
        high=10_000,
        unit="passages",
        reaches=("dense", "lexical", "external", "claims"),
    )
    ef_search: int = declared(200, "breadth of the HNSW search", low=1, high=1000, unit="nodes", reaches=("dense",), source="pgvector")
    rrf_k: int = declared(
        10,
        "constant of reciprocal rank fusion: score = Σ weight/(rrf_k + rank); 60 in its paper",
        low=0,
        high=10_000,
        reaches=("fuse",),
        source="Cormack et al. 2009",
    )
    dense_weight: float = declared(
        1.0, "weight of the dense arm in the fusion; at 0 the arm is not executed", off=0.0, low=0, high=1000, reaches=("fuse",)
    )
    lexical_weight: float = declared(
        1.0, "weight of the lexical arm in the fusion; at 0 the arm is not executed", off=0.0, low=0, high=1000, reaches=("fuse",)
    )
    external: str = declared("none", "a ranked list from a search endpoint, as an arm: its URL", off="none", reaches=("external",))
    external_weight: float = declared(
        1.0, "weight of the external arm in the fusion; at 0 it is not asked", off=0.0, low=0, high=1000, reaches=("fuse",)
    )
    claims: str = declared(
        "off",
        "verified claims vote for their passages: on, as an arm beside the others; only, in their place (lab claims extract makes them)",
        off="off",
        choices=("off", "on", "only"),
        reaches=("claims",),
    )
    claims_weight: float = declared(
        1.0, "weight of the claims arm in the fusion; at 0 the arm is not executed", off=0.0, low=0, high=1000, reaches=("fuse",)
    )
    authority_weight: float = declared(
        0.3, "bonus of the highest authority tier, as a share of the best attainable fused score", off=0.0, low=0, high=10, reaches=("authority",)
    )
    steps_weight: float = declared(
        0.0,
        "bonus of a passage that holds a list of at least three numbered steps, as a share of the best attainable fused score",
        off=0.0,
        on=0.3,
        low=0,
        high=10,
        reaches=("steps",),
    )
    dedup: str = declared(
        "exact",
        "exact: one result per class of equal normalised text, spoken for by its copy of highest authority; near: near twins too",
        off="off",
        choices=("off", "exact", "near"),
        on="exact",
        reaches=("dense", "lexical", "external", "claims", "fuse", "dedup", "links"),
    )
    cites: str = declared("off", "on: add passages that the top hits cite", off="off", choices=("off", "on"), reaches=("links",))
    defines: str = declared(
        "off",
        "question: add passages that define a term named in a question that asks for a meaning; always: also terms used in the top hits",
        off="off",
        choices=("off", "question", "always"),
        reaches=("links",),
    )
    link_parents: int = declared(3, "how many top hits are expanded along links", off=0, low=0, high=100, unit="passages", reaches=("links",))
    links_max: int = declared(2, "how many linked passages may enter", off=0, low=0, high=100, unit="passages", reaches=("links",))
    link_hub_max: int = declared(
        50, "targets linked from more chunks than this are not added", off=0, low=0, high=1_000_000, unit="chunks", reaches=("links",)
    )
    reranker: str = declared(
        "none",
        "second look at the top of the list: maxsim (late interaction over token vectors), a cross-encoder, a rerank server",
        off="none",
        choices=("none", "maxsim"),
        open="cross-encoder:NAME or folder, http:URL",
        reaches=("rerank",),
        source="Khattab & Zaharia 2020",
    )
    rerank_depth: int = declared(30, "how many passages the reranker sees", low=1, high=1000, unit="passages", reaches=("rerank",))
    mmr_lambda: float = declared(
        1.0,
        "λ·relevance − (1−λ)·max similarity; 0.7 is the usual on value",
        off=1.0,
        on=0.7,
        low=0,
        high=1,
        reaches=("mmr",),
        source="Carbonell & Goldstein 1998",
    )
    mmr_pool: int = declared(50, "how many passages MMR reorders", low=1, high=1000, unit="passages", reaches=("mmr",))
    floor: str = declared(
        "none",
        "below this best value nothing is returned: cosine of the dense arm, −1 to 1, or what floor_on says; a passage with a code the question names passes",
        off="none",
        reaches=("floor",),
    )
    floor_on: str = declared(
        "dense", "what the floor looks at: dense (best cosine) or rerank (best score)", choices=("dense", "rerank"), reaches=("floor",)
    )
    intent: str = declared(
        "off",
        "on: what a question asks for (definition, procedure, policy, lookup) sets flags for it: defines=question, steps_weight=0.3, cites=on",
        off="off",
        choices=("off", "on"),
        reaches=("analyse",),
    )
    entities: str = declared(
        "off",
        "on: a key of the metadata that the question names with one of its values (status final, version 3.2) becomes a filter for it",
        off="off",
        choices=("off", "on"),
        reaches=("analyse",),
    )
    rewrite: str = declared(
        "off",
        "rules, chat: a question that leans on what was said before it is made to stand alone, by rules or by the chat model of LAB_CHAT_URL",
        off="off",
        choices=("off", "rules", "chat"),
        reaches=("analyse",),
    )
    filters: str = declared(
        "none",
        "what a document must be: conditions on its metadata, as in year>=2020, status=final|draft, source=standards/*",
        off="none",
        reaches=("dense", "lexical", "external", "claims", "fuse", "dedup", "links"),
    )
    k: int = declared(10, "how many results are returned", low=1, high=1000, unit="passages", reaches=("cut",))

    def __post_init__(self) -> None:
        check(self)
        filters.parse(self.filters)
        self._check_floor()
        if not self.arms:
            raise UsageError(
                "no arm is left to search with: set --dense, --lexical, --external or --claims to something else than none (and its weight above 0)."
            )

    def _check_floor(self) -> None:
        if self.floor.strip().lower() in {"none", ""}:
            object.__setattr__(self, "floor", "none")
            return
        try:
            value = float(self.floor)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or (self.floor_on == "dense" and not -1 <= value <= 1):
            raise UsageError(f"--floor cannot be {self.floor!r}: it takes none, or a cosine from -1 to 1 (with --floor-on rerank any number).")
        if self.floor_on == "dense" and self.dense_arm == "none":
            raise UsageError("--floor looks at the dense arm, which is off: set --dense, or --floor-on rerank with a --reranker.")
        if self.floor_on == "rerank" and self.reranker == "none":
            raise UsageError("--floor-on rerank needs a --reranker.")
        object.__setattr__(self, "floor", f"{value:g}")

    @property
    def dense_arm(self) -> str:
        """The dense arm that will be executed: `none` also at weight 0."""
        return self.dense if self.dense_weight > 0 and not self.claims_only else "none"

    @property
    def lexical_arm(self) -> str:
        return self.lexical if self.lexical_weight > 0 and not self.claims_only else "none"

    @property
    def external_arm(self) -> str:
        return self.external if self.external_weight > 0 and not self.claims_only else "none"

    @property
    def claims_arm(self) -> str:
        return self.claims if self.claims != "off" and self.claims_weight > 0 else "none"

    @property
    def claims_only(self) -> bool:
        return self.claims == "only"

    @property
    def arms(self) -> dict[str, float]:
        """The arms that are on, with their weights in the fusion, in the order in which their shares of a score are added."""
        on = {"dense": self.dense_arm, "lexical": self.lexical_arm, "external": self.external_arm, "claims": self.claims_arm}
        weights = {"dense": self.dense_weight, "lexical": self.lexical_weight, "external": self.external_weight, "claims": self.claims_weight}
        return {name: weights[name] for name, value in on.items() if value != "none"}

    @property
    def links_on(self) -> bool:
        return (self.cites != "off" or self.defines != "off") and self.links_max > 0 and (self.link_parents > 0 or self.defines != "off")


@dataclass(frozen=True, slots=True)
class IngestSettings(Flags):
    """How documents become chunks and vectors. A collection has one such combination for life."""

    chunker: str = declared(
        "heading",
        "heading: leaf sections, cut at sentence ends where too long; fixed: windows of characters; paragraph: at most 40 words; sentence-window: one sentence, read with its neighbours; whole: one chunk a document",
        choices=("heading", "fixed", "paragraph", "sentence-window", "whole"),
        reaches=("chunk",),
    )
    chunk_size: int = declared(
        0,
        "fixed: characters (0 = 800); heading: tokens of the embedder (0 = min(512, its limit − context − 2)); paragraph: words (0 = 40)",
        low=0,
        high=100_000,
        reaches=("chunk",),
    )
    overlap: int = declared(
        100, "fixed only: characters shared by neighbouring chunks", off=0, low=0, high=10_000, unit="characters", reaches=("chunk",)
    )
    window: int = declared(
        2,
        "sentence-window only: sentences before and behind that are returned for reading, never scored",
        low=1,
        high=20,
        unit="sentences",
        reaches=("chunk",),
    )
    context: str = declared("on", "title > heading path is embedded and indexed with the chunk", off="off", choices=("off", "on"), reaches=("embed",))
    embedder: str = declared(
        "minilm",
        "minilm: all-MiniLM-L6-v2, 384 dimensions; keyword: hashed bag of words, 1,024 dimensions; none: lexical only; a server's or a sentence-transformers model",
        off="none",
        choices=("none", "minilm", "keyword"),
        open="ollama:MODEL, openai:MODEL, tei:MODEL, sentence-transformers:NAME, a folder or a name with a slash",
        reaches=("chunk", "embed"),
    )
    query_prefix: str = declared(
        "auto", "what is put before a question when it is embedded; auto: what the model is known to want", off="none", reaches=("embed",)
    )
    passage_prefix: str = declared(
        "auto", "what is put before a passage when it is embedded; auto: what the model is known to want", off="none", reaches=("embed",)
    )

    twins: str = declared(
        "near",
        "near: passages that are alike are found at ingest (MinHash, Jaccard ≥ 0.8, the same numbers, codes, negations and terms), for distinct@k; exact: only equal ones",
        off="exact",
        choices=("near", "exact"),
        source="Broder 1997",
        reaches=("twins",),
    )

    def __post_init__(self) -> None:
        check(self)
        if self.chunker == "fixed" and self.overlap >= (self.chunk_size or 800):
            raise UsageError(f"--overlap {self.overlap} must be smaller than --chunk-size {self.chunk_size or 800}.")


NAMED: dict[str, dict[str, Value]] = {
    "default": {},
    "dense-only": {"lexical": "none"},
    "lexical-only": {"dense": "none"},
    "classic": {
        "query_mode": "websearch", "lexical": "ts_rank_cd", "rrf_k": 60, "ef_search": 1000, "authority_weight": 0.0, "dedup": "off",
        "codes": "off", "code_weight": 0.0, "cites": "off", "defines": "off", "reranker": "none", "mmr_lambda": 1.0,
    },
    "deep": {"candidates": 50, "rerank_depth": 50, "reranker": "maxsim", "mmr_pool": 10, "mmr_lambda": 0.7, "k": 5},
}  # fmt: skip


def resolved(settings: Settings | str | None) -> Settings:
    """The settings meant by an object, by a name as in `named`, or by None (the defaults)."""
    return named(settings) if isinstance(settings, str) else settings or Settings()


def named(name: str) -> Settings:
    """The settings shipped under `name`, or those of a TOML file (keys are flag names, at the top or under `[settings]`)."""
    if name in NAMED:
        return dataclasses.replace(Settings(), **NAMED[name])  # type: ignore[arg-type]
    path = Path(name)
    if not name.endswith(".toml"):
        raise unknown("settings", name, NAMED, mend="name a TOML file.")
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"settings file {name} cannot be read ({error.strerror}): name an existing TOML file.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"settings file {name} is not valid TOML: {error}.") from None
    table = table.get("settings", table)
    return Settings().with_words({key: str(value) for key, value in table.items()})
