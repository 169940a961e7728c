"""Where the lab looks for its home and its servers: lab.toml < environment < flags."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from lab.errors import UsageError, redact, unknown


@dataclass(frozen=True, slots=True)
class Entry:
    """One effective value and where it came from. `secret` values are printed redacted."""

    name: str
    value: str
    origin: str
    secret: bool = False

    @property
    def shown(self) -> str:
        if self.secret and self.value:
            return "***"
        return redact(self.value)


_KNOWN = {
    "home": ("LAB_HOME", False),
    "database_url": ("LAB_DATABASE_URL", False),
    "threads": ("LAB_THREADS", False),
    "trace": ("LAB_TRACE", False),
    "embed_url": ("LAB_EMBED_URL", False),
    "embed_key": ("LAB_EMBED_KEY", True),
    "rerank_model": ("LAB_RERANK_MODEL", False),
    "rerank_key": ("LAB_RERANK_KEY", True),
    "external_key": ("LAB_EXTERNAL_KEY", True),
    "chat_url": ("LAB_CHAT_URL", False),
    "chat_model": ("LAB_CHAT_MODEL", False),
    "chat_key": ("LAB_CHAT_KEY", True),
}


def _file_values(start: Path | None = None) -> tuple[dict[str, str], str]:
    """Values of the nearest `lab.toml`, or of `[tool.lab]` in the nearest pyproject.toml, upward from `start`."""
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        for name in ("lab.toml", "pyproject.toml"):
            path = folder / name
            if not path.is_file():
                continue
            try:
                table = tomllib.loads(path.read_text(encoding="utf-8"))
            except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
                if name == "pyproject.toml":
                    continue
                raise UsageError(f"{path} is not valid TOML: {error}.") from None
            if name == "pyproject.toml":
                table = table.get("tool", {}).get("lab", {})
                if not table:
                    continue
            for key in table:
                if key not in _KNOWN:
                    raise unknown(f"entry in {path}", key, _KNOWN)
            values = {key: str(value) for key, value in table.items()}
            secrets = sorted(key for key in values if _KNOWN[key][1])
            if secrets and path.stat().st_mode & 0o077:
                raise UsageError(f"{path} holds {secrets[0]} and may be read by others: run `chmod 600 {path}`, or set {_KNOWN[secrets[0]][0]}.")
            if "home" in values:  # relative to the file that says it, not to where the command runs
                values["home"] = str(folder / Path(values["home"]).expanduser())
            return values, str(path)
    return {}, ""


def effective() -> dict[str, Entry]:
    """Every setting of the surroundings: the environment wins over the file, the file over the default."""
    values, path = _file_values()
    defaults = {
        "home": platformdirs.user_data_dir("retrieval-lab", appauthor=False),
        "trace": "counts",
        **dict.fromkeys(
            ("database_url", "threads", "embed_url", "embed_key", "rerank_model", "rerank_key", "external_key", "chat_url", "chat_model", "chat_key"),
            "",
        ),
    }
    entries = {}
    for name, (variable, secret) in _KNOWN.items():
        if os.environ.get(variable):
            entries[name] = Entry(name, os.environ[variable], variable, secret)
        elif name in values:
            entries[name] = Entry(name, values[name], path, secret)
        else:
            entries[name] = Entry(name, defaults[name], "default", secret)
    return entries


def home() -> Path:
    """The folder that holds the embedded server's data, trained models and imported gold sets. Not created here."""
    return Path(effective()["home"].value).expanduser().absolute()


def database_url() -> str | None:
    """The user's own server, or None for the embedded one."""
    return effective()["database_url"].value or None


def trace() -> str:
    """What is kept of a search that is served: off (nothing), counts (all but the question's words), on (those too)."""
    entry = effective()["trace"]
    words = {"off": "off", "0": "off", "no": "off", "false": "off", "on": "on", "1": "on", "yes": "on", "true": "on", "counts": "counts"}
    if entry.value.strip().lower() not in words:
        raise UsageError(f"trace cannot be {entry.value!r} ({entry.origin}): it takes off, counts or on.")
    return words[entry.value.strip().lower()]


def threads() -> int:
    """How many threads models may use; 0 leaves it to them."""
    word = effective()["threads"].value or "0"
    if not word.isdigit():
        raise UsageError(f"threads cannot be {word!r} ({effective()['threads'].origin}): it takes a whole number, 0 for all.")
    return int(word)
