"""The chat client against a real HTTP server: JSON asked for in three ways, repaired, asked for again, refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from lab.errors import LabError, ServerError, UsageError
from lab.models import chat, wire
from lab.models.asked import Remembered, Spent, ask
from lab.models.chat import Chat, Malformed, misfit, parse, pieces
from lab.retrieval.analyse import rewritten
from tests.servers import Fake

SCHEMA = {"type": "object", "properties": {"question": {"type": "string"}, "n": {"type": "integer"}}, "required": ["question"]}


def said(text: str) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", "content": text}}], "usage": {"prompt_tokens": 20, "completion_tokens": 5}}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(wire, "PAUSE", 0.0)
    chat._chat.cache_clear()
    yield
    chat._chat.cache_clear()


@pytest.mark.parametrize(
    "text",
    [
        '{"question": "a"}', '```json\n{"question": "a"}\n```', 'Sure! Here it is: {"question": "a",}\nAnything else?', '<think>{"question": "no"}</think>{"question": "a"}',
        'By [1] and [2]: {"question": "a"}', '{"n": 2} {"question": "a"}', 'I think\n</think>\n\n{"question": "a"}', '{note} {"question": "a"}',
    ],
)  # fmt: skip
def test_what_models_wrap_json_in(text: str) -> None:
    assert next(value for value in pieces(text) if not misfit(value, SCHEMA)) == {"question": "a"}


@pytest.mark.parametrize(
    "text", ['<think> perhaps {"question": "draft"} or', "[" * 100_000 + "]" * 100_000, "", "no", '{"question": "a"', "]", "{{{{"]
)
def test_what_is_no_json(text: str) -> None:
    with pytest.raises(ValueError, match="no JSON"):
        parse(text)


def test_brackets_and_line_breaks_in_strings() -> None:
    assert parse('x {"a": "} ] \\" {", "b": "one\ntwo"} y') == {"a": '} ] " {', "b": "one\ntwo"}


@pytest.mark.parametrize(
    ("end", "path"), [("", "/v1/chat/completions"), ("/v1", "/v1/chat/completions"), ("/api/v1/chat/completions", "/api/v1/chat/completions")]
)
def test_addresses(end: str, path: str) -> None:
    fake = Fake(lambda where, body: (200, said('{"question": "a"}')))
    reply = Chat(fake.url + end, "m", "key-1").ask("Be brief.", "Go.", SCHEMA)
    assert (reply.value, reply.asked, reply.answered, reply.calls) == ({"question": "a"}, 20, 5, 1)
    where, body, key = fake.asked[0]
    assert (where, key, body["model"], body["temperature"]) == (path, "Bearer key-1", "m", 0.0)
    assert [m["role"] for m in body["messages"]] == ["system", "user"]


def test_a_server_without_schemas_is_asked_in_another_way_and_remembered() -> None:
    def answer(path: str, body: Any) -> tuple[int, Any]:
        if body.get("response_format", {}).get("type") == "json_schema":
            return 400, {"error": "response_format is not supported"}
        return 200, said('{"question": "a"}')

    fake = Fake(answer)
    model = Chat(fake.url, "m")
    for _ in range(2):
        assert model.ask("s", "u", SCHEMA).value == {"question": "a"}
    assert [body.get("response_format", {}).get("type") for _, body, _ in fake.asked] == ["json_schema", "json_object", "json_object"]


def test_a_malformed_answer_is_asked_for_again_once() -> None:
    answers = ["I cannot.", '{"question": "a"}']
    fake = Fake(lambda path, body: (200, said(answers[min(len(fake.asked), 2) - 1])))
    reply = Chat(fake.url, "m").ask("s", "u", SCHEMA)
    assert (reply.value, reply.calls, reply.asked) == ({"question": "a"}, 2, 40)
    assert "it holds no JSON" in fake.asked[1][1]["messages"][-1]["content"]
    for wrong, why in (
        ('{"n": 1}', "lacks 'question'"),
        ('{"question": 3}', "'question' is no string"),
        ('{"question": "a", "n": true}', "'n' is no integer"),
        ("[]", "is no object"),
    ):
        one = Fake(lambda path, body, wrong=wrong: (200, said(wrong)))  # type: ignore[misc]
        with pytest.raises(Malformed, match=why):
            Chat(one.url, "m").ask("s", "u", SCHEMA)
        assert len(one.asked) == 2


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        ((404, {"error": "model m not found"}), LabError, "check the model's name 'm'"), ((401, {}), UsageError, "LAB_CHAT_KEY"), ((500, {}), ServerError, "LAB_CHAT_URL"),
        ((200, {"choices": []}), LabError, "no message"), ((200, b"<html>"), LabError, "something else than JSON"),
    ],
)  # fmt: skip
def test_servers_that_fail(answer: tuple[int, Any], error: type[LabError], words: str) -> None:
    with pytest.raises(error, match=words):
        Chat(Fake(lambda path, body: answer).url, "m", "canary-key").ask("s", "u", SCHEMA)


def test_a_question_is_made_to_stand_alone_by_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Fake(lambda path, body: (200, said(json.dumps({"question": "What is the remote work policy for contractors?"}))))
    with pytest.raises(UsageError, match="LAB_CHAT_URL"):
        rewritten("What about contractors?", ["remote work policy"], "chat")
    monkeypatch.setenv("LAB_CHAT_URL", fake.url)
    monkeypatch.setenv("LAB_CHAT_MODEL", "m")
    assert rewritten("What about contractors?", ["remote work policy"], "chat") == "What is the remote work policy for contractors?"
    assert "remote work policy" in fake.asked[0][1]["messages"][1]["content"]
    assert rewritten("What about contractors?", [], "chat") == "What about contractors?"
    assert len(fake.asked) == 1, "without history no model is asked"


def test_a_blank_or_endless_rewriting_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for words in ("  ", "word " * 500):
        fake = Fake(lambda path, body, words=words: (200, said(json.dumps({"question": words}))))  # type: ignore[misc]
        monkeypatch.setenv("LAB_CHAT_URL", fake.url)
        monkeypatch.setenv("LAB_CHAT_MODEL", "m")
        assert rewritten("What about contractors?", ["remote work policy"], "chat") == "remote work policy: contractors?"


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ('{"prompt_tokens": Infinity, "completion_tokens": NaN}', (0, 0)), ('{"prompt_tokens": "many", "completion_tokens": 5}', (0, 5)), ("7", (0, 0)), ("null", (0, 0)),
        ('{"prompt_tokens": -3, "completion_tokens": 2.0}', (0, 2)), ('{"prompt_tokens": 1' + "0" * 400 + "}", (0, 0)), ('{"prompt_tokens": true}', (0, 0)),
    ],
)  # fmt: skip
def test_odd_counts_cost_no_good_answer(usage: str, counts: tuple[int, int]) -> None:
    body = '{"choices": [{"message": {"content": "{\\"question\\": \\"a\\"}"}}], "usage": ' + usage + "}"
    reply = Chat(Fake(lambda path, asked: (200, body.encode())).url, "m").ask("s", "u", SCHEMA)
    assert (reply.value, reply.asked, reply.answered) == ({"question": "a"}, *counts)


def test_content_in_parts() -> None:
    parts = [{"type": "text", "text": '{"question": '}, {"type": "text", "text": '"a"}'}]
    fake = Fake(lambda path, body: (200, {"choices": [{"message": {"content": parts}}]}))
    assert Chat(fake.url, "m").ask("s", "u", SCHEMA).value == {"question": "a"}


def test_what_no_file_and_no_terminal_should_hold() -> None:
    fake = Fake(lambda path, body: (200, said('{"question": "a\\u0000b\\u001b[31m \\ud800 c\\td"}')))
    reply = Chat(fake.url, "m").ask("s", "u", SCHEMA)
    assert reply.value == {"question": "a b [31m ? c\td"}
    noisy = Fake(lambda path, body: (400, b"no\x1b[31m such\n\nmodel"))
    with pytest.raises(LabError, match=r"status 400 no \[31m such model\)"):
        Chat(noisy.url, "m").ask("s", "u", SCHEMA)


def test_brackets_without_end_are_given_up() -> None:
    assert list(pieces("[" * 50_000 + '{"question": "a"}')) == [] and len(list(pieces("[]" * 200_000))) == 1_000


def test_what_is_kept_and_what_is_not(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A good answer is asked for once; a malformed one, and a file that was damaged, are asked for again. First and later replies are the same."""
    monkeypatch.setenv("LAB_HOME", str(tmp_path))
    answers = ["nothing", "nothing", '{"question": "a\\ud800"}', '{"question": "b"}']
    fake = Fake(lambda path, body: (200, said(answers[min(len(fake.asked), 4) - 1])))
    model, spent = Chat(fake.url, "m"), Spent()
    got = [ask(model, spent, "answer-cache", "v", "s", "u", SCHEMA) for _ in range(3)]
    assert got == [None, {"question": "a?"}, {"question": "a?"}] and (len(fake.asked), spent.calls, spent.cached) == (3, 3, 1)
    [kept] = (tmp_path / "answer-cache").glob("*/*.json")
    kept.write_text('{"question": 7}')
    assert ask(model, spent, "answer-cache", "v", "s", "u", SCHEMA) == {"question": "b"} and len(fake.asked) == 4
    remembered = Remembered(Chat(Fake(lambda path, body: (200, said('{"question": "x\\ud800"}'))).url, "m"), "gold-cache", "v")
    assert remembered.ask("s", "u", SCHEMA).value == remembered.ask("s", "u", SCHEMA).value == {"question": "x?"}


@pytest.mark.parametrize(
    ("url", "key", "said"), [("http://[::1", "", "is no address"), ("http://a:b", "", "is no address"), ("http://x:99999", "", "is no address"), ("http://x", "ключ", "LAB_CHAT_KEY"), ("http://x", "a\nb", "LAB_CHAT_KEY")]
)  # fmt: skip
def test_addresses_and_keys_that_are_none(url: str, key: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Chat(url, "m", key)


def test_an_odd_time_to_wait_is_none() -> None:
    from lab.models.wire import Wire

    fake = Fake(lambda path, body: (429 if len(fake.asked) == 1 else 200, said('{"question": "a"}')), {"Retry-After": "\u00b2"})
    assert Wire(fake.url, "", "chat server", "LAB_CHAT", "m").post("/", {}) == said('{"question": "a"}')


def test_what_is_redirected_is_a_wrong_address() -> None:
    with pytest.raises(LabError, match=r"status 302 .*: check LAB_CHAT_URL"):
        Chat(Fake(lambda path, body: (302, {})).url, "m").ask("s", "u", SCHEMA)


def test_an_answer_without_end_is_told_as_such() -> None:
    with pytest.raises(Malformed, match="longer than 1,000,000 characters"):
        Chat(Fake(lambda path, body: (200, said('{"question": "' + "a" * 1_100_000 + '"}'))).url, "m").ask("s", "u", SCHEMA)
