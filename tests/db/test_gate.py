"""The gate: all four exits from real commands, and one verdict in every form."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import psycopg
import pytest

from lab.corpus.ingest import ingest
from lab.errors import UsageError
from lab.evaluation.gate import gate
from lab.evaluation.policy import Policy, Rule, read_policy
from lab.evaluation.recorded import Run
from lab.evaluation.run import run
from lab.evaluation.smoke import stratified
from lab.gold.files import load_gold, only, save_gold
from lab.records import Judgment, Question
from lab.resources import folder
from lab.store import baselines, collections, noise, runs
from lab.store.connect import Store
from tests.conftest import Lab, write

GOLD = folder("gold") / "handbook"


@pytest.fixture(scope="module")
def base(handbook: Store) -> Run:
    done = run("handbook", load_gold(GOLD), store=handbook)
    baselines.promote(handbook, "main", done.run_id, "first", "ann")
    return done


def forms(lab: Lab, store: Store, tmp_path: Path, *words: str) -> tuple[int, dict[str, object], str, str, str]:
    """(exit code, JSON, text, JUnit, Markdown) of one gate."""
    answer = lab(
        "gate", "--baseline", "main", *words, "--junit", str(tmp_path / "j.xml"), "--markdown", str(tmp_path / "m.md"), "--json", store=store
    )
    told = answer.json
    text = lab("gate", "--baseline", "main", *words, store=store)
    assert text.code == answer.code == told["exit_code"], text.err
    return answer.code, told, text.out, (tmp_path / "j.xml").read_text(), (tmp_path / "m.md").read_text()


def test_the_same_settings_pass(handbook: Store, base: Run, lab: Lab, tmp_path: Path) -> None:
    again = run("handbook", load_gold(GOLD), store=handbook)
    code, told, text, junit, markdown = forms(lab, handbook, tmp_path, "--run", again.run_id)
    assert (code, told["outcome"], told["reasons"], told["flipped"]) == (0, "pass", [], [])
    assert "no ranking changed" in text and text.startswith("pass") and "✅ pass" in markdown
    suite = ElementTree.fromstring(junit)
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "0", "0")


def test_a_loss_is_a_regression(handbook: Store, base: Run, lab: Lab, tmp_path: Path) -> None:
    worse = run("handbook", load_gold(GOLD), store=handbook, lexical="none")
    code, told, text, junit, markdown = forms(lab, handbook, tmp_path, "--run", worse.run_id)
    rule = told["rules"][0]  # type: ignore[index]
    assert (code, told["outcome"], rule["outcome"]) == (1, "regression", "regression") and rule["low"] < rule["delta"] < -0.05
    assert "a loss is shown" in text and "❌ regression" in markdown
    assert ElementTree.fromstring(junit).get("failures") == "1"
    lost = [f for f in told["flipped"] if f["direction"] == "lost"]  # type: ignore[union-attr]
    assert len(lost) == rule["losses"] and all(f["stage"] == worse.lost[f["question"]] for f in lost)
    assert lost[0]["text"].split()[0] in markdown
    assert told["differs"] == [] and lab("compare", base.run_id, worse.run_id, "--json", store=handbook).json["verdict"] == "worse"


def test_what_cannot_be_judged_is_no_pass(handbook: Store, base: Run, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = run("handbook", load_gold(GOLD), store=handbook, mmr_lambda=0.7)
    code, told, text, junit, _ = forms(lab, handbook, tmp_path, "--run", other.run_id, "--margin", "0.015")
    assert (code, told["outcome"]) == (3, "cannot_judge") and "would decide" in text and ElementTree.fromstring(junit).get("errors") == "1"
    assert told["rules"][0]["needed_questions"] > 419  # type: ignore[index]
    code, told, text, _, _ = forms(lab, handbook, tmp_path, "--run", other.run_id, "--margin", "0.005")
    assert code == 3 and "unattainable" in text
    half = run("handbook", load_gold(GOLD, split="dev"), store=handbook)
    code, told, text, junit, _ = forms(lab, handbook, tmp_path, "--run", half.run_id)
    assert (code, told["reasons"], told["rules"]) == (3, ["other_gold"], []) and "other_gold" in junit and "other_gold" in text
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    answer = lab("gate", "--baseline", "main", "--run", half.run_id, store=handbook)
    assert "could not judge" in summary.read_text() and "::warning title=retrieval gate::" in answer.err


def test_a_margin_below_the_noise_cannot_be_judged(handbook: Store, base: Run, lab: Lab) -> None:
    """Runs that should be the same lay six points apart: a loss of five says nothing. What was measured with other settings, on other documents or for another measure says nothing of these;
    another way that was quiet does not take it back; for a kind it is the floor of that kind."""
    other = run("handbook", load_gold(GOLD), store=handbook, rrf_k=11, dense_weight=0.9)
    row = runs.get_run(handbook, other.run_id)
    digest = row.inputs["corpus_digest"]

    def floor(value: float, *, settings: str = row.settings_digest, documents: str = digest, measure: str = "hit@5", way: str = "rebuilt") -> None:
        noise.enter(handbook, "handbook", row.gold_digest, settings, documents, [noise.Repeated(measure, way, value, base.run_id, other.run_id)])

    words = ("--baseline", base.run_id, "--run", other.run_id, "--json")
    before = lab("gate", *words, store=handbook).json["outcome"]
    floor(0.06, settings="of others")
    floor(0.06, documents="other documents")
    floor(0.06, measure="RR@10")
    assert lab("gate", *words, store=handbook).json["outcome"] == before
    floor(0.06)
    floor(0.0, way="again")
    told = lab("gate", *words, store=handbook)
    assert (told.code, told.json["outcome"]) == (3, "cannot_judge") and told.json["rules"][0]["reason"].startswith("noise_floor")
    kinds = {q for q, kind in other.kinds.items() if kind == "section" and q in other.by_question}
    assert all(other.by_question[q]["hit@5"] == base.by_question[q]["hit@5"] for q in kinds), "of this kind nothing moved between the two"
    section = lab("gate", *words, "--kinds", "section", store=handbook).json["rules"][0]
    assert not section["reason"].startswith("noise_floor")
    floor(0.0)  # measured anew
    assert lab("gate", *words, store=handbook).json["outcome"] == before


def test_a_wrong_command_is_neither(handbook: Store, base: Run, lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("[[rules]]\nmeasur = 'hit@5'\n")
    for words, said in (
        (("--baseline", "mian"), "did you mean 'main'"), (("--baseline", "main", "--run", "nowhere"), "unknown run"), (("--baseline", "main", "--measure", "hti@5"), "hit@5"),
        (("--baseline", "main", "--margin", "0"), "no difference"), (("--baseline", "main", "--alpha", "3"), "level of significance"), (("--baseline", "none.json"), "cannot be read"),
        (("--baseline", "main", "--policy", str(tmp_path / "bad.toml")), "did you mean 'measure'"), (("--baseline", "main", "--policy", str(tmp_path / "bad.toml"), "--margin", "0.1"), "leave"),
    ):  # fmt: skip
        answer = lab("gate", *words, store=handbook)
        assert (answer.code, answer.out) == (2, "") and said in answer.err, answer.err


def test_several_rules_in_a_policy(handbook: Store, base: Run, lab: Lab, tmp_path: Path) -> None:
    """Cites help citations and cost facts: one rule passes, the other does not; p95 is measured now."""
    other = run("handbook", load_gold(GOLD), store=handbook, cites="on")
    (tmp_path / "gate.toml").write_text(
        'alpha = 0.05\n[[rules]]\nmeasure = "hit@5"\nmargin = 0.05\nkinds = ["citation"]\n[[rules]]\nmeasure = "distinct@10"\nmargin = 0.5\n[[rules]]\nmeasure = "p95"\nmargin = 50\n'
    )
    policy = read_policy(tmp_path / "gate.toml")
    assert [rule.name for rule in policy.rules] == ["hit@5 of citation", "distinct@10", "p95"]
    found = gate("main", other.run_id, policy, store=handbook)
    assert [r.outcome for r in found.rules] == ["pass", "pass", "pass"] and found.outcome == "pass"
    assert found.rules[2].value is not None and found.rules[2].value > 0
    with pytest.raises(UsageError, match="known: citation, definition"):
        gate("main", other.run_id, Policy((Rule("hit@5", 0.05, ("nothing",)),)), store=handbook)


def test_latest_is_the_last_finished_run_and_verdicts_stay(handbook: Store, base: Run, lab: Lab) -> None:
    last = run("handbook", load_gold(GOLD), store=handbook)
    answer = lab("gate", "--baseline", "main", "--json", store=handbook)
    assert (answer.code, answer.json["run_id"]) == (0, last.run_id)
    itself = lab("gate", "--baseline", last.run_id, "--json", store=handbook)
    assert itself.code == 3 and "the last finished run is the baseline itself" in itself.json["diagnostic"]["message"]
    assert lab("gate", "--baseline", last.run_id, "--run", last.run_id, store=handbook).code == 3
    with handbook.connection() as connection, pytest.raises(psycopg.Error, match="kept as they were entered"):
        connection.execute("update lab.verdicts set outcome = 'pass'")
    rows = lab("runs", "baselines", "--json", store=handbook).json["promotions"]
    assert ("main", "first", "ann") in {(row["baseline"], row["note"], row["who"]) for row in rows}


def test_an_empty_database_gates_against_a_file(handbook: Store, base: Run, store: Store, lab: Lab, tmp_path: Path) -> None:
    from lab.corpus.ingest import ingest
    from lab.report.demo import ROOT

    assert lab("runs", "export", base.run_id, "--to", str(tmp_path / "baseline.json"), store=handbook).code == 0
    ingest(GOLD / "documents", "handbook", store=store, root=ROOT, embedder="none")
    run("handbook", load_gold(GOLD), store=store, dense="none")
    short = lab("gate", "--baseline", str(tmp_path / "baseline.json"), "--json", store=store)
    assert (short.code, short.json["reasons"][0]) == (3, "short_lists"), "eight lists are short where words alone search"
    (tmp_path / "gate.toml").write_text("short_more = 0.05\n[[rules]]\nmeasure = 'hit@5'\n")
    answer = lab("gate", "--baseline", str(tmp_path / "baseline.json"), "--policy", str(tmp_path / "gate.toml"), "--json", store=store)
    assert (answer.code, answer.json["outcome"]) == (1, "regression")
    assert {"ingest.embedder", "embedder"} <= {d["input"] for d in answer.json["differs"]}, "what differs is listed, and is what a gate is for"


def test_other_documents_and_a_degraded_run_are_not_judged(store: Store, lab: Lab, tmp_path: Path) -> None:
    from lab.corpus.ingest import ingest
    from tests.conftest import write

    files = write(tmp_path / "d", {"a.md": "# A\n\nThe pump is oiled daily.", "b.md": "# B\n\nThe pump is blue."})
    ingest(files, "c", store=store, embedder="none")
    save_gold(tmp_path / "c", [Question("q1", "When is the pump oiled?")], [Judgment("q1", "a.md", 5, 29, 1, "The pump is oiled daily.")], "")
    first = run("c", str(tmp_path / "c"), store=store, dense="none")
    assert lab("runs", "promote", first.run_id, "--as", "main", "--note", "n", store=store).code == 0
    write(tmp_path / "d", {"b.md": "# B\n\nThe pump is green."})
    ingest(files, "c", store=store)
    second = run("c", str(tmp_path / "c"), store=store, dense="none")
    assert gate("main", second.run_id, store=store).reasons == ["other_documents"]
    with store.connection() as connection:
        connection.execute("update lab.runs set status = 'degraded' where run_id = %s", [second.run_id])
    assert gate("main", second.run_id, store=store).reasons == ["run_degraded", "other_documents"]
    assert lab("runs", "promote", second.run_id, "--as", "main", store=store).code == 3
    assert lab("runs", "promote", first.run_id, "--as", "latest", store=store).code == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.update(schema_version=99), "has the format 99"), (lambda d: d.update(results=[]), "does not follow from its results"), (lambda d: d.update(questions=d["questions"][:100]), "is scored and not listed"),
        (lambda d: d["run"].update(health=None), "health is no object"), (lambda d: d["run"].update(inputs=[]), "inputs is no object"),
        (lambda d: d.update(scores=[[q, m, float("nan") if m == "hit@5" else v] for q, m, v in d["scores"]]), "hit@5 of"),
        (lambda d: d.update(scores=[[q, m, 7.0 if m == "hit@5" else v] for q, m, v in d["scores"]]), "7"),
        (lambda d: d.update(scores=[[q, m, 1.0 if m == "hit@5" else v] for q, m, v in d["scores"]]), "does not follow from its results"),
        (lambda d: d.update(scores=[[q, m, "x"] for q, m, v in d["scores"]]), "damaged"), (lambda d: d["run"].pop("seed"), "damaged"), (lambda d: d["run"].update(questions=3), "3 questions are promised"),
    ],
)  # fmt: skip
def test_a_damaged_baseline_is_refused_and_enters_nothing(
    change: Callable[[dict[str, Any]], object], said: str, handbook: Store, base: Run, lab: Lab, tmp_path: Path
) -> None:
    """As in an empty database of CI: the file's run is not here yet."""
    lab("runs", "export", base.run_id, "--to", str(tmp_path / "b.json"), store=handbook)
    data = json.loads((tmp_path / "b.json").read_text())
    data["run"]["run_id"] = "r20200101-000000-00000000"
    change(data)
    (tmp_path / "b.json").write_text(json.dumps(data))
    before = handbook.rows("select count(*) from lab.runs")
    answer = lab("gate", "--baseline", str(tmp_path / "b.json"), "--run", base.run_id, store=handbook)
    assert answer.code == 2 and said in answer.err and answer.err.count("\n") == 1, answer.err
    assert handbook.rows("select count(*) from lab.runs") == before


def test_equal_rankings_with_other_scores_are_no_pass(handbook: Store, base: Run, lab: Lab) -> None:
    """Scores that were changed in the database: the rankings say the same, the scores do not, so nothing can be said."""
    again = run("handbook", load_gold(GOLD), store=handbook)
    with handbook.connection() as connection:
        connection.execute("update lab.scores set value = 0 where run_id = %s and measure = 'hit@5'", [again.run_id])
    answer = lab("gate", "--baseline", base.run_id, "--run", again.run_id, "--json", store=handbook)
    assert answer.code == 3 and "scores_disagree" in answer.json["reasons"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rules = 3", "write [[rules]]"), ("alpha = 0\n[[rules]]\nmeasure = 'hit@5'", "alpha is 0"), ("[[rules]]\nmeasure = 'hit@5'\nmargin = 0", "rule 1"),
        ("[[rules]]\nmeasure = 'hit@5'\n[[rules]]\nmeasure = 'p95'\nmargin = 0.5", "rule 2"), ("[[rules]]\nmeasure = 'hit@5'\nmargin = inf", "finite number"),
        ("[[rules]]\nmeasure = 'hti@5'", "rule 1"), ("foo = 1", "foo"),
    ],
)  # fmt: skip
def test_a_wrong_policy_names_its_file_and_rule(text: str, said: str, handbook: Store, base: Run, lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "gate.toml").write_text(text)
    answer = lab("gate", "--baseline", "main", "--policy", str(tmp_path / "gate.toml"), store=handbook)
    assert answer.code == 2 and said in answer.err and "--alpha" not in answer.err and (said == "foo" or "gate.toml" in answer.err), answer.err


# ── in other people's tests, and in seconds ──────────────────────────────────────────────────────────────────────────────────────


def test_a_team_asserts_in_its_own_tests(
    handbook: Store, base: Run, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Three tests of somebody else: equal settings pass, a lost arm fails with the verdict's words, no baseline skips."""
    monkeypatch.setenv("LAB_DATABASE_URL", handbook.dsn)
    baselines.promote(handbook, "half", run("handbook", only(load_gold(GOLD), "dev"), store=handbook).run_id, "of a team", "ann")
    pytester.makepyfile(
        f"""
        GOLD = {str(GOLD)!r}

        def test_same(lab_gate):
            verdict = lab_gate("handbook", GOLD, split="dev")
            assert verdict.outcome == "pass", verdict

        def test_worse(lab_gate):
            verdict = lab_gate("handbook", GOLD, split="dev", lexical="none", margin=0.05)
            assert verdict.outcome == "pass", verdict
        """
    )
    told = pytester.runpytest("--lab-baseline", "half", "-p", "no:cacheprovider")
    told.assert_outcomes(passed=1, failed=1)
    told.stdout.fnmatch_lines(["*retrieval gate*", "pass: not worse than the baseline*", "regression (*", "*hit@5, margin 0.05: regression*"])
    pytester.runpytest("-p", "no:cacheprovider").assert_outcomes(skipped=2)
    pytester.makeini("[pytest]\nlab_baseline = half")
    pytester.runpytest("-p", "no:cacheprovider", "-k", "same").assert_outcomes(passed=1, deselected=1)
    wrong = pytester.runpytest("-p", "no:cacheprovider", "-k", "same", "--lab-baseline", "nobody")
    wrong.assert_outcomes(failed=1, deselected=1)
    assert "unknown baseline 'nobody'" in wrong.stdout.str() and "pytest_plugin.py" not in wrong.stdout.str(), "a sentence, and no traceback of ours"


def test_smoke_looks_at_health_alone(handbook: Store, base: Run, store: Store, lab: Lab, tmp_path: Path) -> None:
    """12 questions of every kind, the same ones each time, and not a run more on record; a collection of two passages has no list of ten."""
    before = handbook.rows("select count(*) from lab.runs")
    answer = lab("run", "handbook", "--gold", str(GOLD), "--smoke", "12", "--json", store=handbook)
    told = answer.json
    assert (answer.code, told["outcome"], told["questions"], sum(told["kinds"].values())) == (0, "ok", 12, 12)
    assert set(told["kinds"]) == {q.kind for q in load_gold(GOLD).questions if q.answerable}
    assert handbook.rows("select count(*) from lab.runs") == before and "hit@5" not in answer.out
    assert lab("run", "handbook", "--gold", str(GOLD), "--smoke", "0", store=handbook).code == 2
    assert lab("run", "handbook", "--gold", str(GOLD), "--smoke", "5", "--measure", "MRR", store=handbook).code == 2
    asked = [q for q in load_gold(GOLD).questions if q.answerable]
    assert stratified(asked, 1000) == asked and {q.question_id for q in stratified(asked, 12)} <= {q.question_id for q in stratified(asked, 13)}
    ingest(write(tmp_path / "d", {"a.md": "# A\n\nThe pump is oiled daily.", "b.md": "# B\n\nThe door is blue."}), "c", store=store, embedder="none")
    save_gold(tmp_path / "g", [Question("q1", "When is the pump oiled?")], [Judgment("q1", "a.md", 5, 29, 1, "The pump is oiled daily.")], "")
    short = lab("run", "c", "--gold", str(tmp_path / "g"), "--smoke", "5", "--dense", "none", "--json", store=store)
    assert (short.code, short.json["reasons"]) == (3, ["short_lists"]) and "1 of 1 lists" in short.json["found"]["short_lists"]
    save_gold(tmp_path / "h", [Question("q1", "When?")], [Judgment("q1", "a.md", 5, 29, 1, "The pump is oiled weekly, no.")], "")
    gone = lab("run", "c", "--gold", str(tmp_path / "h"), "--smoke", "5", "--dense", "none", "--json", store=store)
    assert gone.code == 3 and "do not stand where they should" in gone.json["diagnostic"]["message"]


def test_runs_on_indexes_built_anew_are_no_regression(handbook: Store, base: Run) -> None:
    """Five times the same settings after `lab index`: small collections compare all vectors, so the lists stay the same."""
    asked = only(load_gold(GOLD), "dev")
    first = run("handbook", asked, store=handbook).run_id
    for _ in range(5):
        collections.build_indexes(handbook, collections.get(handbook, "handbook"))
        verdict = gate(first, run("handbook", asked, store=handbook).run_id, store=handbook)
        assert (verdict.outcome, verdict.rules[0].reason) == ("pass", "no ranking changed")
