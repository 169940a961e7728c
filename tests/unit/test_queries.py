"""SQL files: written for psql, run by psycopg, each documented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lab.resources import folder
from lab.store import queries

FILES = sorted(p.relative_to(folder("sql")).with_suffix("").as_posix() for p in folder("sql").rglob("*.sql"))


@pytest.mark.parametrize("name", FILES)
def test_every_file_opens_with_a_comment_and_lists_its_parameters(name: str) -> None:
    text = (folder("sql") / f"{name}.sql").read_text()
    assert text.startswith("-- ")
    head = "\n".join(line for line in text.splitlines() if line.startswith("--"))
    body = "\n".join(line for line in text.splitlines() if not line.startswith(("--", "\\")))
    used = set(re.findall(r"""(?<![\w:]):["']?([a-z_]\w*)["']?""", re.sub(r"--.*", "", body)))
    missing = {parameter for parameter in used if not re.search(rf"--\s+{parameter}\s", head)}
    assert not missing, f"parameters not documented: {missing}"


def _compose(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **identifiers: str) -> str:
    (tmp_path / "q.sql").write_text(text)
    monkeypatch.setattr(queries, "folder", lambda _: tmp_path)
    queries.source.cache_clear()
    queries._prepared.cache_clear()
    try:
        return queries.query("q", **identifiers).as_string()
    finally:
        queries.source.cache_clear()
        queries._prepared.cache_clear()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select :'a', :b", "select %(a)s, %(b)s"),
        ("select x::int, ':a', \"b:c\" -- :a\n", "select x::int, ':a', \"b:c\" -- :a"),
        ("select '5 %' % :n", "select '5 %%' %% %(n)s"),
        ("select $$ :a % $$", "select $$ :a %% $$"),
        ("\\if :{?k} \\else \\set k 20 \\endif\nselect :k", "select %(k)s"),
        ("select a[1:2], 'it''s :x'", "select a[1:2], 'it''s :x'"),
        ("/* :a */ select :'v'::halfvec", "/* :a */ select %(v)s::halfvec"),
    ],
)
def test_parameters_are_found_and_nothing_else(text: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _compose(text, tmp_path, monkeypatch) == expected


def test_identifiers_are_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _compose('select * from :"schema".t', tmp_path, monkeypatch, schema='kb_"x') == 'select * from "kb_""x".t'
