"""What is looked at in a question before the arms: its intent, and whether it stands alone. Rules, each with an off value; what they did is in the ledger.

An intent carries flag overrides, for this question only:

    definition  asks for a meaning            defines=question
    procedure   asks how something is done    steps_weight=0.3, unless it is set
    policy      asks what is allowed or due   cites=on
    lookup      anything else                 none
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lab.errors import UsageError
from lab.models.chat import configured
from lab.retrieval.context import Corpus
from lab.retrieval.meaning import asks_for_meaning, candidate_terms
from lab.settings import Settings
from lab.text import STOP_WORDS, words

_PROCEDURE = re.compile(
    r"^\W*(?:(?:and|so|but)\s+)?how\s+(?:do|does|can|could|should|must|would|to|is|are)\b(?!\s+(?:often|long|much|many|far|high|big|old|large|deep|fast|likely))|"
    r"\bhow\s+to\b|\bsteps?\s+(?:to|for|of|in)\b|\b(?:procedure|instructions?|method|routine|sequence)\s+(?:to|for|of)\b|\bwalk\s+me\s+through\b|"
    r"\bwhat\s+(?:do|should|must)\s+(?:i|we|you|one|they)\s+do\b|\bin\s+(?:which|what)\s+order\b",
    re.IGNORECASE,
)
_POLICY = re.compile(
    r"\b(?:allowed|permitted|forbidden|prohibited|required|obliged|obligatory|mandatory|compulsory|entitled|eligible|exempt|policy|policies|permission|approval|"
    r"liable|responsible|authori[sz]ed)\b|^\W*(?:may|must|can|could|should|shall|do|does|am|is|are)\s+(?:i|we|you|one|they|he|she|an?|the|contractors?|visitors?|"
    r"employees?|staff)\b.*\b(?:may|must|need|needs|have\s+to|has\s+to|allowed)\b|^\W*(?:may|must|shall)\b|\bwho\s+(?:may|must|can|has\s+to|is\s+allowed)\b",
    re.IGNORECASE,
)
_CONTINUES = re.compile(
    r"^\W*(?:(?:and|but|so|ok|okay)\W+)*(?:what|how)\s+about\s+(?P<rest>.+)$|^\W*(?:and|but)\s+(?:for|with|in|on|at|if|when)\s+(?P<more>.+)$",
    re.IGNORECASE | re.DOTALL,
)
_POINTS_BACK = re.compile(r"\b(?:it|its|they|them|their|this|that|these|those|he|she|him|her|there|the\s+same|one|ones)\b", re.IGNORECASE)


def by_intent(corpus: Corpus, question: str, settings: Settings) -> tuple[Settings, list[str]]:
    """(the settings with what the question's intent asks for, a sentence for the ledger); the same settings where `intent` is off."""
    if settings.intent == "off":
        return settings, []
    found = intent(corpus, question)
    overrides = {
        "definition": {"defines": "question"} if settings.defines == "off" else {},
        "procedure": {"steps_weight": "0.3"} if settings.steps_weight == 0 else {},
        "policy": {"cites": "on"} if settings.cites == "off" else {},
        "lookup": {},
    }[found]
    said = f"intent {found}" + (": " + ", ".join(f"{name}={word}" for name, word in overrides.items()) if overrides else "")
    return settings.with_words(overrides), [said]


def by_entities(corpus: Corpus, question: str, settings: Settings) -> tuple[Settings, list[str]]:
    """(the settings with filters drawn from the question, a sentence for the ledger): "status final" or "final status", where documents have a status and one of
    them is final. A filter that would leave no passage is not set; the same settings where `entities` is off."""
    if settings.entities == "off":
        return settings, []
    drawn = []
    for key, values in corpus.metadata_values().items():
        name = re.escape(key.replace("_", " "))
        for value in sorted(values, key=lambda value: (-len(value), value)):
            said = rf"(?<!\w)(?:{name}[\s:=]+(?:is\s+|of\s+)?[\"'“‘]?{re.escape(value)}|[\"'“‘]?{re.escape(value)}[\"'”’]?\s+{name})(?![\w.]\w|\w)"
            if re.search(said, question, re.IGNORECASE):
                quoted = value.replace("\\", "\\\\").replace('"', '\\"')
                drawn.append(f'{key}="{quoted}"')
                break
    if not drawn:
        return settings, []
    text = ", ".join(([] if settings.filters == "none" else [settings.filters]) + drawn)
    try:
        restriction = corpus.restriction(text)
    except UsageError:  # a key that no filter can name
        return settings, []
    if restriction is None or not restriction.keys:
        return settings, [f"no passage would pass the filter {text}, which the question names: it was not set"]
    return settings.with_words({"filters": text}), [f"filter from the question: {', '.join(drawn)}"]


def intent(corpus: Corpus, question: str) -> str:
    """`definition`, `procedure`, `policy` or `lookup`, the first that fits. A definition must ask for a term that the collection defines."""
    terms = list(dict.fromkeys(term for term, _, _ in corpus.defined(candidate_terms(question))))
    if asks_for_meaning(question, terms):
        return "definition"
    if _PROCEDURE.search(question):
        return "procedure"
    return "policy" if _POLICY.search(question) else "lookup"


_REWRITE = (
    "You rewrite the last question of a conversation so that it can be understood without it: put in what it refers to, change nothing else, and do not answer it. "
    'A question that stands alone already stays as it is. Answer with JSON: {"question": "…"}.'
)
_REWRITTEN = {"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"], "additionalProperties": False}


def rewritten(question: str, history: Sequence[str], how: str) -> str:
    """The question made to stand alone after what was asked before it, by `rules` or by the `chat` model. An answer of the model that is blank, or longer than
    all that was said, is none: the rules stand in."""
    said = [turn.strip() for turn in history if turn.strip()]
    if how == "rules" or not said or not question.strip():
        return stand_alone(question, history)
    lines = "\n".join(f"- {turn[:1000]}" for turn in said[-6:])
    answer = configured().ask(_REWRITE, f"Asked before:\n{lines}\n\nThe last question: {question[:2000]}", _REWRITTEN, most=300)
    found = " ".join(str(answer.value["question"]).split())
    return found if found and len(found) <= 200 + len(question) + sum(map(len, said)) else stand_alone(question, history)


def stand_alone(question: str, history: Sequence[str]) -> str:
    """The question with the subject of the last turn before it, where it leans on that: "what about contractors?" after "remote work policy" becomes
    "remote work policy: contractors?". One that stands alone is returned as it is.

    >>> stand_alone("What about contractors?", ["remote work policy"])
    'remote work policy: contractors?'
    >>> stand_alone("How often is the relief valve tested?", ["remote work policy"])
    'How often is the relief valve tested?'
    """
    said = next((turn.strip() for turn in reversed(history) if turn.strip()), "")
    if not said or not question.strip():
        return question
    subject = _subject(said)
    follows = _CONTINUES.match(question.strip())
    if follows:
        rest = (follows["rest"] or follows["more"]).strip()
        return f"{subject}: {rest}"
    content = [word for word in words(question) if word not in STOP_WORDS]
    if (_POINTS_BACK.search(question) and len(content) <= 4) or not content:
        return f"{subject}: {question.strip()}"
    return question


def _subject(said: str) -> str:
    """What a turn was about: itself where it is a phrase, else its words without those of the question form."""
    text = " ".join(said.split()).rstrip("?.! ")
    if len(text.split()) <= 6 and not re.match(r"(?i)(?:what|how|when|where|who|why|which|is|are|do|does|can|may|must)\b", text):
        return text
    kept = [word for word in re.findall(r"[^\W_][\w'’./-]*", text) if word.lower() not in STOP_WORDS]
    return " ".join(kept) or text
