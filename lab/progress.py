"""Progress of long work on stderr: what, how far, how fast, how long still. In a notebook one line under the cell, which goes when the work is done. Silent when stderr is no terminal, but for a
line a minute."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any


class Progress:
    """`with Progress("embedding", total, unit="chunks") as bar: bar.advance(32)`.

    `total` may grow while work goes on (`bar.total += n`). On a terminal one line is redrawn at most ten times a second; elsewhere
    a line is written every 60 s, so that a log shows life without being flooded.
    """

    quiet = False

    def __init__(self, what: str, total: float, unit: str = "") -> None:
        self.what = what
        self.total = total
        self.unit = unit
        self.done = 0.0
        self._start = time.monotonic()
        self._last = self._start
        self._drawn = False
        self._notebook: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._notebook is not None:
            self._notebook.update({"text/plain": ""}, raw=True)
        if self._drawn and sys.stderr.isatty():
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()

    def advance(self, amount: float = 1) -> None:
        self.done += amount
        now = time.monotonic()
        terminal = sys.stderr.isatty()
        notebook = not terminal and _in_notebook()
        if self.quiet or now - self._last < (0.1 if terminal else 0.5 if notebook else 60):
            return
        self._last = now
        self._drawn = True
        line = self.line(now)
        if notebook:
            self._show(line)
            return
        sys.stderr.write(f"\r\x1b[2K{line}" if terminal else line + "\n")
        sys.stderr.flush()

    def _show(self, line: str) -> None:
        from IPython.display import display

        if self._notebook is None:
            self._notebook = display({"text/plain": line}, raw=True, display_id=True)
        else:
            self._notebook.update({"text/plain": line}, raw=True)

    def line(self, now: float) -> str:
        elapsed = max(now - self._start, 1e-9)
        rate = self.done / elapsed
        left = max(self.total - self.done, 0) / rate if rate > 0 else float("inf")
        share = min(self.done / self.total, 1.0) if self.total else 1.0
        return f"{self.what}  {share:4.0%}  {self.done:,.0f}/{self.total:,.0f} {self.unit}  {rate:,.1f} {self.unit}/s  {clock(left)} left"


def _in_notebook() -> bool:
    """Is this a kernel of Jupyter? Asked without importing anything."""
    kernel = sys.modules.get("ipykernel.zmqshell")
    return kernel is not None and kernel.ZMQInteractiveShell.initialized()


def clock(seconds: float) -> str:
    """`0:42`, `12:05`, `1:02:03`; `–` when unknown."""
    if seconds == float("inf"):
        return "–"
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    minutes, secs = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{secs:02}" if hours else f"{minutes}:{secs:02}"


def say(message: str) -> None:
    """One line to stderr, unless `-q` was given."""
    if not Progress.quiet:
        sys.stderr.write(message + "\n")
        sys.stderr.flush()
