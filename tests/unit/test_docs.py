"""README says what the code does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_generated_parts_are_current() -> None:
    done = subprocess.run([sys.executable, "-m", "cogapp", "--check", "README.md"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, "run: cog -r README.md\n" + done.stdout + done.stderr


def test_there_are_two_set_up_lines() -> None:
    lines = re.findall(r"^    python3 -m venv .*$", README, re.MULTILINE)
    assert lines == [
        "    python3 -m venv .venv && .venv/bin/pip install -e . && .venv/bin/lab demo",
        "    python3 -m venv .venv && .venv/bin/pip install -e '.[dev]' && .venv/bin/pytest",
    ]


def test_every_linked_file_exists() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target


def test_the_project_names_no_path_of_a_machine() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    for name in tracked:
        path = ROOT / name
        if path.suffix in {".py", ".md", ".sql", ".toml", ".j2"} and path.is_file():
            assert not re.search(r"(?<![\w.])/(?:root|home|tmp|work)/[a-z]", path.read_text(encoding="utf-8")), name
