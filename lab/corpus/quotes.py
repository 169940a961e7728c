"""Where a quote that a model gives stands in the text that it was given."""

from __future__ import annotations

import re

from lab.text import words


def locate(text: str, quote: str) -> tuple[int, int] | None:
    """`[start, end)` of a quote in a passage: word for word, but for white space, quotation marks around it and the sign at its end. None where it does not stand there."""
    plain = quote.strip().strip("\"“”'‘’").strip()
    if not plain:
        return None
    for version in (plain, plain.rstrip(".;,:!?…")):
        if not words(version):
            return None
        left, right = (r"(?<!\w)" if version[0].isalnum() else ""), (r"(?!\w)" if version[-1].isalnum() else "")  # 10 bar does not stand in 110 bar
        match = re.search(left + r"\s+".join(map(re.escape, version.split())) + right, text)
        if match is not None:
            return match.start(), match.end()
    return None
