"""Which files an ingest is about: those under the paths named, and those that the ledger knows there but that are gone."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from lab.corpus import authority
from lab.errors import UsageError
from lab.store.ledger import FileRow
from lab.store.tenants import bare, prefix


@dataclass(frozen=True, slots=True)
class File:
    """A file to read, and the root under which the ledger knows it."""

    source: str  # the path below the root, behind @TENANT/ where it is a tenant's
    path: Path
    root: str  # a folder, or the name under which a shipped set is known


def listed(
    paths: Sequence[Path], known: Mapping[str, FileRow], label: str | None, left: list[tuple[str, str]], tenant: str | None = None
) -> list[File]:
    """Every file under the paths, sorted by source. A file that the ledger knows keeps its root, and a folder inside of a known root takes that, so that a folder
    may be named as a whole or in part, in any order.

    What cannot be a document of the collection (a name that is no text, a pipe, a link to nowhere, a folder that cannot be opened) goes into `left` as
    (name, reason).
    """
    found: dict[str, File] = {}
    roots = {Path(row.root) for row in known.values() if row.format != "beir" and Path(row.root).is_dir()}
    places = {place(row): Path(row.root) for row in known.values() if row.format != "beir"}
    for path in paths:
        absolute = path.resolve()
        if path.is_dir() and label is not None:
            members = [File(prefix(tenant) + source, absolute / source, label) for source in _below(absolute, left)]
        else:
            inside = [absolute / source for source in _below(absolute, left)] if path.is_dir() else [absolute]
            folder = absolute if path.is_dir() else absolute.parent
            named = next((above for above in (folder, *folder.parents) if above in roots), folder)
            members = [_known(file, places.get(file, named), tenant) for file in inside]
        for file in members:
            if file.path.name == authority.FILE:
                continue
            if not _sayable(file.source):
                left.append((_said(file.source), "name: the file's name is not UTF-8"))
                continue
            other = found.get(file.source)
            if other is not None and other.path != file.path:
                raise UsageError(
                    f"{file.source} exists under {other.root} and under {file.root}: ingest them into two collections, or from their common parent."
                )
            row = known.get(file.source)
            if row is not None and row.status in {"indexed", "missing"} and row.root != file.root and place(row).exists():
                raise UsageError(
                    f"{file.source} was ingested from {row.root} and is now named under {file.root}: use another collection, or the first folder."
                )
            found[file.source] = file
    return sorted(found.values(), key=lambda file: file.source)


def _known(file: Path, root: Path, tenant: str | None) -> File:
    return File(prefix(tenant) + file.relative_to(root).as_posix(), file, str(root))


def place(row: FileRow) -> Path:
    """Where a file of the ledger lies, or lay."""
    return Path(row.root) / bare(row.source, row.tenant)


def _below(root: Path, left: list[tuple[str, str]]) -> Iterator[str]:
    """The files below a folder that are not hidden, as paths relative to it. Links to folders are not followed."""

    def cannot(error: OSError) -> None:
        name = os.path.relpath(str(error.filename or root), root)
        left.append((_said(name if len(name) < 300 else name[:300] + "…"), f"unreadable: the folder cannot be opened ({error.strerror})"))

    for folder, folders, files in os.walk(root, onerror=cannot):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if name.startswith((".", "~$")):  # hidden, or the lock of an office program
                continue
            path = Path(folder) / name
            source = path.relative_to(root).as_posix()
            try:
                mode = path.stat().st_mode
            except OSError as error:
                left.append((_said(source[:300]), f"unreadable: {error.strerror}"))
                continue
            if path.is_symlink() and not path.resolve().is_relative_to(root):
                left.append((_said(source), "unsafe: a link to a file outside of the folder: name that file itself"))
            elif stat.S_ISREG(mode):
                yield source
            else:
                left.append((_said(source), "unreadable: no file but a pipe, socket or device"))


def _sayable(source: str) -> bool:
    """Whether a file name is text, as the store can hold it."""
    try:
        source.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _said(name: str) -> str:
    return name.encode("utf-8", "backslashreplace").decode()


def vanished(paths: Sequence[Path], known: Mapping[str, FileRow], seen: AbstractSet[str], format: str, label: str | None) -> list[str]:
    """Sources that the ledger knows under the named paths and that this call did not see.

    Files count when their folder was named in a call that reads files, records when their corpus.jsonl was read in this call.
    """
    named = [path.resolve() for path in paths]
    corpora = {str(path / "corpus.jsonl") if path.is_dir() else str(path) for path in named}
    gone = []
    for source, row in known.items():
        if source in seen or row.status in {"retired", "refused"}:
            continue
        if row.format == "beir" or format == "beir":
            under = row.format == format and row.root in corpora
        else:
            under = row.root == label or any(place(row).is_relative_to(path) for path in named)
        if under:
            gone.append(source)
    return gone
