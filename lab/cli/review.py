"""The commands by which people judge: pool and review."""

from __future__ import annotations

import dataclasses
import getpass
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lab.cli.output import line, print_json, print_table
from lab.cli.server import Json
from lab.errors import CannotJudge, UsageError
from lab.gold.review import Item, read
from lab.progress import say
from lab.records import GoldSet
from lab.store.collections import Collection
from lab.store.connect import Store


def pool(
    gold: str, *, runs: Annotated[str, Parameter(help="run ids, as in A,B")],
    depth: Annotated[int, Parameter(help="how many first results of each run are looked at")] = 10, json: Json = False,
) -> int:  # fmt: skip
    """Queue what runs returned and nobody has judged, for `lab gold review`."""
    from lab.evaluation.pooling import pool as run_pool
    from lab.gold.files import load_gold
    from lab.store.connect import connect

    wanted = [word.strip() for word in runs.split(",") if word.strip()]
    if not wanted or depth < 1:
        raise UsageError("name runs, as in --runs A,B, and a --depth of at least 1.")
    loaded = load_gold(gold)
    with connect() as store:
        fresh, waiting = run_pool(store, loaded, wanted, depth)
    if json:
        print_json({"schema_version": 1, "queued": len(fresh), "waiting": waiting})
    else:
        line(f"{len(fresh)} passages were queued, {waiting} stand in the queue: lab gold review {gold}")
    return 0


def review(
    gold: str, *,
    collection: Annotated[str | None, Parameter(name=["--collection", "-c"], help="where the passages are read; default: the collection of the same name")] = None,
    who: Annotated[str | None, Parameter(help="who decides; default: the login name")] = None,
    apply: Annotated[bool, Parameter(negative=(), help="rewrite the gold set by the decisions, and review nothing")] = False,
    html: Annotated[Path | None, Parameter(help="write one page to this file, for a person without Python, and review nothing")] = None,
    take: Annotated[Path | None, Parameter(help="add the decisions of a file that was saved by such a page, and review nothing")] = None,
    agreement: Annotated[str | None, Parameter(help="two people, as in ANN,BOB: Cohen's kappa and where they differ")] = None,
    json: Json = False,
) -> int:  # fmt: skip
    """Judge a gold set in the terminal or on a page: each question with its passage, then the passages that wait for it. Every decision is kept at once; the same command
    goes on."""
    from lab.gold.files import load_gold

    modes = [name for name, value in (("--apply", apply), ("--html", html), ("--take", take), ("--agreement", agreement)) if value]
    if len(modes) > 1:
        raise UsageError(f"{' and '.join(modes)} are one command each: call them one after the other.")
    loaded = load_gold(gold)
    folder = Path(str(loaded.metadata["path"]))
    if agreement is not None:
        return _agreement(folder, agreement, json)
    if apply:
        return _apply(loaded, folder, json)
    if take is not None:
        return _take(loaded, folder, take, json)
    if html is not None:
        return _page(loaded, folder, collection or loaded.name.replace("-", "_"), html, json)
    person = who or getpass.getuser()
    made, left = _sit(loaded, folder, collection or loaded.name.replace("-", "_"), person)
    if json:
        print_json({"schema_version": 1, "who": person, "decided": made, "left": left, "decisions": len(read(folder))})
    else:
        line(f"{made} decisions by {person}, {left} items left; `lab gold review {gold} --apply` rewrites the set by them")
    return 0


def _sit(gold: GoldSet, folder: Path, name: str, who: str) -> tuple[int, int]:
    from lab.store import collections
    from lab.store.connect import connect

    with connect() as store:
        known = collections.get(store, name)
        return sit(store, known, folder, who, _items(store, known, gold, folder))


def sit(store: Store, known: Collection, folder: Path, who: str, everything: Sequence[Item]) -> tuple[int, int]:
    """The terminal's turn: shows what this person has not decided, item by item; (decisions made, items left)."""
    from rich.console import Console
    from rich.text import Text

    from lab.gold.desk import CLAIM_KEYS, KEYS, PASSAGE_KEYS, single_keys, work
    from lab.gold.review import standing
    from lab.store import documents

    console = Console(stderr=True, highlight=False)

    def around(item: Item) -> str:
        return documents.text_between(store, known, item.source, max(0, item.start - 300), item.end + 300) if item.source else ""

    def show(item: Item, text: str, at: int, of: int) -> None:
        console.rule(f"{at} of {of}")
        console.print(Text(f"{item.question.kind or 'question'} {item.question.question_id}: ", "dim") + Text(item.question.text, "bold"))
        if item.source:
            lead = min(300, item.start)
            shown = Text(text)
            shown.stylize("reverse", lead, lead + item.end - item.start)
            console.print(Text(f"{item.source} [{item.start}, {item.end})" + (f" – {item.why}" if item.why else ""), "dim"))
            console.print(shown)
        console.print(Text(PASSAGE_KEYS if item.is_passage else CLAIM_KEYS if item.claim else KEYS, "dim"))

    try:
        made = work(folder, who, everything, around, single_keys(), show, console.input)
    except (EOFError, KeyboardInterrupt):
        say("stopped; every decision is kept")
        made = 0
    done = {item for _, item in standing(read(folder), who)}
    return made, sum(item.name not in done for item in everything)


def _items(store: Store, known: Collection, gold: GoldSet, folder: Path) -> list[Item]:
    from lab.gold.review import items, read_queue
    from lab.store import chunks

    wanted = sorted({c.rpartition("::")[0] for q in gold.questions for c in q.metadata.get("to_review", ())})
    return items(gold, read_queue(folder), chunks.spans(store, known, wanted))


def _page(gold: GoldSet, folder: Path, name: str, to: Path, json: bool) -> int:
    from lab.store import collections
    from lab.store.connect import connect

    with connect() as store:
        known = collections.get(store, name)
        found = _items(store, known, gold, folder)
        write_page(store, known, gold, found, f"lab gold review {gold.name}", to)
    if json:
        print_json({"schema_version": 1, "page": str(to), "items": len(found)})
    else:
        line(f"{len(found)} items on {to}; what is saved there comes back by `lab gold review {gold.name} --take FILE`")
    return 0


def write_page(store: Store, known: Collection, gold: GoldSet, found: Sequence[Item], command: str, to: Path) -> None:
    """The same as one page; `command` takes what is saved there."""
    from lab.gold.sheet import AROUND, page
    from lab.scratch import whole_file
    from lab.store import documents

    def around(item: Item) -> tuple[str, str]:
        lead = documents.text_between(store, known, item.source, max(0, item.start - AROUND), item.start) if item.start else ""
        return lead, documents.text_between(store, known, item.source, item.end, item.end + AROUND)

    whole_file(to, page(gold, found, around, command))


def _take(gold: GoldSet, folder: Path, file: Path, json: bool) -> int:
    from lab.gold.sheet import take

    added, _ = take(folder, gold, file)
    if json:
        print_json({"schema_version": 1, "added": added})
    else:
        line(f"{added} decisions of {file} were added; `lab gold review {gold.name} --apply` rewrites the set by them")
    return 0


def _apply(gold: GoldSet, folder: Path, json: bool) -> int:
    from lab.gold.files import save_gold
    from lab.gold.review import apply

    outcome = apply(gold, read(folder))
    if not outcome.gold.questions:
        raise CannotJudge(f"all questions of {gold.name!r} are rejected: nothing would be left, so the set stays as it is.")
    readme = (folder / "README.md").read_text(encoding="utf-8") if (folder / "README.md").is_file() else f"# {gold.name}\n"
    imported = [dataclasses.replace(q, split=q.split if gold.metadata["imported_splits"] else "") for q in outcome.gold.questions]
    save_gold(folder, imported, outcome.gold.judgments, readme, refused=outcome.gold.refused)
    if json:
        print_json({"schema_version": 1, "counts": dict(outcome.counts), "questions": len(imported), "judgments": len(outcome.gold.judgments)})
    else:
        line(f"{gold.name}: " + ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in outcome.counts.items()))
    return 0


def _agreement(folder: Path, people: str, json: bool) -> int:
    from lab.gold.review import agreement

    names = [name.strip() for name in people.split(",") if name.strip()]
    if len(names) != 2:
        raise UsageError(f"--agreement {people} must name two people, as in ANN,BOB.")
    kappa, both, differ = agreement(read(folder), *names)
    if json:
        print_json(
            {
                "schema_version": 1,
                "people": names,
                "kappa": kappa,
                "items": both,
                "differ": [{"item": i, names[0]: a, names[1]: b} for i, a, b in differ],
            }
        )
        return 0
    line(f"{names[0]} and {names[1]}: {both} items decided by both, Cohen's kappa {'–' if kappa is None else f'{kappa:.2f}'}, {len(differ)} differ")
    if differ:
        print_table(("item", *names), differ)
    return 0
