"""The errors of the lab: one root, few leaves, each with the exit code that the command line returns for it.

    LabError                 4
    ├── UsageError           2   the command is wrong: unknown name, flag, measure, gold set; missing path
    ├── CannotJudge          3   the command is right, but it could not be judged or is not complete
    └── ServerError          4   a server or the disk failed

KeyboardInterrupt is 130.

A message is one sentence with the mend. Text that may hold a password goes through `redact` first.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable


class LabError(Exception):
    """Something the lab can explain went wrong."""

    exit_code = 4


class UsageError(LabError):
    """The command is wrong."""

    exit_code = 2


class CannotJudge(LabError):
    """The command is right, but its outcome could not be judged or is not complete."""

    exit_code = 3


class ServerError(LabError):
    """A server or the disk failed."""

    exit_code = 4


def unknown(kind: str, name: str, known: Iterable[str], mend: str = "") -> UsageError:
    """The error for a name that does not exist: says the nearest known name, or all of them when there are few.

    >>> str(unknown("flag", "densee", ["dense", "lexical"]))
    "unknown flag 'densee': did you mean 'dense'?"
    """
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        hint = f"did you mean {near[0]!r}?"
    elif names and len(names) <= 24:
        hint = "known: " + ", ".join(names) + "."
    else:
        hint = mend or "none exists yet." if not names else mend or f"{len(names)} are known."
    return UsageError(f"unknown {kind} {name!r}: {hint}")


_SECRETS = (
    # up to the last @ of the word: a password may hold / and @
    (re.compile(r"(?<=://)([^/@:\s'\"]*):[^\s'\"]*@"), r"\1:***@"),
    (
        re.compile(
            r"(?i)([\w-]*(?:password|passwd|pwd|token|secret|api[-_]?key)|[\w-]+[-_]key|\bkey(?==))(\s*[=:]\s*)('[^']*'|\"[^\"]*\"|[^\s&;,'\"]+)"
        ),
        r"\1\2***",
    ),
    (re.compile(r"(?i)\b(authorization\s*[:=]\s*)(?:bearer\s+|basic\s+)?[^\s,;]+"), r"\1***"),
    (re.compile(r"(?i)\bbearer\s+[A-Za-z0-9._~+/=-]+"), "Bearer ***"),
)


def redact(text: str) -> str:
    """`text` without passwords, tokens and keys, as it may appear in errors, logs, run rows, exports and reports.

    >>> redact("postgresql://ada:pw@db/lab?password=x")
    'postgresql://ada:***@db/lab?password=***'
    """
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text
