"""Author-made references become links: on a real manual as HTML and reST, and in every form that a format has."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

from lab.corpus.derived import relink
from lab.corpus.ingest import ingest
from lab.corpus.linking import EXTRACTOR, chunk_from
from lab.store import chunks, collections, documents, links
from lab.store.connect import Store
from tests.conftest import write


def cites(store: Store, name: str = "c") -> set[tuple[str, str]]:
    return {(row[3], row[5]) for row in links.mentions(store, collections.get(store, name)) if row[0] == "cites"}


def test_the_references_of_debian_policy(store: Store, shared_data: Callable[[str], Path]) -> None:
    folder = shared_data("debian_policy")
    ingest(folder / "html", "c", store=store, embedder="none")
    collection = collections.get(store, "c")
    spots = chunks.spots(store, collection)
    anchors = {d.source: d.anchors for d in documents.linkable(store, collection)}
    have = {(row[2], row[5]) for row in links.mentions(store, collection) if row[0] == "cites"}
    with (folder / "gold_citations.tsv").open(encoding="utf-8", newline="") as file:
        gold = list(csv.DictReader(file, delimiter="\t"))
    found = 0
    for row in gold:
        target = chunk_from(spots[row["to_file"]], anchors[row["to_file"]].get("#" + row["anchor"], 0))
        assert target is not None
        found += (row["from_file"], f"{target.source}::{target.n}") in have
    assert len(gold) == 235 and found / len(gold) >= 0.95


def test_every_form_of_reference(store: Store, tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "a.md": "# A\n\nSee [the valves](sub/b.md#valves-and-pumps), [c][see], [nothing](gone.md) and [the web](https://example.org/).\n\n[see]: sub/c.html\n",
            "sub/b.md": "# B\n\nFirst words.\n\n## Valves and pumps\n\nClose them. Back [to A](../a.md).\n",
            "sub/c.html": "<html><body><main><h1>C</h1><p>See <a href='b.html#valves-and-pumps'>b</a> and <a href='#x'>below</a>.</p>"
            "<h2 id='x'>X</h2><p>Here.</p></main></body></html>",
            "d.rst": "D\n=\n\nSee :ref:`the label <far-away>`, :doc:`sub/e` and `Own title`_.\n\nOwn title\n---------\n\nWords.\n",
            "sub/e.rst": "E\n=\n\nText.\n\n.. _far-away:\n\nFar\n---\n\nThe labelled place.\n",
        },
    )
    report = ingest(tmp_path, "c", store=store, embedder="none")
    assert cites(store) == {
        ("a.md::1", "sub/b.md::2"), ("a.md::1", "sub/c.html::1"), ("sub/b.md::2", "a.md::1"), ("sub/c.html::1", "sub/b.md::2"),
        ("sub/c.html::1", "sub/c.html::2"), ("d.rst::1", "sub/e.rst::2"), ("d.rst::1", "sub/e.rst::1"), ("d.rst::1", "d.rst::2"),
    }  # fmt: skip
    assert report.links_left_out == {"external": 1, "unresolved": 1}
    before = links.mentions(store, collections.get(store, "c"))
    digest = collections.get(store, "c").link_digest
    relink(store, collections.get(store, "c"))
    assert links.mentions(store, collections.get(store, "c")) == before and collections.get(store, "c").link_digest == digest


def test_links_of_another_version_are_found_anew(store: Store, tmp_path: Path) -> None:
    ingest(write(tmp_path, {"a.md": "# A\n\n## 1. One\n\nAs section 2 says.\n\n## 2. Two\n\nWords."}), "c", store=store, embedder="none")
    made = collections.get(store, "c")
    assert (made.link_extractor, cites(store)) == (EXTRACTOR, {("a.md::1", "a.md::2")})
    collections.set_link_counts(store, made, {}, "rules-0")
    with store.connection() as connection:
        connection.execute("delete from kb_c.links")
    ingest(tmp_path, "c", store=store)
    assert (collections.get(store, "c").link_extractor, cites(store)) == (EXTRACTOR, {("a.md::1", "a.md::2")})


def test_marked_terms_are_definitions(store: Store, tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "g.html": "<html><body><main><h1>Glossary</h1><dl><dt>Dead leg</dt><dd><p>A pipe without flow.</p></dd><dt>Bleed</dt><dd>To let out.</dd></dl>"
            "<h1>Other</h1><dl><dt>--force</dt><dd>Do it.</dd></dl><p>A <dfn>hot tap</dfn> is made under pressure.</p></main></body></html>",
            "h.rst": "H\n=\n\n.. glossary::\n\n   cold permit\n      A permit for work without flame.\n\n   hot permit\n      The other.\n\nAfter it.\n",
        },
    )
    ingest(tmp_path, "c", store=store, embedder="none")
    rows = [(row[1], row[4]) for row in links.mentions(store, collections.get(store, "c")) if row[0] == "defines"]
    assert sorted(rows) == [("bleed", "g.html"), ("cold permit", "h.rst"), ("dead leg", "g.html"), ("hot permit", "h.rst"), ("hot tap", "g.html")]


def test_captions_are_what_a_table_or_figure_is_cited_by(store: Store, tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "a.md": "# A\n\nThe limits stand in Table 3-1, the drawing is Fig. 2.\n\n## Limits\n\nTable 3-1. Limits of pressure.\n\n## Drawing\n\nFigure 2: the valve.\n",
            "b.md": "# B\n\nIn this part, consent has the meaning given in section 4.\n\n## 4 Terms\n\nConsent means a clear yes.\n",
        },
    )
    ingest(tmp_path, "c", store=store, embedder="none")
    assert cites(store) == {("a.md::1", "a.md::2"), ("a.md::1", "a.md::3"), ("b.md::1", "b.md::2")}
    rows = [(row[1], row[5]) for row in links.mentions(store, collections.get(store, "c")) if row[0] == "defines"]
    assert rows == [("consent", "b.md::2")]


def test_the_words_of_a_link_to_elsewhere_point_nowhere_here(store: Store, tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "# A\n\nSee [section 2.1](https://other.example/b#s21).\n", "b.md": "# B\n\n## 2.1 Limits\n\nTwelve bar.\n"})
    report = ingest(tmp_path, "c", store=store, embedder="none")
    assert cites(store) == set() and report.links_left_out == {"external": 1, "unresolved": 0}
