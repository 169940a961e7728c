"""Grids: the factors of an experiment as typed, and the settings that their values combine to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lab.errors import UsageError, unknown
from lab.settings import IngestSettings, Settings


def clean_factors(factors: Mapping[str, Iterable[str | float]]) -> dict[str, list[str]]:
    """Flag → its words, stripped, in order of the flags' declaration. Raises UsageError for an unknown flag, for a factor with fewer than two values, with
    the same value twice, or given twice."""
    return _clean(Settings, factors)


def split_factors(factors: Mapping[str, Iterable[str | float]]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """(factors that are ingest flags, factors that are flags of search), each as `clean_factors` gives them: what is of neither is taken for a flag of search, and refused."""
    ingest = {name: words for name, words in factors.items() if name.replace("-", "_") in IngestSettings.flags()}
    return _clean(IngestSettings, ingest), _clean(Settings, {name: words for name, words in factors.items() if name not in ingest})


def _clean(of: type[Settings] | type[IngestSettings], factors: Mapping[str, Iterable[str | float]]) -> dict[str, list[str]]:
    clean: dict[str, list[str]] = {}
    for name, words in factors.items():
        flag = of.flag(name)
        values = [str(word).strip() for word in words]
        parsed = [flag.parse(word) for word in values]
        if len(values) < 2:
            raise UsageError(f"--factor {flag.name} needs at least two values, as in --factor {flag.name}={flag.off},{flag.first_on}.")
        if len(set(parsed)) < len(parsed):
            raise UsageError(f"--factor {flag.name} names the same value twice: {', '.join(values)}.")
        if flag.name in clean:
            raise UsageError(f"--factor {flag.name} is given twice: list its values behind one --factor.")
        clean[flag.name] = values
    return {name: clean[name] for name in of.flags() if name in clean}


def grid(factors: Mapping[str, Iterable[str | float]], base: Settings) -> list[tuple[dict[str, str], Settings]]:
    """All combinations of the factors' words, in order of the flags' declaration, the first word of each varying slowest.

    Returns (passed words of the factors, settings); raises as `clean_factors` does.

    >>> [p["defines"] for p, _ in grid({"defines": ["off", "question"]}, Settings())]
    ['off', 'question']
    """
    return [(member, base.with_words(member)) for member in combinations(clean_factors(factors))]


def combinations(factors: Mapping[str, Sequence[str]], design: str = "full") -> list[dict[str, str]]:
    """The members of a grid, the first factor varying slowest.

    `full`: every combination. `oat`: the first values, and each other value alone. `half`: of two-valued factors (at least three) the half in which an even number has
    its other value; each main effect is then mixed up with the interaction of all the others (Box, Hunter & Hunter 2005, ch. 6). UsageError for another design.
    """
    members: list[dict[str, str]] = [{}]
    for name, words in factors.items():
        members = [{**member, name: word} for member in members for word in words]
    if design == "full":
        return members
    off = [{name for name, words in factors.items() if member[name] != words[0]} for member in members]
    if design == "oat":
        return [member for member, changed in zip(members, off, strict=True) if len(changed) <= 1]
    if design == "half":
        if len(factors) < 3 or any(len(words) != 2 for words in factors.values()):
            raise UsageError("--design half takes at least three factors of two values each: use full or oat.")
        return [member for member, changed in zip(members, off, strict=True) if len(changed) % 2 == 0]
    raise unknown("design", design, ["full", "oat", "half"])
