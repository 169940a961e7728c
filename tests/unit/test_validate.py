"""Bytes to text, or a reason."""

from __future__ import annotations

import pytest

from lab.corpus.validate import Refused, decode


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"])
def test_encodings_give_the_same_text(encoding: str) -> None:
    assert decode("Café – 6 months\r\nnext\rline".encode(encoding)) == "Café – 6 months\nnext\nline"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b" \n\t", "empty"),
        (b"a\x00b", "binary"),
        (b"\x7fELF\x01\x01\x02\xff\xfe", "binary"),
        (b"\xff\xfea", "encoding"),
        (b"\xef\xbb\xbf\xff", "encoding"),
    ],
)
def test_what_is_no_text_is_refused_with_a_reason(data: bytes, reason: str) -> None:
    with pytest.raises(Refused, match=f"^{reason}: "):
        decode(data)
