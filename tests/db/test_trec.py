"""A TREC run scored with the same gold: the measures are those of the lists in the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.corpus.ingest import ingest
from lab.errors import UsageError
from lab.evaluation.run import run
from lab.evaluation.trec import read
from lab.store.connect import Store
from tests.conftest import Lab, write

DOCUMENTS = {"a.md": "# A\n\nThe red valve.", "b.md": "# B\n\nThe blue pump.", "c.md": "# C\n\nThe green fan."}
GOLD = {
    "questions.jsonl": '{"_id": "q1", "text": "which valve is red?"}\n{"_id": "q2", "text": "which pump is blue?"}\n{"_id": "q3", "text": "which fan is green?"}\n',
    "judgments.tsv": "question\tsource\tstart\tend\tgrade\tquote\nq1\ta.md\t5\t19\t1\tThe red valve.\nq2\tb.md\t5\t19\t1\tThe blue pump.\nq3\tc.md\t5\t19\t1\tThe green fan.\n",
    "README.md": "# Gold\n",
}
RUN = "q1 Q0 a.md 1 9 x\nq1 Q0 b.md::1 2 8 x\n\nq2 Q0 c.md::1 1 5 x\nq2 Q0 b.md 2 7.5 x\nq2 Q0 a.md 3 7.5 x\n"


def test_the_lists_of_the_file_are_the_ranking(store: Store, tmp_path: Path, lab: Lab) -> None:
    """q1: gold first. q2: by score b (7.5, rank 2), a (7.5, rank 3), c: gold first. q3 has no list: 0. So hit@1 = 2/3."""
    ingest(write(tmp_path / "d", DOCUMENTS), "c", store=store, embedder="none")
    gold, path = write(tmp_path / "g", GOLD), tmp_path / "run.txt"
    path.write_text(RUN)
    done = run("c", str(gold), store=store, from_trec=path, measures=["hit@1", "hit@5", "RR@10"])
    assert done.scores == pytest.approx({"hit@1": 2 / 3, "hit@5": 2 / 3, "RR@10": 2 / 3})
    assert done.passed["external"].startswith("trec:")
    path.write_text(RUN.replace("q2 Q0 c.md::1 1 5", "q2 Q0 c.md::1 1 50"))
    done = run("c", str(gold), store=store, from_trec=path, measures=["hit@1", "RR@10"])
    assert done.scores == pytest.approx({"hit@1": 1 / 3, "RR@10": (1 + 1 / 2) / 3})
    answer = lab("run", "c", "--gold", str(gold), "--from-trec", str(path), "--json", store=store)
    assert (answer.code, answer.json["scores"]["hit@1"]) == (0, pytest.approx(1 / 3))
    assert "--from-trec FILE" in lab("search", "c", "x", "--dense", "none", "--lexical", "none", "--external", "trec:abc", store=store).err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("q1 Q0 a.md 1 9\n", "line 1"), ("q1 Q0 a.md one 9 x\n", "line 1"), ("q1 Q0 a.md 1 nan x\n", "must be a number"), ("", "holds no result"),
        ("q1 Q0 a.md 1 9 x\nq1 Q0 a.md 2 8 x\n", "a second time"),
    ],
)  # fmt: skip
def test_a_file_that_is_none_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "run.txt").write_text(text)
    with pytest.raises(UsageError, match=said):
        read(tmp_path / "run.txt")


def test_a_run_of_other_questions_is_refused(store: Store, tmp_path: Path) -> None:
    ingest(write(tmp_path / "d", DOCUMENTS), "c", store=store, embedder="none")
    (tmp_path / "run.txt").write_text("other Q0 a.md 1 9 x\n")
    with pytest.raises(UsageError, match="holds none of the 3 questions"):
        run("c", str(write(tmp_path / "g", GOLD)), store=store, from_trec=tmp_path / "run.txt")
