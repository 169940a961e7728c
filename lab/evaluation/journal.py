"""What a long search has found so far, in a file: the same command again goes on from there, also after a kill or a power cut.

The file's name is a digest of all that decides a ranking (code, documents, indexes, gold, settings, models): whatever changes makes another file, and nothing old is taken for new.
Short searches never write one.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pickle
import time
import zlib
from pathlib import Path
from types import TracebackType

import lab
from lab.config import home
from lab.errors import LabError
from lab.progress import say
from lab.records import SearchResult
from lab.resources import folder
from lab.text import digest

EVERY = 20.0  # seconds between two blocks
_KEPT = 7 * 24 * 3600.0  # seconds after which a file that nobody came back to is removed

Found = list[tuple[SearchResult | LabError, float]]


class Journal:
    """`with Journal(key) as journal:` – `journal.known` holds what is there by place, `add` takes what was found; a clean end removes the file.

    `key` (a digest of all that is no code) None keeps nothing. A disk that is full or a file that cannot be read costs the journal, never the search.
    """

    def __init__(self, key: str | None, unit: str = "questions") -> None:
        self.path = None if key is None else home() / "cache" / "searches" / f"{digest([key, _code()])[:40]}.journal"
        self.known: dict[int, Found] = {}
        self.unit = unit
        self._fresh: dict[int, Found] = {}
        self._last = time.monotonic()
        self._kept = 0

    def __enter__(self) -> Journal:
        if self.path is not None:
            try:
                self._read(self.path)
            except Exception:  # a file of another version of some package, or of another user: it costs what it held, never the search
                self.known = {}
                with contextlib.suppress(OSError):
                    self.path.unlink()
            self._kept = len(self.known)
            if self.known:
                say(f"{len(self.known)} {self.unit} were searched before this command was interrupted: going on from there")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.path is None:
            return
        if kind is None:
            with contextlib.suppress(OSError):
                self.path.unlink()
            return
        self._write()
        if self._kept:
            say(f"{self._kept} {self.unit} are kept: the same command goes on from there")

    def add(self, place: int, found: Found) -> None:
        """Searches that failed, or had to do without an index, are not kept: they are tried again."""
        if self.path is None or place in self.known or any(_failed(answer) for answer, _ in found):
            return
        self._fresh[place] = found
        if time.monotonic() - self._last >= EVERY:
            self._write()

    def _read(self, path: Path) -> None:
        """Blocks of (length, digest, bytes). What follows a block that was cut off goes, so that what is written next can be read."""
        if not path.is_file():
            return
        for one in (path, path.parent):
            told = one.stat()
            if (hasattr(os, "getuid") and told.st_uid != os.getuid()) or (os.name == "posix" and told.st_mode & 0o022):
                raise PermissionError(f"{one} can be written by others")  # what is read here is executed, in a way
        data = path.read_bytes()
        at = 0
        while at + 40 <= len(data):
            size = int.from_bytes(data[at : at + 8], "big")
            block = data[at + 40 : at + 40 + size]
            if len(block) < size or hashlib.sha256(block).digest() != data[at + 8 : at + 40]:
                break
            self.known.update(pickle.loads(zlib.decompress(block)))
            at += 40 + size
        if at < len(data):
            os.truncate(path, at)

    def _write(self) -> None:
        self._last = time.monotonic()
        if not self._fresh or self.path is None:
            return
        try:
            if not self.path.parent.is_dir():
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self.path.parent.chmod(0o700)
            if not self.path.exists():
                _sweep(self.path.parent)
            block = zlib.compress(pickle.dumps(self._fresh, protocol=pickle.HIGHEST_PROTOCOL), 1)
            with os.fdopen(os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab") as file:
                file.write(len(block).to_bytes(8, "big") + hashlib.sha256(block).digest() + block)
        except OSError:
            self.path = None  # no room for it: the search itself goes on
            return
        self._kept += len(self._fresh)
        self._fresh = {}


def _failed(answer: SearchResult | LabError) -> bool:
    return isinstance(answer, LabError) or any(arm.fallback for arm in answer.arms.values())


@functools.cache
def _code() -> str:
    """Digest of the lab's own files: a changed ranking must not be mixed with an old one."""
    told = hashlib.sha256()
    for root, pattern in ((Path(lab.__file__).parent, "*.py"), (folder("sql"), "*.sql")):
        for path in sorted(root.rglob(pattern)):
            told.update(path.read_bytes())
    return told.hexdigest()


def _sweep(folder_of: Path) -> None:
    for path in folder_of.glob("*.journal"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _KEPT:
                path.unlink()
