"""Folders and files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from lab.errors import ServerError, UsageError


@contextlib.contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """A scratch folder that becomes `target` when the block ends, and is removed where it fails. UsageError where `target` is there already."""
    if target.exists():
        raise UsageError(f"{target} exists: name a folder that does not.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=".new-", dir=target.parent))
    except OSError as error:
        raise ServerError(f"{target} cannot be written ({error.strerror}): name another folder.") from None
    try:
        fresh.chmod(0o755)
        yield fresh
        fresh.rename(target)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise


def writable(path: Path, what: str) -> None:
    """UsageError where `path` cannot take `what`: asked before long work, whose result would be lost. The folder above it is made."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder: name a file for {what}.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror}): name another file.") from None


def whole_file(target: Path, text: str) -> None:
    """Writes a file that is the old one or the new one, never half of it. ServerError where the disk refuses."""
    if target.is_dir() or not target.name:
        raise UsageError(f"{target} is a folder: name a file.")
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(text, encoding="utf-8", newline="\n")
        fresh.replace(target)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise ServerError(f"{target} cannot be written ({error.strerror}): name another place.") from None
