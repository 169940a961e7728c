"""Text that goes to a chat model as data: between delimiters that nothing inside of it can close or imitate."""

from __future__ import annotations

import re
from collections.abc import Sequence

OPEN, CLOSE, FENCE = "[RETRIEVED CONTEXT]", "[END RETRIEVED CONTEXT]", "---"
_GAP = "[^\\S\\n]|[\\u00ad\\u200b-\\u200f\\u2060\\ufeff]"  # white space in a line, and what is not seen
_DELIMITER = re.compile(rf"[\[［]((?:{_GAP}|\n)*(?:END(?:{_GAP}|\n)+)?(?:RETRIEVED(?:{_GAP}|\n)+CONTEXT|ANSWER)(?:{_GAP}|\n)*)[\]］]", re.IGNORECASE)
_FENCE = re.compile(rf"(?m)^(?:{_GAP})*-(?:(?:{_GAP})*-){{2,}}(?:{_GAP})*$")
_ENDS = re.compile(r"\r\n|[\r\x0b\x0c\x85\u2028\u2029]")  # of lines


def harmless(text: str) -> str:
    """The text with nothing in it that could end the block or a fence, or be taken for that; its lines end with line feeds.

    >>> harmless("a\\n---\\n[end retrieved context]")
    'a\\n- - -\\n(end retrieved context)'
    """
    return _FENCE.sub("- - -", _DELIMITER.sub(lambda match: f"({match[1].strip()})", _ENDS.sub("\n", text)))


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
