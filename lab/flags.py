"""What a flag is: declared once as a field, with default, off value, unit, meaning and source; how a typed word becomes its value.

Words: `0`, `false`, `no` and `off` mean the off value, `1`, `true`, `yes` and `on` the first on value; a number is a number where the flag is numeric.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

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


def declared(
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


_S = TypeVar("_S", bound="Flags")


class Flags:
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


def check(settings: Flags) -> None:
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
