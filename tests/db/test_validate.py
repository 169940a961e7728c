"""Published references, on the public sets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lab.store.connect import Store
from tests.conftest import Lab


def test_lexical_references_are_reproduced(store: Store, lab: Lab, shared_data: Callable[[str], Path]) -> None:
    data = shared_data("scifact").parent
    answer = lab("validate", "--data", str(data), "--lexical", "--json", store=store)
    assert answer.code == 0, answer.err
    rows = {(r["data"], r["settings"]): r for r in answer.json["references"]}
    assert len(rows) == 4 and rows["scifact", "BM25"]["agrees"] is True and abs(rows["scifact", "BM25"]["value"] - 0.679) <= 0.02
    out, relevant = (rows["cranfield", f"BM25, {words}"] for words in ("the paper a question was written from kept out", "that paper relevant"))
    assert out["questions"] == relevant["questions"] == 225 and out["value"] != relevant["value"] and min(out["value"], relevant["value"]) > 0.3
    assert lab("validate", "--data", "nowhere", store=store).code == 2
