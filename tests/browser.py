"""A headless Chromium for tests of pages, spoken to by its DevTools protocol."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import websocket


def chromium() -> str:
    """Its path; skips where there is none, fails where LAB_REQUIRE_SHARED=1 says that everything must run."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    if os.environ.get("LAB_REQUIRE_SHARED") == "1":
        pytest.fail("chromium is absent and LAB_REQUIRE_SHARED=1")
    pytest.skip("chromium is absent")


class Browser:
    """One page. `said` are the messages and errors of its console, `fetched` the addresses that it asked for beyond itself."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-port=0", "--no-first-run", "--disable-dev-shm-usage",
             f"--user-data-dir={folder / 'profile'}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._number = 0
        self.said: list[str] = []
        self.fetched: list[str] = []
        port = self._wait(lambda: (folder / "profile" / "DevToolsActivePort").read_text().split("\n")[0])
        import httpx

        pages = self._wait(lambda: [page for page in httpx.get(f"http://127.0.0.1:{port}/json").json() if page["type"] == "page"])
        self.wire = websocket.create_connection(pages[0]["webSocketDebuggerUrl"], suppress_origin=True, timeout=30)
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def _wait(self, get: Any) -> Any:
        until = time.monotonic() + 30
        while True:
            try:
                if value := get():
                    return value
            except (OSError, IndexError, ValueError):
                pass
            if time.monotonic() > until:
                raise TimeoutError("chromium did not answer")
            time.sleep(0.05)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        self.wire.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self.wire.recv())
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])
            self._hear(answer)

    def _hear(self, event: dict[str, Any]) -> None:
        name, told = event.get("method"), event.get("params", {})
        if name == "Runtime.exceptionThrown":
            self.said.append(str(told["exceptionDetails"].get("exception", {}).get("description", told["exceptionDetails"]["text"])))
        elif name == "Runtime.consoleAPICalled":
            self.said.append(" ".join(str(a.get("value")) for a in told["args"]))
        elif name == "Log.entryAdded":
            self.said.append(str(told["entry"]["text"]))
        elif name == "Network.requestWillBeSent":
            address = str(told["request"]["url"])
            if not address.startswith(("data:", "blob:", "file:")):
                self.fetched.append(address)

    def open(self, address: str, *, width: int = 1280, height: int = 900) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Page.navigate", url=address)
        self._wait(lambda: self.js("document.readyState") == "complete" and self.js("location.href") == address)

    def js(self, code: str) -> Any:
        """The value of an expression in the page."""
        found = self.call("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def key(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code="Enter" if key == "Enter" else "", text="\r" if key == "Enter" else key if len(key) == 1 else "",
                      windowsVirtualKeyCode=13 if key == "Enter" else 0)  # fmt: skip

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def picture(self, path: Path, *, whole: bool = True) -> Path:
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))
        return path

    def downloaded(self, name: str) -> Path:
        return Path(self._wait(lambda: (self.folder / name) if (self.folder / name).is_file() else None))

    def choose(self, selector: str, file: Path) -> None:
        """Puts a file into a file input."""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[str(file)])

    def close(self) -> None:
        self.wire.close()
        self.process.terminate()
        self.process.wait(timeout=30)


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    opened = Browser(tmp_path)
    yield opened
    opened.close()
