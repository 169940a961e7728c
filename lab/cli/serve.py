"""The serve command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lab.config import trace
from lab.errors import UsageError
from lab.progress import say


def serve(
    *,
    mcp: Annotated[
        bool, Parameter(negative=(), help="the tools search_knowledge_base, recall_claims, answer, get_passage and list_collections by MCP")
    ] = False,
    bind: Annotated[str | None, Parameter(help="HOST:PORT for streamable HTTP at /mcp; default: standard input and output")] = None,
    token_file: Annotated[
        Path | None, Parameter(help="file (mode 0600) with the bearer token; required for any other host than this machine")
    ] = None,
    collections: Annotated[str | None, Parameter(help="only these collections, as in a,b")] = None,
    tenant: Annotated[str | None, Parameter(help="serve only if the database login is that of this tenant")] = None,
    settings: Annotated[str, Parameter(help="named settings or a TOML file for every search")] = "default",
    max_tokens: Annotated[int, Parameter(help="tokens of one answer at most, by the embedder's tokenizer")] = 4000,
) -> int:
    """Serve search to agents."""
    from lab.serving import doors
    from lab.serving import mcp as server
    from lab.serving.tool import Scope
    from lab.settings import named
    from lab.store import collections as stored
    from lab.store import traces
    from lab.store.connect import connect

    if not mcp:
        raise UsageError("name what to serve: `lab serve --mcp`.")
    if max_tokens < 50:
        raise UsageError(f"--max-tokens {max_tokens} leaves no room for a passage: at least 50.")
    host, port = doors.address(bind) if bind is not None else ("127.0.0.1", 0)
    token = doors.token_of(token_file, host) if bind is not None else None
    chosen = named(settings)
    trace()
    with connect() as store:
        if tenant is not None and store.tenant != tenant:
            raise UsageError(f"this database login is not that of tenant {tenant}: set LAB_DATABASE_URL to the one that `lab tenant add` made.")
        names = tuple(name.strip() for name in collections.split(",")) if collections is not None else None
        for name in names or ():
            stored.get(store, name)
        traces.prune(store)
        app = server.build(store, Scope(names), chosen, max_tokens)
        if bind is None:
            app.run("stdio")
        else:
            say(f"serving MCP at http://{bind if ':' in bind else f'{host}:{port}'}/mcp{' with a bearer token' if token else ''}; stop with Ctrl-C")
            server.serve_http(app, host, port, token)
    return 0
