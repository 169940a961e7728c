"""Claims: taken once, stale with their passages, found by words without a model and by vector."""

from __future__ import annotations

import csv
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from lab.corpus import claims as extraction
from lab.corpus.claims import extract
from lab.corpus.ingest import ingest
from lab.errors import UsageError
from lab.evaluation.compare import differing_flags
from lab.evaluation.experiment import ablate
from lab.gold.files import save_gold
from lab.records import Judgment, Question
from lab.retrieval.recall import recall
from lab.retrieval.search import search
from lab.serving import tool
from lab.store import claims, collections, documents, runs
from lab.store.connect import Store
from tests.conftest import Lab, write
from tests.servers import Fake

PUMPS = (
    "# Pumps\n\nA “duty pump” means the pump that runs. The duty pump must be stopped before the guard is lifted.\n\n"
    "The relief valve opens at 12 bar at most. The pump is blue."
)
DOORS = "# Doors\n\nThe door is shut within five minutes. Visitors may not open the door."


@pytest.fixture
def plant(store: Store, tmp_path: Path) -> tuple[Store, Path]:
    files = write(tmp_path / "d", {"pumps.md": PUMPS, "doors.md": DOORS})
    ingest(files, "c", store=store, embedder="keyword")
    return store, files


def rows(store: Store, schema: str = "kb_c") -> list[tuple[object, ...]]:
    return [
        tuple(r)
        for r in store.rows(
            f'select claim_id, source_id, n, start, "end", quote, statement, subject, kind, confidence, status, extractor from {schema}.claims order by claim_id'
        )
    ]


def test_claims_are_taken_once(plant: tuple[Store, Path]) -> None:
    store, _ = plant
    done = extract(store, "c")
    assert (done.documents, done.unchanged, done.new, done.kept, done.embedded) == (2, 0, 5, 0, 5)
    texts = {source: text for source, _, text in documents.texts(store, collections.get(store, "c"))}
    found = rows(store)
    assert {(r[8], r[6]) for r in found} == {
        ("definition", "A “duty pump” means the pump that runs."), ("requirement", "The duty pump must be stopped before the guard is lifted."), ("limit", "The relief valve opens at 12 bar at most."),
        ("limit", "The door is shut within five minutes."), ("requirement", "Visitors may not open the door."),
    }  # fmt: skip
    assert all(texts[str(r[1])][r[3] : r[4]] == r[5] and r[10] == "verified" for r in found)  # type: ignore[misc]
    chunks = {f"{s}::{n}": (a, b) for s, n, a, b in store.rows('select source, n, start, "end" from kb_c.chunks')}
    assert all(chunks[f"{r[1]}::{r[2]}"][0] <= r[3] < chunks[f"{r[1]}::{r[2]}"][1] for r in found)  # type: ignore[operator]
    again = extract(store, "c")
    assert (again.documents, again.unchanged, again.new, again.kept, again.embedded) == (0, 2, 0, 0, 0) and rows(store) == found


def test_a_changed_document_makes_its_claims_stale_and_no_others(plant: tuple[Store, Path]) -> None:
    """One sentence of one document changes: its claims are stale at once; taken again, what still stands is verified and the rest stays stale."""
    store, files = plant
    extract(store, "c")
    (files / "pumps.md").write_text(PUMPS.replace("12 bar", "14 bar"))
    ingest(files, "c", store=store)
    status = dict(store.rows("select statement, status from kb_c.claims"))
    assert {s for s, state in status.items() if state == "stale"} == {r for r in status if "door" not in r.lower()}
    assert recall(store, "c", "relief valve bar").claims == [], "a stale claim is not recalled"
    done = extract(store, "c")
    assert (done.documents, done.new, done.kept) == (1, 1, 2)
    assert {s: state for s, state in store.rows("select statement, status from kb_c.claims") if "bar" in s} == {
        "The relief valve opens at 12 bar at most.": "stale", "The relief valve opens at 14 bar at most.": "verified",
    }  # fmt: skip
    (files / "doors.md").unlink()
    ingest(files, "c", store=store, prune=True)
    assert {state for s, state in store.rows("select statement, status from kb_c.claims") if "door" in s.lower()} == {"stale"}


def test_a_deleted_document_takes_its_claims_along(plant: tuple[Store, Path]) -> None:
    store, _ = plant
    extract(store, "c")
    with store.connection() as connection:
        connection.execute("delete from kb_c.files where source = 'doors.md'")
    assert {str(r[1]) for r in rows(store)} == {"pumps.md"} and store.rows("select source_id from kb_c.claim_passes") == [("pumps.md",)]


def test_what_was_stopped_goes_on(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed after it had entered some documents, and run again: the same claims as without."""
    texts = {f"d{n:02}.md": f"# D{n}\n\nPump {n} must be stopped within {n + 2} days." for n in range(40)}
    ingest(write(tmp_path / "d", texts), "c", store=store, embedder="none")
    ingest(tmp_path / "d", "whole", store=store, embedder="none")
    extract(store, "whole")
    code = (
        "import time, lab.store.claims as c\nreal = c.enter\ndef slow(*a, **k):\n    time.sleep(0.05)\n    return real(*a, **k)\nc.enter = slow\n"
        "from lab.corpus.claims import extract\nfrom lab.store.connect import connect\nextract(connect(), 'c')"
    )
    process = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "LAB_DATABASE_URL": store.dsn})
    until = time.monotonic() + 60
    while time.monotonic() < until and len(store.rows("select from kb_c.claim_passes")) < 5:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=30)
    stopped = len(store.rows("select from kb_c.claim_passes"))
    assert 5 <= stopped < 40
    assert extract(store, "c").documents == 40 - stopped
    assert rows(store) == rows(store, "kb_whole")


def test_bm25_by_hand(plant: tuple[Store, Path]) -> None:
    """\"door\" stands in 2 of 5 claims; words of a claim are those of statement and quote."""
    store, _ = plant
    extract(store, "c", embed=False)
    found = recall(store, "c", "door")
    words = dict(store.rows("select claim_id, words from kb_c.claims"))
    idf, usual = math.log(1 + (5 - 2 + 0.5) / (2 + 0.5)), sum(words.values()) / 5
    assert [c.score for c in found.claims] == pytest.approx(
        sorted((idf * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * words[c.claim_id] / usual)) for c in found.claims), reverse=True)
    )
    assert len(found.claims) == 2 and found.engine == "bm25" and all("door" in found.texts[c.chunk_id] for c in found.claims)
    assert [c.kind for c in recall(store, "c", "door", kinds=["limit"]).claims] == ["limit"]
    assert recall(store, "c", "door", confidence=0.75).claims[0].kind == "limit" and recall(store, "c", "door", authority=1).claims == []
    assert recall(store, "c", "zebra").said and recall(store, "c", "").claims == []


def test_near_claims_and_the_same_in_sql(plant: tuple[Store, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    store, _ = plant
    extract(store, "c")
    found = recall(store, "c", "when is the door shut?", semantic=True)
    assert found.engine == "semantic" and "door is shut" in found.claims[0].statement and all((c.similarity or 0) >= 0.3 for c in found.claims)
    best = found.claims[0]
    told = store.rows(
        "select claim_id, similarity, passage from kb_c.search_claims((select embedding from kb_c.claims where claim_id = %(c)s), 3, 0.99)",
        {"c": best.claim_id},
    )
    assert told[0][0] == best.claim_id and told[0][1] == pytest.approx(1.0, abs=1e-3) and told[0][2] == best.chunk_id and len(told) == 1
    assert store.rows(
        "select count(*) from kb_c.search_claims((select embedding from kb_c.claims where claim_id = %(c)s), 10, -1.0, 'definition')",
        {"c": best.claim_id},
    ) == [(1,)]
    assert store.rows(
        "select count(*) from kb_c.search_claims((select embedding from kb_c.claims where claim_id = %(c)s), 10, -1.0, null, 1)", {"c": best.claim_id}
    ) == [(0,)]
    vector = np.asarray([1.0, *[0.0] * (int(collections.get(store, "c").dim or 1) - 1)], dtype=np.float16)
    assert claims.by_vector(store, collections.get(store, "c"), vector, 5, 2.0) == []
    from lab.errors import ServerError
    from lab.retrieval import search

    def gone(*_: object) -> None:
        raise ServerError("the embedding server does not answer")

    monkeypatch.setattr(search, "question_vectors", gone)
    back = recall(store, "c", "door", semantic=True)
    assert back.engine == "bm25_fallback" and "does not answer" in back.said and len(back.claims) == 2


def test_recall_by_words_loads_no_model(plant: tuple[Store, Path]) -> None:
    """In a process of its own: neither torch nor an embedder is imported, and no vector is read."""
    store, _ = plant
    extract(store, "c")
    code = (
        "import sys\nfrom lab.cli.main import run\nassert run(['claims', 'search', 'c', 'when is the door shut?', '--json']) == 0\n"
        "print([m for m in ('torch', 'sentence_transformers', 'transformers', 'lab.models.minilm') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "LAB_DATABASE_URL": store.dsn})
    assert done.stdout.splitlines()[-1] == "[]" and "door is shut" in done.stdout


def test_recall_by_words_asks_no_embedding_server(store: Store, tmp_path: Path, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The collection's vectors come from a server; it counts the calls."""
    server = Fake(lambda path, body: (200, {"data": [{"index": i, "embedding": [float(len(text)), 1.0]} for i, text in enumerate(body["input"])]}))
    try:
        monkeypatch.setenv("LAB_EMBED_URL", server.url)
        ingest(write(tmp_path / "d", {"pumps.md": PUMPS, "doors.md": DOORS}), "c", store=store, embedder="openai:counted")
        extract(store, "c")
        before = len(server.asked)
        assert before > 0
        assert len(lab("claims", "search", "c", "is the door shut", "--json", store=store).json["claims"]) == 2
        assert len(recall(store, "c", "the duty pump").claims) > 0 and len(tool.recall_claims(store, "c", "the duty pump")["claims"]) > 0
        assert len(server.asked) == before
        assert recall(store, "c", "the duty pump", semantic=True).engine == "semantic" and len(server.asked) == before + 1
    finally:
        server.close()


def test_commands_and_tool(plant: tuple[Store, Path], lab: Lab) -> None:
    store, _ = plant
    empty = lab("claims", "search", "c", "door", "--json", store=store)
    assert empty.code == 0 and "lab claims extract c" in empty.json["diagnostic"]["message"]
    assert lab("claims", "extract", "c", "--json", store=store).json["new"] == 5
    told = lab("claims", "search", "c", "is the door shut", "--json", store=store).json
    first = told["claims"][0]
    assert told["engine"] == "bm25" and set(first) >= {
        "claim_id",
        "statement",
        "kind",
        "confidence",
        "authority",
        "status",
        "quote",
        "passage",
        "similarity",
    }
    assert (
        first["passage"]["text"][first["passage"]["start"] - 0 :] is not None
        and first["passage"]["chunk_id"] == "doors.md::1"
        and first["similarity"] is None
    )
    assert "The door is shut within five minutes." in lab("claims", "search", "c", "door shut", store=store).out
    assert lab("claims", "stats", "c", "--json", store=store).json["claims"][0] == {"kind": "definition", "status": "verified", "claims": 1}
    for words in (
        ["--kind", "limitt"],
        ["--k", "0"],
        ["--status", "true"],
        ["--min-confidence", "2"],
        ["--min-similarity", "3"],
        ["--min-authority", "-3"],
        ["--min-authority", "10"],
    ):
        assert lab("claims", "search", "c", "door", *words, store=store).code == 2, words
    assert "did you mean 'limit'" in lab("claims", "search", "c", "door", "--kind", "limitt", store=store).err
    found = tool.recall_claims(store, "c", "door", 1)
    assert [c["passage_id"] for c in found["claims"]] == ["doors.md::1"] and found["diagnostic"] is None
    assert tool.claims_schema(store)["function"]["parameters"]["properties"]["collection"]["enum"] == ["c"]
    for wrong in (("c", "", 1, None), ("c", "x", 0, None), ("nobody", "x", 1, None), ("c", "x", 1, 3)):
        with pytest.raises(UsageError):
            tool.recall_claims(store, *wrong)


def test_the_definitions_of_a_statute(store: Store, shared_data: Callable[[str], Path]) -> None:
    """The 36 definitions of the GDPR that somebody else marked: each a claim with exactly that span, and at most 2 that are none."""
    folder = shared_data("gdpr")
    ingest(folder / "articles", "gdpr", store=store, embedder="none")
    extract(store, "gdpr")
    with (folder / "gold_definitions.tsv").open(encoding="utf-8", newline="") as file:
        gold = {(row["file"], int(row["start"]), int(row["end"])): row["term"] for row in csv.DictReader(file, delimiter="\t")}
    found = {(str(s), int(a), int(b)) for s, a, b in store.rows("select source_id, start, \"end\" from kb_gdpr.claims where kind = 'definition'")}
    assert set(gold) <= found and len(found - set(gold)) <= 2
    assert store.rows("select distinct extractor from kb_gdpr.claims")[0][0] == extraction.EXTRACTOR


def test_claims_as_an_arm(plant: tuple[Store, Path], lab: Lab) -> None:
    """By hand: two passages have claims with the words; off nothing changes, only brings these, on adds 1/(rrf_k + rank) to each."""
    store, _ = plant
    refused = lab("search", "c", "the door and the pump", "--claims", "on", store=store)
    assert refused.code == 2 and "lab claims extract c" in refused.err
    extract(store, "c")
    plain = search("c", "is the door shut", store=store, k=5, authority_weight=0, codes="off")
    only = search("c", "is the door shut", store=store, k=5, claims="only", authority_weight=0, codes="off")
    both = search("c", "is the door shut", store=store, k=5, claims="on", authority_weight=0, codes="off")
    assert [r.chunk_id for r in only.results] == ["doors.md::1"] and set(only.arms) == {"claims"} and only.results[0].score == pytest.approx(1 / 11)
    assert set(both.arms) == {"dense", "lexical", "claims"} and both.results[0].score == pytest.approx(plain.results[0].score + 1 / 11)
    assert search("c", "zebra", store=store, claims="only").diagnostic.message.startswith("no arm found anything (claims: no claim")  # type: ignore[union-attr]
    assert [r.source for r in search("c", "door or pump", store=store, claims="only", filters="source=pumps*").results] == ["pumps.md"]
    why = lab("search", "c", "door", "--claims", "only", "--why", "pumps.md", "--json", store=store)
    assert why.code == 0 and "claims: not among its 1 results" in why.out


def test_a_run_with_claims_says_which(plant: tuple[Store, Path], tmp_path: Path) -> None:
    """The digest of the claims stands in the run; the grid has the arm's losses; an older run without the flag is one with claims off."""
    store, _ = plant
    extract(store, "c")
    text = next(body for source, _, body in documents.texts(store, collections.get(store, "c"), ["doors.md"]))
    at = text.index("The door is shut")
    save_gold(tmp_path / "h", [Question("q1", "when is the door shut")], [Judgment("q1", "doors.md", at, at + 38, 1, text[at : at + 38])], "")
    grid = ablate("c", str(tmp_path / "h"), {"claims": ["off", "on", "only"]}, store=store)
    rows = [runs.get_run(store, r.run_id) for r in grid.runs]
    assert rows[0].inputs["claims_digest"] is None and rows[1].inputs["claims_digest"] == rows[2].inputs["claims_digest"] == claims.digest_of(
        store, collections.get(store, "c")
    )
    assert all(r.scores["hit@5"] == 1.0 for r in grid.runs) and "claims" in rows[2].stages
    with store.connection() as connection:
        connection.execute("update lab.runs set settings = settings - 'claims' - 'claims_weight' where run_id = %s", [rows[0].run_id])
    assert list(differing_flags(runs.get_run(store, rows[0].run_id), rows[1])) == ["claims"]
