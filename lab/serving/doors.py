"""Who may reach a server of ours: addresses, and the token that is asked for where others than this machine can come."""

from __future__ import annotations

import base64
import binascii
import contextlib
import hmac
import ipaddress
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

from lab.errors import ServerError, UsageError

_Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


PORT = 8765


def address(word: str, usual: int = PORT) -> tuple[str, int]:
    """(host, port) of `HOST:PORT`, `[::1]:PORT`, `HOST`, `::1` or `PORT`; the port is `usual` where none is given."""
    host, port = word, str(usual)
    if word.isascii() and word.isdigit():
        host, port = "127.0.0.1", word
    elif not _is_ip(word) and not word.endswith("]"):
        before, colon, after = word.rpartition(":")
        host, port = (before, after) if colon else (word, port)
    host = host.strip("[]") or "127.0.0.1"
    if not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536 or (":" in host and not _is_ip(host)):
        raise UsageError(f"--bind cannot be {word!r}: it takes HOST:PORT, as in 127.0.0.1:{usual}.")
    return host, int(port)


def _is_ip(word: str) -> bool:
    try:
        ipaddress.ip_address(word)
    except ValueError:
        return False
    return True


def listen(app: Any, host: str, port: int) -> None:
    """Answers until it is stopped. ServerError where the place is taken, or is none of this machine's."""
    import uvicorn

    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        door = socket.create_server((host, port), family=family)
    except OSError as error:
        raise ServerError(f"{host} port {port} cannot be listened at ({error.strerror or error}): name another behind --bind.") from None
    with door:
        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[door])


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def token_of(path: Path | None, host: str) -> str | None:
    """The bearer token in a file of mode 0600; required where others can reach the server."""
    if path is None:
        if not is_loopback(host):
            raise UsageError(f"--bind {host} can be reached by others: name a file with a token behind --token-file (mode 0600).")
        return None
    try:
        mode, token = path.stat().st_mode, path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read ({error}): name a file with a token behind --token-file.") from None
    if mode & 0o077:
        raise UsageError(f"{path} can be read by others: run `chmod 600 {path}`.")
    if len(token) < 16:
        raise UsageError(
            f"the token in {path} is too short: at least 16 characters, as `python -c 'import secrets; print(secrets.token_urlsafe())'` prints."
        )
    return token


def guarded(app: Any, token: str | None, *, people: bool = False) -> Any:
    """An ASGI app that answers 401 to whoever does not bring the token: as a bearer token, and where `people` come with a browser also as the password of any name."""
    if token is None:
        return app
    expected = f"Bearer {token}".encode()

    def brings(given: bytes) -> bool:
        if people and given.startswith(b"Basic "):
            with contextlib.suppress(binascii.Error):
                given = b"Bearer " + base64.b64decode(given[6:], validate=True).partition(b":")[2]
        return hmac.compare_digest(given, expected)

    challenge = b'Basic realm="retrieval lab: any name, the token as password"' if people else b"Bearer"

    async def checked(scope: MutableMapping[str, Any], receive: Any, send: _Send) -> None:
        if scope["type"] == "http":
            given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
            if not brings(given):
                await send(
                    {"type": "http.response.start", "status": 401, "headers": [(b"www-authenticate", challenge), (b"content-type", b"text/plain")]}
                )
                await send({"type": "http.response.body", "body": b"a token is required\n" if people else b"a bearer token is required\n"})
                return
        await app(scope, receive, send)

    return checked
