"""Chat models behind an OpenAI-compatible `/v1/chat/completions` (Ollama, vLLM, llama.cpp, and what speaks like them), asked for JSON.

The address is LAB_CHAT_URL, the model LAB_CHAT_MODEL, the key LAB_CHAT_KEY.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from lab.config import effective
from lab.errors import LabError, UsageError
from lab.models.wire import Refusal, Wire

SEED = 13
_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)|^.*?</think>", re.DOTALL)
_MOST = 200  # brackets that open nothing: an answer with more is none
_PIECES = 1_000  # that are looked at
_LONGEST = 1_000_000  # characters that are read of an answer
_LOOKED = 2_000_000  # characters that are looked at for brackets that close
_FENCE = re.compile(r"```[\w-]*\n(.*?)```", re.DOTALL)
_OPENED = re.compile(r"[{\[]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_DEEPEST = 100  # brackets in brackets: what is deeper is no answer to a question of ours


class Malformed(LabError):
    """The model answered, twice, with what is no JSON of the wanted form; it cost so many tokens all the same."""

    def __init__(self, message: str, asked: int, answered: int) -> None:
        super().__init__(message)
        self.asked, self.answered = asked, answered


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model said, and what it cost in tokens (0 where the server does not tell)."""

    value: Any
    text: str
    asked: int
    answered: int
    calls: int


class Chat:
    """`ask` gives parsed JSON. Temperature 0 and a seed: as repeatable as the server is."""

    def __init__(self, url: str, model: str, key: str = "") -> None:
        if not model.isprintable():
            raise UsageError(f"the model's name {model!r} holds control characters: check LAB_CHAT_MODEL.")
        self.model = model
        self.wire = Wire(url, key, "chat server", "LAB_CHAT", model)
        end = re.search(r"(/v\d+)?(/chat/completions)?$", self.wire.url)
        assert end is not None
        self._path = "" if end[2] else "/chat/completions" if end[1] else "/v1/chat/completions"
        self._modes = ["schema", "object", "text"]  # how JSON is asked for: what the server refuses is not tried again

    def ask(
        self,
        system: str,
        user: str,
        schema: Mapping[str, Any],
        *,
        temperature: float = 0.0,
        seed: int = SEED,
        most: int = 2000,
        rescue: Callable[[str], Any] | None = None,
        held_to: Mapping[str, Any] | None = None,
    ) -> Reply:
        """The answer to `user` as JSON of the form `schema` (an object). A malformed one is asked for once more; then `rescue` may make a value of its words (None: it
        cannot), else Malformed is raised. `held_to` is a looser form, for a caller that can do with a part of what comes back."""
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        asked = answered = 0
        for calls in (1, 2):
            text, spent, made = self._complete(messages, schema, temperature, seed, most)
            asked, answered = asked + spent, answered + made
            wrong = ""
            for value in pieces(text):
                said = misfit(value, held_to or schema)
                if not said:
                    return Reply(clean(value), clean(text), asked, answered, calls)
                wrong = wrong or said
            if len(text) >= _LONGEST:
                wrong = f"it is longer than {_LONGEST:,} characters"
            wrong = wrong or "it holds no JSON"
            messages = [*messages[:2], {"role": "assistant", "content": text[:4000]},
                        {"role": "user", "content": f"That was not the JSON asked for ({wrong}). Answer again with one JSON object, and nothing else."}]  # fmt: skip
        if rescue is not None and (value := rescue(_THOUGHT.sub("", clean(text)))) is not None:
            return Reply(clean(value), clean(text), asked, answered, 2)
        raise Malformed(
            f"{self.wire.where} answered {self.model!r} twice with something else than the JSON asked for ({wrong}): use another model.",
            asked,
            answered,
        )

    def _complete(self, messages: list[dict[str, str]], schema: Mapping[str, Any], temperature: float, seed: int, most: int) -> tuple[str, int, int]:
        while True:
            mode = self._modes[0]
            body: dict[str, Any] = {
                "model": self.model,
                "messages": messages,
                "temperature": temperature,
                "seed": seed,
                "max_tokens": most,
                "stream": False,
            }
            if mode == "schema":
                body["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": dict(schema), "strict": True}}
            elif mode == "object":
                body["response_format"] = {"type": "json_object"}
            try:
                answer = self.wire.post(self._path, body)
                break
            except Refusal as refusal:
                if refusal.status not in {400, 415, 422} or mode == self._modes[-1]:
                    raise
                if self._modes[0] == mode:  # another thread may have learnt it meanwhile
                    self._modes = self._modes[1:]
        try:
            content = answer["choices"][0]["message"]["content"] or ""
            usage = answer.get("usage")
        except (KeyError, IndexError, TypeError, AttributeError):
            raise LabError(f"{self.wire.where} answered with no message: is it an OpenAI-compatible server?") from None
        if isinstance(content, list):  # parts, as some servers have them
            content = "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
        told = usage if isinstance(usage, dict) else {}
        return str(content)[:_LONGEST], _count(told.get("prompt_tokens")), _count(told.get("completion_tokens"))


def _count(value: Any) -> int:
    """A number of tokens as a server tells it; 0 for what is none: an odd count costs no good answer."""
    return int(value) if finite(value) and 0 < value < 1e12 else 0


def clean(value: Any) -> Any:
    """A value without what no file, database or terminal should hold: lone surrogates, and control characters (those that turn the direction of writing too) but for tab and line ends.

    >>> clean({"a": ["red\\x1b[31m", "\\ud800"]})
    {'a': ['red [31m', '?']}
    """
    if isinstance(value, str):
        return _CONTROL.sub(" ", value).encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [clean(item) for item in value]
    return {clean(str(key)): clean(item) for key, item in value.items()} if isinstance(value, dict) else value


def parse(text: str) -> Any:
    """The JSON in a model's answer: without its thoughts, code fences and words around it; trailing commas are forgiven. ValueError where there is none.

    >>> parse('Sure! ```json\\n{"a": [1, 2,],}\\n``` Anything else?')
    {'a': [1, 2]}
    """
    for value in pieces(text):
        return value
    raise ValueError("it holds no JSON")


def pieces(text: str) -> Iterator[Any]:
    """Every JSON object or list in a model's answer, outermost ones, first come first; what stands in a code fence before the rest."""
    text = _THOUGHT.sub("", text).strip()
    fenced = _FENCE.search(text)
    looked = found = 0
    for words in ([fenced[1]] if fenced else []) + [text]:
        at = 0
        failed = 0
        while failed < _MOST and looked < _LOOKED and found < _PIECES:
            failed += 1
            opened = _OPENED.search(words, at)
            if opened is None:
                break
            start = opened.start()
            at = start + 1
            piece = _balanced(words[start:])
            looked += len(words) - start if piece is None else len(piece)
            for version in (piece, re.sub(r",(\s*[}\]])", r"\1", piece)) if piece is not None else ():
                try:
                    value = json.loads(version, strict=False)
                except (ValueError, RecursionError):
                    continue
                yield value
                found += 1
                failed -= 1
                at = start + len(piece or "")
                break


def _balanced(text: str) -> str | None:
    """The text up to where its first bracket closes, brackets in strings aside; None where it does not."""
    depth, quoted, escaped = 0, False, False
    for at, sign in enumerate(text):
        if escaped:
            escaped = False
        elif quoted:
            escaped = sign == "\\"
            quoted = sign != '"'
        elif sign == '"':
            quoted = True
        elif sign in "{[":
            depth += 1
            if depth > _DEEPEST:
                return None
        elif sign in "}]":
            depth -= 1
            if depth == 0:
                return text[: at + 1]
    return None


_TYPES: dict[str, type | tuple[type, ...]] = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}


def misfit(value: Any, schema: Mapping[str, Any], where: str = "the answer") -> str:
    """What is wrong with a value, in words; empty where it has the form of `schema` (type or several types, required, properties, items, enum, minimum, maximum: what our prompts
    use). NaN and infinity, which Python's JSON reads, are no number."""
    kinds = schema.get("type", "object")
    if isinstance(kinds, list):
        return "" if any(not misfit(value, {**schema, "type": one}, where) for one in kinds) else f"{where} is none of {', '.join(kinds)}"
    kind = str(kinds)
    held: Any = value
    if not isinstance(value, _TYPES[kind]) or (kind in {"integer", "number"} and isinstance(value, bool)):
        return f"{where} is no {kind}"
    if kind in {"integer", "number"}:
        if not finite(held):
            return f"{where} is {str(held)[:20]}, which is no number"
        if not schema.get("minimum", -math.inf) <= held <= schema.get("maximum", math.inf):
            return f"{where} is {held:g}, and must lie between {schema.get('minimum', -math.inf):g} and {schema.get('maximum', math.inf):g}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{where} is none of {', '.join(schema['enum'])}"
    if kind == "object":
        for name in schema.get("required", ()):
            if name not in held:
                return f"{where} lacks {name!r}"
        for name, inner in schema.get("properties", {}).items():
            if name in held and (wrong := misfit(held[name], inner, repr(name))):
                return wrong
    if kind == "array" and "items" in schema:
        return next((wrong for item in held if (wrong := misfit(item, schema["items"], f"a member of {where}"))), "")
    return ""


def finite(value: Any) -> TypeGuard[float]:
    """Whether it is a number that a float can hold: not NaN, not infinite, no truth value. JSON lets integers of any length through.

    >>> [finite(x) for x in (1, 0.5, float("nan"), float("inf"), 10**400, True, "1")]
    [True, True, False, False, False, False, False]
    """
    return isinstance(value, int | float) and not isinstance(value, bool) and -1e300 < value < 1e300


def configured() -> Chat:
    """The chat model of the surroundings; UsageError where none is named."""
    known = effective()
    url, model = known["chat_url"].value, known["chat_model"].value
    if not url or not model:
        raise UsageError(
            "no chat model is named: set LAB_CHAT_URL (as http://localhost:11434) and LAB_CHAT_MODEL, and LAB_CHAT_KEY where one is needed."
        )
    return _chat(url, model, known["chat_key"].value)


@functools.lru_cache(maxsize=4)
def _chat(url: str, model: str, key: str) -> Chat:
    return Chat(url, model, key)
