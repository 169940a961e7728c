"""Comparisons, decisions and losses of real runs on the handbook."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lab.errors import CannotJudge, UsageError
from lab.evaluation.compare import compare
from lab.evaluation.decision import change_of, decide
from lab.evaluation.experiment import ablate, load
from lab.evaluation.flips import diff
from lab.evaluation.lost import lost_questions
from lab.evaluation.planning import plan
from lab.evaluation.recorded import Run
from lab.evaluation.run import run
from lab.gold.files import load_gold, save_gold
from lab.records import Judgment, Question
from lab.resources import folder
from lab.store.connect import Store
from tests.conftest import Lab

GOLD = folder("gold") / "handbook"


@pytest.fixture(scope="module")
def both(handbook: Store) -> Run:
    return run("handbook", load_gold(GOLD), store=handbook)


@pytest.fixture(scope="module")
def lexical(handbook: Store) -> Run:
    return run("handbook", load_gold(GOLD), store=handbook, dense="none")


def test_a_comparison_pairs_by_question(handbook: Store, both: Run, lexical: Run) -> None:
    found = compare(lexical.run_id, both.run_id, store=handbook)
    hit = found.measures["hit@5"]
    assert list(found.flags_that_differ) == ["dense"] and found.questions == 419
    pairs = [(lexical.by_question[q]["hit@5"], both.by_question[q]["hit@5"]) for q in both.by_question]
    assert (hit.wins, hit.losses, hit.ties) == (sum(b > a for a, b in pairs), sum(b < a for a, b in pairs), sum(a == b for a, b in pairs))
    assert hit.delta == pytest.approx(both.scores["hit@5"] - lexical.scores["hit@5"])
    assert (found.verdict, hit.test) == ("better", "sign-flips of clusters") and 0 < hit.low < hit.delta < hit.high
    assert hit.clusters == 41 and hit.n_eff < 419, "questions about one document are no independent evidence"
    back = compare(both.run_id, lexical.run_id, store=handbook)
    assert back.verdict == "worse" and back.measures["hit@5"].delta == -hit.delta
    assert compare(both, run("handbook", load_gold(GOLD), store=handbook), store=handbook).verdict == "nothing_changed"
    assert len(found.to_frame()) == len(found.measures) and "<table" in found._repr_html_()


def test_not_worse_by_a_margin(handbook: Store, both: Run, lexical: Run, lab: Lab) -> None:
    """Both arms are better than one: not worse by any margin; one is worse than both by more than a point; two runs that are the same are alike within what 419 questions can say."""
    told = lab("compare", lexical.run_id, both.run_id, "--margin", "0.01", "--json", store=handbook).json["margin"]
    assert told["non_inferior"] and not told["equivalent"] and told["level"] == 0.9
    assert not lab("compare", both.run_id, lexical.run_id, "--margin", "0.01", "--json", store=handbook).json["margin"]["non_inferior"]
    same = run("handbook", load_gold(GOLD), store=handbook)
    for margin, alike in (("0.05", True), ("0.005", False)):
        told = lab("compare", both.run_id, same.run_id, "--margin", margin, "--json", store=handbook).json["margin"]
        assert (told["non_inferior"], told["equivalent"]) == (alike, alike)
    assert "not worse by 0.05: yes" in lab("compare", both.run_id, same.run_id, "--margin", "0.05", store=handbook).out
    assert lab("compare", both.run_id, same.run_id, "--margin", "5", store=handbook).code == 2


def test_two_flags_that_differ_claim_no_single_effect(handbook: Store, both: Run) -> None:
    other = run("handbook", load_gold(GOLD), store=handbook, rrf_k=60, dense_weight=0.5)
    found = compare(both.run_id, other.run_id, store=handbook)
    assert set(found.flags_that_differ) == {"rrf_k", "dense_weight"}
    assert "2 flags differ" in found.words and any("no effect of a single flag" in w for w in found.warnings)


def test_what_cannot_be_paired_is_not_comparable(handbook: Store, both: Run, lab: Lab) -> None:
    half = run("handbook", load_gold(GOLD), store=handbook, split="dev", dense="none")
    found = compare(both.run_id, half.run_id, store=handbook)
    assert found.verdict == "not_comparable" and "other splits: all and dev" in found.words
    answer = lab("compare", both.run_id, half.run_id, "--json", store=handbook)
    assert (answer.code, answer.json["verdict"], answer.json["measures"]) == (3, "not_comparable", {})
    told = lab("diff", both.run_id, half.run_id, "--json", store=handbook)
    assert told.code == 3 and told.json["diagnostic"]["stage"] == "diff" and "other splits" in told.json["diagnostic"]["message"]
    with pytest.raises(CannotJudge, match="other splits"):
        diff(handbook, both.run_id, half.run_id)
    with pytest.raises(UsageError, match="with itself"):
        compare(both.run_id, both.run_id, store=handbook)
    for words, said in (
        (("compare", both.run_id, "nowhere"), "unknown run"), (("compare", both.run_id, half.run_id, "--alpha", "2"), "no level of significance"),
        (("diff", both.run_id, "nowhere"), "unknown run"), (("runs", "lost", "nowhere"), "unknown run"), (("compare", both.run_id, half.run_id, "--primary", "hti@5"), "hit@5"),
    ):  # fmt: skip
        answer = lab(*words, store=handbook)
        assert answer.code == 2 and said in answer.err, (words, answer.err)


def test_json_of_compare(handbook: Store, both: Run, lexical: Run, lab: Lab) -> None:
    answer = lab("compare", both.run_id, lexical.run_id, "--json", store=handbook)
    assert answer.code == 0 and {"a", "b", "questions", "flags_that_differ", "measures", "verdict"} <= set(answer.json)
    assert {"a", "b", "delta", "low", "high", "p", "test", "wins", "losses", "ties", "level"} <= set(answer.json["measures"]["hit@5"])
    assert answer.json["flags_that_differ"] == [{"flag": "dense", "a": "hnsw", "b": "none"}]
    assert "worse" in lab("compare", both.run_id, lexical.run_id, store=handbook).out


def test_every_missed_question_has_a_stage(handbook: Store, both: Run) -> None:
    missed = {q for q, values in both.by_question.items() if not values["hit@5"]}
    assert set(both.lost) == missed
    found = lost_questions(handbook, both.run_id, exact=True)
    assert {q.question for q in found.questions} == missed and sum(found.by_stage.values()) == len(missed)
    assert both.health["lost"] == found.by_stage
    far = [q for q in found.questions if q.stage == "no_arm"]
    assert far and all(q.exact["dense"] is not None and q.exact["dense"] > 100 for q in far), "an arm brings 100 passages"
    assert dict(handbook.rows("select stage, questions from lab.stage_loss where run_id = %(r)s", {"r": both.run_id})) == found.by_stage


def test_flips_name_the_stage(handbook: Store, both: Run, lexical: Run) -> None:
    found = diff(handbook, both.run_id, lexical.run_id)
    compared = compare(both.run_id, lexical.run_id, store=handbook).measures["hit@5"]
    assert (sum(found.by_stage("won").values()), sum(found.by_stage("lost").values())) == (compared.wins, compared.losses)
    for flip in found.flips:
        assert flip.stage == (lexical if flip.direction == "lost" else both).lost[flip.question]
    rows = handbook.rows(
        "select question_id, direction, coalesce(lost_in_b, lost_in_a) from lab.flips where a = %(a)s and b = %(b)s and measure = 'hit@5' order by 1",
        {"a": both.run_id, "b": lexical.run_id},
    )
    assert rows == sorted((f.question, f.direction, f.stage) for f in found.flips)


def test_views_give_the_effects_of_flags(handbook: Store) -> None:
    done = ablate("handbook", load_gold(GOLD), {"defines": ["off", "question"], "authority_weight": ["0", "0.08"]}, store=handbook, dense="none")
    for effect in done.main():
        row = handbook.rows(
            "select delta, pairs from lab.flag_effects where experiment_id = %(e)s and factor = %(f)s and measure = 'hit@5'",
            {"e": done.experiment_id, "f": effect.factors[0]},
        )
        assert row[0][0] == pytest.approx(effect.paired.delta) and row[0][1] == 2
    rows = handbook.rows("select mean from lab.run_scores where run_id = %(r)s and measure = 'hit@5'", {"r": done.runs[0].run_id})
    assert rows[0][0] == pytest.approx(done.runs[0].scores["hit@5"])


def test_a_decision_and_its_json(handbook: Store, lab: Lab, tmp_path: Path) -> None:
    answer = lab("decide", "handbook", "--gold", str(GOLD), "--factor", "dense=none,hnsw", "--with", "dedup", "--json", store=handbook)
    assert answer.code == 0, answer.err
    told = answer.json
    assert {"factor", "verdict", "kinds", "needed_questions", "warnings"} <= set(told) and told["verdict"] in {"keep", "keep_for"}
    assert told["kinds"]["citation"]["verdict"] == "better" and told["overall"]["delta"] > 0 and told["overall"]["level"] == 0.95
    assert [e["factors"] for e in told["interactions"]] == [["dense", "dedup"]]
    assert told["latency"]["ratio_p50"] > 1 and told["displaced_results"] > 1
    assert Path(told["plot"]).stat().st_size > 5_000
    again = load(handbook, told["experiment_id"])
    assert len(again.runs) == 4 and {e.factors for e in again.effects} == {("dense",), ("dedup",), ("dense", "dedup")}


def test_an_inert_flag_is_no_verdict_and_links_are_counted(handbook: Store) -> None:
    gold = load_gold(GOLD)
    found = decide("handbook", gold, "defines", store=handbook, companions=[], dense="none")
    assert found.links[0] >= found.links[1] > 0 and found.verdict in {"keep", "keep_for", "cannot_tell"}
    if found.verdict == "cannot_tell":
        assert found.needed is None or found.needed > 419
    still = decide("handbook", gold, "mmr_lambda=1,0.9999", store=handbook, companions=[], dense="hnsw", mmr_pool=1)
    assert (still.verdict, still.overall.inert) == ("cannot_tell", True) and "changed no ranking" in still.words


def test_questions_made_from_the_links_are_no_part_of_the_verdict(handbook: Store, tmp_path: Path) -> None:
    """Every question that `cites` wins is marked as made from citations: what is left shows nothing, and the gain is told apart."""
    gold = load_gold(GOLD)
    plain = decide("handbook", gold, "cites", store=handbook, companions=[])
    off, on = (load(handbook, plain.experiment_id).runs[at] for at in (0, 1))
    won = {q for q in on.by_question if on.by_question[q]["hit@5"] > off.by_question[q]["hit@5"]}
    marked = [replace(q, metadata={**q.metadata, "derived_from": "cites"}) if q.question_id in won else q for q in gold.questions]
    save_gold(tmp_path / "marked", marked, gold.judgments, "")
    found = decide("handbook", load_gold(tmp_path / "marked"), "cites", store=handbook, companions=[])
    assert plain.overall.paired.wins == len(won) > 5 and plain.circular is None
    assert found.circular is not None and (found.circular.wins, found.circular.losses, found.circular.questions) == (len(won), 0, len(won))
    assert found.overall.paired.questions == plain.overall.paired.questions - len(won) and found.overall.paired.wins == 0
    assert found.verdict != "keep" and "Left out are" in found.words and found.to_json()["circular"]["wins"] == len(won)
    only = [q for q in marked if q.question_id in won]
    save_gold(tmp_path / "only", only, [j for j in gold.judgments if j.question_id in won], "")
    assert decide("handbook", load_gold(tmp_path / "only"), "cites", store=handbook, companions=[]).verdict == "cannot_tell"


def test_bad_factors_of_a_decision(handbook: Store, lab: Lab) -> None:
    assert change_of("defines") == ("defines", "off", "question") and change_of("rrf-k=60,10") == ("rrf_k", "60", "10")
    for factor, said in (
        ("definez", "did you mean 'defines'"),
        ("rrf_k", "no value that turns it off"),
        ("defines=off", "two different values"),
        ("defines=off,no", "two different values"),
    ):
        answer = lab("decide", "handbook", "--gold", str(GOLD), "--factor", factor, store=handbook)
        assert answer.code == 2 and said in answer.err, answer.err
    answer = lab("decide", "handbook", "--gold", str(GOLD), "--factor", "defines", "--defines", "off", store=handbook)
    assert answer.code == 2 and "both the factor and held fixed" in answer.err


def test_what_a_gold_set_can_show(handbook: Store, both: Run, lab: Lab, tmp_path: Path) -> None:
    answer = lab("power", str(GOLD), "--gate", "--json", store=handbook).json
    assert {"questions", "clusters", "n_eff", "mde", "gate"} <= set(answer) and set(answer["gate"]) >= {
        "margin",
        "needed_questions",
        "cannot_judge_rate",
    }
    assert (answer["questions"], answer["clusters"]) == (419, 41) and 200 < answer["n_eff"] < 419 and 4.4 < answer["mde"]["hit@5"] < 6.4
    assert lab("power", str(GOLD), "--effects", "4", "--json", store=handbook).json["mde"]["hit@5"] > answer["mde"]["hit@5"]
    questions = [Question(f"q{i}", f"What is {i}?") for i in range(200)]
    save_gold(tmp_path / "g", questions, [Judgment(q.question_id, f"{q.question_id}.md", 0, 3, 1, "abc") for q in questions], "")
    alone = plan(None, load_gold(tmp_path / "g"))
    assert (alone.clusters, alone.n_eff) == (200, 200.0) and 100 * alone.smallest["hit@5"] == pytest.approx(6.4, abs=0.05)  # type: ignore[operator]
    assert lab("power", str(GOLD), "--changed", "0", store=handbook).code == 2
    assert "independent ones" in lab("power", str(GOLD), "--gate", store=handbook).out
