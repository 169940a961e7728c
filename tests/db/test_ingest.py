"""Ingest: what is stored, what is refused, what happens the second time, and after an interruption."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.corpus import ingest as module
from lab.corpus import intake
from lab.corpus.ingest import ingest
from lab.errors import CannotJudge, UsageError
from lab.store import collections, documents
from lab.store.connect import Store
from tests.conftest import Lab, write

FILES = {
    "standards/4.md": "# 4 Isolation\n\n## 4.2 Pumps\n\n**Cold permit** means a permit without a flame. See section 4.3.\n\n## 4.3 Valves\n\nClose it.\n",
    "notes/a.txt": "Plain words about a valve.\n",
    "notes/b.rst": "Title\n=====\n\nText below.\n",
}


def put(store: Store, folder: Path, name: str = "c", **flags: str | int) -> module.IngestReport:
    return ingest(folder, name, store=store, **({"embedder": "none"} | flags))  # type: ignore[arg-type]


def state(store: Store, name: str = "c") -> list[tuple[object, ...]]:
    """Everything that counts in a collection, without keys and times."""
    return store.rows(
        f'select c.source, c.n, c.start, c."end", c.text, c.context, f.status, f.title from kb_{name}.chunks c join kb_{name}.files f using (source) order by 1, 2'
    ) + store.rows(
        f"select l.relation, coalesce(a.source || a.n, ''), l.term, b.source || b.n, l.start from kb_{name}.links l left join kb_{name}.chunks a on a.key = l.from_id "
        f"join kb_{name}.chunks b on b.key = l.to_id order by 1, 2, 3, 4, 5"
    )


def test_a_folder_becomes_chunks_links_and_indexes(store: Store, tmp_path: Path) -> None:
    report = put(store, write(tmp_path, FILES))
    assert report.files == {"indexed": 3, "unchanged": 0, "replaced": 0, "missing": 0, "retired": 0, "refused": 0}
    assert report.chunks == 4 and report.links == {"cites": 1, "defines": 1}
    collection = collections.get(store, "c")
    assert set(collections.indexes(store, collection)) == {"chunks_bm25", "chunks_codes", "chunks_tsv"}
    assert {source for source, _, _ in documents.texts(store, collection)} == set(FILES)


def test_what_did_not_change_is_not_read_again(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, write(tmp_path, FILES))
    before = state(store)
    monkeypatch.setattr(intake.chunking, "chunk", lambda *_: pytest.fail("an unchanged file was read"))
    assert put(store, tmp_path).files["unchanged"] == 3
    assert state(store) == before


def test_a_changed_file_is_replaced_and_its_links_follow(store: Store, tmp_path: Path) -> None:
    put(store, write(tmp_path, FILES))
    write(tmp_path, {"standards/4.md": FILES["standards/4.md"].replace("Close it.", "Close it twice. See section 4.2.")})
    report = put(store, tmp_path)
    assert (report.files["replaced"], report.files["unchanged"]) == (1, 2)
    assert report.links == {"cites": 2, "defines": 1}
    assert "Close it twice. See section 4.2." in [row[4] for row in state(store)]


def test_a_vanished_file_is_missing_until_pruned_and_only_under_the_paths_named(store: Store, tmp_path: Path) -> None:
    put(store, write(tmp_path, FILES))
    (tmp_path / "notes" / "a.txt").unlink()
    (tmp_path / "standards" / "4.md").unlink()
    report = ingest(tmp_path / "notes" / "b.rst", "c", store=store, prune=True)
    assert report.files["missing"] == report.files["retired"] == 0
    report = put(store, tmp_path)
    assert report.files["missing"] == 2 and list(report.missing) == ["notes/a.txt", "standards/4.md"]
    assert len(state(store)) > 1, "missing ones are still served"
    write(tmp_path, {"notes/a.txt": FILES["notes/a.txt"]})
    report = put(store, tmp_path)
    assert (report.files["unchanged"], report.files["missing"]) == (2, 1)
    report = ingest(tmp_path, "c", store=store, prune=True)
    assert (report.files["retired"], report.files["missing"]) == (1, 0)
    assert {row[0] for row in state(store)} == {"notes/a.txt", "notes/b.rst"}
    write(tmp_path, {"standards/4.md": FILES["standards/4.md"]})
    assert put(store, tmp_path).files["indexed"] == 1


def test_refused_files_are_listed_with_a_reason(store: Store, tmp_path: Path) -> None:
    write(tmp_path, FILES | {"empty.md": " \n", "x.docx": "zip"})
    (tmp_path / "binary.txt").write_bytes(b"a\x00b")
    report = put(store, tmp_path)
    assert report.files["refused"] == 3 and report.files["indexed"] == 3
    assert dict(report.refused) == {
        "binary.txt": "binary: the file holds NUL bytes",
        "empty.md": "empty: the file holds no text",
        "x.docx": "mismatch: named .docx but holds plain text",
    }
    rows = store.rows("select source, status from kb_c.files where status = 'refused' order by 1")
    assert rows == [("binary.txt", "refused"), ("empty.md", "refused"), ("x.docx", "refused")]


def test_a_file_that_became_unreadable_is_no_longer_served(store: Store, tmp_path: Path) -> None:
    put(store, write(tmp_path, FILES))
    (tmp_path / "notes" / "a.txt").write_bytes(b"\x00")
    assert put(store, tmp_path).files["refused"] == 1
    assert "notes/a.txt" not in {row[0] for row in state(store)}


@pytest.mark.parametrize("files", [{}, {"a.json": "{}"}, {"a.md": "  \n"}])
def test_nothing_readable_is_3_and_nothing_is_written(files: dict[str, str], store: Store, tmp_path: Path) -> None:
    with pytest.raises(CannotJudge, match="nothing readable"):
        put(store, write(tmp_path, files))
    assert collections.all_collections(store) == []


def test_bad_calls_say_the_mend_and_write_nothing(store: Store, tmp_path: Path) -> None:
    write(tmp_path, FILES)
    with pytest.raises(UsageError, match="does not exist"):
        put(store, tmp_path / "nowhere")
    with pytest.raises(UsageError, match="cannot name a collection"):
        put(store, tmp_path, "Bad-Name")
    with pytest.raises(UsageError, match="did you mean 'chunker'"):
        put(store, tmp_path, chunkr="fixed")
    assert collections.all_collections(store) == []
    put(store, tmp_path)
    for flags in ({"embedder": "keyword"}, {"chunker": "fixed"}, {"context": "off"}):
        with pytest.raises(UsageError, match="another name"):
            ingest(tmp_path, "c", store=store, **flags)  # type: ignore[arg-type]


def test_two_roots_may_not_claim_one_source(store: Store, tmp_path: Path) -> None:
    a, b = write(tmp_path / "a", {"x.md": "one"}), write(tmp_path / "b", {"x.md": "two"})
    with pytest.raises(UsageError, match=r"x\.md exists under"):
        ingest([a, b], "c", store=store, embedder="none")
    put(store, a)
    with pytest.raises(UsageError, match="was ingested from"):
        put(store, b)


def test_interrupting_and_running_again_loses_nothing(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {f"{i:02}.md": f"# Title {i}\n\nSome words {i}. See section 4.2.\n" for i in range(12)} | FILES)
    put(store, tmp_path, "whole")
    monkeypatch.setattr(intake, "WINDOW", 3)
    real, calls = intake.embed, 0

    def interrupted(*arguments: object) -> object:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(intake, "embed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        put(store, tmp_path, "c")
    monkeypatch.setattr(intake, "embed", real)
    report = put(store, tmp_path, "c")
    assert report.files["unchanged"] >= 6 and report.files["indexed"] == 15 - report.files["unchanged"]
    assert state(store, "c") == state(store, "whole")
    assert set(collections.indexes(store, collections.get(store, "c"))) == {"chunks_bm25", "chunks_codes", "chunks_tsv"}


def test_a_killed_ingest_goes_on_where_it_stopped(store: Store, tmp_path: Path) -> None:
    write(tmp_path, {f"{i:04}.md": f"# Title {i}\n\n" + f"Some words {i} here. " * 60 for i in range(400)})
    put(store, tmp_path, "whole")
    command = [sys.executable, "-m", "lab", "ingest", str(tmp_path), "-c", "c", "--embedder", "none"]
    for wait in (0.9, 1.2):
        process = subprocess.Popen(command, env=os.environ | {"LAB_DATABASE_URL": store.dsn}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.wait()
    put(store, tmp_path, "c")
    assert state(store, "c") == state(store, "whole")


def test_vectors_are_cached_by_model_and_exact_text(store: Store, tmp_path: Path) -> None:
    write(tmp_path, FILES)
    assert put(store, tmp_path, "a", embedder="keyword").embedded == 4
    assert put(store, tmp_path, "b", embedder="keyword").embedded == 0
    write(tmp_path, {"notes/a.txt": "Plain words about a pump.\n"})
    assert put(store, tmp_path, "b", embedder="keyword").embedded == 1


def test_a_corrupted_cache_row_is_computed_again(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(store, write(tmp_path, FILES), "a", embedder="keyword")
    good = store.rows("select text_hash, vector::text from lab.embeddings order by 1")
    with store.connection() as connection:
        connection.execute("update lab.embeddings set vector = '[1,2,3]' where text_hash = (select min(text_hash::text)::bytea from lab.embeddings)")
    assert put(store, tmp_path, "b", embedder="keyword").embedded == 1
    assert "wrong length" in capsys.readouterr().err
    assert store.rows("select text_hash, vector::text from lab.embeddings order by 1") == good


def test_a_passage_whose_vector_is_zero_is_found_by_words_only_and_counted(store: Store, tmp_path: Path) -> None:
    report = put(store, write(tmp_path, {"a.txt": "1234 5678", "b.txt": "valve"}), embedder="keyword", context="off")
    assert report.without_vector == 1
    assert store.rows("select source from kb_c.chunks where embedding is null") == [("a.txt",)]


def test_a_document_of_40000_distinct_words_does_not_abort_the_load(store: Store, tmp_path: Path) -> None:
    text = " ".join(f"distinctword{i:06}" for i in range(40_000))
    for chunker in ("heading", "whole"):
        report = put(store, write(tmp_path, {"big.txt": text}), chunker, chunker=chunker)
        assert report.files["indexed"] == 1


def test_authority_comes_from_the_folder_and_follows_its_changes(store: Store, tmp_path: Path) -> None:
    rules = '{"default": 1, "rules": [{"match": "standards/*", "tier": 3}, {"match": "*", "tier": 2}]}'
    put(store, write(tmp_path, FILES | {"source_authority.json": rules}))
    assert store.rows("select source, authority from kb_c.files order by 1") == [("notes/a.txt", 2), ("notes/b.rst", 2), ("standards/4.md", 3)]
    assert collections.get(store, "c").top_tier == 3
    write(tmp_path, {"source_authority.json": '{"rules": [{"match": "notes/*", "tier": 5}]}'})
    put(store, tmp_path)
    assert store.rows("select source, authority from kb_c.files order by 1") == [("notes/a.txt", 5), ("notes/b.rst", 5), ("standards/4.md", 0)]
    write(tmp_path, {"source_authority.json": '{"rules": [{"match": "notes/*", "tier": 11}]}'})
    with pytest.raises(UsageError, match="tiers from 0 to 9"):
        put(store, tmp_path)


def test_beir_records_are_documents(store: Store, tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "corpus.jsonl": '{"_id": "7", "title": "T", "text": "Body words."}\n{"_id": "12", "title": "", "text": "Other."}\n{"_id": "9", "text": ""}\n'
        },
    )
    report = ingest(tmp_path / "corpus.jsonl", "c", store=store, format="beir", embedder="none", chunker="whole")
    assert (report.files["indexed"], report.files["refused"], report.chunks) == (2, 1, 2)
    assert store.rows("select source, text, context from kb_c.chunks order by 1") == [("12", "Other.", ""), ("7", "Body words.", "T")]
    assert ingest(tmp_path, "c", store=store, format="beir").files["unchanged"] == 2
    write(tmp_path, {"corpus.jsonl": '{"_id": "7", "text": "x"}\n{"_id": 7}\n'})
    with pytest.raises(UsageError, match="line 2"):
        ingest(tmp_path, "d", store=store, format="beir", embedder="none")


def test_the_command_speaks_json_and_strict_is_3(store: Store, lab: Lab, tmp_path: Path) -> None:
    write(tmp_path / "in", FILES | {"x.docx": "zip"})
    answer = lab("ingest", "in", "-c", "c", "--embedder", "none", "--json", store=store)
    assert answer.code == 0
    assert answer.json["files"]["indexed"] == 3 and answer.json["refused"] == [
        {"source": "x.docx", "reason": "mismatch: named .docx but holds plain text"}
    ]
    assert set(answer.json) >= {"files", "refused", "chunks", "links"}
    strict = lab("ingest", "in", "-c", "c", "--strict", "--json", store=store)
    assert strict.code == 3 and strict.json["files"]["unchanged"] == 3
    assert lab("ingest", "nowhere", "-c", "c").code == 2
    (tmp_path / "none").mkdir()
    assert lab("ingest", "none", "-c", "d").code == 3
    assert lab("drop", "c").code == 2
    assert lab("drop", "c", "--yes").code == 0
    assert lab("collections", "--json").json["collections"] == []


def test_links_are_exported_a_row_a_mention(store: Store, lab: Lab, tmp_path: Path) -> None:
    put(store, write(tmp_path / "in", FILES))
    assert lab("link", "c", "--export", "links.tsv", "--json", store=store).json["links"] == {"cites": 1, "defines": 1}
    lines = [line.split("\t") for line in (tmp_path / "links.tsv").read_text().splitlines()]
    assert lines[0] == ["relation", "term", "from_source", "from_chunk", "to_source", "to_chunk", "start", "end"]
    cites, defines = lines[1:]
    text = FILES["standards/4.md"]
    assert cites[:6] == ["cites", "", "standards/4.md", "standards/4.md::1", "standards/4.md", "standards/4.md::2"]
    assert text[int(cites[6]) : int(cites[7])] == "section 4.3"
    assert defines[:6] == ["defines", "cold permit", "", "", "standards/4.md", "standards/4.md::1"]


def test_two_ingests_of_one_collection_do_not_disturb_each_other(store: Store, tmp_path: Path) -> None:
    write(tmp_path, {f"{i:03}.md": f"# T{i}\n\nWords {i}.\n" for i in range(150)})
    command = [sys.executable, "-m", "lab", "ingest", str(tmp_path), "-c", "c", "--embedder", "none", "-q"]
    both = [subprocess.Popen(command, env=os.environ | {"LAB_DATABASE_URL": store.dsn}, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    assert len({(row[0], row[1]) for row in state(store)}) == 150


def test_the_tutorials_scores(store: Store, shared_data: Callable[[str], Path]) -> None:
    from lab.retrieval.search import search

    folder = shared_data("tutorial")
    files = [folder / "kyoto-guide.txt", folder / "sapporo-guide.txt"]
    assert ingest(files, "t", store=store, embedder="keyword", chunker="paragraph", context="off").chunks == 4

    def scores(question: str) -> list[tuple[str, float]]:
        found = search("t", question, store=store, lexical="none", k=3)
        return [(r.source, round(r.similarity or 0.0, 3)) for r in found.results]

    assert scores("When do autumn leaves peak in Kyoto?") == [("kyoto-guide.txt", 0.187), ("kyoto-guide.txt", 0.123), ("kyoto-guide.txt", 0.0)]
    assert scores("When should I visit Arashiyama bamboo grove?")[:2] == [("kyoto-guide.txt", 0.342), ("kyoto-guide.txt", 0.0)]


# ── faults found in review ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_replacing_ingest_stopped_before_its_links_is_finished_by_the_next(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, write(tmp_path, FILES))
    write(tmp_path, {"standards/4.md": FILES["standards/4.md"].replace("Close it.", "Close it twice.")})
    real = module.relink
    monkeypatch.setattr(module, "relink", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        put(store, tmp_path)
    monkeypatch.setattr(module, "relink", real)
    report = put(store, tmp_path)
    assert report.files["unchanged"] == 3 and report.links == {"cites": 1, "defines": 1}
    assert collections.get(store, "c").stale_rows == 0


def test_a_refused_file_does_not_stop_the_second_ingest(store: Store, tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "valve", "x.docx": "zip"})
    for _ in range(3):
        assert put(store, tmp_path).files["refused"] == 1
    assert store.rows("select root from kb_c.files where source = 'x.docx'") == [(str(tmp_path),)]


def test_a_file_ingested_alone_keeps_its_tier(store: Store, tmp_path: Path) -> None:
    put(store, write(tmp_path, FILES | {"source_authority.json": '{"rules": [{"match": "standards/*", "tier": 3}]}'}))
    write(tmp_path, {"standards/4.md": FILES["standards/4.md"] + "\nMore.\n"})
    assert put(store, tmp_path / "standards" / "4.md").files["replaced"] == 1
    assert store.rows("select authority from kb_c.files where source = 'standards/4.md'") == [(3,)]


def test_prune_looks_only_at_what_this_call_reads(store: Store, tmp_path: Path) -> None:
    write(tmp_path, {"notes.md": "Words.\n", "corpus.jsonl": '{"_id": "7", "text": "Body."}\n'})
    ingest(tmp_path, "c", store=store, embedder="none", chunker="whole")
    ingest(tmp_path, "c", store=store, format="beir")
    for format in ("auto", "beir"):
        report = ingest(tmp_path, "c", store=store, format=format, prune=True)
        assert report.files["retired"] == 0 and report.chunks == 2


def test_the_same_folder_by_another_path_is_the_same(store: Store, tmp_path: Path) -> None:
    put(store, write(tmp_path / "docs", FILES))
    (tmp_path / "link").symlink_to(tmp_path / "docs")
    for path in (tmp_path / "docs" / ".." / "docs", tmp_path / "link"):
        assert put(store, path).files["unchanged"] == 3


def test_a_named_root_is_the_same_wherever_it_lies(store: Store, tmp_path: Path) -> None:
    a, b = write(tmp_path / "a", FILES), write(tmp_path / "b", FILES)
    ingest(a, "c", store=store, embedder="none", root="shipped:x")
    assert ingest(b, "c", store=store, root="shipped:x").files["unchanged"] == 3
    (b / "notes" / "a.txt").unlink()
    assert ingest(b, "c", store=store, root="shipped:x").files["missing"] == 1


def test_names_and_texts_that_are_not_utf8_do_no_harm(store: Store, tmp_path: Path, lab: Lab) -> None:
    write(tmp_path / "in", {"a.txt": "valve"})
    (tmp_path / "in" / os.fsdecode(b"b\xff.txt")).write_text("pump")
    assert put(store, tmp_path / "in").files["indexed"] == 1
    write(tmp_path, {"corpus.jsonl": '{"_id": "7", "text": "a\\ud800b", "metadata": {"x": "a\\u0000b"}}\n'})
    assert ingest(tmp_path / "corpus.jsonl", "d", store=store, format="beir", embedder="none").chunks == 1
    assert lab("search", "c", "valve \udcff", "--dense", "none", "--json", store=store).code == 0


def test_a_bad_record_is_found_before_anything_is_stored(store: Store, tmp_path: Path) -> None:
    good = "".join(f'{{"_id": "{i}", "text": "word {i}"}}\n' for i in range(6000))
    for bad in ("{oops\n", '{"_id": "5", "text": "again"}\n'):
        write(tmp_path, {"corpus.jsonl": good + bad})
        with pytest.raises(UsageError):
            ingest(tmp_path / "corpus.jsonl", "c", store=store, format="beir", embedder="none")
    assert collections.all_collections(store) == []


def test_an_unknown_language_is_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown language"):
        ingest(write(tmp_path, FILES), "c", store=store, embedder="none", language="klingon")
    assert collections.all_collections(store) == []


def test_letters_beyond_ascii_are_folded_like_others(store: Store, tmp_path: Path) -> None:
    from lab.retrieval.search import search

    ingest(write(tmp_path, {"a.txt": "Der Überdruck fällt."}), "c", store=store, embedder="none", language="german")
    assert len(search("c", "überdruck", store=store, dense="none").results) == 1


def test_words_of_four_bytes_do_not_abort_the_load(store: Store, tmp_path: Path) -> None:
    text = " ".join(f"{chr(0x20000 + i)}{chr(0x20000 + i + 1)}-{chr(0x20000 + i + 2)}{chr(0x20000 + i + 3)}" for i in range(40_000))
    assert put(store, write(tmp_path, {"big.txt": text}), chunker="whole").files["indexed"] == 1


def test_what_is_no_file_is_in_the_report_and_the_others_are_read(store: Store, tmp_path: Path) -> None:
    write(tmp_path, FILES)
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "nowhere.md").symlink_to(tmp_path / "gone.md")
    report = put(store, tmp_path)
    assert report.files["indexed"] == 3 and report.files["refused"] == 2
    assert {source: reason.split(":")[0] for source, reason in report.refused} == {"pipe.md": "unreadable", "nowhere.md": "unreadable"}


def test_a_link_out_of_the_folder_is_not_followed(store: Store, tmp_path: Path) -> None:
    write(tmp_path, {"in/a.md": "# A\n\nWords.", "in/sub/b.md": "# B\n\nOther words.", "secret.md": "# Secret\n\nThe secret."})
    (tmp_path / "in" / "out.md").symlink_to(tmp_path / "secret.md")
    (tmp_path / "in" / "alias.md").symlink_to(tmp_path / "in" / "sub" / "b.md")
    report = put(store, tmp_path / "in")
    assert report.files["indexed"] == 3
    assert [(source, reason.split(":")[0]) for source, reason in report.refused] == [("out.md", "unsafe")]
    assert ingest(tmp_path / "in" / "out.md", "d", store=store, embedder="none").files["indexed"] == 1  # named itself


def test_a_flag_that_the_chunker_does_not_read_is_said(store: Store, lab: Lab, tmp_path: Path) -> None:
    write(tmp_path, {"in/a.md": "# A\n\nWords."})
    answer = lab("ingest", str(tmp_path / "in"), "-c", "c", "--embedder", "none", "--overlap", "50", store=store)
    assert "--chunker heading does not read --overlap" in answer.err
