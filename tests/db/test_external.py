"""The external arm: somebody's list, measured and fused like any other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from lab.corpus.ingest import ingest
from lab.errors import LabError, UsageError
from lab.models import external, wire
from lab.retrieval.search import search
from lab.store.connect import Store
from tests.conftest import Databases, Lab, write
from tests.servers import Fake

TEXT = "# A\n\n" + "\n\n".join(f"## Part {name}\n\nWords of {name} stand here." for name in ("one", "two", "three"))


@pytest.fixture(scope="module")
def parts(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with databases.fresh() as dsn, Store(dsn) as store:
        ingest(write(tmp_path_factory.mktemp("parts"), {"a.md": TEXT, "b.md": "# B\n\nOther words."}), "c", store=store, embedder="keyword")
        yield store


def endpoint(answer: Any) -> Fake:
    return Fake(lambda path, body: (200, answer))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "PAUSE", 0.0)
    external.endpoint.cache_clear()


def test_the_list_alone_is_the_ranking(parts: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chunk by id, a span, a document, and one place twice: each chunk once, at its first place."""
    monkeypatch.setenv("LAB_EXTERNAL_KEY", "key-of-theirs")
    at = TEXT.index("Words of three")
    fake = endpoint({"results": [{"source": "a.md", "start": at, "end": at + 10, "score": 9.5}, {"chunk_id": "a.md::1"}, {"source": "b.md"},
                                     {"source": "a.md", "start": at + 1, "end": at + 5}]})  # fmt: skip
    found = search("c", "anything", store=parts, dense="none", lexical="none", external=f"{fake.url}/search", authority_weight=0)
    assert [r.chunk_id for r in found.results] == ["a.md::3", "a.md::1", "b.md::1"]
    assert [r.score for r in found.results] == [1 / 11, 1 / 12, 1 / 13]
    assert fake.asked == [("/search", {"question": "anything", "k": 100}, "Bearer key-of-theirs")]
    assert found.arms["external"].hits[0].score == 9.5


def test_it_is_fused_with_its_weight_and_off_at_zero(parts: Store) -> None:
    fake = endpoint({"results": [{"source": "b.md"}]})
    both = search("c", "words of two", store=parts, external=f"{fake.url}/search", external_weight=5, k=1)
    assert both.results[0].source == "b.md"
    asked = len(fake.asked)
    assert search("c", "words of two", store=parts, external=f"{fake.url}/search", external_weight=0, k=1).results[0].source == "a.md"
    assert len(fake.asked) == asked


def test_places_that_the_collection_lacks_are_said(parts: Store) -> None:
    fake = endpoint({"results": [{"source": "nowhere.md"}, {"chunk_id": "a.md::99"}, {"source": "b.md"}]})
    found = search("c", "x", store=parts, dense="none", lexical="none", external=f"{fake.url}/search")
    assert [r.source for r in found.results] == ["b.md"]
    assert found.diagnostic is not None
    assert "2 of 3 results" in found.diagnostic.message


@pytest.mark.parametrize(
    "answer", [[], {"hits": []}, {"results": [{"start": 1}]}, {"results": ["a.md"]}, {"results": [{"source": "a.md", "start": "x"}]}]
)
def test_an_answer_that_is_none_is_an_error(parts: Store, answer: Any) -> None:
    with pytest.raises(LabError, match="search endpoint at http"):
        search("c", "x", store=parts, dense="none", lexical="none", external=f"{endpoint(answer).url}/search")


def test_bad_addresses_are_refused(parts: Store, lab: Lab) -> None:
    with pytest.raises(UsageError, match="LAB_EXTERNAL_KEY"):
        search("c", "x", store=parts, external="http://u:pw@host/")
    answer = lab("search", "c", "x", "--external", "nonsense", store=parts)
    assert (answer.code, "is no address" in answer.err) == (2, True)
    assert lab("search", "c", "x", "--dense", "none", "--lexical", "none", store=parts).code == 2
