"""The flags as options of the command line, made from their declarations."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

from cyclopts import Group, Parameter

from lab.flags import Flag
from lab.settings import IngestSettings, Settings


def _help(flag: Flag) -> str:
    takes = f" ({', '.join([*flag.choices, *([flag.open] if flag.open else [])])})" if flag.choices else f" ({flag.type}{flag.range})"
    unit = f" {flag.unit}" if flag.unit else ""
    off = f", off: {flag.off}" if flag.off is not None else ""
    return f"{flag.meaning}{takes}; default: {flag.default}{unit}{off}"


def _options(cls: type[Settings] | type[IngestSettings], name: str, title: str) -> Any:
    group = Group(title)
    fields = [
        (
            flag.name,
            Annotated[str | None, Parameter(name=f"--{flag.option}", help=_help(flag), group=group, show_default=False, negative=())],
            dataclasses.field(default=None),
        )
        for flag in cls.flags().values()
    ]
    made = dataclasses.make_dataclass(name, fields, frozen=True, kw_only=True)
    made.__module__ = __name__  # else it counts as a built-in type, which has no options
    return Annotated[made | None, Parameter(name="*")]


SearchFlags = _options(Settings, "SearchFlags", "Search flags")
IngestFlags = _options(IngestSettings, "IngestFlags", "Ingest flags")


def passed(flags: Any) -> dict[str, Any]:
    """The flags that were typed, as words."""
    if flags is None:
        return {}
    return {f.name: getattr(flags, f.name) for f in dataclasses.fields(flags) if getattr(flags, f.name) is not None}
