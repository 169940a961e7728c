"""Trust tiers of sources, from path rules: `{"default": 0, "rules": [{"match": "glob on source", "tier": 0-9}]}`, the first match wins."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.errors import UsageError

FILE = "source_authority.json"
NONE: dict[str, Any] = {"default": 0, "rules": []}


def load(path: Path) -> dict[str, Any]:
    """The rules of a file, checked."""
    try:
        rules = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): name an existing JSON file behind --authority.") from None
    except ValueError as error:
        raise UsageError(f"{path} is not valid JSON ({error}).") from None
    valid = (
        isinstance(rules, dict) and set(rules) <= {"default", "rules"} and _tier(rules.get("default", 0)) and isinstance(rules.get("rules", []), list)
    )
    if not valid or not all(
        isinstance(rule, dict) and set(rule) == {"match", "tier"} and isinstance(rule["match"], str) and _tier(rule["tier"])
        for rule in rules.get("rules", [])
    ):
        raise UsageError(f'{path} must look like {{"default": 0, "rules": [{{"match": "standards/*", "tier": 3}}]}} with tiers from 0 to 9.')
    return {"default": rules.get("default", 0), "rules": rules.get("rules", [])}


def _tier(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 9


def tier(rules: Mapping[str, Any], source: str) -> int:
    """The tier of a source; `*` also crosses `/`."""
    for rule in rules["rules"]:
        if fnmatch.fnmatchcase(source, rule["match"]):
            return int(rule["tier"])
    return int(rules["default"])
