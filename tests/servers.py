"""A real HTTP server on this machine that answers as a test says: for embedding, rerank, chat and search servers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any

from lab.models.chat import Chat

Answer = Callable[[str, Any], tuple[int, Any]]


class Fake:
    """`answer(path, body)` gives (status, JSON value or bytes); `body` is None for a GET. `asked` holds (path, body, Authorization) of every POST."""

    def __init__(self, answer: Answer, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        self.asked: list[tuple[str, Any, str | None]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.asked.append((self.path, body, self.headers.get("Authorization")))
                self._send(*answer(self.path, body))

            def do_GET(self) -> None:
                self._send(*answer(self.path, None))

            def _send(self, status: int, value: Any) -> None:
                data = value if isinstance(value, bytes) else json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                for name, said in headers.items():
                    self.send_header(name, said)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Model(Fake):
    """A chat server that answers by what stands in the question: `says` gives (a part of the question, the answer), the first that fits. It counts the calls."""

    def __init__(self, *says: tuple[str, Any]) -> None:
        self.says = list(says)

        def reply(path: str, body: Any) -> tuple[int, Any]:
            told = "\n".join(m["content"] for m in body["messages"][:2])
            value = next(value for part, value in self.says if part in told)
            text = value if isinstance(value, str) else json.dumps(value)
            return 200, {"choices": [{"message": {"content": text}}], "usage": {"prompt_tokens": 100, "completion_tokens": 10}}

        super().__init__(reply)

    @property
    def chat(self) -> Chat:
        return Chat(self.url, "scripted")


def model(models: list[Model], *says: tuple[str, Any]) -> Model:
    models.append(Model(*says))
    return models[-1]
