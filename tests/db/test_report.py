"""Reports: every number again from the database by plain SQL and pandas, the page in a browser, runs side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.errors import CannotJudge, UsageError
from lab.evaluation.exchange import export_run, import_run
from lab.evaluation.experiment import Experiment, ablate
from lab.evaluation.latency import costs, time_runs
from lab.evaluation.run import run
from lab.gold.files import load_gold, only
from lab.report import run_plots, tables
from lab.report.page import write_report
from lab.resources import folder
from lab.store.connect import Store
from tests.browser import Browser, browser  # noqa: F401
from tests.conftest import Lab

GOLD = folder("gold") / "handbook"
FACTORS = {"dense": ["none", "hnsw"], "defines": ["off", "question"]}


@pytest.fixture(scope="module")
def grid(handbook: Store) -> Experiment:
    return ablate("handbook", load_gold(GOLD), FACTORS, store=handbook, command="lab ablate … password=s3cr3t-canary")


@pytest.fixture(scope="module")
def page(handbook: Store, grid: Experiment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(grid.experiment_id, store=handbook, to=tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def data(page: Path) -> Any:
    return json.loads((page / "data.json").read_text())


def table(store: Store, experiment: str, measure: str) -> dict[tuple[str, str], dict[str, float]]:
    """(dense, defines) → question → value, by SQL."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    rows = store.rows(
        "select r.passed ->> 'dense', r.passed ->> 'defines', s.question_id, s.value from lab.scores s join lab.runs r using (run_id) "
        "where r.experiment_id = %(e)s and s.measure = %(m)s",
        {"e": experiment, "m": measure},
    )
    for dense, defines, question, value in rows:
        found.setdefault((dense, defines), {})[question] = float(value)
    return found


def test_every_number_of_a_report_is_that_of_the_database(handbook: Store, grid: Experiment, page: Path, data: Any) -> None:
    names = [
        "bands.png",
        "data.json",
        "effects.png",
        "hit-at-k.png",
        "interactions.png",
        "kinds.png",
        "latency.png",
        "losses.png",
        "ranks.png",
        "report.html",
        "report.md",
        "tables.tex",
    ]
    assert sorted(p.name for p in page.iterdir()) == names
    for entry in data["runs"]:
        stored = dict(handbook.rows("select measure, mean from lab.run_scores where run_id = %(r)s", {"r": entry["run_id"]}))
        assert entry["scores"] == pytest.approx(stored)
        lost = dict(
            handbook.rows("select lost, count(*) from lab.ledger where run_id = %(r)s and lost is not null group by 1", {"r": entry["run_id"]})
        )
        assert data["losses"][entry["run_id"]] == lost
        timed = handbook.rows("select p50_ms, p95_ms, questions from lab.latency where run_id = %(r)s", {"r": entry["run_id"]})
        assert [tuple(data["latency"][entry["run_id"]].values())] == timed
    kinds = dict(handbook.rows("select distinct question_id, kind from lab.question_scores where experiment_id = %(e)s", {"e": grid.experiment_id}))
    bands = dict(handbook.rows("select distinct question_id, band from lab.question_scores where experiment_id = %(e)s", {"e": grid.experiment_id}))
    seen = 0
    for effect in data["effects"]:
        scores = table(handbook, grid.experiment_id, effect["measure"])
        asked = [q for q in scores["none", "off"] if effect["kind"] in {"", kinds[q]} and effect["band"] in {"", bands[q]}]
        at = {cell: np.array([values[q] for q in asked]) for cell, values in scores.items()}
        if effect["factors"] == ["dense"]:
            before, after = (at["none", "off"] + at["none", "question"]) / 2, (at["hnsw", "off"] + at["hnsw", "question"]) / 2
        elif effect["factors"] == ["defines"]:
            before, after = (at["none", "off"] + at["hnsw", "off"]) / 2, (at["none", "question"] + at["hnsw", "question"]) / 2
        else:  # what dense does without defines, and with it
            before, after = at["hnsw", "off"] - at["none", "off"], at["hnsw", "question"] - at["none", "question"]
        d = after - before
        assert (effect["before"], effect["after"], effect["delta"]) == pytest.approx((before.mean(), after.mean(), d.mean())), effect
        won, lost = int((d > 1e-9).sum()), int((d < -1e-9).sum())
        if effect["measure"].startswith("short"):
            won, lost = lost, won
        assert (effect["wins"], effect["losses"], effect["ties"], effect["questions"]) == (won, lost, len(d) - won - lost, len(d))
        assert effect["low"] <= effect["delta"] <= effect["high"] and 0 < effect["p"] <= 1
        seen += 1
    assert seen > 100
    for pair in data["pairs"]:
        flips = handbook.rows(
            "select question_id, direction, lost_in_a, lost_in_b from lab.flips where a = %(a)s and b = %(b)s and measure = 'hit@5'",
            {"a": pair["a"], "b": pair["b"]},
        )
        counted = {way: sum(direction == way for _, direction, _, _ in flips) for way in ("won", "lost")}
        assert {way: sum(pair[way].values()) for way in ("won", "lost")} == counted
        assert len(pair["flipped"]) + pair["left_out"] == len(flips)
        known = {q: direction for q, direction, _, _ in flips}
        assert all(known[f["question"]] == f["direction"] for f in pair["flipped"])
    first = data["pairs"][0]["flipped"][0]
    answer = first["answers"][0]
    rows = handbook.rows(
        "select stage, rank from lab.ledger_rows where run_id = %(r)s and question_id = %(q)s and chunk_id = %(c)s order by position",
        {"r": data["pairs"][0]["b"], "q": first["question"], "c": answer["chunk_id"]},
    )
    assert answer["after"] == dict(rows)


def test_the_page_says_what_the_data_says(grid: Experiment, page: Path, data: Any) -> None:
    html, text, tex = ((page / name).read_text() for name in ("report.html", "report.md", "tables.tex"))
    for entry in data["runs"]:
        for name in ("hit@5", "nDCG@10"):
            assert f"{entry['scores'][name]:.3f}" in html and f"{entry['scores'][name]:.3f}" in text and f"{entry['scores'][name]:.3f}" in tex
        assert f"{data['latency'][entry['run_id']]['p50_ms']:.1f}" in html
    assert "http://" not in html and "https://" not in html and "canary" not in html + text + tex
    assert all(figure["title"] and len(figure["alt"]) > 40 for figure in data["figures"].values()) and len(data["figures"]) == 8
    letters = data["wins"]
    dense = [r["run_id"] for r in data["runs"] if r["passed"]["dense"] == "hnsw"]
    assert all(set("ab") <= set(letters[run]) for run in dense), "both runs with vectors beat both without"
    assert not any(letters[r["run_id"]] for r in data["runs"] if r["passed"]["dense"] == "none")
    assert "\\textsuperscript{ab}" in tex and r"authority\_weight" not in tex and r"\toprule" in tex


def test_the_page_in_a_browser(browser: Browser, page: Path, tmp_path: Path) -> None:  # noqa: F811
    """No console message, no request beyond the page, nothing wider than the screen, and a flipped question opens."""
    for width in (1280, 390):
        browser.open((page / "report.html").as_uri(), width=width)
        assert browser.js("document.documentElement.scrollWidth") <= width
        assert browser.js("[...document.images].every(i => i.complete && i.naturalWidth > 0 && i.alt.length > 40)")
        fits = (
            "i => i.getBoundingClientRect().width <= Math.max(innerWidth, 34 * 16)"  # on a phone a figure scrolls by itself, so that it can be read
        )
        assert browser.js(f"[...document.images].every({fits})")
        browser.js("document.querySelector('body > details summary').click()")
        assert browser.js(
            "document.querySelector('body > details').open && document.querySelector('body > details table').getBoundingClientRect().height > 20"
        )
    assert browser.said == [] and browser.fetched == []
    assert browser.picture(tmp_path / "page.png").stat().st_size > 100_000


def test_runs_side_by_side_and_alone(handbook: Store, grid: Experiment, lab: Lab, tmp_path: Path) -> None:
    a, b = run("handbook", load_gold(GOLD), store=handbook), run("handbook", load_gold(GOLD), store=handbook, dense="none", rrf_k=60)
    answer = lab("report", a.run_id, b.run_id, "--to", str(tmp_path / "two"), "--json", "--no-timing", store=handbook)
    assert answer.code == 0, answer.err
    told = json.loads((tmp_path / "two" / "data.json").read_text())
    assert told["factors"] == {"run": [a.run_id, "dense none, rrf_k 60"]} and told["latency"] == {}
    effect = next(e for e in told["effects"] if e["measure"] == "hit@5" and not e["kind"] and not e["band"])
    assert effect["delta"] == pytest.approx(b.scores["hit@5"] - a.scores["hit@5"]) and effect["verdict"] == "worse"
    assert told["pairs"][0]["a"] == a.run_id and not (tmp_path / "two" / "latency.png").exists()
    alone = write_report(a, store=handbook, to=tmp_path / "one", timing=False)
    text = (alone / "report.md").read_text()
    assert f"hit@5 {a.scores['hit@5']:.3f}" in text and "By kind and by how much" in text and "effects.png" not in text
    assert lab("report", a.run_id, a.run_id, store=handbook).code == 2
    half = run("handbook", load_gold(GOLD), store=handbook, split="dev")
    with pytest.raises(CannotJudge, match="other splits"):
        write_report([a.run_id, half.run_id], store=handbook, to=tmp_path / "x")
    with pytest.raises(UsageError, match="unknown run"):
        write_report(["r-nobody", a.run_id], store=handbook, to=tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_how_first_answers_moved() -> None:
    """Three questions: from rank 3 to 1, from 1 to not returned, and one that stays at 7 (6–10)."""
    counts = run_plots.moves({"a": 3, "b": 1, "c": 7}, {"a": 1, "b": None, "c": 8})
    assert counts.sum() == 3 and (counts[2, 0], counts[0, 6], counts[5, 5]) == (1, 1, 1)
    assert run_plots.pareto([(2.0, 0.5), (1.0, 0.5), (3.0, 0.4), (4.0, 0.9)]) == [1, 3]


def test_letters_for_a_paper() -> None:
    one = tables.Table("A & B_c: 50 %", ("x", "hit@5"), (("k = 10", "0.5" + tables.raised("ab")), ("k → 60", "−1")))
    tex = tables.latex([one])
    assert r"A \& B\_c: 50 \%" in tex and r"0.5\textsuperscript{ab}" in tex and r"k $\rightarrow$ 60" in tex and "$-$1" in tex


def test_objects_draw_themselves(grid: Experiment) -> None:
    for axes in (
        grid.plot_effects(),
        grid.plot_interactions(),
        grid.plot_kinds(),
        grid.plot_bands(),
        grid.plot_hit_at_k(),
        grid.plot_losses(),
        grid.runs[0].plot_losses(),
    ):
        first = axes.flat[0] if hasattr(axes, "flat") else axes
        assert first.figure.get_axes()
    frame = grid.effects_frame()
    assert set(frame.order) == {1, 2} and {"effect", "measure", "delta", "low", "high", "p"} <= set(frame.columns)
    import matplotlib.pyplot as plt

    plt.close("all")


def test_runs_without_the_usual_measures(handbook: Store, grid: Experiment, lab: Lab, tmp_path: Path) -> None:
    """The measure that all share decides where hit@5 is not one; with none in common nothing can be said; hit@k only at the k that all have."""
    gold = only(load_gold(GOLD), "dev")
    a, b = (run("handbook", gold, store=handbook, measures=["nDCG@10"], dense=dense) for dense in ("none", "hnsw"))
    for names in ([a.run_id], [a.run_id, b.run_id]):
        told = json.loads((write_report(names, store=handbook, to=tmp_path / f"n{len(names)}", timing=False) / "data.json").read_text())
        assert "hit-at-k.png" not in told["figures"]
    assert told["wins"][b.run_id] == "a" and "nDCG@10: better" in (tmp_path / "n2" / "report.md").read_text()
    c, d = run("handbook", gold, store=handbook, measures=["hit@5", "hit@7"]), run("handbook", gold, store=handbook)
    assert run_plots.cutoffs([c, d]) == [5]
    write_report([c.run_id, d.run_id], store=handbook, to=tmp_path / "k", timing=False)
    answer = lab("report", a.run_id, c.run_id, "--no-timing", store=handbook)
    assert answer.code == 3 and "no measure in common" in answer.err
    assert lab("report", grid.experiment_id, a.run_id, store=handbook).code == 2
    with pytest.raises(UsageError, match="name an experiment"):
        write_report([], store=handbook)


def test_what_is_not_known_is_not_said(handbook: Store, store: Store, grid: Experiment, tmp_path: Path) -> None:
    """Equal runs draw no band and call a flag inert; an imported run has no ledger, and the page says so; times of different passes are not put together."""
    gold = only(load_gold(GOLD), "dev")
    same = ablate("handbook", gold, {"ef_search": ["200", "100"]}, store=handbook)
    folder_of = write_report(same, store=handbook, to=tmp_path / "same", timing=False)
    text = (folder_of / "report.md").read_text()
    assert "changed no ranking of any question" in text and "nothing changed in" not in text.split("##")[0]
    assert "is not known" in json.loads((folder_of / "data.json").read_text())["figures"]["hit-at-k.png"]["alt"]
    a, b = run("handbook", gold, store=handbook, dense="none"), run("handbook", gold, store=handbook)
    for one in (a, b):
        export_run(handbook, one.run_id, tmp_path / f"{one.run_id}.json")
        import_run(store, tmp_path / f"{one.run_id}.json")
    page = (write_report([a.run_id, b.run_id], store=store, to=tmp_path / "imported") / "report.html").read_text()
    assert "Imported without ledger" in page and "No arm of either run" not in page and ">returned<" in page
    for one in (a, b):
        assert time_runs(handbook, [one.run_id], most=3)
    assert costs(handbook, [a.run_id, b.run_id]) == {} and len(time_runs(handbook, [a.run_id, b.run_id], most=3)) == 2
    assert len(costs(handbook, [a.run_id, b.run_id])) == 2


def test_other_peoples_words_do_nothing_in_markdown() -> None:
    assert tables.plain("a | <b> [x](y)\n`c`") == r"a \| \<b\> \[x\](y) \`c\`"
    told = tables.Table("t", ("x", "n"), (("a", "1.5"), ("b", "–")))
    assert tables.numeric_columns(told) == [False, True]


def test_a_frame_reads_and_nothing_else(handbook: Store) -> None:
    from lab.api import frame

    assert list(frame("select 1 as one, 'x' as letter", store=handbook).columns) == ["one", "letter"]
    for query in (
        "delete from lab.scores",
        "rollback; begin read write; create table lab.zz (x int); commit; select 1 as y",
        "selct",
        "",
        "select 1; select 2",
    ):
        with pytest.raises(UsageError, match="one statement that reads"):
            frame(query, store=handbook)
    assert handbook.rows("select to_regclass('lab.zz')") == [(None,)]
