"""Commands about the server and its surroundings."""

from __future__ import annotations

import os
import shutil
from typing import Annotated

from cyclopts import Parameter

from lab.cli.output import line, print_json, print_table, size
from lab.config import database_url, effective, home
from lab.errors import UsageError, redact
from lab.store import embedded

Json = Annotated[bool, Parameter(name="--json", negative=(), help="print one JSON object")]


def up() -> int:
    """Start the embedded server and hold it until `lab down`: later commands start faster."""
    if database_url():
        raise UsageError("LAB_DATABASE_URL names a server of your own: unset it to use the embedded one.")
    server = embedded.up()
    line(f"running (process {server.pid}), data in {server.folder}; stop it with `lab down`")
    return 0


def down() -> int:
    """Stop the embedded server; refused while other processes use it."""
    line("stopped" if embedded.down() else "was not running")
    return 0


def status(*, json: Json = False) -> int:
    """Where the data is, whether the server runs, extensions, and the space that collections, caches and ledgers take. Starts nothing."""
    from lab.store import collections
    from lab.store.connect import connect
    from lab.store.usage import usage

    url = database_url()
    server = None if url else embedded.status()
    answer: dict[str, object] = {
        "schema_version": 1,
        "home": str(home()),
        "server": redact(url) if url else "embedded",
        "running": True if url else server is not None and server.pid is not None,
        "held": bool(server and server.held),
        "users": list(server.users) if server else [],
    }
    if answer["running"]:
        with connect() as store:
            used = usage(store) if store.tenant is None else {}
            answer |= {"tenant": store.tenant, "postgres": store.server_version, "extensions": dict(store.extensions), "space": used}
            answer["collections"] = {
                c.name: {"files": s.files, "chunks": s.chunks, "bytes": s.bytes}
                for c in collections.all_collections(store)
                for s in [collections.size(store, c)]
            }
    if json:
        print_json(answer)
        return 0
    line(f"home      {answer['home']}")
    state = (
        "running" + (", held by `lab up`" if answer["held"] else "") if answer["running"] else "not running; any command starts it, `lab up` holds it"
    )
    line(f"server    {answer['server']}: {state}")
    if answer["running"]:
        line(f"postgres  {answer['postgres']}, " + ", ".join(f"{k} {v}" for k, v in dict(answer["extensions"]).items()))  # type: ignore[call-overload]
        space = answer["space"]
        assert isinstance(space, dict)
        if answer["tenant"]:
            line(f"tenant    {answer['tenant']}: this login reads its own documents and the shared ones")
        if answer["space"]:
            line("space     " + ", ".join(f"{name} {size(count)}" for name, count in space.items()))
        found = answer["collections"]
        assert isinstance(found, dict)
        rows = [(name, str(c["files"]), str(c["chunks"]), size(c["bytes"])) for name, c in found.items()]
        if rows:
            print_table(("collection", "files", "chunks", "space"), rows, numeric=(False, True, True, True))
        else:
            line("no collection yet: `lab demo` makes one, `lab ingest FOLDER -c NAME` another")
    return 0


def config(*, json: Json = False) -> int:
    """The effective values of home and servers, and where each comes from: lab.toml < environment < flags. Secrets are not shown."""
    entries = effective()
    if json:
        print_json({"schema_version": 1, "values": {e.name: {"value": e.shown, "origin": e.origin} for e in entries.values()}})
    else:
        print_table(("name", "value", "from"), [(e.name, e.shown or "–", e.origin) for e in entries.values()])
    return 0


def prune(
    *,
    chat: Annotated[
        bool, Parameter(negative=(), help="in place of them what chat models said: claims, questions, answers, verdicts; asking again costs again")
    ] = False,
) -> int:
    """Empty the caches of vectors; they are computed again when needed."""
    from lab.models.asked import forget
    from lab.store import embeddings
    from lab.store.connect import connect

    if chat:
        line(f"{forget()} answers of chat models removed")
        return 0
    with connect() as store:
        line(f"{embeddings.prune(store)} cached vectors removed")
    for path in (home() / "cache" / "searches").glob("*.journal"):  # of searches that nobody went on with
        path.unlink(missing_ok=True)
    return 0


def purge(*, yes: Annotated[bool, Parameter(negative=(), help="really do it")] = False) -> int:
    """Remove LAB_HOME: the embedded server's data, caches, imported gold sets and trained models. Refused without --yes."""
    from lab.models.asked import FOLDERS

    folder = home()
    if not folder.exists():
        line(f"nothing at {folder}")
        return 0
    known = {"server", "gold", "models", "reports", "rerankers", "cache", "claims", *FOLDERS}
    strange = sorted(path.name for path in folder.iterdir() if path.name not in known)
    if strange:
        raise UsageError(f"{folder} holds files that are not the lab's ({', '.join(strange[:3])}): remove it by hand.")
    if not yes:
        raise UsageError(f"this removes {folder} with everything in it: say `lab purge --yes`.")
    embedded.down()
    for name in sorted(known):
        shutil.rmtree(folder / name, ignore_errors=True)
    if not os.listdir(folder):  # noqa: PTH208
        folder.rmdir()
    line(f"removed {folder}")
    return 0
