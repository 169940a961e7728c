"""Files that ship with the lab: `sql/` and `gold/`, found in the installed wheel or in the checkout."""

from __future__ import annotations

from pathlib import Path

from lab.errors import LabError

_PACKAGE = Path(__file__).resolve().parent


def folder(name: str) -> Path:
    """The folder `sql` or `gold`: inside the installed package, else beside it in a checkout."""
    installed = {"sql": "sql", "gold": "gold_sets"}[name]
    for path in (_PACKAGE / installed, _PACKAGE.parent / name):
        if path.is_dir():
            return path
    raise LabError(f"the folder {name}/ is missing from this installation: install the package again.")
