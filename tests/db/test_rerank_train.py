"""`lab rerank train`: the trainer's real code path on a model of two thin layers made in the test."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lab.corpus.ingest import ingest
from lab.errors import UsageError
from lab.evaluation import reranking
from lab.evaluation.reranking import train
from lab.evaluation.run import run
from lab.gold.files import load_gold, save_gold
from lab.models import rerankers, training
from lab.models.training import Recipe
from lab.records import Judgment, Question
from lab.store.connect import Store
from tests.conftest import Lab, write

COLOURS = ("red", "blue", "green", "grey", "white", "black", "brown", "pink")
THINGS = ("pump", "valve", "fan", "door", "lamp")


@pytest.fixture
def base(tmp_path: Path) -> str:
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    words = sorted({*COLOURS, *THINGS, "the", "stands", "in", "hall", "where", "is", "a", *map(str, range(40))})
    (tmp_path / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]))
    torch.manual_seed(3)
    config = BertConfig(vocab_size=len(words) + 5, hidden_size=32, num_hidden_layers=3, num_attention_heads=2, intermediate_size=64)
    BertModel(config).save_pretrained(tmp_path / "base")
    BertTokenizerFast(vocab_file=str(tmp_path / "vocab.txt")).save_pretrained(tmp_path / "base")
    return str(tmp_path / "base")


@pytest.fixture
def made(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """40 things in 40 halls; 30 questions to train on, 10 to test."""
    monkeypatch.setenv("LAB_HOME", str(tmp_path / "home"))
    texts = {f"{c}-{t}.txt": f"The {c} {t} stands in hall {n}." for n, (c, t) in enumerate((c, t) for c in COLOURS for t in THINGS)}
    ingest(write(tmp_path / "docs", texts), "halls", store=store, embedder="none", chunker="whole")
    questions = [
        Question(f"q{n:02}", f"Where is the {' '.join(name[:-4].split('-'))}?", split="test" if n % 4 == 0 else "train")
        for n, name in enumerate(texts)
    ]
    judgments = [Judgment(f"q{n:02}", name, 0, len(text), 1, text) for n, (name, text) in enumerate(texts.items())]
    save_gold(tmp_path / "halls", questions, judgments, "# halls\n")
    return tmp_path / "halls"


def recipe(base: str, epochs: int = 2) -> Recipe:
    return Recipe(base=base, layers=2, longest=32, epochs=epochs, rate=1e-3, seed=5)


def plain(**words: str) -> reranking.Settings:
    return reranking.Settings().with_words({"dense": "none", **words})


def test_a_trained_reranker_is_found_by_name_and_refuses_what_it_saw(store: Store, made: Path, base: str, tmp_path: Path) -> None:
    report = train("halls", str(made), store=store, name="mine", recipe=recipe(base), settings=plain(), negatives=3, depth=8)
    assert (report.questions, report.held, report.pairs) == (26, 4, 26 * 4)
    assert len(report.trained.dev) == 1 + 2 and report.trained.dev[report.trained.best] == max(report.trained.dev)
    card = json.loads((tmp_path / "home" / "rerankers" / "mine" / rerankers.CARD).read_text())
    assert (card["gold"], card["split"], card["pairs"], len(card["questions"])) == ("halls", "train", 104, 30)
    assert [f.name for f in (tmp_path / "home" / "rerankers").iterdir()] == ["mine"], "nothing half-made is left"
    without, with_it = report.test
    assert without.questions == with_it.questions == 10
    assert with_it.settings.reranker == "cross-encoder:mine"
    assert report.changed == sum(without.rankings[q] != with_it.rankings[q] for q in without.rankings)
    model = rerankers.named("cross-encoder:mine")
    assert isinstance(model, rerankers.CrossEncoder)
    assert model.model.model.config.num_hidden_layers == 2
    for split in ("train", None):
        with pytest.raises(UsageError, match=r"was trained on 30 of these (30|40) questions"):
            run("halls", str(made), store=store, split=split, settings=plain(reranker="cross-encoder:mine"))
    with pytest.raises(UsageError, match="choose another name"):
        train("halls", str(made), store=store, name="mine", recipe=recipe(base), settings=plain())


def test_an_interrupted_training_goes_on_and_ends_the_same(store: Store, made: Path, base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = train("halls", str(made), store=store, name="whole", recipe=recipe(base, 3), settings=plain(), test=None, depth=8)
    real, calls = training.CrossEncoder.score, 0

    def stopped(self: rerankers.CrossEncoder, question: str, passages: list[str]) -> list[float]:
        nonlocal calls
        calls += 1
        if calls == 2 * 4 + 2:  # in the midst of the second epoch's judgment
            raise KeyboardInterrupt
        return real(self, question, passages)

    monkeypatch.setattr(training.CrossEncoder, "score", stopped)
    with pytest.raises(KeyboardInterrupt):
        train("halls", str(made), store=store, name="parts", recipe=recipe(base, 3), settings=plain(), test=None, depth=8)
    monkeypatch.setattr(training.CrossEncoder, "score", real)
    parts = train("halls", str(made), store=store, name="parts", recipe=recipe(base, 3), settings=plain(), test=None, depth=8)
    assert (whole.trained.resumed, parts.trained.resumed) == (False, True)
    assert parts.trained.dev == pytest.approx(whole.trained.dev, abs=1e-9)
    assert parts.trained.best == whole.trained.best


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--as", "x", "--split", "test"), "what it is judged on"), (("--as", "../x"), "cannot name a reranker"), (("--as", "x", "--layers", "0"), "at least 1"),
        (("--as", "x", "--layers", "9"), "more than the 6 that minilm has"), (("--as", "x", "--base", "no-such-folder"), "--base cannot be"), (("--as", "x", "--split", "trian"), "did you mean 'train'"),
    ],
)  # fmt: skip
def test_what_cannot_be_trained_is_one_sentence(flags: tuple[str, ...], said: str, store: Store, made: Path, lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "lexical.toml").write_text('dense = "none"\n')
    answer = lab("rerank", "train", "halls", "--gold", str(made), "--settings", str(tmp_path / "lexical.toml"), *flags, store=store)
    assert (answer.code, said in answer.err, answer.out) == (2, True, ""), answer.err


def test_a_question_that_stands_in_both_splits_is_not_trained_on(store: Store, made: Path, base: str) -> None:
    gold = load_gold(made)
    twin = next(q for q in gold.questions if q.split == "test")
    again = [*gold.questions, Question("twin", twin.text, split="train")]
    judged = next(j for j in gold.judgments if j.question_id == twin.question_id)
    save_gold(made, again, [*gold.judgments, replace(judged, question_id="twin")], "# halls\n")
    report = train("halls", str(made), store=store, name="mine", recipe=recipe(base, 1), settings=plain(), depth=8)
    assert (report.questions + report.held, report.test[1].questions) == (30, 10)
