"""A chat model asked through a cache of files: the same question to the same model costs once, and an interrupted call goes on where it stopped.

A model is known by its name: servers tell no digest. Whoever puts another one under the same name empties the cache (`lab cache prune --chat`).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.config import home
from lab.models.chat import SEED, Chat, Malformed, Reply, misfit
from lab.scratch import whole_file

FOLDERS = ("answer-cache", "claims-cache", "gold-cache")  # below LAB_HOME, by what is asked


@dataclass(slots=True)
class Spent:
    """What was asked of the model in this call: calls, tokens, answers that came from the cache; and what was refused of them, by reason. `budget` in tokens, 0: none."""

    budget: int = 0
    calls: int = 0
    asked: int = 0
    answered: int = 0
    cached: int = 0
    rejected: Counter[str] = field(default_factory=Counter)

    @property
    def over(self) -> bool:
        """Whether the budget is used up."""
        return self.budget > 0 and self.asked + self.answered >= self.budget

    def to_json(self) -> dict[str, Any]:
        """What is printed and stored of it."""
        return {"calls": self.calls, "tokens": self.asked + self.answered, "cached": self.cached}


def ask(
    chat: Chat, spent: Spent, folder: str, version: str, system: str, user: str, schema: Mapping[str, Any], *, seed: int = SEED,
    rescue: Callable[[str], Any] | None = None, held_to: Mapping[str, Any] | None = None, most: int = 2000,
) -> Any:  # fmt: skip
    """The parsed answer, from LAB_HOME/`folder` or from the model; None where the model twice gives no JSON of the form, which is not kept: the next call asks again. `version` of the prompts is
    part of the key; `most` tokens are read of an answer."""
    key = hashlib.sha256(json.dumps([version, chat.model, system, user, seed]).encode()).hexdigest()
    path = home() / folder / key[:2] / f"{key}.json"
    value = _read(path, held_to or schema)
    if value is not None:
        spent.cached += 1
        return value
    try:
        reply = chat.ask(system, user, schema, seed=seed, most=most, rescue=rescue, held_to=held_to)
    except Malformed as error:
        spent.calls += 2
        spent.asked += error.asked
        spent.answered += error.answered
        spent.rejected["malformed"] += 1
        return None
    spent.calls += reply.calls
    spent.asked += reply.asked
    spent.answered += reply.answered
    whole_file(path, json.dumps(reply.value, ensure_ascii=False))
    return reply.value


def forget() -> int:
    """Removes everything that chat models said; how many answers that was."""
    files = [path for folder in FOLDERS for path in (home() / folder).glob("*/*.json")]
    for path in files:
        path.unlink(missing_ok=True)
    return len(files)


def _read(path: Path, schema: Mapping[str, Any]) -> Any:
    """What is kept there; None where it is nothing of the form."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return None if misfit(value, schema) else value


class Remembered(Chat):
    """A chat model whose answers are kept in LAB_HOME/`folder`: what it said once costs nothing the next time. Malformed is raised as by `Chat`, each time."""

    def __init__(self, chat: Chat, folder: str, version: str) -> None:
        self.model, self._chat, self._folder, self._version = chat.model, chat, folder, version

    def ask(
        self, system: str, user: str, schema: Mapping[str, Any], *, temperature: float = 0.0, seed: int = SEED, most: int = 2000,
        rescue: Callable[[str], Any] | None = None, held_to: Mapping[str, Any] | None = None,
    ) -> Reply:  # fmt: skip
        """The reply, as `Chat.ask` gives it; one from the cache has no calls and no tokens."""
        key = hashlib.sha256(json.dumps([self._version, self.model, system, user, seed, temperature]).encode()).hexdigest()
        path = home() / self._folder / key[:2] / f"{key}.json"
        value = _read(path, held_to or schema)
        if value is not None:
            return Reply(value, json.dumps(value, ensure_ascii=False), 0, 0, 0)
        reply = self._chat.ask(system, user, schema, temperature=temperature, seed=seed, most=most, rescue=rescue, held_to=held_to)
        whole_file(path, json.dumps(reply.value, ensure_ascii=False))
        return reply
