"""`lab`: the commands by name, and the one place where errors become exit codes.

0 done · 1 only `lab gate`, only a regression · 2 the command is wrong · 3 right, but not judged or not complete · 4 a server, the disk or our own
fault · 130 interrupted. Command modules are imported when they are called, so that `lab --help` loads none of them.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import cyclopts
from cyclopts import App

from lab import __version__
from lab.cli.output import print_json
from lab.errors import CannotJudge, LabError, UsageError, redact, unknown
from lab.progress import Progress

_EPILOGUE = """Every command takes --help; those that return data take --json (one object on stdout; progress and messages go to stderr).
Everywhere: -q says nothing on the side, -v logs more, --log-file FILE keeps the log, --debug shows a traceback.
Exit codes: 0 done, 1 a regression (lab gate only), 2 the command is wrong, 3 not judged or not complete, 4 a server or the disk failed, 130 interrupted."""

# name → (module:function, first line of help)
_COMMANDS = {
    "demo": ("lab.cli.demo:demo", "The whole loop on the built-in handbook: ingest, check, ablate, report."),
    "up": ("lab.cli.server:up", "Start the embedded server and hold it."),
    "down": ("lab.cli.server:down", "Stop the embedded server."),
    "status": ("lab.cli.server:status", "Where the data is, what runs, what takes space."),
    "ingest": ("lab.cli.corpus:ingest", "Read files and folders into a collection."),
    "index": ("lab.cli.corpus:index", "Rebuild the indexes of a collection."),
    "link": ("lab.cli.corpus:link", "Rebuild the links of a collection from its stored text."),
    "collections": ("lab.cli.corpus:list_collections", "List the collections."),
    "drop": ("lab.cli.corpus:drop", "Remove a collection."),
    "search": ("lab.cli.search:search", "Search a collection."),
    "answer": ("lab.cli.answer:answer", "Answer a question from a collection, with checked citations."),
    "serve": ("lab.cli.serve:serve", "Serve search to agents by MCP."),
    "run": ("lab.cli.evaluate:run", "Search every question of a gold set once, and record it."),
    "ablate": ("lab.cli.evaluate:ablate", "Run every combination of some flags' values."),
    "compare": ("lab.cli.evidence:compare", "Compare two runs, paired by question."),
    "diff": ("lab.cli.evidence:diff", "What differs between two runs, and which questions flipped."),
    "decide": ("lab.cli.evidence:decide", "Keep a flag, drop it, or keep it for some kinds of question."),
    "gate": ("lab.cli.gate:gate", "Is a run worse than the baseline? Exit 1 only for a regression."),
    "power": ("lab.cli.evidence:power", "What a gold set can show, before it is run."),
    "tune": ("lab.cli.repeat:tune", "Choose among settings on one split, with a held-out figure."),
    "tune floor": ("lab.cli.repeat:tune_floor", "Choose the floor that keeps a promise about false answers."),
    "noise": ("lab.cli.repeat:noise", "How many questions flip between runs that should be the same."),
    "replay": ("lab.cli.repeat:replay", "Run recorded settings again, and say what is no longer the same."),
    "bisect": ("lab.cli.repeat:bisect", "Name the input that moved a measure from one run to another."),
    "validate": ("lab.cli.repeat:validate", "Reproduce published references on public sets."),
    "report": ("lab.cli.evaluate:report", "Write the report of an experiment, or of runs side by side."),
    "ui": ("lab.cli.ui:ui", "Look at recorded runs in a browser."),
    "config": ("lab.cli.server:config", "The effective settings of the surroundings, and where each comes from."),
    "purge": ("lab.cli.server:purge", "Remove LAB_HOME with everything in it."),
    "bench": ("lab.cli.bench:bench", "Measure speed on this machine."),
}
_GROUPS = {
    "gold": (
        "Gold sets: questions and judged spans.",
        {
            "generate": ("lab.cli.gold:generate", "Make questions of a collection by rules."),
            "import": ("lab.cli.exchange:import_", "Import a gold set from other people's files."),
            "export": ("lab.cli.exchange:export", "Write a gold set in other people's formats."),
            "check": ("lab.cli.gold:check", "Does a gold set still fit a collection?"),
            "review": ("lab.cli.review:review", "Judge questions and passages in the terminal."),
            "pool": ("lab.cli.review:pool", "Queue what runs returned and nobody has judged."),
            "stats": ("lab.cli.gold:stats", "What a gold set favours: copying by kind, what waits for review."),
            "show": ("lab.cli.gold:show", "What a gold set holds."),
            "documents": ("lab.cli.gold:documents", "Write out the documents that a shipped gold set was made for."),
        },
    ),
    "runs": (
        "Recorded runs.",
        {
            "list": ("lab.cli.evaluate:list_runs", "The newest runs."),
            "show": ("lab.cli.evaluate:show_run", "Everything recorded of a run."),
            "export": ("lab.cli.repeat:export_run", "Write a run as a file: JSON, or TREC run and qrels."),
            "import": ("lab.cli.repeat:import_run", "Take an exported run into this database."),
            "promote": ("lab.cli.gate:promote", "Make a run the baseline of a name."),
            "baselines": ("lab.cli.gate:list_baselines", "Every promotion of a baseline."),
            "lost": ("lab.cli.evidence:lost", "Where a run lost what answers its questions."),
        },
    ),
    "claims": (
        "Single facts with the passages that say them.",
        {
            "extract": ("lab.cli.claims:extract", "Take claims out of the documents of a collection."),
            "grade": ("lab.cli.claims:grade", "Have a chat model grade the claims that one made."),
            "review": ("lab.cli.claims:review", "Accept or reject a model's claims in the terminal or on a page."),
            "search": ("lab.cli.claims:search", "Find claims that answer a question, without a model."),
            "stats": ("lab.cli.claims:stats", "How many claims there are, by kind and status."),
        },
    ),
    "rerank": ("Rerankers of your own.", {"train": ("lab.cli.rerank:train", "Train a small cross-encoder on judgments of yours.")}),
    "tenant": (
        "Logins that read the documents of one tenant only.",
        {
            "add": ("lab.cli.tenants:add", "Give a tenant its login."),
            "list": ("lab.cli.tenants:list_tenants", "The tenants, their logins and their collections."),
            "remove": ("lab.cli.tenants:remove", "Take a tenant's login away."),
        },
    ),
    "cache": ("Cached vectors.", {"prune": ("lab.cli.server:prune", "Empty the caches of vectors.")}),
}


def build() -> App:
    """The command line as an object, for tests and for the documentation."""
    app = App(
        name="lab", help="An evaluation-first retrieval lab over Postgres and pgvector.", version=_version, help_epilogue=_EPILOGUE,
        help_format="plaintext", suppress_keyboard_interrupt=False,
    )  # fmt: skip
    for name, (target, text) in _COMMANDS.items():
        more = (
            {"usage": f"Usage: lab {name} COLLECTION --gold STR [OPTIONS]"} if " " in name else {}
        )  # two words: one to the library, which would show it so
        app.command(target, name=name.replace(" ", "-"), help=text, **more)
    for name, (text, members) in _GROUPS.items():
        group = App(name=name, help=text)
        for member, (target, words) in members.items():
            group.command(target, name=member, help=words)
        app.command(group)
    return app


def _version() -> str:
    from lab.models.minilm import MiniLM

    try:
        from lab.config import database_url
        from lab.store.connect import connect
        from lab.store.embedded import status

        if database_url() or status().pid is not None:
            with connect() as store:
                server = f"PostgreSQL {store.server_version}, " + ", ".join(f"{k} {v}" for k, v in store.extensions.items() if k != "plpgsql")
        else:
            server = "server not running (lab up)"
    except LabError as error:
        server = str(error)
    return f"lab {__version__}\n{server}\nembedder {MiniLM.digest}"


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point: runs a command and ends the process with its exit code."""
    code = run(list(sys.argv[1:] if arguments is None else arguments))
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Runs a command; returns its exit code."""
    debug, quiet = False, Progress.quiet
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a name or a question that is not UTF-8 is shown as far as it can be
    try:
        words, debug = _globals(arguments)
        if " ".join(words[:2]) in _COMMANDS:  # a command of two words, beside one that takes a collection there
            words[:2] = ["-".join(words[:2])]
        result = build()(words, exit_on_error=False, print_error=False, result_action="return_value")
        return result if isinstance(result, int) and not isinstance(result, bool) else 0
    except KeyboardInterrupt:
        _say("interrupted: what was stored is kept (a run that had not ended is marked incomplete); run the same command again.")
        return 130
    except BrokenPipeError:
        # The reader of our output has gone; nothing is left to say to it, at exit neither.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except cyclopts.CycloptsError as error:
        _say(f"{_one_line(_misused(error, arguments))} Run `lab {_command(arguments)}--help` for what it takes.")
        return 2
    except LabError as error:
        if debug:
            _say(redact(traceback.format_exc()))
        _say(redact(str(error)))
        if isinstance(error, CannotJudge) and "--json" in arguments:  # a reader of stdout learns it too
            print_json({"schema_version": 1, "diagnostic": {"stage": _command(arguments).strip(), "message": redact(str(error))}})
        return error.exit_code
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else 0
    except MemoryError:
        _say("out of memory: use a smaller --candidates, or a machine with more.")
        return 4
    except OSError as error:
        if debug:
            _say(redact(traceback.format_exc()))
        _say(f"{redact(str(error))}: check the path and the disk.")
        return 4
    except Exception as error:
        if debug:
            _say(redact(traceback.format_exc()))
        _say(
            f"internal error ({type(error).__name__}: {_one_line(redact(str(error)))[:300]}): please report it with the output of the same command and --debug."
        )
        return 4
    finally:
        Progress.quiet = quiet


def _globals(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """Takes the options that every command has out of the arguments, and sets them."""
    words: list[str] = []
    debug, level, log_file = False, logging.WARNING, None
    rest = list(arguments)
    Progress.quiet = False
    while rest:
        word = rest.pop(0)
        if word == "--":
            words += [word, *rest]
            break
        if word == "--debug":
            debug = True
        elif word in {"-q", "--quiet"}:
            Progress.quiet = True
        elif word in {"-v", "--verbose"}:
            level = logging.INFO
        elif word == "--log-file":
            if not rest:
                raise UsageError("--log-file needs a file name.")
            log_file = rest.pop(0)
        elif word.startswith("--log-file="):
            log_file = word.partition("=")[2]
        else:
            words.append(word)
    handlers: list[logging.Handler] = [logging.StreamHandler()]
    if log_file:
        try:
            handlers = [logging.FileHandler(Path(log_file), encoding="utf-8")]
        except OSError as error:
            raise UsageError(f"--log-file {log_file} cannot be written ({error.strerror}): name another file.") from None
        level = min(level, logging.INFO)
    for handler in handlers:
        handler.setFormatter(_Redacting("%(asctime)s %(name)s %(levelname)s %(message)s"))
    logging.basicConfig(level=level, handlers=handlers, force=True)
    for noisy in ("sentence_transformers", "transformers", "torch", "matplotlib", "PIL", "filelock", "psycopg.pool"):
        logging.getLogger(noisy).setLevel(max(level, logging.WARNING))
    return words, debug


class _Redacting(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


def _misused(error: cyclopts.CycloptsError, arguments: Sequence[str]) -> str:
    """What is wrong with the command, with the nearest name where one was misspelt."""
    if isinstance(error, cyclopts.UnknownCommandError):
        word = next((w for w in arguments if not w.startswith("-")), "")
        if word in _GROUPS:
            rest = [w for w in arguments if not w.startswith("-")][1:]
            return str(unknown(f"command lab {word}", rest[0] if rest else "", _GROUPS[word][1]))
        return str(unknown("command", word, [*_COMMANDS, *_GROUPS]))
    if isinstance(error, cyclopts.UnknownOptionError):
        word = error.token.keyword or error.token.value if error.token is not None else ""
        known, name = _flag_names(arguments), (word or "").lstrip("-").replace("-", "_")
        if name in known:
            return f"{word} is written --{name.replace('_', '-')}."
        return str(unknown("flag", name, known))
    said = str(error)
    for name in (name for name in _COMMANDS if " " in name):
        said = said.replace(f'"{name.replace(" ", "-")}"', f'"{name}"')
    return said


def _flag_names(arguments: Sequence[str]) -> list[str]:
    """The options of the command that was called."""
    app, command = build(), _command(arguments).strip()
    for name in [command.replace(" ", "-")] if command in _COMMANDS else command.split():
        app = app[name]
    return sorted(
        {name.lstrip("-").replace("-", "_") for argument in app.assemble_argument_collection() for name in argument.names if name.startswith("--")}
    )


def _command(arguments: Sequence[str]) -> str:
    names = [word for word in arguments if not word.startswith("-")][:2]
    if " ".join(names) in _COMMANDS:
        return " ".join(names) + " "
    known = [name for name in names[:1] if name in _COMMANDS or name in _GROUPS]
    if known and known[0] in _GROUPS and len(names) > 1 and names[1] in _GROUPS[known[0]][1]:
        known.append(names[1])
    return "".join(name + " " for name in known)


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if line.endswith((".", "?", "!")) else line + "."


def _say(message: str) -> None:
    with contextlib.suppress(OSError):
        sys.stderr.write(f"lab: {message}\n")
