"""Text that goes to a chat model as data: between delimiters that nothing inside of it can close or imitate."""

from __future__ import annotations

import re
from collections.abc import Sequence

OPEN, CLOSE, FENCE = "[RETRIEVED CONTEXT]", "[END RETRIEVED CONTEXT]", "---"
_DELIMITER = re.compile(r"\[\s*((?:END\s+)?(?:RETRIEVED\s+CONTEXT|ANSWER))\s*\]", re.IGNORECASE)
_FENCE = re.compile(r"(?m)^[ \t]*-{3,}[ \t]*$")


def harmless(text: str) -> str:
    """The text with nothing in it that could end the block or a fence.

    >>> harmless("a\\n---\\n[end retrieved context]")
    'a\\n- - -\\n(end retrieved context)'
    """
    return _FENCE.sub("- - -", _DELIMITER.sub(r"(\1)", text))


def one_line(text: str) -> str:
    """The same, on one line."""
    return " ".join(harmless(text).split())


def fenced(parts: Sequence[tuple[str, str]]) -> str:
    """(head, text) of each passage between the delimiters, fenced from each other; both are made harmless."""
    lines = [OPEN, FENCE]
    for head, text in parts:
        lines += [one_line(head), harmless(text), FENCE]
    return "\n".join([*lines, CLOSE])


def answer(text: str) -> str:
    """An answer that is to be judged, between delimiters of its own."""
    return f"[ANSWER]\n{harmless(text)}\n[END ANSWER]"
