"""Runs again, runs elsewhere, grids of other shapes: replay, bisect, noise, tune, export, derived collections."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import ir_measures
import pytest

from lab.config import home
from lab.corpus.ingest import ingest
from lab.errors import CannotJudge, UsageError
from lab.evaluation import journal, members
from lab.evaluation.compare import compare
from lab.evaluation.exchange import export_run, export_trec, falling, import_run
from lab.evaluation.experiment import ablate, load
from lab.evaluation.noise import noise
from lab.evaluation.repeat import bisect
from lab.evaluation.run import run
from lab.evaluation.tuning import _places, fold_of, tune
from lab.gold.files import load_gold, only, save_gold
from lab.grids import combinations
from lab.records import GoldSet, Judgment, Question, SearchResult
from lab.resources import folder
from lab.retrieval.search import Shared
from lab.settings import Settings
from lab.store import collections, documents
from lab.store.connect import Store
from tests.conftest import Lab, write

GOLD = folder("gold") / "handbook"


@pytest.fixture(scope="module")
def half() -> GoldSet:
    return only(load_gold(GOLD), "dev")


# ── grids ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_designs_of_a_grid() -> None:
    factors = {"a": ["0", "1"], "b": ["0", "1"], "c": ["0", "1"]}
    told = lambda design: ["".join(m.values()) for m in combinations(factors, design)]  # noqa: E731
    assert told("full") == ["000", "001", "010", "011", "100", "101", "110", "111"]
    assert told("oat") == ["000", "001", "010", "100"]
    assert told("half") == ["000", "011", "101", "110"]
    for bad, of in (("half", {"a": ["0", "1"], "b": ["0", "1"]}), ("half", {**factors, "d": ["0", "1", "2"]}), ("other", factors)):
        with pytest.raises(UsageError):
            combinations(of, bad)


def test_one_factor_at_a_time_and_half_a_grid(handbook: Store, half: GoldSet) -> None:
    factors = {"defines": ["off", "question"], "dedup": ["exact", "off"], "rrf_k": ["10", "60"]}
    oat = ablate("handbook", half, factors, store=handbook, dense="none", design="oat")
    full = ablate("handbook", half, factors, store=handbook, dense="none")
    part = ablate("handbook", half, factors, store=handbook, dense="none", design="half")
    assert (len(oat.runs), len(full.runs), len(part.runs)) == (4, 8, 4)
    assert not oat.interactions() and len(full.interactions()) == 3
    base = next(r for r in full.runs if (r.passed["defines"], r.passed["dedup"], r.passed["rrf_k"]) == ("off", "exact", "10"))
    other = next(r for r in full.runs if (r.passed["defines"], r.passed["dedup"], r.passed["rrf_k"]) == ("question", "exact", "10"))
    alone = next(e for e in oat.main() if e.factors == ("defines",))
    assert alone.paired.delta == pytest.approx(other.scores["hit@5"] - base.scores["hit@5"])
    assert len(part.main()) == 3 and any("mixed up" in w for w in part.warnings) and load(handbook, part.experiment_id).effects == part.effects
    assert not part.inert, "half a grid has no pair that shows it"


def test_the_result_is_the_same_whatever_the_jobs(handbook: Store, half: GoldSet) -> None:
    one, three = (ablate("handbook", half, {"defines": ["off", "question"]}, store=handbook, jobs=jobs) for jobs in (1, 3))
    assert [r.by_question for r in one.runs] == [r.by_question for r in three.runs]
    assert [r.rankings for r in one.runs] == [r.rankings for r in three.runs] and one.effects == three.effects
    assert [r.health for r in one.runs] == [r.health for r in three.runs]


def test_an_interrupted_grid_goes_on(handbook: Store, half: GoldSet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Stopped at the search of its 101st list: the 50 questions that both members had ended are not searched again, and the result is that of an undisturbed one."""
    factors = {"defines": ["off", "question"]}
    whole = ablate("handbook", half, factors, store=handbook)
    searched: list[str] = []
    real = members.rank

    def counted(shared: Shared, settings: Settings, *, texts: bool = True) -> SearchResult:
        if len(searched) == 100:
            raise KeyboardInterrupt
        searched.append(shared.question)
        return real(shared, settings, texts=texts)

    monkeypatch.setattr(members, "rank", counted)
    monkeypatch.setattr(journal, "EVERY", 0.05)
    with pytest.raises(KeyboardInterrupt):
        ablate("handbook", half, factors, store=handbook)
    assert "50 questions are kept" in capsys.readouterr().err
    kept = list((home() / "cache" / "searches").glob("*.journal"))
    (tail,) = kept  # a block that a power cut left half written is not read, and nothing before it is lost
    tail.write_bytes(tail.read_bytes() + (1000).to_bytes(8, "big") + bytes(32) + b"half")
    asked = len(searched)
    path = tail
    with journal.Journal("of a test") as torn:  # what is written behind the torn block can be read again
        torn.path = path
        torn._read(path)
        assert len(torn.known) == 50 and torn.path is not None
        torn.add(9_999, [(next(iter(torn.known.values()))[0][0], 0.0)])
        torn._write()
        torn.known = {}
        torn._read(path)
        assert len(torn.known) == 51
        path.chmod(0o666)
        with pytest.raises(PermissionError):
            torn._read(path)
        path.chmod(0o600)
        torn.path = None
    searched.clear()
    searched.extend(["-"] * 101)  # past the place that stops
    again = ablate("handbook", half, factors, store=handbook)
    assert len(searched) - 101 == 2 * again.runs[0].questions - asked
    assert [r.rankings for r in again.runs] == [r.rankings for r in whole.runs] and again.effects == whole.effects
    assert [r.health for r in again.runs] == [r.health for r in whole.runs] and not tail.exists()
    searched.clear()
    with pytest.raises(KeyboardInterrupt):
        ablate("handbook", half, factors, store=handbook, rrf_k=60)
    searched.clear()
    searched.extend(["-"] * 101)
    ablate("handbook", half, factors, store=handbook, rrf_k=61)  # other settings: nothing is taken over
    assert len(searched) - 101 == 2 * again.runs[0].questions
    for path in (home() / "cache" / "searches").glob("*.journal"):
        path.unlink()


def test_an_ingest_flag_is_a_factor(store: Store, tmp_path: Path, lab: Lab) -> None:
    """Three chunkers on the same documents: paired by question through spans; made once, and made anew where the documents change."""
    text = "# Pumps\n\n" + "\n\n".join(f"Pump {n} is oiled every {n} days by the fitter on duty, who writes it down." for n in range(1, 30))
    files = write(tmp_path / "d", {"a.md": text, "b.md": "# Doors\n\nDoors are shut at night. The porter has the keys."})
    ingest(files, "c", store=store, embedder="keyword")
    stored = {source: body for source, _, body in documents.texts(store, collections.get(store, "c"))}
    asked = {
        "q1": ("When is pump 7 oiled?", "Pump 7 is oiled every 7 days"),
        "q2": ("Who has the keys?", "The porter has the keys."),
        "q3": ("pump 21?", "Pump 21 is oiled every 21 days"),
    }
    judged = []
    for name, (_, quote) in asked.items():
        source = next(s for s, body in stored.items() if quote in body)
        at = stored[source].index(quote)
        judged.append(Judgment(name, source, at, at + len(quote), 1, quote))
    save_gold(tmp_path / "g", [Question(name, words) for name, (words, _) in asked.items()], judged, "")
    done = ablate("c", str(tmp_path / "g"), {"chunker": ["heading", "paragraph", "whole"], "codes": ["on", "off"]}, store=store)
    assert [(r.passed["chunker"], r.passed["codes"]) for r in done.runs] == [(c, k) for c in ("heading", "paragraph", "whole") for k in ("on", "off")]
    names = list(dict.fromkeys(r.collection for r in done.runs))
    assert names[0] == "c" and all(n.startswith("c__") for n in names[1:]) and len(names) == 3
    assert {e.name for e in done.main()} == {"chunker heading → paragraph", "chunker heading → whole", "codes on → off"}
    assert all(e.paired.questions == 3 for e in done.main())
    whole = collections.get(store, names[2])
    assert (whole.chunks, whole.ingest.chunker) == (2, "whole") and whole.corpus_digest == collections.get(store, "c").corpus_digest
    assert {s: b for s, _, b in documents.texts(store, whole)} == stored
    made = whole.indexed_at
    again = ablate("c", str(tmp_path / "g"), {"chunker": ["heading", "whole"]}, store=store)
    assert again.runs[1].collection == names[2] and collections.get(store, names[2]).indexed_at == made
    assert load(store, done.experiment_id).effects == done.effects
    (tmp_path / "d" / "b.md").write_text("# Doors\n\nDoors are shut at night. The porter has the keys. Ring the bell.")
    ingest(files, "c", store=store)
    assert ablate("c", str(tmp_path / "g"), {"chunker": ["heading", "whole"]}, store=store).runs[1].collection not in names
    with pytest.raises(UsageError, match="chunker"):
        ablate("c", str(tmp_path / "g"), {"chunker": ["heading", "hedaing"]}, store=store)
    ingest(files, "c__1", store=store)  # no digest: nobody derived it
    derived = [c.name for c in collections.all_collections(store) if c.name not in {"c", "c__1"}]
    refused = lab("drop", "c", "--derived", store=store)
    assert refused.code == 2 and all(name in refused.err for name in derived) and len(derived) == 3
    assert lab("drop", "c", "--derived", "--yes", store=store).out.count("dropped") == 3
    assert [c.name for c in collections.all_collections(store)] == ["c", "c__1"]
    assert "nothing is derived" in lab("drop", "c", "--derived", store=store).out


def test_a_dry_run_records_nothing(handbook: Store, lab: Lab) -> None:
    before = handbook.rows("select count(*) from lab.runs")
    words = ("--factor", "defines=off,question", "--factor", "reranker=none,maxsim", "--dry-run", "--json")
    told = lab("ablate", "handbook", "--gold", str(GOLD), *words, store=handbook).json
    assert (told["members"], told["questions"], told["searches"]) == (4, 419, 4 * 419) and told["seconds"] > 0
    assert handbook.rows("select count(*) from lab.runs") == before
    assert lab("ablate", "handbook", "--gold", str(GOLD), "--factor", "defines=off,question", "--jobs", "0", store=handbook).code == 2
    assert lab("ablate", "handbook", "--gold", str(GOLD), "--factor", "defines=off,question", "--design", "third", store=handbook).code == 2


# ── again ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_replay_is_the_same_or_says_what_is_not(store: Store, tmp_path: Path, lab: Lab) -> None:
    files = write(tmp_path / "d", {"a.md": "# A\n\nThe pump is oiled daily.", "b.md": "# B\n\nThe pump is blue."})
    ingest(files, "c", store=store, embedder="none")
    save_gold(tmp_path / "c", [Question("q1", "When is the pump oiled?")], [Judgment("q1", "a.md", 5, 29, 1, "The pump is oiled daily.")], "")
    first = run("c", str(tmp_path / "c"), store=store, dense="none")  # found again by its name in the working folder
    told = lab("replay", first.run_id, "--json", store=store).json
    assert (told["identical"], told["differs"], told["questions"]) == (True, [], 1)
    write(tmp_path / "d", {"c.md": "# C\n\nWhen the pump is oiled, the pump is oiled."})
    ingest(files, "c", store=store)
    told = lab("replay", first.run_id, "--json", store=store).json
    assert not told["identical"] and "corpus_digest" in {d["input"] for d in told["differs"]} and told["lists_that_differ"] == ["q1"]
    assert "corpus_digest" in lab("replay", first.run_id, store=store).out


def test_bisect_names_the_flag_that_moved_it(handbook: Store, half: GoldSet) -> None:
    a = run("handbook", half, store=handbook)
    b = run("handbook", half, store=handbook, dense="none", dedup="off", rrf_k=11)
    found = bisect(handbook, a.run_id, b.run_id)
    assert [s.name for s in found.steps] == ["dense", "rrf_k", "dedup"] and found.moved is not None and found.moved.name == "dense"
    assert sum(s.paired.delta for s in found.steps) == pytest.approx(b.scores["hit@5"] - a.scores["hit@5"])
    with pytest.raises(UsageError, match="differ in no flag"):
        bisect(handbook, a.run_id, run("handbook", half, store=handbook).run_id)


def test_runs_that_should_be_the_same_are(handbook: Store, half: GoldSet) -> None:
    found = noise("handbook", half, store=handbook, ways=["again", "shuffled", "threads"])
    assert [(r.way, r.lists, list(r.flips)) for r in found.repeats] == [
        ("again", 0, []),
        ("shuffled", 0, []),
        ("threads", 0, []),
    ] and found.floor == 0.0
    with pytest.raises(UsageError, match="no way to repeat"):
        noise("handbook", half, store=handbook, ways=["twice"])


# ── tuning ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_folds_hold_whole_clusters() -> None:
    cluster = {f"q{i}": f"document {i // 7}" for i in range(70)}
    place = fold_of(cluster, 5)
    assert all(len({place[q] for q in cluster if cluster[q] == name}) == 1 for name in set(cluster.values()))
    assert [list(place.values()).count(i) for i in range(5)] == [14] * 5


def test_every_fold_has_answerable_questions() -> None:
    """10 answerable and 40 unanswerable questions, each its own cluster, in 5 folds: two answerable ones in each."""
    for seed in range(20):
        asked = [Question(f"a{seed}-{i}", "?") for i in range(10)] + [Question(f"n{seed}-{i}", "?", answerable=False) for i in range(40)]
        gold = GoldSet("g", tuple(asked), tuple(Judgment(q.question_id, q.question_id, 0, 1, 1, "x") for q in asked[:10]), "")
        place = _places(gold, 5)
        assert [sum(place[q.question_id] == fold for q in asked[:10]) for fold in range(5)] == [2] * 5


def test_a_choice_is_judged_where_it_was_not_made(handbook: Store, lab: Lab) -> None:
    found = tune("handbook", load_gold(GOLD), {"rrf_k": ["60", "10"], "dense": ["hnsw", "none"]}, store=handbook, false_answers=0.5)
    assert found.chosen["dense"] == "hnsw" and found.questions == 209 and found.split == "dev"
    assert found.apparent >= found.held_out and found.optimism == pytest.approx(found.apparent - found.held_out)
    assert sum(size for _, _, size in found.folds) == 209
    assert found.held_out == pytest.approx(sum(score * size for _, score, size in found.folds) / 209)
    assert found.floor is not None and 0 < found.floor.value < 1 and 0 < found.floor.coverage <= 1 and found.floor.unanswerable == 103
    for words, said in (
        (("--factor", "rrf_k=60,10", "--split", "test"), "learn from another one"), (("--factor", "rrf_k=60,10", "--folds", "1"), "at least 2"), ((), "at least one --factor"),
        (("--false-answers", "0.001"), "pass any floor"),
    ):  # fmt: skip
        answer = lab("tune", "handbook", "--gold", str(GOLD), *words, store=handbook)
        assert answer.code in {2, 3} and said in answer.err, answer.err
    with pytest.raises(CannotJudge, match="fewer --folds"):
        tune("handbook", load_gold(GOLD), {"rrf_k": ["60", "10"]}, store=handbook, folds=60)


# ── elsewhere ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_exported_run_is_taken_back_whole(handbook: Store, store: Store, half: GoldSet, tmp_path: Path, lab: Lab) -> None:
    done = run("handbook", half, store=handbook)
    other = run("handbook", half, store=handbook, dense="none")
    for one in (done, other):
        export_run(handbook, one.run_id, tmp_path / f"{one.run_id}.json")
        assert import_run(store, tmp_path / f"{one.run_id}.json") == (one.run_id, True)
        assert import_run(store, tmp_path / f"{one.run_id}.json") == (one.run_id, False)
    assert compare(done.run_id, other.run_id, store=store).to_json() == compare(done.run_id, other.run_id, store=handbook).to_json()
    export_run(store, done.run_id, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == (tmp_path / f"{done.run_id}.json").read_text(), "nothing is lost on the way"
    for text, said in (
        ("x", "no JSON"),
        ("{}", "no exported run"),
        (json.dumps({"kind": "retrieval-lab run", "run": {}, "questions": [], "scores": [], "results": [], "lost": []}), "another version"),
    ):
        (tmp_path / "bad.json").write_text(text)
        answer = lab("runs", "import", str(tmp_path / "bad.json"), store=store)
        assert answer.code == 2 and said in answer.err, answer.err
    changed = json.loads((tmp_path / "again.json").read_text())
    changed["run"]["settings_digest"] = "0"
    (tmp_path / "bad.json").write_text(json.dumps(changed))
    assert "another run has the id" in lab("runs", "import", str(tmp_path / "bad.json"), store=store).err
    assert lab("runs", "export", "nowhere", "--to", str(tmp_path / "x"), store=store).code == 2


def test_trec_files_give_the_same_measures(handbook: Store, tmp_path: Path) -> None:
    """trec_eval on the exported files, where no answer is covered by two chunks: RR and hit agree question by question."""
    done = run("handbook", "handbook", store=handbook)
    export_trec(handbook, done.run_id, tmp_path / "t")
    qrels = list(ir_measures.read_trec_qrels(str(tmp_path / "t" / "qrels.txt")))
    ranked = list(ir_measures.read_trec_run(str(tmp_path / "t" / "run.txt")))
    theirs = {m.query_id: m.value for m in ir_measures.iter_calc([ir_measures.RR @ 10], qrels, ranked)}
    ours = {q: values["RR@10"] for q, values in done.by_question.items()}
    assert {q: v for q, v in theirs.items() if abs(v - ours[q]) > 1e-9 and not _by_twin(handbook, done.run_id, q)} == {}
    lists: dict[str, list[float]] = {}
    for line in (tmp_path / "t" / "run.txt").read_text().splitlines():
        question, _, _, _, score, _ = line.split()
        lists.setdefault(question, []).append(float(score))
    assert all(a > b for scores in lists.values() for a, b in itertools.pairwise(scores))
    assert falling([1.0, 1.0, 1.0])[0] == 1.0


def _by_twin(store: Store, run_id: str, question: str) -> bool:
    return bool(store.rows("select from lab.results where run_id = %(r)s and question_id = %(q)s and by_twin", {"r": run_id, "q": question}))
