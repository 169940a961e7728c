"""Near twins as rows: incremental, kept when interrupted, the same whatever the order."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.corpus import near as work
from lab.corpus.ingest import ingest
from lab.corpus.near import near_classes, refresh
from lab.store import collections, near
from lab.store.connect import Store
from tests.conftest import write

LONG = "Close the outlet, open the bypass, start the motor from the desk, watch the gauge on the delivery side until it stands still, listen at both bearings, and tell the panel."


def groups(store: Store) -> set[frozenset[str]]:
    by_name: dict[str, set[str]] = {}
    for chunk, name in near_classes(store, collections.get(store, "c")).items():
        by_name.setdefault(name, set()).add(chunk)
    return {frozenset(members) for members in by_name.values() if len(members) > 1}


def test_only_what_is_new_is_looked_at_and_what_went_is_forgotten(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a.txt": LONG, "b.txt": LONG + " Indeed.", "c.txt": LONG.replace("Close", "Do not close"), "d.txt": "Nothing alike."})
    ingest(tmp_path, "c", store=store, embedder="none")
    assert groups(store) == {frozenset({"a.txt::1", "b.txt::1"})}
    seen: list[str] = []
    real = work.twins.bands
    monkeypatch.setattr(work.twins, "bands", lambda text: seen.append(text) or real(text))
    write(tmp_path, {"e.txt": LONG + " Really."})
    ingest(tmp_path, "c", store=store)
    assert seen == [LONG + " Really."]
    assert groups(store) == {frozenset({"a.txt::1", "b.txt::1", "e.txt::1"})}
    (tmp_path / "b.txt").unlink()
    ingest(tmp_path, "c", store=store, prune=True)
    assert groups(store) == {frozenset({"a.txt::1", "e.txt::1"})}
    assert store.rows("select count(*) from kb_c.near") == [(4,)]


def test_an_interrupted_pass_goes_on(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {f"{i}.txt": f"{LONG} {'Indeed ' * (i % 3)}" for i in range(3)} | {f"x{i}.txt": f"Word{chr(97 + i)} alone." for i in range(8)})
    ingest(tmp_path, "c", store=store, embedder="none", twins="exact")
    store.rows("""update lab.collections set ingest = ingest || '{"twins": "near"}' returning 1""")
    collection = collections.get(store, "c")
    monkeypatch.setattr(work, "_PART", 4)
    real, calls = near.add, 0

    def stopped(*arguments: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise KeyboardInterrupt
        real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(near, "add", stopped)
    with pytest.raises(KeyboardInterrupt):
        refresh(store, collection)
    assert store.rows("select count(*), count(*) filter (where paired) from kb_c.near") == [(4, 0)]
    monkeypatch.setattr(near, "add", real)
    assert refresh(store, collection) == 7
    assert groups(store) == {frozenset({"0.txt::1", "1.txt::1", "2.txt::1"})}


def test_both_ways_of_pairing_find_the_same(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {f"{i:02}.txt": f"{LONG} Group {'abcdefgh'[i % 8]} {'again ' * (i // 8)}" for i in range(32)})
    ingest(tmp_path, "c", store=store, embedder="none")
    found = []
    for few in (0.0, 1.0):
        monkeypatch.setattr(near, "_FEW", few)
        store.rows("delete from kb_c.near returning 1")
        store.rows("delete from kb_c.near_pairs returning 1")
        refresh(store, collections.get(store, "c"))
        found.append(store.rows("select a, b, similarity from kb_c.near_pairs order by 1, 2"))
    assert found[0] == found[1] and found[0]
