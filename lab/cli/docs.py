"""The parts of README that are made from the code; cog writes them and a test compares them."""

from __future__ import annotations

from lab.flags import Flags
from lab.settings import NAMED, IngestSettings, Settings


def flag_table(cls: type[Flags]) -> str:
    """A Markdown table of the flags of `Settings` or `IngestSettings`."""
    lines = ["| flag | default | off | takes | meaning |", "| --- | --- | --- | --- | --- |"]
    for flag in cls.flags().values():
        takes = (", ".join(f"`{c}`" for c in flag.choices) or f"{flag.type}{flag.range}") + (f", {flag.open}" if flag.open else "")
        off = "–" if flag.off is None else f"`{flag.off}`"
        meaning = (flag.meaning + (f" ({flag.source})" if flag.source else "")).replace("|", "\\|")
        lines.append(f"| `--{flag.option}` | `{flag.default}` | {off} | {takes} | {meaning} |")
    return "\n".join(lines)


def named_table() -> str:
    """A Markdown table of the shipped settings."""
    lines = ["| name | what it sets |", "| --- | --- |"]
    for name, values in NAMED.items():
        lines.append(f"| `{name}` | {', '.join(f'{key} {value}' for key, value in values.items()) or 'the defaults'} |")
    return "\n".join(lines)


def command_table() -> str:
    """A Markdown table of all commands with the first line of their help."""
    from lab.cli.main import _COMMANDS, _GROUPS

    lines = ["| command | what it does |", "| --- | --- |"]
    lines += [f"| `lab {name}` | {text} |" for name, (_, text) in _COMMANDS.items()]
    lines += [f"| `lab {group} {name}` | {text} |" for group, (_, members) in _GROUPS.items() for name, (_, text) in members.items()]
    return "\n".join(lines)


def tables() -> str:
    return f"{flag_table(Settings)}\n\nShipped settings (`--settings NAME`, flags override):\n\n{named_table()}\n\nIngest flags:\n\n{flag_table(IngestSettings)}"
