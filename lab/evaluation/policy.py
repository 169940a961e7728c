"""What a gate holds a run to: rules with margins, and the limits of its health conditions; from a TOML file, or from the command line."""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

from lab.errors import UsageError, unknown
from lab.evaluation.compare import PRIMARY, unit_of
from lab.evaluation.measures import parse
from lab.evaluation.members import LEAST_RECALL
from lab.evaluation.statistics.paired import ALPHA

SHORT_MORE = 0.01  # share of questions with short lists that may come on top
P95_RATIO = 1.5


@dataclass(frozen=True, slots=True)
class Rule:
    """What must not get worse by `margin` (in the measure's unit), over all questions or those of some kinds. `measure` p95 is the ratio of search times, without a p."""

    measure: str = PRIMARY
    margin: float = 0.05
    kinds: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.measure + (f" of {', '.join(self.kinds)}" if self.kinds else "")


@dataclass(frozen=True, slots=True)
class Policy:
    """All rules of a gate, and the limits of its health conditions."""

    rules: tuple[Rule, ...] = (Rule(),)
    alpha: float = ALPHA
    ann_recall: float = LEAST_RECALL
    short_more: float = SHORT_MORE


def read_policy(path: Path) -> Policy:
    """A policy file: `alpha`, `ann_recall`, `short_more`, and `[[rules]]` with `measure`, `margin`, `kinds`. UsageError naming what is wrong."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"policy {path} cannot be read ({error.strerror}): name a TOML file.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"policy {path} is not valid TOML: {error}.") from None
    for key in table:
        if key not in {"alpha", "ann_recall", "short_more", "rules"}:
            raise unknown("key of a policy", key, ["alpha", "ann_recall", "short_more", "rules"])
    rules = []
    if not isinstance(table.get("rules", []), list):
        raise UsageError(f"policy {path}: rules is {table['rules']!r}, and must be tables: write [[rules]].")
    for number, entry in enumerate(table.get("rules", []), 1):
        if not isinstance(entry, dict):
            raise UsageError(f"policy {path}: rule {number} is no table: write [[rules]].")
        for key in entry:
            if key not in {"measure", "margin", "kinds"}:
                raise unknown("key of a rule", key, ["measure", "margin", "kinds"])
        kinds = entry.get("kinds", [])
        if not isinstance(kinds, list) or not all(isinstance(kind, str) for kind in kinds):
            raise UsageError(f"policy {path}: kinds of rule {number} must be a list of texts.")
        rules.append(
            Rule(
                str(entry.get("measure", PRIMARY)),
                _number(entry.get("margin", P95_RATIO if entry.get("measure") == "p95" else 0.05), path, "margin"),
                tuple(kinds),
            )
        )
    if not rules:
        raise UsageError(f"policy {path} has no rule: write at least one [[rules]] with measure and margin.")
    for number, rule in enumerate(rules, 1):
        try:
            checked(rule)
        except UsageError as error:
            raise UsageError(f"policy {path}, rule {number}: {error}") from None
    limits = {key: _number(table[key], path, key) for key in ("alpha", "ann_recall", "short_more") if key in table}
    if not 0 < limits.get("alpha", ALPHA) < 0.5:
        raise UsageError(f"policy {path}: alpha is {limits['alpha']:g}, and must lie between 0 and 0.5.")
    return Policy(tuple(rules), **limits)


def _number(value: object, path: Path, key: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise UsageError(f"policy {path}: {key} is {value!r}, and must be a finite number.")
    return float(value)


def checked(rule: Rule) -> Rule:
    """The rule with its measure as it is named everywhere; UsageError for a margin that is none."""
    if rule.measure == "p95":
        if rule.kinds or rule.margin <= 1:
            raise UsageError("a rule on p95 takes a ratio above 1 as its margin, as 1.5, and no kinds.")
        return rule
    name = str(parse(rule.measure))
    if not 0 < rule.margin <= unit_of(name):
        raise UsageError(f"the margin {rule.margin:g} of {name} is no difference: above 0, up to {unit_of(name):g}.")
    return replace(rule, measure=name)
