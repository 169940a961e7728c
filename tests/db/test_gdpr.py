"""Links on a real statute: precision and recall against citations and definitions that somebody else marked."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.corpus.ingest import ingest
from lab.store import collections, links
from lab.store.connect import Store
from lab.text import term_key

Mention = tuple[str, str, str, str, str, str, int, int]


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


@pytest.fixture
def found(store: Store, shared_data: Callable[[str], Path]) -> tuple[Path, list[Mention]]:
    folder = shared_data("gdpr")
    ingest(folder / "articles", "gdpr", store=store, embedder="none")
    return folder, links.mentions(store, collections.get(store, "gdpr"))


def test_links_of_the_gdpr(found: tuple[Path, list[Mention]]) -> None:
    folder, rows = found
    gold = table(folder / "gold_citation_edges.tsv")
    edges = {(g["from_file"], g["to_file"]) for g in gold}
    outright = {(g["from_file"], g["to_file"]) for g in gold if g["explicit"] == "1"}
    mine = {(row[2], row[4]) for row in rows if row[0] == "cites" and row[2] != row[4]}
    assert len(mine & outright) / len(outright) >= 0.97
    assert len(mine & edges) / len(mine) >= 0.97
    for g in table(folder / "gold_external_refs.tsv"):
        linked = [r for r in rows if r[0] == "cites" and r[2] == g["from_file"] and r[6] < int(g["end"]) and r[7] > int(g["start"])]
        assert not linked, g
    wanted = {(term_key(g["term"]), g["file"]) for g in table(folder / "gold_definitions.tsv")}
    defined = {(row[1], row[4]) for row in rows if row[0] == "defines"}
    assert len(wanted & defined) >= 35 and len(defined - wanted) <= 2
