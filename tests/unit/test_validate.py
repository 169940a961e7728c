"""Bytes to text, or a reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lab.corpus.validate import Refused, decode


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
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


def test_real_files_in_odd_encodings(shared_data: Callable[[str], Path]) -> None:
    folder = shared_data("files") / "text"
    same = {decode((folder / f"fake-text-utf-{name}.txt").read_bytes()).split()[0] for name in ("16", "16-le", "16-be", "32")}
    assert len(same) == 1 and same.pop().isalpha()
    for name in ("empty.txt", "fake-text-all-whitespace.txt"):
        with pytest.raises(Refused, match=r"^empty: "):
            decode((folder / name).read_bytes())
    for name in ("UDHR_first_article_all.txt", "book-war-and-peace-1225p.txt", "norwich-city.txt"):
        text = decode((folder / name).read_bytes())
        assert "\r" not in text and "\ufffd" not in text and len(text) > 40_000
