"""Talking to a model server: JSON over HTTP, tried again with growing pauses where that can help, errors that name the server."""

from __future__ import annotations

import functools
import time
from typing import Any
from urllib.parse import urlsplit

from lab.errors import LabError, ServerError, UsageError, redact

TRIES = 5
SECONDS = 60.0  # for one request
PAUSE = 0.5  # before the second try; doubled each time


class Refusal(LabError):
    """The server refused a request; `status` is its answer's."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def plain(text: str) -> str:
    """What a server says, on one line and without control characters: it goes to a terminal.

    >>> plain("Error:\\n\\x1b[31m no model ")
    'Error: [31m no model'
    """
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


class Wire:
    """`what` names the server in errors ("embedding server"), `variable` is the beginning of its settings' names (LAB_EMBED), `said` where its address was given,
    if not in LAB_…_URL."""

    def __init__(self, url: str, key: str, what: str, variable: str, model: str, said: str = "") -> None:
        self.url = url.rstrip("/")
        self.key = key
        self.what = what
        self.variable = variable
        self.said = said or f"{variable}_URL"
        self.model = model
        try:
            parts = urlsplit(self.url)
            fits = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0) and self.url.isprintable()
        except ValueError:
            fits = False
        if not fits:
            raise UsageError(f"{self.said} {redact(url)!r} is no address: it must look like http://localhost:8080.")
        if not (key.isascii() and key.isprintable()):
            raise UsageError(f"{variable}_KEY holds signs that no key has: only printable ASCII can be sent.")

    @property
    def where(self) -> str:
        return f"the {self.what} at {redact(self.url)}"

    @functools.cached_property
    def _client(self) -> Any:
        import httpx

        here = urlsplit(self.url).hostname in {"localhost", "127.0.0.1", "::1"}
        return httpx.Client(timeout=SECONDS, headers={"Authorization": f"Bearer {self.key}"} if self.key else {}, trust_env=not here)

    def get(self, path: str) -> dict[str, Any]:
        """What the server tells of itself; nothing where it does not."""
        try:
            response = self._client.get(self.url + path)
            answer = response.json() if response.status_code == 200 else {}
        except Exception:  # any failure here is one of the request that follows, and said there
            return {}
        return answer if isinstance(answer, dict) else {}

    def post(self, path: str, body: dict[str, Any], *, missing_ok: bool = False) -> Any:
        """The JSON answer. With `missing_ok`, None where the server knows no such path."""
        import httpx

        said, wait = "", 0.0
        for attempt in range(TRIES):
            time.sleep(wait)
            wait = PAUSE * 2**attempt
            try:
                response = self._client.post(self.url + path, json=body)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
                continue
            text = plain(response.text[:200])
            if response.status_code == 429 or response.status_code >= 500:
                said = f"status {response.status_code} {text}"
                after = response.headers.get("retry-after", "")
                wait = max(wait, min(float(after), 30.0)) if after.isascii() and after.isdigit() else wait
                continue
            if response.status_code == 404 and missing_ok and "model" not in text.lower():
                return None
            if response.status_code in {401, 403}:
                raise UsageError(f"{self.where} refuses the key (status {response.status_code}): set {self.variable}_KEY.")
            if response.status_code != 200:
                mend = f"check {self.said}" if response.status_code < 400 else f"check the model's name {self.model!r}"
                raise Refusal(
                    f"{self.where} refused {path or 'the request'} (status {response.status_code} {redact(text)}): {mend}.",
                    response.status_code,
                )
            try:
                return response.json()
            except (ValueError, RecursionError):
                raise LabError(f"{self.where} answered {path or 'the request'} with something else than JSON: check {self.said}.") from None
        raise ServerError(f"{self.where} did not answer after {TRIES} tries ({redact(said)}): check that it runs, and {self.said}.")
