"""The Python blocks of README, as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lab.store.connect import Store
from tests.conftest import write

README = (Path(__file__).resolve().parent.parent.parent / "README.md").read_text(encoding="utf-8")


def test_the_five_lines_run(handbook: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAB_DATABASE_URL", handbook.dsn)
    write(tmp_path / "docs", {"a.md": "# Valves\n\nThe relief valve is tested every spring.\n"})
    (block,) = re.findall(r"runs it as it stands -->\n```python\n(.*?)```", README, re.DOTALL)
    assert len([line for line in block.splitlines() if line.strip() and not line.startswith("import")]) == 5
    exec(compile(block, "README.md", "exec"), {})
    said = capsys.readouterr().out
    assert "tested every spring" in said and "hit@5" in said
    assert list((tmp_path / "reports").glob("*/report.html"))


def test_the_knowledge_base_runs(store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("LAB_DATABASE_URL", store.dsn)
    (block,) = re.findall(r"runs it too -->\n```python\n(.*?)```", README, re.DOTALL)
    exec(compile(block, "README.md", "exec"), {})
    assert "kyoto-guide" in capsys.readouterr().out
