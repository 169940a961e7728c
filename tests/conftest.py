"""Fixtures: one embedded server for all tests, a template database, a copy of it a test.

The server is that of LAB_HOME (or LAB_DATABASE_URL): tests make databases of their own there, named lab_test_*, and leave the others alone.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from lab.cli import main as command_line
from lab.config import database_url
from lab.corpus.ingest import ingest
from lab.report.demo import ROOT
from lab.resources import folder
from lab.store import embedded
from lab.store.connect import Store, connect
from tests.servers import Model

pytest_plugins = ["pytester"]
SHARED = Path(__file__).resolve().parent.parent.parent / "shared" / "data"


def shared(name: str) -> Path:
    """A folder of the shared test data; skips where it is absent, fails where LAB_REQUIRE_SHARED=1 says it must not be."""
    path = SHARED / name
    if not path.exists():
        if os.environ.get("LAB_REQUIRE_SHARED") == "1":
            pytest.fail(f"the test data {name} is absent and LAB_REQUIRE_SHARED=1")
        pytest.skip(f"the test data {name} is absent")
    return path


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Path]:
    return shared


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("LAB_SLOW") != "1":
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="takes minutes: set LAB_SLOW=1"))


def _dsn(database: str) -> str:
    base = psycopg.conninfo.conninfo_to_dict(database_url() or embedded.dsn())
    return psycopg.conninfo.make_conninfo(**{**base, "dbname": database})  # type: ignore[arg-type]


class Databases:
    """Creates and drops databases on the test server."""

    def __init__(self) -> None:
        self.admin = psycopg.connect(_dsn("postgres"), autocommit=True)
        self.count = 0
        self.template = f"lab_test_{os.getpid()}_template"
        self._create(self.template)
        Store(_dsn(self.template)).close()

    def _create(self, name: str, template: str | None = None) -> None:
        self.admin.execute(f'drop database if exists "{name}" with (force)')
        self.admin.execute(f'create database "{name}"' + (f' template "{template}" strategy file_copy' if template else ""))

    @contextlib.contextmanager
    def fresh(self, template: str | None = None) -> Iterator[str]:
        self.count += 1
        name = f"lab_test_{os.getpid()}_{self.count}"
        self._create(name, template or self.template)
        try:
            yield _dsn(name)
        finally:
            self.admin.execute(f'drop database if exists "{name}" with (force)')

    def close(self) -> None:
        self.admin.execute(f'drop database if exists "{self.template}" with (force)')
        self.admin.close()


@pytest.fixture(scope="session")
def databases() -> Iterator[Databases]:
    made = Databases()
    yield made
    made.close()


@pytest.fixture
def store(databases: Databases) -> Iterator[Store]:
    """An empty database with the lab's schema."""
    with databases.fresh() as dsn, Store(dsn) as opened:
        yield opened


@pytest.fixture(scope="session")
def handbook(databases: Databases) -> Iterator[Store]:
    """A database that holds the collection `handbook`; for reading. Its vectors come from LAB_HOME, where the demo finds them too."""
    with databases.fresh() as dsn, Store(dsn) as opened:
        with_handbook(opened)
        yield opened


def with_handbook(opened: Store) -> None:
    """Ingests the handbook into an empty database, with the vectors of LAB_HOME."""
    documents = folder("gold") / "handbook" / "documents"
    with connect() as main:
        ingest(documents, "handbook", store=main, root=ROOT)
        with (
            main.connection() as source,
            opened.connection() as target,
            source.cursor().copy("copy lab.embeddings to stdout") as read,
            target.cursor().copy("copy lab.embeddings from stdin") as write_to,
        ):
            for data in read:
                write_to.write(data)
    report = ingest(documents, "handbook", store=opened, root=ROOT)
    assert report.embedded == 0


class WithoutExtension(Store):
    """A store as on a server that lacks pg_textsearch."""

    @property
    def bm25(self) -> bool:
        return False


@dataclass(frozen=True)
class Answer:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Lab = Callable[..., Answer]


@pytest.fixture
def lab(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Lab:
    """Runs a command in this process; `store=` names the database it uses. The working folder is empty."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, store: Store | None = None) -> Answer:
        if store is not None:
            monkeypatch.setenv("LAB_DATABASE_URL", store.dsn)
        capsys.readouterr()
        code = command_line.run(list(arguments))
        said = capsys.readouterr()
        return Answer(code, said.out, said.err)

    return call


@pytest.fixture
def models() -> Iterator[list[Model]]:
    """Scripted chat servers: `tests.servers.model` adds one; they end with the test."""
    made: list[Model] = []
    yield made
    for one in made:
        one.close()


def write(folder: Path, files: dict[str, str]) -> Path:
    """Writes text files below a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder
