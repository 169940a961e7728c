"""Errors: nearest names, secrets left out."""

from __future__ import annotations

import pytest

from lab.errors import redact, unknown

CANARY = "s3cr3t-canary"


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://ada:{CANARY}@db.example/lab", f"host=db password={CANARY} user=ada", f"Authorization: Bearer {CANARY}", f"api_key={CANARY}&x=1",
        f"https://u:{CANARY}@host/path?token={CANARY}", f"password='{CANARY} with space'", f"bearer {CANARY}",
        f"PGPASSWORD={CANARY}",
        f"sslpassword={CANARY}",
        f"LAB_CHAT_KEY={CANARY}",
        f"postgresql://ada:a/b@{CANARY}@db/lab",
    ],
)  # fmt: skip
def test_a_secret_does_not_pass(text: str) -> None:
    assert CANARY not in redact(text)


def test_redaction_leaves_the_rest_alone() -> None:
    assert redact("postgresql://ada:pw@db:5432/lab") == "postgresql://ada:***@db:5432/lab"
    assert redact("key takeaways: none") == "key takeaways: none"


def test_an_unknown_name_gets_the_nearest_or_the_list() -> None:
    assert "did you mean 'handbook'" in str(unknown("collection", "handbok", ["handbook", "other"]))
    assert "known: a, b." in str(unknown("flag", "zzzz", ["b", "a"]))
    assert "make one" in str(unknown("collection", "x", [], mend="make one with …"))
