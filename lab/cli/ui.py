"""The ui command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lab.progress import say

PORT = 8766


def ui(
    *, bind: Annotated[str, Parameter(help="HOST:PORT")] = f"127.0.0.1:{PORT}",
    token_file: Annotated[Path | None, Parameter(help="file (mode 0600) with the token that a browser asks for as password; required for any other host than this machine")] = None,
) -> int:  # fmt: skip
    """Look at recorded runs in a browser: compare two, follow a question across runs, read passages with their links. Nothing can be changed there."""
    from lab.report.browse import serve
    from lab.serving import doors
    from lab.store.connect import connect

    host, port = doors.address(bind, PORT)
    token = doors.token_of(token_file, host)
    with connect() as store:
        shown = f"[{host}]" if ":" in host else host
        say(f"http://{shown}:{port}/{' (any name, the token as password)' if token else ''}; stop with Ctrl-C")
        serve(store, host, port, token)
    return 0
