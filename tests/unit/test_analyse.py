"""Intent and rewriting by rules, on questions of several kinds."""

from __future__ import annotations

from typing import Any, cast

import pytest

from lab.retrieval.analyse import by_intent, intent, stand_alone
from lab.retrieval.context import Corpus
from lab.settings import Settings
from lab.text import term_key


class Known:
    """A collection that defines two terms."""

    def defined(self, terms: list[str]) -> list[tuple[str, str, Any]]:
        return [(key, label, None) for label in ("cold permit", "quiet hour") for key in [term_key(label)] if key in terms]


CORPUS = cast(Corpus, Known())


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("What is a cold permit?", "definition"), ("what does quiet hour mean", "definition"), ("What is a hot permit?", "lookup"),
        ("How do I isolate a pump?", "procedure"), ("how to clean the membrane", "procedure"), ("Which steps to restart the train?", "procedure"),
        ("How often is the valve tested?", "lookup"), ("How long is the drain open?", "lookup"), ("what is the procedure for a spill", "procedure"),
        ("May contractors work alone?", "policy"), ("Is smoking allowed in hall 2?", "policy"), ("Who may sign the permit?", "policy"),
        ("remote work policy", "policy"), ("set pressure of PRV-2041", "lookup"), ("", "lookup"), ("Can a visitor enter, and what must he wear?", "policy"),
    ],
)  # fmt: skip
def test_intents(question: str, found: str) -> None:
    assert intent(CORPUS, question) == found


def test_an_intent_sets_its_flags_for_this_question_and_says_so() -> None:
    off = Settings()
    assert by_intent(CORPUS, "What is a cold permit?", off) == (off, [])
    on = Settings(intent="on")
    for question, changed, said in (
        ("What is a cold permit?", {"defines": "question"}, "intent definition: defines=question"),
        ("How do I isolate a pump?", {"steps_weight": 0.3}, "intent procedure: steps_weight=0.3"),
        ("May contractors work alone?", {"cites": "on"}, "intent policy: cites=on"),
        ("set pressure", {}, "intent lookup"),
    ):
        settings, notes = by_intent(CORPUS, question, on)
        assert settings.as_dict() == on.as_dict() | changed
        assert notes == [said]
    settings, notes = by_intent(CORPUS, "What is a cold permit?", Settings(intent="on", defines="always"))
    assert (settings.defines, notes) == ("always", ["intent definition"])


@pytest.mark.parametrize(
    ("question", "history", "alone"),
    [
        ("What about contractors?", ["remote work policy"], "remote work policy: contractors?"),
        ("and how about visitors", ["What is the remote work policy?"], "remote work policy: visitors"),
        ("And in winter?", ["how often is the drain opened"], "often drain opened: winter?"),
        ("Who signs it?", ["cold permit"], "cold permit: Who signs it?"),
        ("How often is the relief valve tested?", ["remote work policy"], "How often is the relief valve tested?"),
        ("What about contractors?", [], "What about contractors?"), ("What about contractors?", ["", "  "], "What about contractors?"),
        ("why?", ["The pump is blue."], "The pump is blue: why?"), ("", ["x"], ""),
        ("What about contractors?", ["old topic", "remote work policy"], "remote work policy: contractors?"),
    ],
)  # fmt: skip
def test_a_question_that_leans_on_the_last_one_is_made_to_stand_alone(question: str, history: list[str], alone: str) -> None:
    assert stand_alone(question, history) == alone
