"""The numbers that lists and headings are given by their format: they stand in no text, yet others cite them."""

from __future__ import annotations

_ROMAN = (
    (1000, "m"),
    (900, "cm"),
    (500, "d"),
    (400, "cd"),
    (100, "c"),
    (90, "xc"),
    (50, "l"),
    (40, "xl"),
    (10, "x"),
    (9, "ix"),
    (5, "v"),
    (4, "iv"),
    (1, "i"),
)


def numeral(value: int, kind: str) -> str:
    """`value` as `1` (decimal), `a`, `A` (letters) or `i`, `I` (Roman), as HTML and OpenDocument name the kinds.

    >>> [numeral(4, kind) for kind in "1aAiI"], numeral(28, "a")
    (['4', 'd', 'D', 'iv', 'IV'], 'ab')
    """
    if value < 1 or kind not in {"a", "A", "i", "I"} or (kind in {"i", "I"} and value > 3999):
        return str(value)
    word = ""
    if kind in {"a", "A"}:
        while value:
            value, letter = divmod(value - 1, 26)
            word = chr(ord("a") + letter) + word
    else:
        for worth, sign in _ROMAN:
            word += sign * (value // worth)
            value %= worth
    return word if kind in {"a", "i"} else word.upper()
