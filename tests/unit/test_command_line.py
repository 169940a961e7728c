"""The command line without a database: start-up, exit codes, sentences."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lab.cli import main as command_line
from lab.cli import server
from tests.conftest import Lab

HEAVY = ("torch", "pandas", "scipy", "sklearn", "matplotlib", "sentence_transformers", "psycopg", "datasketch", "numpy")


def test_help_loads_nothing_heavy() -> None:
    code = f"import sys; from lab.cli.main import run; run(['--help']); print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_every_command_explains_itself(lab: Lab) -> None:
    for name in command_line._COMMANDS:
        answer = lab(*name.split(), "--help")
        assert answer.code == 0 and answer.out.startswith((f"Usage: lab {name} ", f"Usage: lab {name}\n")), name
    for group, (_, members) in command_line._GROUPS.items():
        for member in members:
            assert lab(group, member, "--help").code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["serch"], "did you mean 'search'"), (["search", "c", "q", "--densee", "none"], "did you mean 'dense'"), (["gold", "chek"], "did you mean 'check'"),
        (["ingest", "x", "-c", "n", "--chunkr", "fixed"], "did you mean 'chunker'"), (["search", "c"], "question"), (["search", "c", "q", "--k", "0"], "from 1 to 1000"),
        (["search", "c", "q", "--k", "0x"], "number"), (["search", "c", "q", "--settings", "nope"], "unknown settings"),
        (["ablate", "c", "--gold", "g", "--factor", "defines"], "defines=off,question"), (["bench", "nope"], "unknown benchmark"),
        (["tune", "floor", "c", "--gold", "g", "--max-false-answer", "0.1"], "did you mean 'max_false_answers'"),
        (["tune", "floor", "c"], '"tune floor" parameter --gold'), (["report"], "EXPERIMENT"), (["--log-file"], "--log-file"),
    ],
)  # fmt: skip
def test_a_wrong_command_exits_with_2_and_one_sentence(words: list[str], said: str, lab: Lab) -> None:
    answer = lab(*words)
    assert answer.code == 2 and answer.out == ""
    assert said in answer.err and answer.err.count("\n") == 1 and "Traceback" not in answer.err


def test_a_fault_of_ours_exits_with_4_and_shows_its_traceback_only_when_asked(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError("password=s3cr3t-canary")

    monkeypatch.setattr(server, "effective", broken)
    answer = lab("config")
    assert answer.code == 4 and "internal error" in answer.err and "Traceback" not in answer.err and "canary" not in answer.err
    debug = lab("config", "--debug").err
    assert "Traceback" in debug and "canary" not in debug


def test_ctrl_c_exits_with_130_and_says_how_to_go_on(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(server, "effective", interrupted)
    answer = lab("config")
    assert answer.code == 130 and "again" in answer.err


def test_config_says_where_a_value_comes_from_and_hides_passwords(lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("LAB_DATABASE_URL", "postgresql://ada:s3cr3t-canary@db/lab")
    monkeypatch.delenv("LAB_THREADS", raising=False)
    (tmp_path / "lab.toml").write_text('threads = 1\nhome = "/nowhere"\n')  # type: ignore[operator]
    answer = lab("config", "--json")
    values = answer.json["values"]
    assert values["database_url"] == {"value": "postgresql://ada:***@db/lab", "origin": "LAB_DATABASE_URL"}
    assert values["threads"]["value"] == "1" and values["threads"]["origin"].endswith("lab.toml")
    assert "canary" not in answer.out
    (tmp_path / "lab.toml").write_text("thraeds = 1\n")  # type: ignore[operator]
    assert "did you mean 'threads'" in lab("config").err


def test_quiet_lasts_for_one_command(lab: Lab) -> None:
    from lab.progress import Progress

    lab("config", "-q")
    assert not Progress.quiet


def test_a_flag_with_one_dash_is_told_how_it_is_written(lab: Lab) -> None:
    assert lab("search", "c", "pump", "-k", "3").err.startswith("lab: -k is written --k.")


def test_a_folder_that_is_no_gold_set_is_named_as_such(lab: Lab, tmp_path: Path) -> None:
    answer = lab("gold", "show", str(tmp_path))
    assert (answer.code, "holds no questions.jsonl" in answer.err) == (2, True)


def test_progress_in_a_notebook_is_one_line_that_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a kernel the line is shown once, then updated, and emptied at the end; nothing goes to stderr."""
    import IPython.display

    from lab import progress

    shown: list[str] = []

    class Handle:
        def update(self, data: dict[str, str], raw: bool) -> None:
            shown.append(data["text/plain"])

    def display(data: dict[str, str], raw: bool, display_id: bool) -> Handle:
        shown.append(data["text/plain"])
        return Handle()

    monkeypatch.setattr(progress, "_in_notebook", lambda: True)
    monkeypatch.setattr(IPython.display, "display", display)
    monkeypatch.setattr(progress.Progress, "quiet", False)
    with progress.Progress("search", 10, "searches") as bar:
        for _ in range(3):
            bar._last -= 1
            bar.advance(2)
    assert len(shown) == 4 and "20%" in shown[0] and "2/10" in shown[0] and "60%" in shown[2] and "left" in shown[2] and shown[3] == ""
