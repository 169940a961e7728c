"""Commands about gold sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lab.cli.output import line, print_json, print_table
from lab.cli.server import Json
from lab.errors import UsageError
from lab.progress import say


def generate(
    collection: str,
    *,
    as_: Annotated[str, Parameter(name="--as", help="name of the new gold set")],
    questions: Annotated[int, Parameter(name=["--questions", "-n"], help="how many, as far as the collection gives them")] = 200,
    kinds: Annotated[str | None, Parameter(help="only these, as in fact,section; default: all")] = None,
    chat: Annotated[bool, Parameter(negative=(), help="by the chat model of LAB_CHAT_URL and LAB_CHAT_MODEL, in place of rules")] = False,
    per: Annotated[int, Parameter(help="chat: questions a passage")] = 2,
    paraphrases: Annotated[int, Parameter(help="chat: other ways to say each question, without the passage's rare words")] = 1,
    budget: Annotated[int, Parameter(help="chat: tokens at most, 0: as many as it takes; the same command goes on where it ended")] = 0,
    seed: Annotated[int, Parameter(help="of everything drawn")] = 13,
    to: Annotated[Path | None, Parameter(help="folder to put it in; default: LAB_HOME/gold")] = None,
    replace: Annotated[bool, Parameter(negative=(), help="overwrite a gold set of that name")] = False,
    json: Json = False,
) -> int:
    """Make questions of a collection: by rules (section, definition, fact, citation, keyword, unanswerable), or by a chat model."""
    from lab.gold.asking import Cost
    from lab.gold.generate import Asked
    from lab.gold.generate import generate as run_generate
    from lab.models.chat import configured
    from lab.store.connect import connect

    for option, value, least in (("per", per, 1), ("paraphrases", paraphrases, 0), ("budget", budget, 0)):
        if value < least:
            raise UsageError(f"--{option} {value} is too small: at least {least}.")
    asked = Asked(configured(), Cost(budget), per, paraphrases) if chat else None
    wanted = [word.strip() for word in (kinds or "").split(",") if word.strip()]
    with connect() as store:
        done = run_generate(collection, as_, store=store, questions=questions, kinds=wanted, seed=seed, to=to, replace=replace, asked=asked)
    if json:
        print_json(done.to_json())
        return 0
    line(f"{as_}: {done.kept} questions in {done.path}")
    rows = [("kind", k, str(v)) for k, v in done.kinds.items()] + [("copying", k, str(v)) for k, v in done.bands.items()]
    rows += [("flagged", "incomplete", str(done.incomplete)), ("flagged", "hard", str(done.hard))]
    rows += [("refused", k, str(v)) for k, v in done.rejected.items()]
    print_table(("by", "value", "questions"), rows, numeric=(False, False, True))
    if done.cost is not None:
        say(f"{done.cost['calls']} calls, {done.cost['tokens']:,} tokens, {done.cost['cached']} answers from the cache")
    if done.kept < questions:
        say(f"the collection gives {done.kept} of {questions}: see what was refused, or allow more --kinds")
    return 0


def check(
    gold: str,
    *,
    collection: Annotated[str | None, Parameter(name=["--collection", "-c"], help="default: the collection of the same name")] = None,
    max_drift: Annotated[float, Parameter(help="share of the judgments that may not be intact")] = 0.02,
    repair: Annotated[bool, Parameter(negative=(), help="put moved judgments where their quotes stand now, in the files of the gold set")] = False,
    json: Json = False,
) -> int:
    """Does a gold set fit a collection: is every judged document there, and does the quote stand where the judgment says? Exit 3 if not."""
    from lab.gold.check import check as run_check
    from lab.gold.check import repair as run_repair
    from lab.gold.files import load_gold, save_judgments
    from lab.store import collections
    from lab.store.connect import connect

    loaded = load_gold(gold)
    with connect() as store:
        name = collection or loaded.name.replace("-", "_")
        if collection is None and collections.find(store, name) is None:
            raise UsageError(f"there is no collection {name!r}: say which one the gold set is for, `lab gold check {gold} -c NAME`.")
        if not 0 <= max_drift <= 1:
            raise UsageError(f"--max-drift {max_drift} is no share: from 0 to 1.")
        target = collections.get(store, name)
        result = run_check(store, target, loaded, max_drift=max_drift)
        if repair and result.counts["moved"]:
            path = Path(str(loaded.metadata["path"]))
            if "site-packages" in path.parts:
                raise UsageError(f"{loaded.name} is shipped with the lab: copy {path} into ./gold, and repair the copy.")
            mended, many = run_repair(loaded, result)
            save_judgments(path, [*mended.judgments, *mended.refused])
            say(f"{many} moved judgments of {loaded.name} were put in their new place in {path}")
            loaded = load_gold(path)
            result = run_check(store, target, loaded, max_drift=max_drift)
    if json:
        print_json(result.to_json())
    else:
        line(f"{loaded.name}: {result.outcome}; " + ", ".join(f"{count} {name}" for name, count in result.counts.items()))
        for name in result.unknown_documents[:20]:
            line(f"  unknown document {name}")
        for b in result.broken[:50]:
            now = f"; now [{b.start}, {b.end})" if b.end else ""
            line(f"  {b.found}: question {b.judgment.question_id}, {b.judgment.source} [{b.judgment.start}, {b.judgment.end}){now}")
    return 0 if result.outcome == "ok" else 3


def show(gold: str, *, json: Json = False) -> int:
    """What a gold set holds: questions by kind, split and copying band, judgments, digest."""
    from lab.gold.files import kinds, load_gold

    loaded = load_gold(gold)
    answer = {
        "schema_version": 1,
        "name": loaded.name,
        "path": str(loaded.metadata["path"]),
        "digest": loaded.digest,
        "questions": len(loaded.questions),
        "judgments": len(loaded.judgments),
        "kinds": kinds(loaded.questions),
        "bands": _count(str(q.metadata["band"]) for q in loaded.questions if "band" in q.metadata),
        "splits": _count(q.split for q in loaded.questions),
    }
    if json:
        print_json(answer)
        return 0
    line(f"{loaded.name}: {len(loaded.questions)} questions, {len(loaded.judgments)} judgments, digest {loaded.digest}, in {answer['path']}")
    rows = [(part, name or "–", str(count)) for part in ("kinds", "bands", "splits") for name, count in answer[part].items()]  # type: ignore[attr-defined]
    print_table(("by", "value", "questions"), rows, numeric=(False, False, True))
    return 0


def stats(gold: str, *, json: Json = False) -> int:
    """What a gold set favours: kinds by how much their questions copy from what answers them, and what waits for review."""
    from lab.gold.files import kinds, load_gold
    from lab.gold.splits import LARGEST
    from lab.gold.stats import bands as known_bands
    from lab.gold.stats import by_kind

    loaded = load_gold(gold)
    bands = _count(known_bands(loaded).values())
    share = float(loaded.metadata["largest_component"])
    if json:
        print_json(
            {
                "schema_version": 1, "questions": len(loaded.questions), "judgments": len(loaded.judgments), "kinds": kinds(loaded.questions), "bands": bands,
                "splits": _count(q.split for q in loaded.questions), "incomplete": sum(bool(q.metadata.get("incomplete")) for q in loaded.questions),
                "hard": sum(bool(q.metadata.get("hard")) for q in loaded.questions), "unanswerable": sum(not q.answerable for q in loaded.questions),
                "largest_component": round(share, 4),
            }
        )  # fmt: skip
        return 0
    line(f"{loaded.name}: {len(loaded.questions)} questions, {len(loaded.judgments)} judgments, digest {loaded.digest}")
    if share > LARGEST:
        line(f"{share:.0%} of the questions hang together through shared documents: no fair half exists, so a --split needs --split-by question")
    heads = ("kind", "questions", "copied", "natural", "paraphrased", "unanswerable", "incomplete", "hard", "lexical first")
    print_table(heads, by_kind(loaded), numeric=(False, *([True] * 8)))
    return 0


def _count(values: object) -> dict[str, int]:
    counts: dict[str, int] = {}
    for value in values:  # type: ignore[attr-defined]
        counts[value] = counts.get(value, 0) + 1
    return dict(sorted(counts.items()))


def documents(gold: str, *, to: Annotated[Path | None, Parameter(help="folder to write to; default: say where they are")] = None) -> int:
    """Write out the documents that a shipped gold set was made for, as a folder for `lab ingest`."""
    from lab.gold.documents import write_documents

    folder, note = write_documents(gold, to)
    if note:
        say(note)
    line(str(folder))
    return 0
