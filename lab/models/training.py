"""Training a small cross-encoder from local weights, with the trainer of sentence-transformers (Reimers & Gurevych 2019).

Needs `datasets` and `accelerate`: pip install 'retrieval-lab[train]'.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.config import threads
from lab.errors import CannotJudge, UsageError
from lab.models.rerankers import CrossEncoder
from lab.progress import Progress


@dataclass(frozen=True, slots=True)
class Example:
    """A question, passages, and the grade of each; 0 = does not answer."""

    question: str
    passages: Sequence[str]
    grades: Sequence[float]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to train. `layers` of the base are kept, counted from the text (Sajjad et al. 2020); no epoch begins that would end after `minutes`."""

    base: str = "minilm"
    layers: int = 2
    longest: int = 192  # tokens of question and passage together
    epochs: int = 4
    batch: int = 8  # questions a step
    rate: float = 5e-5
    minutes: float = 30.0
    seed: int = 13


@dataclass(frozen=True, slots=True)
class Trained:
    """What came of it. `dev[0]` is the untrained model's value, then one a full epoch; the weights kept are those of `best` (0 = untrained)."""

    dev: Sequence[float]
    best: int
    steps: int
    seconds: float
    resumed: bool
    stopped: str


def require() -> None:
    """UsageError where the packages that training needs are absent."""
    missing = [name for name in ("datasets", "accelerate") if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(f"training needs {' and '.join(missing)}: run `pip install 'retrieval-lab[train]'`.")


def train(to: Path, examples: Sequence[Example], judge: Callable[[CrossEncoder], float], recipe: Recipe, work: Path) -> Trained:
    """Trains on `examples`, listwise (LambdaLoss, Wang et al. 2018), and leaves the best model by `judge` (higher is better) in `to`.

    Stops early after an epoch without gain. Every finished epoch stays in `work` until the end, so that an interrupted call goes on there.
    """
    require()
    import datasets
    import torch
    from sentence_transformers import CrossEncoder as Model
    from sentence_transformers.cross_encoder import CrossEncoderTrainer, CrossEncoderTrainingArguments
    from sentence_transformers.cross_encoder.losses import LambdaLoss
    from transformers import TrainerCallback
    from transformers.trainer_callback import PrinterCallback

    if threads():
        torch.set_num_threads(threads())
    work.mkdir(parents=True, exist_ok=True)
    start, best_at, state = work / "start", work / "best", work / "dev.json"
    if not (start / "config.json").is_file():
        with _whole(start) as half:
            cut(recipe, half)
    model = Model(str(start), device="cpu", num_labels=1, max_length=recipe.longest)
    known: dict[str, Any] = json.loads(state.read_text()) if state.is_file() else {"dev": [], "stopped": ""}
    known = known if isinstance(known, dict) else {"dev": [], "stopped": ""}
    dev: list[float] = known["dev"]
    for half in work.glob("checkpoint-*"):
        if not (half / "trainer_state.json").is_file():  # written last: the call ended while it was saving
            shutil.rmtree(half)
    checkpoints = sorted(work.glob("checkpoint-*"), key=lambda path: int(path.name.partition("-")[2]))
    per_epoch = -(-len(examples) // recipe.batch)
    ended = int(checkpoints[-1].name.partition("-")[2]) // per_epoch if checkpoints else 0
    dev = dev[: 1 + ended]
    resumed = ended > 0 and len(dev) == 1 + ended
    if not resumed:
        dev = [judge(CrossEncoder(str(start)))]
        _note(state, dev, "")
        shutil.rmtree(best_at, ignore_errors=True)
        shutil.copytree(start, best_at)
    rows = datasets.Dataset.from_dict(
        {
            "query": [e.question for e in examples],
            "docs": [list(e.passages) for e in examples],
            "labels": [[float(g) for g in e.grades] for e in examples],
        }
    )
    began = time.monotonic()
    first = len(dev) - 1  # epochs that an earlier call has finished
    stopped = [known["stopped"] if resumed and known["stopped"] else "all epochs"]

    class Watch(TrainerCallback):  # type: ignore[misc]
        """Judges after every epoch, keeps the best, and says when to stop."""

        def on_step_end(self, args: Any, state_: Any, control: Any, **_: Any) -> None:
            bar.advance()

        def on_epoch_end(self, args: Any, state_: Any, control: Any, **_: Any) -> None:
            with _whole(work / "now", replace=True) as half:
                model.save_pretrained(str(half), create_model_card=False)
            value = judge(CrossEncoder(str(work / "now")))
            model.train()
            if value > max(dev):
                shutil.rmtree(best_at, ignore_errors=True)
                shutil.copytree(work / "now", best_at)
            elif len(dev) > 1:
                stopped[0] = f"no gain in epoch {len(dev)}"
                control.should_training_stop = True
            dev.append(value)
            spent = time.monotonic() - began
            if spent + spent / round(state_.epoch - first) > 60 * recipe.minutes:
                stopped[0] = f"another epoch would take longer than {recipe.minutes:g} minutes in all"
                control.should_training_stop = True
            _note(state, dev, stopped[0] if control.should_training_stop else "")

    arguments = CrossEncoderTrainingArguments(
        output_dir=str(work), num_train_epochs=recipe.epochs, per_device_train_batch_size=recipe.batch, learning_rate=recipe.rate, warmup_steps=per_epoch // 4,
        seed=recipe.seed, data_seed=recipe.seed, use_cpu=True, save_strategy="epoch", save_total_limit=1, logging_strategy="no", report_to="none", disable_tqdm=True,
        dataloader_pin_memory=False,
    )  # fmt: skip
    trainer = CrossEncoderTrainer(model=model, args=arguments, train_dataset=rows, loss=LambdaLoss(model, mini_batch_size=recipe.batch * 2))
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(Watch())
    with Progress("train", per_epoch * recipe.epochs, "steps") as bar:
        if resumed:
            bar.advance(per_epoch * (len(dev) - 1))
        if not (resumed and known["stopped"]):  # else the earlier call had come to its end
            trainer.train(resume_from_checkpoint=str(checkpoints[-1]) if resumed else None)
    best = dev.index(max(dev))
    with _whole(to, replace=True) as half:
        shutil.copytree(best_at, half, dirs_exist_ok=True)
    return Trained(dev, best, trainer.state.global_step, time.monotonic() - began, resumed, stopped[0])


def _note(state: Path, dev: Sequence[float], stopped: str) -> None:
    """Writes down what is done; whole or not at all."""
    fresh = state.with_suffix(".new")
    fresh.write_text(json.dumps({"dev": list(dev), "stopped": stopped}))
    fresh.replace(state)


def discard(work: Path) -> None:
    """Removes what an ended training leaves behind."""
    shutil.rmtree(work, ignore_errors=True)


def cut(recipe: Recipe, to: Path) -> None:
    """The first layers of the base under a head for one score, whose weights are drawn with the seed."""
    import torch
    from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer
    from transformers.utils import logging

    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    source = recipe.base
    if source == "minilm":
        from lab.models.minilm import MiniLM

        source = str(MiniLM().folder)
    elif not Path(source).is_dir():
        raise UsageError(f"--base cannot be {source!r}: it takes minilm, or a folder that holds a model.")
    torch.manual_seed(recipe.seed)
    try:
        held = int(getattr(AutoConfig.from_pretrained(source), "num_hidden_layers", recipe.layers))
        if recipe.layers > held:
            raise UsageError(f"--layers {recipe.layers} is more than the {held} that {recipe.base} has.")
        model = AutoModelForSequenceClassification.from_pretrained(source, num_labels=1, num_hidden_layers=recipe.layers)
        tokenizer = AutoTokenizer.from_pretrained(source)
    except (OSError, ValueError) as error:
        first = (str(error).strip().splitlines() or ["no details"])[0]
        raise UsageError(f"the base {source} cannot be loaded ({first[:200]}): name a folder that holds a BERT-like model.") from None
    tokenizer.model_max_length = recipe.longest
    model.save_pretrained(str(to))
    tokenizer.save_pretrained(str(to))


@contextlib.contextmanager
def _whole(folder: Path, *, replace: bool = False) -> Iterator[Path]:
    """A folder that is there whole or not at all: it is written beside its place and put there at the end."""
    half = folder.with_name(folder.name + ".half")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)
    yield half
    if replace:
        shutil.rmtree(folder, ignore_errors=True)
    elif folder.exists():
        raise CannotJudge(f"{folder} was made by another call meanwhile: run the command again.")
    half.rename(folder)
