"""The search tool: arguments validated, answers of bounded size, scopes held, traces kept as said; MCP by a real client, over both transports."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from lab.corpus.ingest import ingest
from lab.errors import UsageError
from lab.serving import doors, tool
from lab.serving import mcp as server
from lab.store import traces
from lab.store.connect import Store
from tests.conftest import Databases, Lab, write

TOKEN = "a-token-of-more-than-sixteen-signs"


@pytest.fixture(scope="module")
def served(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Two collections: `pumps` with vectors, `letters` without."""
    with databases.fresh() as dsn, Store(dsn) as store:
        names = ["alder", "birch", "cedar", "kestrel", "elm", "fir", "gum", "hazel"]
        texts = {
            f"p{i}.md": f"# Pump {name}\n\nThe {name} pump is oiled every {i} weeks. It stands in hall {i}.\n\nMore words of {name} follow here.\n"
            for i, name in enumerate(names)
        }
        ingest(write(tmp_path_factory.mktemp("pumps"), texts), "pumps", store=store, embedder="keyword")
        ingest(write(tmp_path_factory.mktemp("letters"), {"l.txt": "A letter about the pump."}), "letters", store=store, embedder="none")
        yield store


def test_passages_come_with_source_and_position(served: Store) -> None:
    found = tool.search_knowledge_base(served, "pumps", "how often is kestrel pump oiled?", 2)
    first = found["passages"][0]
    assert (first["source"], first["passage_id"].split("::")[0], first["complete"]) == ("p3.md", "p3.md", True)
    assert len(found["passages"]) == 2
    assert (found["diagnostic"], found["left_out"]) == (None, 0)
    text = served.rows("select text from kb_pumps.files where source = 'p3.md'")[0][0]
    assert text[first["start"] : first["end"]] == first["text"]
    assert json.loads(json.dumps(found)) == found


def test_a_collection_without_vectors_is_searched_by_words(served: Store) -> None:
    assert tool.search_knowledge_base(served, "letters", "pump")["passages"][0]["source"] == "l.txt"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere", "x"), "unknown collection"), ((None, "x"), "unknown collection"), ((["pumps"], "x"), "unknown collection"),
        (("pumps", ""), "query must be"), (("pumps", "  "), "query must be"), (("pumps", 7), "query must be"), (("pumps", "x", 0), "top_k"),
        (("pumps", "x", 51), "top_k"), (("pumps", "x", "6"), "top_k"), (("pumps", "x", True), "top_k"), (("pumps", "x", 2.5), "top_k"),
        (("pumps'; drop table x", "x"), "unknown collection"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_one_sentence(served: Store, arguments: tuple[Any, ...], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        tool.search_knowledge_base(served, *arguments)


def test_an_answer_has_at_most_so_many_tokens(served: Store) -> None:
    from lab.models.embedders import embedder

    count = embedder("keyword").count_tokens
    whole = tool.search_knowledge_base(served, "pumps", "pump", 6)
    assert len(whole["passages"]) == 6
    small = tool.search_knowledge_base(served, "pumps", "pump", 6, max_tokens=50)
    assert sum(count(p["text"]) for p in small["passages"]) <= 50
    assert small["left_out"] == 6 - len(small["passages"]) > 0
    tiny = tool.search_knowledge_base(served, "pumps", "pump", 6, max_tokens=5)
    assert [p["complete"] for p in tiny["passages"]] == [False]
    assert 0 < count(tiny["passages"][0]["text"]) <= 5


def test_an_empty_list_says_what_emptied_it(served: Store) -> None:
    from lab.settings import Settings

    settings = Settings(dense="none")
    assert "no arm found anything" in tool.search_knowledge_base(served, "pumps", "zebra", settings=settings)["diagnostic"]["message"]
    filtered = tool.search_knowledge_base(served, "pumps", "pump", settings=Settings(filters="year=1999"))
    assert (filtered["passages"], filtered["diagnostic"]["stage"]) == ([], "filters")


def test_a_scope_holds_for_every_tool(served: Store) -> None:
    scope = tool.Scope(("letters",))
    for call in (
        lambda: tool.search_knowledge_base(served, "pumps", "x", scope=scope),
        lambda: tool.get_passage(served, "pumps", "p1.md::1", scope=scope),
    ):
        with pytest.raises(UsageError, match="unknown collection 'pumps'"):
            call()
    assert [c["name"] for c in tool.list_collections(served, scope)["collections"]] == ["letters"]
    assert tool.function_schema(served, scope)["function"]["parameters"]["properties"]["collection"]["enum"] == ["letters"]


def test_a_passage_and_its_neighbours(served: Store, store: Store, tmp_path: Path) -> None:
    ingest(write(tmp_path, {"a.md": "# A\n\n" + "\n\n".join(f"## S{i}\n\nWords {i}." for i in range(5))}), "c", store=store, embedder="none")
    ids = [p["passage_id"] for p in tool.get_passage(store, "c", "a.md::3", 1)["passages"]]
    assert ids == ["a.md::2", "a.md::3", "a.md::4"]
    for bad in ("a.md", "a.md::", "a.md::99", "b.md::1", "a.md::-1", None, "a.md::1e3", "a.md::²"):
        with pytest.raises(UsageError):
            tool.get_passage(store, "c", bad)
    with pytest.raises(UsageError, match="neighbours"):
        tool.get_passage(store, "c", "a.md::3", 6)


def test_traces_hold_what_they_are_told_to(served: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def rows() -> list[Any]:
        return served.rows("select question, results, arms, seconds from lab.searches order by search_id")

    before = len(rows())
    monkeypatch.setenv("LAB_TRACE", "off")
    tool.search_knowledge_base(served, "pumps", "first secret question")
    assert len(rows()) == before
    monkeypatch.setenv("LAB_TRACE", "counts")
    tool.search_knowledge_base(served, "pumps", "second secret question")
    monkeypatch.setenv("LAB_TRACE", "on")
    tool.search_knowledge_base(served, "pumps", "third question about a pump", 3)
    counts, full = rows()[before:]
    assert (counts[0], full[0]) == (None, "third question about a pump")
    assert len(full[1]) == 3
    assert full[2]["dense"]["engine"] == "exact"
    assert full[3]["fuse"] > 0
    monkeypatch.setenv("LAB_TRACE", "perhaps")
    with pytest.raises(UsageError, match="off, counts or on"):
        tool.search_knowledge_base(served, "pumps", "x")
    with served.single() as connection:
        connection.execute("update lab.searches set at = now() - interval '31 days' where question is null")
    assert traces.prune(served) >= 1
    assert [row[0] for row in rows()][-1] == "third question about a pump"


# ── MCP ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def _talk(target: Any) -> dict[str, Any]:
    """What a client sees: tools, a search, a passage, the collections, and two errors."""
    from mcp import Client

    async with Client(target) as client:
        tools = {t.name: t for t in (await client.list_tools()).tools}
        found = await client.call_tool("search_knowledge_base", {"collection": "pumps", "query": "how often is kestrel pump oiled?", "top_k": 2})
        passage = await client.call_tool("get_passage", {"collection": "pumps", "passage_id": "p3.md::1"})
        listed = await client.call_tool("list_collections", {})
        wrong = await client.call_tool("search_knowledge_base", {"collection": "nowhere", "query": "x"})
        worse = await client.call_tool("search_knowledge_base", {"collection": "pumps", "query": "x", "top_k": 1000})
        return {"tools": tools, "found": found, "passage": passage, "listed": listed, "wrong": wrong, "worse": worse}


def _check(seen: dict[str, Any]) -> None:
    assert set(seen["tools"]) == {"search_knowledge_base", "recall_claims", "answer", "get_passage", "list_collections"}
    schema = seen["tools"]["search_knowledge_base"].input_schema
    assert schema["properties"]["collection"]["enum"] == ["letters", "pumps"]
    assert schema["required"] == ["collection", "query"]
    assert seen["found"].structured_content["passages"][0]["source"] == "p3.md"
    assert "oiled every 3 weeks" in seen["passage"].structured_content["passages"][0]["text"]
    assert [c["name"] for c in seen["listed"].structured_content["collections"]] == ["letters", "pumps"]
    assert seen["wrong"].is_error
    assert "unknown collection 'nowhere'" in seen["wrong"].content[0].text
    assert seen["worse"].is_error


def test_a_client_in_this_process(served: Store) -> None:
    _check(asyncio.run(_talk(server.build(served))))


def environment(store: Store) -> dict[str, str]:
    return {**os.environ, "LAB_DATABASE_URL": store.dsn, "HF_HUB_OFFLINE": "1"}


def test_a_client_over_standard_input_and_output(served: Store) -> None:
    from mcp import StdioServerParameters

    parameters = StdioServerParameters(command=sys.executable, args=["-m", "lab", "serve", "--mcp"], env=environment(served))
    _check(asyncio.run(_talk(parameters)))


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def test_a_client_over_http_with_a_token(served: Store, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(TOKEN)
    path.chmod(0o600)
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "lab",
        "serve",
        "--mcp",
        "--bind",
        f"127.0.0.1:{port}",
        "--token-file",
        str(path),
        "--collections",
        "letters,pumps",
    ]
    process = subprocess.Popen(command, env=environment(served), stderr=subprocess.PIPE)
    url = f"http://127.0.0.1:{port}/mcp"
    try:
        for _ in range(200):
            try:
                assert httpx.post(url, json={}).status_code == 401
                break
            except httpx.TransportError:
                time.sleep(0.1)
        assert httpx.post(url, json={}, headers={"Authorization": "Bearer wrong-token-of-enough-signs"}).status_code == 401
        assert httpx.post(url, json={}, headers={"Authorization": f"Bearer {TOKEN}"}).status_code != 401

        async def talk() -> dict[str, Any]:
            import httpx2
            from mcp.client.streamable_http import streamable_http_client

            async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}) as client:
                return await _talk(streamable_http_client(url, http_client=client))

        _check(asyncio.run(talk()))
    finally:
        process.terminate()
        process.wait(timeout=20)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--bind", "0.0.0.0:8765"), "can be reached by others"), (("--bind", "127.0.0.1:notaport"), "HOST:PORT"), ((), "name what to serve"),
        (("--mcp", "--collections", "nowhere"), "unknown collection"), (("--mcp", "--tenant", "acme"), "not that of tenant acme"),
        (("--mcp", "--max-tokens", "3"), "leaves no room"), (("--mcp", "--bind", "127.0.0.1:1", "--token-file", "absent"), "cannot be read"),
    ],
)  # fmt: skip
def test_what_cannot_be_served_is_said(served: Store, lab: Lab, arguments: tuple[str, ...], said: str) -> None:
    words = arguments if not arguments or arguments[0] == "--mcp" else ("--mcp", *arguments)
    answer = lab("serve", *words, store=served)
    assert (answer.code, said in answer.err) == (2, True), answer.err


def test_a_token_that_others_can_read_is_refused(served: Store, lab: Lab, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(TOKEN)
    path.chmod(0o644)
    assert "chmod 600" in lab("serve", "--mcp", "--bind", "127.0.0.1:1", "--token-file", str(path), store=served).err
    path.write_text("short")
    path.chmod(0o600)
    assert "too short" in lab("serve", "--mcp", "--bind", "127.0.0.1:1", "--token-file", str(path), store=served).err


@pytest.mark.parametrize(
    ("word", "host", "port"),
    [
        ("127.0.0.1:80", "127.0.0.1", 80),
        ("9000", "127.0.0.1", 9000),
        ("localhost", "localhost", 8765),
        ("[::1]:81", "::1", 81),
        ("[::1]", "::1", 8765),
        ("::1", "::1", 8765),
    ],
)
def test_addresses(word: str, host: str, port: int) -> None:
    assert doors.address(word) == (host, port)
    assert doors.is_loopback(host)


def test_a_place_that_is_taken_is_4(lab: Lab, served: Store) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        answer = lab("ui", "--bind", f"127.0.0.1:{taken.getsockname()[1]}", store=served)
    assert answer.code == 4 and "name another behind --bind" in answer.err and answer.out == ""


@pytest.mark.parametrize("word", ["1:2:3:x", "host:0", "host:99999", "a:b"])
def test_what_is_no_address(word: str) -> None:
    with pytest.raises(UsageError, match="HOST:PORT"):
        doors.address(word)
