"""What changes under a collection: dry runs, metadata, the history, watching, readers beside a writer, and a writer killed at any moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from lab.corpus import watch
from lab.corpus.ingest import ingest
from lab.retrieval.search import search
from lab.store import collections, documents, ledger
from lab.store.connect import Store
from tests.conftest import Lab, write

FILES = {"a.md": "# A\n\nValves close. See section 4.2.\n", "b/c.txt": "A pump is tested.\n", "d.md": "# D\n\n## 4.2 Pumps\n\nThey run.\n"}


def history(store: Store, source: str) -> list[str]:
    return [str(row[0]) for row in store.rows("select outcome from kb_c.events where source = %(s)s order by event_id", {"s": source})]


def state(store: Store, name: str) -> list[tuple[object, ...]]:
    return (
        store.rows(
            f'select c.source, c.n, c.start, c."end", c.text, f.status, f.outcome from kb_{name}.chunks c join kb_{name}.files f using (source) order by 1, 2'
        )
        + store.rows(
            f"select l.relation, l.term, b.source || b.n, l.start from kb_{name}.links l join kb_{name}.chunks b on b.key = l.to_id order by 1, 2, 3, 4"
        )
        + store.rows(f"select class_id, paired from kb_{name}.near order by 1")
    )


def test_a_dry_run_says_what_would_happen_and_stores_nothing(store: Store, lab: Lab, tmp_path: Path) -> None:
    write(tmp_path / "in", FILES | {"x.pdf": "<html><body>404</body></html>"})
    answer = lab("ingest", "in", "-c", "c", "--embedder", "none", "--dry-run", "--json", store=store)
    assert answer.code == 0 and answer.json["files"]["indexed"] == 3 and answer.json["chunks"] == 3 and answer.json["dry_run"] is True
    assert answer.json["refused"][0]["reason"].startswith("mismatch: ")
    assert collections.all_collections(store) == []
    assert lab("ingest", "in", "-c", "c", "--dry-run", "--strict").code == 3
    assert lab("ingest", "in", "-c", "c", "--embedder", "none").code == 0
    before = state(store, "c")
    write(tmp_path / "in", {"a.md": "# A\n\nChanged.\n", "e.txt": "New.\n"})
    (tmp_path / "in" / "d.md").unlink()
    answer = lab("ingest", "in", "-c", "c", "--dry-run", "--json")
    assert answer.json["files"] == {"indexed": 1, "unchanged": 1, "replaced": 1, "missing": 1, "retired": 0, "refused": 1}
    assert state(store, "c") == before
    assert lab("ingest", "in", "-c", "c", "--dry-run", "--watch").code == 2


def test_the_ledger_says_what_became_of_each_file(store: Store, lab: Lab, tmp_path: Path) -> None:
    write(tmp_path, FILES)
    ingest(tmp_path, "c", store=store, embedder="none")
    write(tmp_path, {"a.md": "# A\n\nChanged.\n"})
    (tmp_path / "d.md").rename(tmp_path / "e.md")
    (tmp_path / "b" / "c.txt").write_bytes(b"\x00\x01")
    ingest(tmp_path, "c", store=store)
    entries = {e.source: (e.status, e.outcome, (e.reason or "").split(":")[0]) for e in ledger.entries(store, collections.get(store, "c"))}
    assert entries == {
        "a.md": ("indexed", "replaced", ""), "b/c.txt": ("refused", "refused", "binary"), "d.md": ("missing", "missing", "the file is gone"), "e.md": ("indexed", "indexed", ""),
    }  # fmt: skip
    ingest(tmp_path, "c", store=store, prune=True)
    assert history(store, "a.md") == ["indexed", "replaced"] and history(store, "d.md") == ["indexed", "missing", "retired"]
    assert history(store, "b/c.txt")[:2] == ["indexed", "refused"]
    entry = {e.source: e for e in ledger.entries(store, collections.get(store, "c"))}["a.md"]
    assert entry.outcome == "unchanged" and entry.checked_at > entry.changed_at and entry.extractor == "markdown-3" and entry.chunks == 1
    answer = lab("collections", "c", "--json", store=store)
    assert [f["source"] for f in answer.json["files"]] == ["a.md", "b/c.txt", "d.md", "e.md"] and answer.json["files"][1]["status"] == "refused"


def test_provenance_is_stored_and_returned(store: Store, lab: Lab, tmp_path: Path) -> None:
    write(
        tmp_path / "in", {"a.md": "---\nversion: 2.1\nlast_updated: 2024-05-01\nurl: https://example.org/a\nowner: crew\n---\n# A\n\nValves close.\n"}
    )
    (tmp_path / "m.csv").write_text("source,owner,year\na.md,desk,2024\ngone.md,x,1\n")
    answer = lab("ingest", "in", "-c", "c", "--embedder", "none", "--metadata", "m.csv", store=store)
    assert answer.code == 0 and "gone.md" in answer.err
    (result,) = lab("search", "c", "valves", "--dense", "none", "--json").json["results"]
    assert (result["document_version"], result["last_updated"], result["source_url"], result["title"]) == (
        "2.1",
        "2024-05-01",
        "https://example.org/a",
        "A",
    )
    assert (result["metadata"]["owner"], result["metadata"]["year"], result["page"], result["window"]) == ("desk", 2024, None, None)
    write(tmp_path / "in", {"a.md": "# A\n\nValves open.\n"})
    assert lab("ingest", "in", "-c", "c").code == 0
    (result,) = lab("search", "c", "valves", "--dense", "none", "--json").json["results"]
    assert result["metadata"] == {"owner": "desk", "year": 2024}, "what was said of a file outlives its text"
    assert lab("ingest", "in", "-c", "c", "--metadata", "none.csv").code == 2


def test_sentence_windows_are_returned_for_reading_and_merge(store: Store, tmp_path: Path) -> None:
    write(
        tmp_path, {"a.txt": "One valve. Two pumps. Three seals. Four motors. Five desks. Six valves. Seven logs. Eight rods. Nine pipes. Ten lamps."}
    )
    ingest(tmp_path, "c", store=store, embedder="none", chunker="sentence-window", window=1)
    found = search("c", "valve", store=store, dense="none")
    windows = {r.text: r.provenance.window.text for r in found.results if r.provenance and r.provenance.window}
    assert windows == {"One valve.": "One valve. Two pumps.", "Six valves.": "Five desks. Six valves. Seven logs."}
    assert [b.text for b in search("c", "pumps motors", store=store, dense="none").context_blocks()] == [
        "One valve. Two pumps. Three seals. Four motors. Five desks."
    ]
    assert len(found.context_blocks()) == 2


def test_watching_tells_what_changed(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    told: list[str] = []
    watching = watch.changes([tmp_path], seconds=0.05)
    reader = threading.Thread(target=lambda: told.append(next(watching)), daemon=True)
    reader.start()
    time.sleep(0.3)
    assert not told
    write(tmp_path, {"a.md": "# A\n\nChanged now.\n"})
    reader.join(10)
    assert told == [str(tmp_path / "a.md")]


def test_eight_searchers_beside_a_replacing_ingest_see_whole_documents(store: Store, tmp_path: Path) -> None:
    def version(n: int) -> dict[str, str]:
        return {f"{i:02}.md": "".join(f"# T\n\n## S{j}\n\nvalve version{n} part{j} file{i}\n\n" for j in range(4)) for i in range(12)}

    write(tmp_path, version(0))
    ingest(tmp_path, "c", store=store, embedder="keyword")
    errors: list[str] = []
    seen = 0
    stop = threading.Event()

    def reader() -> None:
        nonlocal seen
        while not stop.is_set():
            try:
                rows = store.rows("select source, count(*), count(distinct substring(text from 'version(\\d+)')) from kb_c.chunks group by source")
                if any(count != 4 or kinds != 1 for _, count, kinds in rows) or len(rows) != 12:
                    errors.append(f"half a document: {rows}")
                if not search("c", "valve part2", store=store, k=5).results:
                    errors.append("nothing found")
                seen += 1
            except Exception as error:
                errors.append(repr(error))

    threads = [threading.Thread(target=reader) for _ in range(8)]
    for thread in threads:
        thread.start()
    for n in range(1, 5):
        write(tmp_path, version(n))
        with Store(store.dsn) as writer:
            assert ingest(tmp_path, "c", store=writer).files["replaced"] == 12
    stop.set()
    for thread in threads:
        thread.join()
    assert not errors and seen >= 8


def test_two_collections_are_written_at_once(store: Store, tmp_path: Path) -> None:
    reports: dict[str, int] = {}

    def one(name: str) -> None:
        write(tmp_path / name, {f"{i}.md": f"# {name}\n\nWords {i}.\n" for i in range(40)})
        with Store(store.dsn) as own:
            reports[name] = ingest(tmp_path / name, name, store=own, embedder="keyword").chunks

    threads = [threading.Thread(target=one, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert reports == {"one": 40, "two": 40}


@pytest.mark.parametrize("moment", [0.0, 0.15, 0.4, 0.8])
def test_killed_at_any_moment_and_run_again_ends_the_same(moment: float, store: Store, tmp_path: Path) -> None:
    files = {f"{i:03}.md": f"# T{i}\n\n## 4.{i} Part\n\n**Term {i}** means a thing. See section 4.{(i + 1) % 60}.\n" for i in range(60)}
    write(tmp_path, files)
    ingest(tmp_path, "whole", store=store, embedder="none")
    code = f"from lab.corpus.ingest import ingest; print('go', flush=True); ingest({str(tmp_path)!r}, 'part', embedder='none')"
    process = subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, "LAB_DATABASE_URL": store.dsn}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(moment)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    ingest(tmp_path, "part", store=store, embedder="none")
    again, whole = state(store, "part"), state(store, "whole")
    # What the first, killed call had stored the second one found unchanged.
    assert [row[:6] if len(row) == 7 else row for row in again] == [row[:6] if len(row) == 7 else row for row in whole]
    assert set(collections.indexes(store, collections.get(store, "part"))) == set(collections.indexes(store, collections.get(store, "whole")))


def test_a_file_named_alone_is_read_again(store: Store, tmp_path: Path) -> None:
    write(tmp_path, FILES)
    ingest(tmp_path, "c", store=store, embedder="none")
    write(tmp_path, {"b/c.txt": "A pump is tested twice.\n", "a.md": "# A\n\nAlso changed.\n"})
    report = ingest(tmp_path / "b" / "c.txt", "c", store=store)
    assert (report.files["replaced"], report.files["missing"]) == (1, 0)
    texts = {source: text for source, _, text in documents.texts(store, collections.get(store, "c"))}
    assert texts["b/c.txt"] == "A pump is tested twice.\n" and "Valves" in texts["a.md"]


@pytest.mark.parametrize("first", ["whole", "part"])
def test_a_folder_named_in_part_or_as_a_whole_is_the_same_documents(first: str, store: Store, tmp_path: Path) -> None:
    whole = write(tmp_path / "docs", {"a.md": "# A\n\nOne.", "notes/b.md": "# B\n\nTwo.", "notes/c.md": "# C\n\nThree."})
    order = [whole, whole / "notes"] if first == "whole" else [whole / "notes", whole]
    ingest(order[0], "c", store=store, embedder="none")
    (whole / "notes" / "d.md").write_text("# D\n\nFour.")
    report = ingest(order[1], "c", store=store)
    names = ["a.md", "notes/b.md", "notes/c.md", "notes/d.md"] if first == "whole" else ["a.md", "b.md", "c.md", "notes/d.md"]
    assert store.rows("select source, status from kb_c.files order by source") == [(name, "indexed") for name in names]
    assert (report.missing, report.files["unchanged"]) == ([], 2)
    (whole / "notes" / "b.md").unlink()
    assert list(ingest(whole / "notes", "c", store=store).missing) == [next(name for name in names if name.endswith("b.md"))]
