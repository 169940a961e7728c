"""Reading in a process of its own, so that a file that hangs, crashes or eats memory costs that file only.

Run as `python -m lab.corpus.readers.worker`: pickled requests come in, pickled answers go out, each with its length before it. The parent made both.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
import time
from typing import IO, Any

from lab.corpus.validate import Refused
from lab.records import Document

SECONDS = 180.0  # for one file
MEMORY = 4 * 2**30  # bytes of address space, where the system can limit it
_HEAD = struct.Struct("!Q")


class Worker:
    """Starts the process on first use; a context manager that ends it."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, source: str, data: bytes, kind: str, text: str, password: str | None) -> Document:
        """As `readers.read`; beyond the limits, or where the reader dies, raises Refused."""
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = self._start()
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        try:
            _send(process.stdin, (source, data, kind, text, password))
            answer = _receive(process.stdout, time.monotonic() + self.seconds)
        except TimeoutError:
            self.close()
            raise Refused(f"too_slow: reading took more than {self.seconds:.0f} s") from None
        except (EOFError, OSError):
            self.close()
            raise Refused("crash: the reader died on this file, out of memory perhaps") from None
        except BaseException:  # interrupted: the answer on its way belongs to no request to come
            self.close()
            raise
        if isinstance(answer, Document):
            return answer
        _, message = answer
        raise Refused(message)

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-c", "from lab.corpus.readers.worker import serve; serve()"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            start_new_session=True,  # Ctrl-C is the parent's to handle
        )  # fmt: skip

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
            self._process.wait()
            self._process = None


def _send(stream: IO[bytes], value: Any) -> None:
    data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(_HEAD.pack(len(data)))
    stream.write(data)
    stream.flush()


def _receive(stream: IO[bytes], until: float | None) -> Any:
    (length,) = _HEAD.unpack(_exactly(stream, _HEAD.size, until))
    return pickle.loads(_exactly(stream, length, until))


def _exactly(stream: IO[bytes], length: int, until: float | None) -> bytes:
    """`length` bytes, or TimeoutError at the time `until`, EOFError at the end of the stream."""
    if until is None:
        data = stream.read(length)
        if len(data) < length:
            raise EOFError
        return data
    parts: list[bytes] = []
    got = 0
    number = stream.fileno()
    while got < length:
        left = until - time.monotonic()
        if left <= 0 or not select.select([number], [], [], left)[0]:
            raise TimeoutError
        part = os.read(number, min(length - got, 2**20))
        if not part:
            raise EOFError
        parts.append(part)
        got += len(part)
    return b"".join(parts)


def serve() -> None:
    """The loop of the process: ends with its input."""
    from lab.corpus import readers

    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with contextlib.suppress(ValueError, OSError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    source_stream, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a library prints must not stand between the answers
    while True:
        try:
            request = _receive(source_stream, None)
        except EOFError:
            return
        try:
            answer: Any = readers.read(*request)
        except Refused as refusal:
            answer = ("refused", str(refusal))
        except MemoryError:
            answer = ("refused", f"too_large: reading needs more than {MEMORY // 2**30} GB of memory")
        except RecursionError:
            answer = ("refused", "corrupt: nested too deeply")
        except Exception as error:
            answer = ("refused", f"crash: the reader has a fault ({type(error).__name__}: {str(error)[:200]})")
        _send(answers, answer)
