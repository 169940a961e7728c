"""The notebooks: executed anew from the first cell to the last, and every number that their text sets in bold is one that they print.

LAB_WRITE_NOTEBOOKS=1 keeps the outputs: that is how the committed ones are made.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from lab.store.connect import Store
from tests.conftest import Databases, with_handbook

NOTEBOOKS = Path(__file__).resolve().parent.parent.parent / "notebooks"
NAMES = sorted(path.name for path in NOTEBOOKS.glob("*.ipynb"))


@pytest.fixture(scope="module")
def own(databases: Databases) -> Iterator[Store]:
    """A database of their own: what other tests recorded would change what the notebooks say of power and noise."""
    with databases.fresh() as dsn, Store(dsn) as opened:
        with_handbook(opened)
        yield opened


def texts(notebook: Any) -> str:
    """All that the cells put out, as text."""
    found = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "stream" and output.name == "stdout":
                found.append(output.text)
            elif output.output_type in {"execute_result", "display_data"}:
                found.append(output.data.get("text/plain", ""))
                found.append(re.sub(r"<[^>]+>", " ", output.data.get("text/html", "")))
    return "\n".join(found)


def test_there_are_six() -> None:
    assert [name[:2] for name in NAMES] == ["01", "02", "03", "04", "05", "06"]


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_and_says_what_it_prints(name: str, own: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_DATABASE_URL", own.dsn)
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    monkeypatch.chdir(tmp_path)
    notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
    committed = texts(notebook)
    assert len(notebook.cells) <= 15 and not any(
        re.search(r"^\s*(def|class) ", cell.source, re.M) for cell in notebook.cells if cell.cell_type == "code"
    )
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    said = texts(notebook)
    claims = [
        claim
        for cell in notebook.cells
        if cell.cell_type == "markdown"
        for claim in re.findall(r"\*\*([^*]+)\*\*", cell.source)
        if any(c.isdigit() for c in claim)
    ]
    assert [claim for claim in claims if claim not in said] == [], "the text says numbers that are not printed"
    assert claims
    if os.environ.get("LAB_WRITE_NOTEBOOKS") == "1":
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)
            cell["outputs"] = [o for o in cell.get("outputs", []) if not _noise(o)] if cell.cell_type == "code" else []
            if cell.cell_type != "code":
                cell.pop("outputs")
        notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}, "language_info": {"name": "python"}}
        nbformat.write(notebook, NOTEBOOKS / name)
        return
    assert [claim for claim in claims if claim not in committed] == [], "the committed outputs are older than the text"
    assert not any(
        str(NOTEBOOKS.parent) in str(o) or "/root" in str(o) or "/home" in str(o)
        for cell in nbformat.read(NOTEBOOKS / name, as_version=4).cells
        for o in cell.get("outputs", [])
    )


def _noise(output: Any) -> bool:
    """Progress and messages on the side are no result."""
    return (output.output_type == "stream" and output.name == "stderr") or (
        output.output_type == "display_data" and not output.data.get("text/plain", "-").strip()
    )
