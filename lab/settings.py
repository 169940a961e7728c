"""Every flag of the lab, declared once: default, off value, unit, meaning, source.

The command line's options, the axes of a grid, the digest, the table in README and the columns of `lab.runs` all come from the
fields below. A flag is a field of `Settings` (how a question is searched) or of `IngestSettings` (how documents become chunks).

Words: `0`, `false`, `no` and `off` mean the off value, `1`, `true`, `yes` and `on` the first on value; a number is a number where the
flag is numeric. `Settings` holds the canonical value; what was typed is kept apart as `passed`.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from lab import filters
from lab.errors import UsageError, unknown
from lab.text import digest

Value = str | int | float


@dataclass(frozen=True, slots=True)
class Flag:
    """What is known of one flag. `reaches` names the arms or the stage that read it."""

    name: str
    type: Literal["choice", "int", "float", "text"]
    default: Value
    off: Value | None
    meaning: str
    source: str = ""
    unit: str = ""
    choices: tuple[str, ...] = ()
    low: float = -math.inf
    high: float = math.inf
    reaches: tuple[str, ...] = ()
    on: Value | None = None
    open: str = ""  # of a choice that also takes other words: what they look like

    @property
    def first_on(self) -> Value | None:
        """What `on` stands for: the declared on value, else the first choice that is not the off value, else a number's default if that is not off."""
        if self.on is not None:
            return self.on
        if self.type == "choice":
            return next((c for c in self.choices if c != self.off), None)
        return self.default if self.default != self.off else None

    def parse(self, word: str) -> Value:
        """The canonical value of a word as typed; raises UsageError with the accepted values."""
        text = word.strip()
        lower = text.lower()
        if self.type == "text":
            return self.off if lower in {"0", "false", "no", "off", "none"} and self.off is not None else word
        if self.type == "choice":
            if lower in self.choices:
                return lower
            if lower in {"0", "false", "no", "off"} and self.off is not None:
                return self.off
            if lower in {"1", "true", "yes", "on"} and self.first_on is not None:
                return self.first_on
            if self.takes(text):
                return text
            raise UsageError(f"--{self.option} cannot be {word!r}: it takes {', '.join(self.choices)}{f' or {self.open}' if self.open else ''}.")
        if lower in {"false", "no", "off", "none"} and self.off is not None:
            return self.off
        if lower in {"true", "yes", "on"} and self.first_on is not None:
            return self.first_on
        try:
            number = float(text)
        except ValueError:
            raise UsageError(f"--{self.option} cannot be {word!r}: it takes a number{self.range}.") from None
        if not math.isfinite(number) or not self.low <= number <= self.high:
            raise UsageError(f"--{self.option} cannot be {word}: it takes a number{self.range}.")
        if self.type == "int":
            if number != int(number):
                raise UsageError(f"--{self.option} cannot be {word}: it takes a whole number{self.range}.")
            return int(number)
        return number

    def takes(self, word: str) -> bool:
        """Whether an open choice takes a word that is none of its choices: one with a colon or a slash, or an existing folder."""
        return bool(self.open) and word.lower() not in self.choices and (":" in word or "/" in word or Path(word).is_dir())

    @property
    def option(self) -> str:
        return self.name.replace("_", "-")

    @property
    def range(self) -> str:
        if math.isinf(self.low) and math.isinf(self.high):
            return ""
        return f" from {self.low:g} to {self.high:g}" if not math.isinf(self.high) else f" of at least {self.low:g}"


def _flag(
    default: Value,
    meaning: str,
    *,
    off: Value | None = None,
    choices: tuple[str, ...] = (),
    low: float = -math.inf,
    high: float = math.inf,
    unit: str = "",
    source: str = "",
    reaches: tuple[str, ...] = (),
    on: Value | None = None,
    open: str = "",
) -> Any:
    kind: Literal["choice", "int", "float", "text"] = (
        "choice" if choices else "text" if isinstance(default, str) else "float" if isinstance(default, float) else "int"
    )
    return field(
        default=default,
        metadata={
            "flag": functools.partial(
                Flag,
                type=kind,
                default=default,
                off=off,
                meaning=meaning,
                source=source,
                unit=unit,
                choices=choices,
                low=low,
                high=high,
                reaches=reaches,
                on=on,
                open=open,
            )
        },
    )


_S = TypeVar("_S", bound="_Flags")


class _Flags:
    """What `Settings` and `IngestSettings` share: parsing words, changing values, digest."""

    @classmethod
    def flags(cls) -> Mapping[str, Flag]:
        """Name → flag, in order of declaration."""
        return _flags_of(cls)  # type: ignore[arg-type]

    @classmethod
    def flag(cls, name: str) -> Flag:
        known = cls.flags()
        key = name.strip().lstrip("-").replace("-", "_")
        if key not in known:
            raise unknown("flag", name, known)
        return known[key]

    def with_words(self: _S, words: Mapping[str, str]) -> _S:
        """These settings with the named flags set from words as typed."""
        changes = {}
        for name, word in words.items():
            flag = self.flag(name)
            changes[flag.name] = flag.parse(word)
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def as_dict(self) -> dict[str, Value]:
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]

    @property
    def digest(self) -> str:
        """12 hex digits that name this combination of values."""
        return digest(self.as_dict())[:12]

    def reaching(self, *stages: str) -> tuple[tuple[str, Value], ...]:
        """The (name, value) pairs of the flags that reach any of `stages`: a key for work that depends on no other flag."""
        return tuple((name, getattr(self, name)) for name in _reaching(type(self), stages))  # type: ignore[arg-type]


@functools.cache
def _flags_of(cls: Any) -> Mapping[str, Flag]:
    return {f.name: f.metadata["flag"](f.name) for f in dataclasses.fields(cls)}


@functools.cache
def _reaching(cls: Any, stages: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name, flag in _flags_of(cls).items() if set(flag.reaches) & set(stages))


@dataclass(frozen=True, slots=True)
class Settings(_Flags):
    """How a question is searched. Constructing checks types and ranges, so that a settings object is always runnable."""

    dense: str = _flag(
        "hnsw",
        "dense arm: hnsw (runs exact at ≤ 2,000 chunks; the engine is recorded) or exact",
        off="none",
        choices=("none", "hnsw", "exact"),
        reaches=("dense",),
        source="Malkov & Yashunin 2020",
    )
    lexical: str = _flag(
        "bm25",
        "lexical arm: bm25 (k1 1.2, b 0.75), ts_rank or ts_rank_cd",
        off="none",
        choices=("none", "bm25", "ts_rank", "ts_rank_cd"),
        reaches=("lexical",),
        source="Robertson & Zaragoza 2009",
    )
    query_mode: str = _flag(
        "any",
        "how the question's words combine in the lexical arm: any word, all words, or web search syntax",
        choices=("any", "all", "websearch"),
        reaches=("lexical",),
    )
    codes: str = _flag(
        "on",
        "bm25 also looks for codes, section numbers, numbers and parts of compounds as such: PRV-2041 = PRV 2041, 4.2 → 4.2.1, inlet/outlet",
        off="off",
        choices=("off", "on"),
        reaches=("lexical",),
    )
    code_weight: float = _flag(
        0.5,
        "bonus of a passage that holds a code or section which the question names, as a share of the best attainable fused score, less where it is common",
        off=0.0,
        low=0,
        high=10,
        reaches=("codes", "codes_after"),
    )
    candidates: int = _flag(
        100,
        "rows (with dedup: exact classes) an arm contributes",
        low=1,
        high=10_000,
        unit="passages",
        reaches=("dense", "lexical", "external", "claims"),
    )
    ef_search: int = _flag(200, "breadth of the HNSW search", low=1, high=1000, unit="nodes", reaches=("dense",), source="pgvector")
    rrf_k: int = _flag(
        10,
        "constant of reciprocal rank fusion: score = Σ weight/(rrf_k + rank); 60 in its paper",
        low=0,
        high=10_000,
        reaches=("fuse",),
        source="Cormack et al. 2009",
    )
    dense_weight: float = _flag(
        1.0, "weight of the dense arm in the fusion; at 0 the arm is not executed", off=0.0, low=0, high=1000, reaches=("fuse",)
    )
    lexical_weight: float = _flag(
        1.0, "weight of the lexical arm in the fusion; at 0 the arm is not executed", off=0.0, low=0, high=1000, reaches=("fuse",)
    )
    external: str = _flag("none", "a ranked list from a search endpoint, as an arm: its URL", off="none", reaches=("external",))
    external_weight: float = _flag(
        1.0, "weight of the external arm in the fusion; at 0 it is not asked", off=0.0, low=0, high=1000, reaches=("fuse",)
    )
    claims: str = _flag(
        "off",
        "verified claims vote for their passages: on, as an arm beside the others; only, in their place (lab claims extract makes them)",
        off="off",
        choices=("off", "on", "only"),
        reaches=("claims",),
    )
    claims_weight: float = _flag(
        1.0, "weight of the claims arm in the fusion; at 0 the arm is not executed", off=0.0, low=0, high=1000, reaches=("fuse",)
    )
    authority_weight: float = _flag(
        0.3, "bonus of the highest authority tier, as a share of the best attainable fused score", off=0.0, low=0, high=10, reaches=("authority",)
    )
    steps_weight: float = _flag(
        0.0,
        "bonus of a passage that holds a list of at least three numbered steps, as a share of the best attainable fused score",
        off=0.0,
        on=0.3,
        low=0,
        high=10,
        reaches=("steps",),
    )
    dedup: str = _flag(
        "exact",
        "exact: one result per class of equal normalised text, spoken for by its copy of highest authority; near: near twins too",
        off="off",
        choices=("off", "exact", "near"),
        on="exact",
        reaches=("dense", "lexical", "external", "claims", "fuse", "dedup", "links"),
    )
    cites: str = _flag("off", "on: add passages that the top hits cite", off="off", choices=("off", "on"), reaches=("links",))
    defines: str = _flag(
        "off",
        "question: add passages that define a term named in a question that asks for a meaning; always: also terms used in the top hits",
        off="off",
        choices=("off", "question", "always"),
        reaches=("links",),
    )
    link_parents: int = _flag(3, "how many top hits are expanded along links", off=0, low=0, high=100, unit="passages", reaches=("links",))
    links_max: int = _flag(2, "how many linked passages may enter", off=0, low=0, high=100, unit="passages", reaches=("links",))
    link_hub_max: int = _flag(
        50, "targets linked from more chunks than this are not added", off=0, low=0, high=1_000_000, unit="chunks", reaches=("links",)
    )
    reranker: str = _flag(
        "none",
        "second look at the top of the list: maxsim (late interaction over token vectors), a cross-encoder, a rerank server",
        off="none",
        choices=("none", "maxsim"),
        open="cross-encoder:NAME or folder, http:URL",
        reaches=("rerank",),
        source="Khattab & Zaharia 2020",
    )
    rerank_depth: int = _flag(30, "how many passages the reranker sees", low=1, high=1000, unit="passages", reaches=("rerank",))
    mmr_lambda: float = _flag(
        1.0,
        "λ·relevance − (1−λ)·max similarity; 0.7 is the usual on value",
        off=1.0,
        on=0.7,
        low=0,
        high=1,
        reaches=("mmr",),
        source="Carbonell & Goldstein 1998",
    )
    mmr_pool: int = _flag(50, "how many passages MMR reorders", low=1, high=1000, unit="passages", reaches=("mmr",))
    floor: str = _flag(
        "none",
        "below this best value nothing is returned: cosine of the dense arm, −1 to 1, or what floor_on says; a passage with a code the question names passes",
        off="none",
        reaches=("floor",),
    )
    floor_on: str = _flag(
        "dense", "what the floor looks at: dense (best cosine) or rerank (best score)", choices=("dense", "rerank"), reaches=("floor",)
    )
    intent: str = _flag(
        "off",
        "on: what a question asks for (definition, procedure, policy, lookup) sets flags for it: defines=question, steps_weight=0.3, cites=on",
        off="off",
        choices=("off", "on"),
        reaches=("analyse",),
    )
    entities: str = _flag(
        "off",
        "on: a key of the metadata that the question names with one of its values (status final, version 3.2) becomes a filter for it",
        off="off",
        choices=("off", "on"),
        reaches=("analyse",),
    )
    rewrite: str = _flag(
        "off",
        "rules, chat: a question that leans on what was said before it is made to stand alone, by rules or by the chat model of LAB_CHAT_URL",
        off="off",
        choices=("off", "rules", "chat"),
        reaches=("analyse",),
    )
    filters: str = _flag(
        "none",
        "what a document must be: conditions on its metadata, as in year>=2020, status=final|draft, source=standards/*",
        off="none",
        reaches=("dense", "lexical", "external", "claims", "fuse", "dedup", "links"),
    )
    k: int = _flag(10, "how many results are returned", low=1, high=1000, unit="passages", reaches=("cut",))

    def __post_init__(self) -> None:
        _check(self)
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
class IngestSettings(_Flags):
    """How documents become chunks and vectors. A collection has one such combination for life."""

    chunker: str = _flag(
        "heading",
        "heading: leaf sections, cut at sentence ends where too long; fixed: windows of characters; paragraph: at most 40 words; sentence-window: one sentence, read with its neighbours; whole: one chunk a document",
        choices=("heading", "fixed", "paragraph", "sentence-window", "whole"),
        reaches=("chunk",),
    )
    chunk_size: int = _flag(
        0,
        "fixed: characters (0 = 800); heading: tokens of the embedder (0 = min(512, its limit − context − 2)); paragraph: words (0 = 40)",
        low=0,
        high=100_000,
        reaches=("chunk",),
    )
    overlap: int = _flag(
        100, "fixed only: characters shared by neighbouring chunks", off=0, low=0, high=10_000, unit="characters", reaches=("chunk",)
    )
    window: int = _flag(
        2,
        "sentence-window only: sentences before and behind that are returned for reading, never scored",
        low=1,
        high=20,
        unit="sentences",
        reaches=("chunk",),
    )
    context: str = _flag("on", "title > heading path is embedded and indexed with the chunk", off="off", choices=("off", "on"), reaches=("embed",))
    embedder: str = _flag(
        "minilm",
        "minilm: all-MiniLM-L6-v2, 384 dimensions; keyword: hashed bag of words, 1,024 dimensions; none: lexical only; a server's or a sentence-transformers model",
        off="none",
        choices=("none", "minilm", "keyword"),
        open="ollama:MODEL, openai:MODEL, tei:MODEL, sentence-transformers:NAME, a folder or a name with a slash",
        reaches=("chunk", "embed"),
    )
    query_prefix: str = _flag(
        "auto", "what is put before a question when it is embedded; auto: what the model is known to want", off="none", reaches=("embed",)
    )
    passage_prefix: str = _flag(
        "auto", "what is put before a passage when it is embedded; auto: what the model is known to want", off="none", reaches=("embed",)
    )

    twins: str = _flag(
        "near",
        "near: passages that are alike are found at ingest (MinHash, Jaccard ≥ 0.8, the same numbers, codes, negations and terms), for distinct@k; exact: only equal ones",
        off="exact",
        choices=("near", "exact"),
        source="Broder 1997",
        reaches=("twins",),
    )

    def __post_init__(self) -> None:
        _check(self)
        if self.chunker == "fixed" and self.overlap >= (self.chunk_size or 800):
            raise UsageError(f"--overlap {self.overlap} must be smaller than --chunk-size {self.chunk_size or 800}.")


def _check(settings: _Flags) -> None:
    for name, flag in settings.flags().items():
        value = getattr(settings, name)
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise UsageError(f"flag {name} cannot be {value!r}: it takes a {'word' if flag.type == 'choice' else 'number'}.")
        if flag.type == "text":
            if not isinstance(value, str):
                raise UsageError(f"flag {name} cannot be {value!r}: it takes a text.")
        elif flag.type == "choice":
            if value not in flag.choices and not flag.takes(str(value)):
                raise UsageError(f"flag {name} cannot be {value!r}: it takes {', '.join(flag.choices)}.")
        else:
            if isinstance(value, str):
                raise UsageError(f"flag {name} cannot be {value!r}: it takes a number, not a word.")
            object.__setattr__(settings, name, flag.parse(str(value)))


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
