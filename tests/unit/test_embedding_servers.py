"""Embedding servers, against a real HTTP server on this machine: three dialects, retries, and clear words when something is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from lab.errors import LabError, ServerError, UsageError
from lab.models import wire
from lab.models.embedders import embedder, prefixes
from lab.models.servers import EmbeddingServer
from tests.servers import Answer, Fake


def vector(text: str) -> list[float]:
    """3 dimensions that tell texts apart; not of unit length."""
    return [float(len(text)), 1.0, float(ord(text[0]))]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Answer], Fake]]:
    made: list[Fake] = []
    monkeypatch.setattr(wire, "PAUSE", 0.0)

    def make(answer: Answer) -> Fake:
        made.append(Fake(answer))
        monkeypatch.setenv("LAB_EMBED_URL", made[-1].url)
        return made[-1]

    yield make
    for one in made:
        one.close()


def tei(path: str, body: Any) -> tuple[int, Any]:
    if path == "/info":
        return 200, {"model_id": "m", "model_sha": "abc", "max_input_length": 512}
    return (200, [vector(text) for text in body["inputs"]]) if path == "/embed" else (404, {})


def openai(path: str, body: Any) -> tuple[int, Any]:
    if path != "/v1/embeddings":
        return 404, {}
    rows = [{"index": i, "embedding": vector(text)} for i, text in enumerate(body["input"])]
    return 200, {"data": rows[::-1]}  # the order is that of `index`


def ollama(path: str, body: Any) -> tuple[int, Any]:
    if path == "/api/tags":
        return 200, {"models": [{"name": "m:latest", "digest": "d1"}]}
    return (200, {"embeddings": [vector(text) for text in body["input"]]}) if path == "/api/embed" else (404, {})


def old_ollama(path: str, body: Any) -> tuple[int, Any]:
    return (200, {"embedding": vector(body["prompt"])}) if path == "/api/embeddings" else (404, b"404 page not found")


@pytest.mark.parametrize(("dialect", "answer"), [("tei", tei), ("openai", openai), ("ollama", ollama), ("ollama", old_ollama)])
def test_every_dialect_gives_unit_vectors_in_order(dialect: str, answer: Answer, fake: Callable[[Answer], Fake]) -> None:
    fake(answer)
    model = EmbeddingServer(dialect, "m")
    texts = [f"{chr(65 + i % 26)}{'x' * i}" for i in range(70)]
    array = model.encode(texts)
    expected = np.array([vector(text) for text in texts], dtype=np.float32)
    assert model.dim == 3 and array.shape == (70, 3)
    np.testing.assert_allclose(array, expected / np.linalg.norm(expected, axis=1, keepdims=True), rtol=1e-5)


def test_what_the_server_tells_of_its_weights_is_in_the_digest(fake: Callable[[Answer], Fake]) -> None:
    fake(tei)
    assert (EmbeddingServer("tei", "m").digest, EmbeddingServer("tei", "m").limit) == ("tei:m@abc", 512)
    fake(ollama)
    assert EmbeddingServer("ollama", "m").digest == "ollama:m@d1"


def test_a_busy_server_is_asked_again(fake: Callable[[Answer], Fake]) -> None:
    calls = 0

    def busy(path: str, body: Any) -> tuple[int, Any]:
        nonlocal calls
        calls += 1
        return (503, {"error": "loading"}) if calls in {1, 2} else openai(path, body)

    fake(busy)
    assert EmbeddingServer("openai", "m").encode(["a"]).shape == (1, 3) and calls == 4  # two refusals, the dimension, the text


def test_a_server_that_never_answers_is_named(fake: Callable[[Answer], Fake], monkeypatch: pytest.MonkeyPatch) -> None:
    one = fake(lambda path, body: (500, {"error": "boom"}))
    with pytest.raises(ServerError, match=rf"{one.url} did not answer after 5 tries \(status 500 .*boom"):
        EmbeddingServer("openai", "m").encode(["a"])
    assert len(one.asked) == 5
    monkeypatch.setenv("LAB_EMBED_URL", "http://ada:canary@127.0.0.1:9")
    with pytest.raises(ServerError, match=r"127.0.0.1:9 did not answer") as error:
        EmbeddingServer("openai", "m").encode(["a"])
    assert "canary" not in str(error.value)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda path, body: (200, {"data": []}), "returned 0 vectors for 1 texts"),
        (lambda path, body: (200, {"data": [{"index": 0, "embedding": []}]}), "unequal length, or none"),
        (lambda path, body: (200, {"data": [{"index": 0, "embedding": [1.0, None]}]}), "unequal length, or none|NaN"),
        (lambda path, body: (200, b"<html>"), "something else than JSON"),
        (lambda path, body: (404, {"error": "model not found"}), "check the model's name 'm'"),
        (lambda path, body: (200, ["x"]), "returned 0 vectors"),
    ],
)
def test_what_is_no_answer_is_refused(answer: Answer, message: str, fake: Callable[[Answer], Fake]) -> None:
    fake(answer)
    with pytest.raises(LabError, match=message):
        EmbeddingServer("openai", "m").encode(["a"])


def test_a_changed_dimension_and_nan_are_refused(fake: Callable[[Answer], Fake]) -> None:
    calls = 0

    def changing(path: str, body: Any) -> tuple[int, Any]:
        nonlocal calls
        calls += 1
        return 200, {"data": [{"index": i, "embedding": [1.0] * (3 if calls == 1 else 4)} for i in range(len(body["input"]))]}

    fake(changing)
    with pytest.raises(LabError, match="was expected"):
        EmbeddingServer("openai", "m").encode(["a"])
    fake(lambda path, body: (200, b'{"data": [{"index": 0, "embedding": [NaN, 1.0]}]}'))
    with pytest.raises(LabError, match="NaN or infinity"):
        EmbeddingServer("openai", "m").encode(["a"])


def test_the_key_travels_in_the_header_and_a_wrong_one_is_said(fake: Callable[[Answer], Fake], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_EMBED_KEY", "canary-key")
    one = fake(openai)
    EmbeddingServer("openai", "m").encode(["a"])
    assert {key for _, _, key in one.asked} == {"Bearer canary-key"}
    fake(lambda path, body: (401, {"error": "canary-key is wrong"}))
    with pytest.raises(UsageError, match="set LAB_EMBED_KEY") as error:
        EmbeddingServer("openai", "m").encode(["a"])
    assert "canary" not in str(error.value)


def test_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAB_EMBED_URL", raising=False)
    assert isinstance(embedder("ollama:nomic-embed-text"), EmbeddingServer)
    with pytest.raises(UsageError, match="did you mean 'minilm'"):
        embedder("minilmm")
    with pytest.raises(UsageError, match="set LAB_EMBED_URL"):
        EmbeddingServer("openai", "m").encode(["a"])
    monkeypatch.setenv("LAB_EMBED_URL", "localhost")
    with pytest.raises(UsageError, match="must look like"):
        EmbeddingServer("tei", "m").encode(["a"])


def test_prefixes_of_asymmetric_models() -> None:
    assert prefixes("intfloat/multilingual-e5-small") == ("query: ", "passage: ")
    assert prefixes("ollama:nomic-embed-text") == ("search_query: ", "search_document: ")
    assert prefixes("BAAI/bge-m3") == prefixes("minilm") == ("", "")
