"""`lab ui`: pages from recorded runs, in a real browser; read-only, escaped, guarded."""

from __future__ import annotations

import base64
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest
import uvicorn

from lab.corpus.ingest import ingest
from lab.evaluation.gate import gate
from lab.evaluation.run import run
from lab.gold.files import load_gold, save_gold
from lab.records import Judgment, Question
from lab.report.browse import PAGES, app
from lab.resources import folder
from lab.store import baselines, runs
from lab.store.connect import Store
from tests.browser import Browser, browser  # noqa: F401
from tests.conftest import Lab, write

GOLD = folder("gold") / "handbook"


class Served:
    """The pages of a store behind a real server."""

    def __init__(self, store: Store, token: str | None = None) -> None:
        self.reading = store.reading()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.server = uvicorn.Server(uvicorn.Config(app(self.reading, "127.0.0.1", token), host="127.0.0.1", port=port, log_level="error"))
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        until = time.monotonic() + 30
        while not self.server.started and time.monotonic() < until:
            time.sleep(0.02)
        self.address = f"http://127.0.0.1:{port}"

    def get(self, path: str, **more: object) -> httpx.Response:
        return httpx.get(self.address + path, trust_env=False, **more)  # type: ignore[arg-type]

    def close(self) -> None:
        self.server.should_exit = True
        self.thread.join(timeout=30)
        self.reading.close()


@pytest.fixture(scope="module")
def two(handbook: Store) -> tuple[str, str]:
    return tuple(run("handbook", load_gold(GOLD), store=handbook, dense=dense, cites="on").run_id for dense in ("none", "hnsw"))  # type: ignore[return-value]


@pytest.fixture(scope="module")
def served(handbook: Store, two: tuple[str, str]) -> Iterator[Served]:
    baselines.promote(handbook, "ui", two[0], "for the page of verdicts", "ann")
    gate("ui", two[1], store=handbook)
    opened = Served(handbook)
    yield opened
    opened.close()


def test_from_the_list_to_a_passage(served: Served, two: tuple[str, str], handbook: Store, browser: Browser, tmp_path: Path) -> None:  # noqa: F811
    """A reader picks two runs, compares them, follows a flipped question into its ledger, and reads the passage that answers it."""
    lost = next(
        f
        for f in handbook.rows(
            "select question_id, direction from lab.flips where a = %(a)s and b = %(b)s and measure = 'hit@5' order by 1", {"a": two[0], "b": two[1]}
        )
    )
    for width in (1280, 390):
        browser.open(served.address + "/", width=width)
        browser.js(f"document.querySelector('input[name=a][value=\"{two[0]}\"]').click()")
        browser.js(f"document.querySelector('input[name=b][value=\"{two[1]}\"]').click()")
        browser.js("[...document.querySelectorAll('button')].at(-1).click()")
        browser._wait(lambda: "/compare?" in browser.js("location.href") and browser.js("document.readyState") == "complete")
        assert "hit@5: better by" in browser.js("document.body.innerText")
        assert browser.js("document.documentElement.scrollWidth") <= width
        browser.js(f"[...document.links].find(l => l.textContent === '{lost[0]}').click()")
        browser._wait(lambda: "/question?" in browser.js("location.href") and browser.js("document.readyState") == "complete")
        text = browser.js("document.body.innerText")
        assert two[0] in text and two[1] in text and "lexical" in text and browser.js("document.documentElement.scrollWidth") <= width
        browser.js("[...document.links].find(l => l.href.includes('/passage?')).click()")
        browser._wait(lambda: "/passage?" in browser.js("location.href") and browser.js("document.readyState") == "complete")
        assert len(browser.js("document.querySelector('blockquote').innerText")) > 20
    assert browser.said == [] and all(address.startswith(served.address) for address in browser.fetched)
    assert browser.picture(tmp_path / "p.png").stat().st_size > 5_000


def test_pages_say_what_the_database_says(served: Served, two: tuple[str, str], handbook: Store) -> None:
    row = runs.get_run(handbook, two[1])
    mean = handbook.rows("select mean from lab.run_scores where run_id = %(r)s and measure = 'hit@5'", {"r": two[1]})[0][0]
    page = served.get("/run", params={"id": two[1]}).text
    assert f"{mean:.4f}" in page and page.count("/question?") == sum(row.health["lost"].values())
    assert served.get("/run", params={"id": two[1], "show": "all"}).text.count("/question?") == row.questions
    assert "regression" in served.get("/verdicts").text or "pass" in served.get("/verdicts").text
    cites = handbook.rows(
        "select f.source || '::' || f.n, t.source || '::' || t.n from kb_handbook.links l join kb_handbook.chunks f on f.key = l.from_id join kb_handbook.chunks t on t.key = l.to_id limit 1"
    )[0]
    assert "Cites" in served.get("/passage", params={"collection": "handbook", "id": cites[0]}).text
    back = served.get("/passage", params={"collection": "handbook", "id": cites[1]}).text
    assert "Cited by" in back and cites[0] in back


@pytest.mark.parametrize(
    ("path", "status"),
    [("/run?id=x", 404), ("/compare?a=x&b=y", 404), ("/question?gold=x&id=y", 404), ("/passage?collection=handbook&id=x::1", 404), ("/passage?collection=nobody&id=x::1", 404),
     ("/passage?collection=handbook&id=x::9999999999999999", 404), ("/experiment?id=%27;drop", 404), ("/nowhere", 404), ("/?from=-1&collection=%00", 200), ("/experiment", 404)],
)  # fmt: skip
def test_wrong_addresses(served: Served, path: str, status: int) -> None:
    answer = served.get(path)
    assert answer.status_code == status and "Traceback" not in answer.text and "<h1>" in answer.text


def test_nothing_can_be_written(served: Served, handbook: Store) -> None:
    assert {httpx.post(served.address + path, trust_env=False).status_code for path in PAGES} == {405}
    with handbook.reading() as reading, pytest.raises(psycopg.errors.ReadOnlySqlTransaction), reading.connection() as connection:
        connection.execute("delete from lab.verdicts")


def test_only_this_machine_asks_and_strangers_need_the_token(served: Served, handbook: Store) -> None:
    assert served.get("/", headers={"Host": "evil.example"}).status_code == 400
    policy = served.get("/").headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script" not in served.get("/").text
    token = "a-token-of-enough-length"
    guarded = Served(handbook, token)
    try:
        refused = guarded.get("/")
        assert refused.status_code == 401 and refused.headers["www-authenticate"].startswith("Basic")
        assert guarded.get("/", auth=("ann", token)).status_code == 200
        assert guarded.get("/", headers={"Authorization": f"Bearer {token}"}).status_code == 200
        for given in (
            "Basic !!",
            "Basic " + base64.b64encode(b"ann:wrong").decode(),
            "Basic " + base64.b64encode(b"no colon").decode(),
            "Bearer x",
            token,
        ):
            assert guarded.get("/", headers={"Authorization": given}).status_code == 401
    finally:
        guarded.close()


def test_other_hosts_need_a_token_file(lab: Lab) -> None:
    answer = lab("ui", "--bind", "0.0.0.0:8799")
    assert answer.code == 2 and "--token-file" in answer.err


def test_what_people_wrote_is_text(store: Store, tmp_path: Path) -> None:
    """Markup in questions, passages and sources is shown as it is."""
    evil = "<script>alert(1)</script> when is the pump oiled?"
    body = "The pump is oiled <img src=x onerror=alert(2)> daily."
    ingest(write(tmp_path / "d", {"a<b>.txt": body, "b.txt": "The door is blue."}), "c", store=store, embedder="none")
    source, text = store.rows("select source, text from kb_c.files where text like '%%pump%%'")[0]
    save_gold(tmp_path / "g", [Question("q<i>", evil)], [Judgment("q<i>", source, 0, len(text), 1, text)], "")
    done = run("c", str(tmp_path / "g"), store=store, dense="none")
    opened = Served(store)
    try:
        digest = runs.get_run(store, done.run_id).gold_digest
        pages = [
            opened.get("/run", params={"id": done.run_id, "show": "all"}), opened.get("/question", params={"gold": digest, "id": "q<i>"}),
            opened.get("/passage", params={"collection": "c", "id": f"{source}::1"}),
        ]  # fmt: skip
        for page in pages:
            assert page.status_code == 200 and "<script>" not in page.text and "<img" not in page.text
        assert "&lt;script&gt;" in pages[0].text and "&lt;img" in pages[2].text
    finally:
        opened.close()
