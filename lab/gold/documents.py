"""The documents of the shipped gold sets: `handbook` brings its own, `python-reference` is written out from the running CPython."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from lab.errors import ServerError, UsageError
from lab.gold.files import known_sets, locate
from lab.text import digest

PYTHON = "python-reference"


def write_documents(name: str, to: Path | None = None) -> tuple[Path, str]:
    """Puts the documents of a gold set into `to` and returns the folder and a remark ("" if there is none).

    Without `to` the folder is where they are shipped; `python-reference` is not shipped but written, so it needs one.
    """
    if name == PYTHON:
        if to is None:
            raise UsageError("python-reference is written out from the running Python: name a folder behind --to.")
        return to, write_python_reference(to)
    source = locate(name) / "documents"
    if not source.is_dir():
        with_documents = sorted(n for n, p in known_sets().items() if (p / "documents").is_dir())
        raise UsageError(f"gold set {name!r} brings no documents of its own; these do: {', '.join([*with_documents, PYTHON])}.")
    if to is None:
        return source, ""
    try:
        shutil.copytree(source, to, dirs_exist_ok=True)
    except OSError as error:
        raise ServerError(f"{to} cannot be written ({error.strerror}): name another folder behind --to.") from None
    return to, ""


def python_topics() -> dict[str, str]:
    """Topic → text, word for word, of the help that every CPython carries in `pydoc_data.topics`."""
    from pydoc_data import topics

    return dict(sorted(topics.topics.items()))


def topics_digest() -> str:
    """Names the texts of this Python."""
    return digest(python_topics())[:16]


def made_for() -> tuple[str, str]:
    """(Python version, digest of the topics) that the judgments of `python-reference` were made on."""
    record = json.loads((locate(PYTHON) / "made-for.json").read_text(encoding="utf-8"))
    return str(record["python"]), str(record["topics_digest"])


def write_python_reference(folder: Path) -> str:
    """Writes one text file a topic; returns a remark when these are not the texts that the judgments were made on."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in python_topics().items():
            (folder / f"{name}.txt").write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise ServerError(f"{folder} cannot be written ({error.strerror}): name another folder behind --to.") from None
    version, wanted = made_for()
    if topics_digest() == wanted:
        return ""
    return (
        f"the help texts of this Python differ from those of Python {version}, on which the judgments were made: "
        "`lab gold check python-reference -c COLLECTION` lists what moved or is gone; runs relocate judgments by their quotes."
    )
