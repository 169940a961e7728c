"""Printing: one JSON object or a table on stdout, nothing else there."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any


def print_json(value: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False, default=str) + "\n")


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]], title: str = "", numeric: Sequence[bool] = ()) -> None:
    """A table; where stdout is no terminal it is wide, so that nothing is cut."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for at, head in enumerate(heads):
        right = at < len(numeric) and numeric[at]
        table.add_column(head, justify="right" if right else "left", overflow="fold", no_wrap=right)
    for row in rows:
        table.add_row(*(cell.replace("[", "\\[") for cell in row))
    console = Console(file=sys.stdout, highlight=False)
    if not console.is_terminal:
        console = Console(file=sys.stdout, highlight=False, width=240, no_color=True)
    console.print(table)


def line(text: str) -> None:
    sys.stdout.write(text + "\n")


def size(count: int) -> str:
    """`12.3 MB`."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return ""
