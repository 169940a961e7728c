"""The embedded server: shared, mended, held; each test with a home of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from lab.config import database_url

pytestmark = pytest.mark.skipif(database_url() is not None, reason="LAB_DATABASE_URL names another server")

USE = "import sys, lab; s = lab.connect(); print(s.rows('select 1')[0][0], flush=True); sys.stdin.readline(); s.close()"


def start(home: Path, code: str = USE) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | {"LAB_HOME": str(home)}
    )


def command(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "lab", *words], capture_output=True, text=True, env=os.environ | {"LAB_HOME": str(home)})


def answer(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def postmaster(home: Path) -> int | None:
    path = home / "server" / "data" / "postmaster.pid"
    return int(path.read_text().split()[0]) if path.exists() else None


def runs(pid: int) -> bool:
    """Whether the process is there; one that only waits for its parent to take notice of its end is not."""
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def end(process: subprocess.Popen[str]) -> None:
    process.communicate("\n", timeout=60)


def test_two_processes_share_one_server_and_the_last_one_stops_it(tmp_path: Path) -> None:
    home = tmp_path / "a home with spaces"
    first, second = start(home), start(home)  # at the same moment, on an empty home
    assert answer(first) == answer(second) == "1"
    pid = postmaster(home)
    assert pid is not None
    end(first)
    assert runs(pid)
    end(second)
    assert postmaster(home) is None and not runs(pid)


def test_a_killed_user_and_a_killed_server_leave_nothing_that_the_next_start_cannot_mend(tmp_path: Path) -> None:
    first = start(tmp_path)
    assert answer(first) == "1"
    first.kill()
    first.communicate()
    pid = postmaster(tmp_path)
    assert pid is not None and runs(pid), "the server outlives a killed user"
    os.kill(pid, signal.SIGKILL)
    for _ in range(100):
        if not runs(pid):
            break
        time.sleep(0.05)
    (tmp_path / "server" / "data.new").mkdir()  # as a killed initdb leaves it
    second = start(tmp_path)
    assert answer(second) == "1"
    end(second)
    assert postmaster(tmp_path) is None, "the killed user no longer counts"


def test_a_stale_process_number_of_another_program_is_not_taken_for_the_server(tmp_path: Path) -> None:
    end_of_first = start(tmp_path)
    answer(end_of_first)
    end(end_of_first)
    (tmp_path / "server" / "data" / "postmaster.pid").write_text(f"{os.getpid()}\n{tmp_path}\n1\n5432\n\n\n\n")
    second = start(tmp_path)
    assert answer(second) == "1"
    end(second)


def test_up_holds_the_server_and_down_refuses_while_it_is_used(tmp_path: Path) -> None:
    assert command(tmp_path, "status").returncode == 0
    assert not (tmp_path / "server").exists(), "looking starts nothing"
    assert "running" in command(tmp_path, "up").stdout
    assert postmaster(tmp_path) is not None
    assert "held by `lab up`" in command(tmp_path, "status").stdout
    user = start(tmp_path)
    answer(user)
    refused = command(tmp_path, "down")
    assert refused.returncode == 2 and str(user.pid) in refused.stderr
    end(user)
    assert postmaster(tmp_path) is not None, "held"
    assert command(tmp_path, "down").stdout == "stopped\n"
    assert command(tmp_path, "down").stdout == "was not running\n"
    assert postmaster(tmp_path) is None


def test_a_long_home_gets_a_short_socket(tmp_path: Path) -> None:
    home = tmp_path / ("long" * 12) / ("path" * 12)
    process = start(home)
    assert answer(process) == "1"
    end(process)


def test_a_data_folder_of_another_major_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "server" / "data"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("15\n")
    refused = command(tmp_path, "collections")
    assert refused.returncode == 4 and "PostgreSQL 15" in refused.stderr and "pg_dump" in refused.stderr and refused.stderr.count("\n") == 1


def test_purge_removes_its_own_home_and_nothing_else(tmp_path: Path) -> None:
    home = tmp_path / "home"
    command(home, "up")
    assert command(home, "purge").returncode == 2
    for name in ("cache", "claims", "claims-cache", "answer-cache", "gold-cache", "rerankers"):  # what other commands leave there
        (home / name).mkdir()
    (home / "mine.txt").write_text("x")
    assert "mine.txt" in command(home, "purge", "--yes").stderr
    (home / "mine.txt").unlink()
    assert command(home, "purge", "--yes").returncode == 0
    assert not home.exists()


def test_a_server_that_cannot_be_reached_is_4_and_its_password_is_not_told(tmp_path: Path) -> None:
    env = os.environ | {"LAB_DATABASE_URL": "postgresql://ada:s3cr3t-canary@127.0.0.1:9/lab?connect_timeout=2", "LAB_HOME": str(tmp_path)}
    for extra in ([], ["--debug"]):
        done = subprocess.run([sys.executable, "-m", "lab", "collections", *extra], capture_output=True, text=True, env=env)
        assert done.returncode == 4
        assert "canary" not in done.stdout + done.stderr
    assert done.stdout == ""


def test_odd_homes_and_addresses(tmp_path: Path) -> None:
    assert command(tmp_path / "o'brien \\ x", "collections").returncode == 0
    env = os.environ | {"LAB_HOME": str(tmp_path)}
    for url, code in [("notadsn", 2), ("postgresql://ada:s3cr3t-c@nary@127.0.0.1:9/lab?connect_timeout=2", 4)]:
        done = subprocess.run([sys.executable, "-m", "lab", "collections"], capture_output=True, text=True, env=env | {"LAB_DATABASE_URL": url})
        assert done.returncode == code and done.stderr.count("\n") == 1 and "nary" not in done.stderr, done.stderr
    shown = subprocess.run([sys.executable, "-m", "lab", "config"], capture_output=True, text=True, env=env | {"LAB_DATABASE_URL": url}).stdout
    assert "nary" not in shown and "s3cr3t" not in shown


def test_a_home_in_lab_toml_is_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "lab.toml").write_text('home = "data"\n')
    env = {key: value for key, value in os.environ.items() if key != "LAB_HOME"}
    done = subprocess.run([sys.executable, "-m", "lab", "status"], cwd=tmp_path / "sub", capture_output=True, text=True, env=env)
    assert str(tmp_path / "data") in done.stdout
