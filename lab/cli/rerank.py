"""The rerank commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lab.cli.output import line, print_json, print_table
from lab.cli.server import Json
from lab.errors import UsageError


def train(
    collection: str,
    *,
    gold: Annotated[str, Parameter(help="name or folder of the gold set")],
    name: Annotated[str, Parameter(name="--as", help="name of the new reranker, for --reranker cross-encoder:NAME")],
    split: Annotated[str, Parameter(help="split to learn from")] = "train",
    test: Annotated[str, Parameter(help="split it is judged on at the end; none: not now")] = "test",
    base: Annotated[str, Parameter(help="minilm, or a folder that holds a BERT-like model")] = "minilm",
    layers: Annotated[int, Parameter(help="layers of the base to keep")] = 2,
    epochs: Annotated[int, Parameter(help="passes over the questions, at most")] = 4,
    minutes: Annotated[float, Parameter(help="no epoch begins that would end after so many minutes of training")] = 30.0,
    negatives: Annotated[int, Parameter(help="passages that do not answer, for each question")] = 4,
    depth: Annotated[int, Parameter(help="they are drawn from so many first passages of the arms")] = 50,
    seed: Annotated[int, Parameter(help="of everything drawn")] = 13,
    settings: Annotated[str, Parameter(help="named settings or a TOML file for the search before the reranker")] = "default",
    json: Json = False,
) -> int:
    """Train a small cross-encoder on judgments of yours, and judge it on questions that it has not seen."""
    from lab.evaluation import reranking
    from lab.models.training import Recipe
    from lab.settings import named
    from lab.store.connect import connect

    for option, value, least in (("layers", layers, 1), ("epochs", epochs, 1), ("negatives", negatives, 1), ("depth", depth, 2)):
        if value < least:
            raise UsageError(f"--{option} {value} is too small: at least {least}.")
    if Path(base).is_dir():
        base = str(Path(base).resolve())
    recipe = Recipe(base=base, layers=layers, epochs=epochs, minutes=minutes, seed=seed)
    with connect() as store:
        done = reranking.train(
            collection, gold, store=store, name=name, split=split, test=None if test == "none" else test, recipe=recipe, negatives=negatives, depth=depth,
            settings=named(settings),
        )  # fmt: skip
    if json:
        print_json(done.to_json())
        return 0
    trained = done.trained
    line(
        f"reranker {name}: {done.questions} questions, {done.pairs} pairs, {trained.steps} steps in {done.seconds / 60:.1f} minutes ({trained.stopped})"
    )
    line("held-out nDCG@10, untrained and after each epoch: " + ", ".join(f"{value:.4f}" for value in trained.dev) + f"; kept: {trained.best}")
    if done.test:
        without, with_it = done.test
        rows = [
            (measure, f"{value:.4f}", f"{with_it.scores[measure]:.4f}", f"{with_it.scores[measure] - value:+.4f}")
            for measure, value in without.scores.items()
        ]
        print_table((f"split {done.test_split}", "without", "with", "difference"), rows, numeric=(False, True, True, True))
        helps = with_it.scores[str(reranking.MEASURE)] > without.scores[str(reranking.MEASURE)]
        line(
            f"{done.changed} of {without.questions} rankings differ. "
            + (f"Use it: --reranker cross-encoder:{name}" if helps else "It does not help here: leave --reranker none.")
        )
    return 0
