"""Waiting for files to change: by looking, since not every file system tells."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

SECONDS = 1.0  # between two looks
_State = dict[str, tuple[int, int]]


def state(paths: Sequence[Path]) -> _State:
    """Path → (time of the last change in ns, size) of every file that is not hidden."""
    found: _State = {}
    for path in paths:
        for member in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if any(part.startswith(".") for part in member.relative_to(path).parts):
                continue
            try:
                if member.is_file():
                    status = member.stat()
                    found[str(member)] = (status.st_mtime_ns, status.st_size)
            except OSError:
                continue  # gone between listing and looking
    return found


def changes(paths: Sequence[Path], seconds: float = SECONDS) -> Iterator[str]:
    """A sentence for every change below the paths, once it has come to rest: a file that is still being written is left alone for a look."""
    known = state(paths)
    while True:
        time.sleep(seconds)
        now = state(paths)
        if now == known:
            continue
        while True:
            time.sleep(min(seconds, 0.5))
            later = state(paths)
            if later == now:
                break
            now = later
        differing = sorted(path for path in known.keys() | now.keys() if known.get(path) != now.get(path))
        known = now
        yield differing[0] + (f" and {len(differing) - 1} more" if len(differing) > 1 else "")
