"""The demo from the command line, on the home of the tests."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import Lab


def test_the_demo_answers_with_an_experiment_and_a_report(lab: Lab, tmp_path: Path) -> None:
    first, second = lab("demo", "--json"), lab("demo", "--json", "-q")
    assert first.code == second.code == 0 and second.err == ""
    for answer in (first, second):
        assert len(answer.json["runs"]) == 8 and {r["status"] for r in answer.json["runs"]} == {"ok"}
        assert {tuple(sorted(r["passed"])) for r in answer.json["runs"]} == {("authority_weight", "defines", "dense")}
        assert (tmp_path / answer.json["report"]).is_file()
    ids = [{r["run_id"] for r in answer.json["runs"]} for answer in (first, second)]
    assert not ids[0] & ids[1], "every member is executed again"
    assert [r["scores"] for r in first.json["runs"]] == [r["scores"] for r in second.json["runs"]]
    shown = lab("demo", "-q")
    assert "percentage points" in shown.out and "won" in shown.out and shown.out.splitlines()[-1].startswith("next ")
