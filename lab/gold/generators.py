"""Questions without a model: rules that turn a passage into a question. Each says in its metadata how it was made, and none hides that it copies words.

section      a section number or a code, half of them written otherwise than in the text
definition   the meaning of a term, from the collection's definition links
fact         a clause turned round: "The valve must be tested every month." → "How often must the valve be tested?"
citation     a sentence that refers elsewhere; the answer is the passage referred to
keyword      the rarest words of a passage, as people type them
unanswerable a code, a section or a term that the collection does not hold: that, and no more, is claimed
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from lab.codes import side_tokens
from lab.corpus.sentences import sentences
from lab.gold.drafts import Draft, Material, Passage, place
from lab.records import Judgment
from lab.store import chunks, documents, links
from lab.store.collections import Collection
from lab.store.connect import Store
from lab.text import STOP_WORDS, content_stems, stem, words

Generator = Callable[[Store, Collection, Material, int], Iterator[Draft]]
_SECTION = re.compile(
    r"(?:(?P<kind>section|article|rule|chapter|clause|annex|appendix|part|§)\s*)?(?P<number>\d+(?:\.\d+)*)\.?(?:\s+\S.*)?$", re.IGNORECASE
)
_CODE = re.compile(r"(?<![\w-])[A-Z]{1,6}-\d{2,6}(?:-[A-Z0-9]{1,4})?(?![\w-])")
_MODAL = re.compile(
    r"(?P<subject>(?:The|An?|Every|Each)\s[\w’'/-]+(?:\s[\w’'/-]+){0,3}?)\s(?P<modal>must|shall|should)(?P<rest>(?:\s+not)?\s[a-z].+?)[.;:]?",
    re.DOTALL,
)
_OFTEN = re.compile(
    r"\s(?P<verb>be\s+\w+(?:ed|en|n|t|id)|\w+)(?P<middle>(?:\s+(?:by|in|on|at|with|for)\s+[\w\s’'-]{2,40}?)?)\s(?P<answer>(?:at\s+least\s+)?(?:every\s+(?:\w+\s+){0,3}?(?:hour|day|week|month|year|shift)s?|"
    r"once\s+(?:a|an|every|per|in\s+every)\s+[\w\s]{3,25}|daily|weekly|monthly|yearly|annually|twice\s+an?\s+\w+))\s*"
)
_SPELT = "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty|ninety"
_UNITS = "bar|mbar|kPa|MPa|psi|mm|cm|m|km|kg|g|mg|t|l|ml|V|kV|mV|A|mA|W|kW|MW|kWh|Hz|kHz|°C|ppm|ppb|dB|rpm|per cent|percent|%"
_QUANTITY = re.compile(
    rf"(?<![\w.,/:§-])(?P<number>\d+(?:[.,]\d+)*|{_SPELT})\s(?P<unit>(?:{_UNITS})(?![\w/])|(?:(?!of\b|or\b|and\b|to\b)[a-z]{{3,}}\s)?[a-z]{{3,}}s\b(?<!ss))(?![-/])"
)
_NAMED = re.compile(
    r"\b(?:sections?|rules?|articles?|chapters?|clauses?|parts?|tables?|figures?|forms?|steps?|annex|appendix|class|type|grade|page|no\.)\s$",
    re.IGNORECASE,
)
_POINTS = re.compile(
    r"\b(?:it|its|they|them|their|this|that|these|those|he|him|his|she|her|such|there|former|latter|above|below|we|you|your|our)\b", re.IGNORECASE
)
_WAYS = ("What does “{term}” mean?", "How is “{term}” defined?", "What is meant by “{term}”?", "Define “{term}”.", "What counts as “{term}”?")
_SECTION_WAYS = (
    "What does {kind} {number} of {title} say?",
    "{title}: what is required by {kind} {number}?",
    "What is {kind} {number} in {title} about?",
)
_CODE_WAYS = ("What is said about {code}?", "What must be known about {code}?", "Where is {code} used, and how?")


def judged(passage: Passage, start: int, end: int, grade: int = 2) -> Judgment:
    """A judgment on `[start, end)` of a passage's text."""
    return Judgment("", passage.source, passage.start + start, passage.start + end, grade, passage.text[start:end])


def section(store: Store, collection: Collection, material: Material, seed: int) -> Iterator[Draft]:
    """Numbers of sections, and codes that stand in one passage only."""
    spots: dict[str, list[chunks.Spot]] = {}
    for passage in material.passages:
        way = int(place(seed, "section", passage.source, passage.n)[:8], 16)
        for match in _CODE.finditer(passage.text):
            code = match[0]
            token = next((t for t in side_tokens(code) if t.startswith("e=")), None)
            if token is None or chunks.passages_with_code(store, collection, token) != 1:
                continue
            written = (code, code.replace("-", " "), code.replace("-", "").lower())[way % 3]
            start, end = _sentence(passage.text, match.start())
            yield Draft(
                _CODE_WAYS[way % len(_CODE_WAYS)].format(code=written),
                "section",
                (judged(passage, start, end),),
                passage,
                {"generator": "section/code"},
            )
            break
        number = _SECTION.fullmatch(passage.heading[-1].strip()) if passage.heading else None
        if number is None or not passage.title:
            continue
        if passage.source not in spots:
            spots[passage.source] = chunks.spots(store, collection, [passage.source]).get(passage.source, [])
        parts = _together(spots[passage.source], passage)
        start, end = min(p.start for p in parts), max(p.end for p in parts)
        text = documents.text_between(store, collection, passage.source, start, end)
        kind = {"§": "section"}.get((number["kind"] or "section").lower(), (number["kind"] or "section").lower())
        title = re.sub(r"^\d+(?:\.\d+)*\.?\s+", "", passage.title)
        said = _SECTION_WAYS[way % len(_SECTION_WAYS)].format(kind=kind, number=number["number"], title=title)
        yield Draft(said, "section", (Judgment("", passage.source, start, end, 2, text),), passage, {"generator": "section/number"})


def _together(spots: list[chunks.Spot], passage: Passage) -> list[chunks.Spot]:
    """The chunks of the passage's section: those around it, one after the other, under the same heading."""
    at = next(i for i, spot in enumerate(spots) if spot.key == passage.key)
    first = last = at
    while first > 0 and spots[first - 1].heading == passage.heading:
        first -= 1
    while last + 1 < len(spots) and spots[last + 1].heading == passage.heading:
        last += 1
    return spots[first : last + 1]


def definition(store: Store, collection: Collection, material: Material, seed: int) -> Iterator[Draft]:
    """Terms that definition links know, phrased in one of five ways; circular evidence where `defines` is judged, and marked so."""
    for key, source, n, chunk_start, chunk_end, text, heading, title, start, _, label in links.defined_spots(store, collection):
        passage = Passage(key, source, n, chunk_start, chunk_end, text, tuple(heading), title)
        term = " ".join(label.split()).strip("\"“”‘’'*_`")
        if not 2 <= len(term) <= 60:
            continue
        first, last = _sentence(text, min(max(start - chunk_start, 0), max(len(text) - 1, 0)))
        way = int(place(seed, "definition", term.lower())[:8], 16) % len(_WAYS)
        yield Draft(
            _WAYS[way].format(term=term),
            "definition",
            (judged(passage, first, last),),
            passage,
            {"generator": "definition", "derived_from": "defines"},
        )


def fact(store: Store, collection: Collection, material: Material, seed: int) -> Iterator[Draft]:
    """Clauses with a modal verb or a figure, turned round."""
    for passage in material.passages:
        found = []
        for start, end in sentences(passage.text):
            text = passage.text[start:end].strip()
            if 20 <= len(text) <= 300 and "\n\n" not in text:
                question = turned(" ".join(text.split()))
                if question:
                    found.append(
                        (place(seed, "fact", passage.source, passage.n, start), question, start, start + len(passage.text[start:end].rstrip()))
                    )
        for _, (asked, rule), start, end in sorted(found)[:1]:
            yield Draft(asked, "fact", (judged(passage, start, end),), passage, {"generator": f"fact/{rule}"})


def turned(sentence: str) -> tuple[str, str] | None:
    """(question, rule) of a clause, None where no rule fits. A clause that points out of itself ("it", "these") is left alone.

    >>> turned("The relief valve must be tested every six months.")
    ('How often must the relief valve be tested?', 'how often')
    >>> turned("Visitors stand at least 3 metres from a running pump.")
    ('Visitors stand at least how many metres from a running pump?', 'how many')
    >>> turned("The shift lead must sign the red book.")
    ('Who or what must sign the red book?', 'who')
    """
    if _POINTS.search(sentence) or not sentence[:1].isupper() or any(sign in sentence for sign in ':|*“"'):
        return None
    match = _MODAL.fullmatch(sentence)
    often = _OFTEN.fullmatch(match["rest"]) if match is not None else None
    if match is not None and often is not None:
        return f"How often {match['modal']} {_lower(match['subject'])} {often['verb']}{often['middle']}?", "how often"
    quantities = [found for found in _QUANTITY.finditer(sentence) if not _NAMED.search(sentence, 0, found.start())]
    if len(quantities) == 1 and 6 <= len(sentence.split()) <= 30 and not re.search(r"[.;!?]\s", sentence):
        found = quantities[0]
        unit = "per cent" if found["unit"] == "%" else found["unit"]
        return f"{sentence[: found.start()]}how many {unit}{sentence[found.end() :]}".rstrip(".;") + "?", "how many"
    if match is not None and 4 <= len(match["rest"].split()) <= 25 and "," not in match["rest"]:
        return f"Who or what {match['modal']}{match['rest']}?", "who"
    return None


def citation(store: Store, collection: Collection, material: Material, seed: int) -> Iterator[Draft]:
    """A sentence that refers elsewhere, the reference taken out; the passage referred to is judged."""
    for citing, start, end, cited in links.cited_spots(store, collection):
        origin, target = Passage(*citing), Passage(*cited)
        if origin.key == target.key:
            continue
        at = start - origin.start
        if not 0 <= at < len(origin.text):
            continue
        first, last = _sentence(origin.text, at)
        clause = " ".join((origin.text[first:at] + "…" + origin.text[end - origin.start : last]).split())
        if len(words(clause)) > 40 or len(content_stems(clause)) < 4:
            continue
        text = f"“{clause}” What does the rule say that is referred to there?"
        yield Draft(text, "citation", (judged(target, 0, len(target.text)),), target, {"generator": "citation", "derived_from": "cites"})


def keyword(store: Store, collection: Collection, material: Material, seed: int) -> Iterator[Draft]:
    """Three of the rarest words of a passage, in their order."""
    for passage in material.passages:
        known: dict[str, int] = {}
        for at, word in enumerate(words(passage.text)):
            if word.isalpha() and len(word) > 2 and word not in STOP_WORDS:
                known.setdefault(word, at)
        rarest = sorted(known, key=lambda word: (material.passages_with.get(stem(word), 0), word))[:3]
        if len(rarest) == 3:
            text = " ".join(sorted(rarest, key=known.__getitem__))
            yield Draft(text, "keyword", (judged(passage, 0, len(passage.text)),), passage, {"generator": "keyword"})


def unanswerable(store: Store, collection: Collection, material: Material, seed: int) -> Iterator[Draft]:
    """Codes with other digits, sections behind the last, terms put together of two: each looked for, and absent."""
    terms = sorted({" ".join(label.lower().split()) for *_, label in links.defined_spots(store, collection)}, key=lambda t: place(seed, "absent", t))
    pairs = [term.split() for term in terms if len(term.split()) == 2 and all(word.isalpha() for word in term.split())]
    for at, passage in enumerate(material.passages):
        way = int(place(seed, "unanswerable", passage.source, passage.n)[:8], 16)
        code = _CODE.search(passage.text)
        if code is not None:
            digits = f"{way % 9000 + 1000}"[: max(2, sum(c.isdigit() for c in code[0]))]
            made = re.sub(r"\d+", digits, code[0], count=1)
            token = next((t for t in side_tokens(made) if t.startswith("e=")), None)
            if token is not None and chunks.passages_with_code(store, collection, token) == 0:
                text = _CODE_WAYS[way % len(_CODE_WAYS)].format(code=made)
                yield Draft(text, "unanswerable", (), None, {"generator": "unanswerable/code", "absent": made}, answerable=False)
                continue
        if len(pairs) >= 4:  # the first word of one term before the last of another
            made = f"{pairs[at % len(pairs)][0]} {pairs[(at * 7 + at // len(pairs) + 1) % len(pairs)][1]}"
        else:
            known = [w for w in dict.fromkeys(words(passage.text)) if w.isalpha() and len(w) > 4 and w not in STOP_WORDS]
            made = f"{known[0]} {known[-1]}" if len(known) > 1 else ""
        if made and chunks.passages_with_phrase(store, collection, made) == 0:
            yield Draft(f"What is meant by “{made}”?", "unanswerable", (), None, {"generator": "unanswerable/term", "absent": made}, answerable=False)


def _sentence(text: str, at: int) -> tuple[int, int]:
    """`[start, end)` of the sentence of `text` around an offset, without white space at its ends."""
    start, end = next(((a, b) for a, b in sentences(text) if a <= at < b), (0, len(text)))
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), end - (len(piece) - len(piece.rstrip()))


def _lower(subject: str) -> str:
    """The subject inside of a question: a leading article or quantifier in lower case; names keep theirs."""
    head, _, rest = subject.partition(" ")
    if head in {"The", "A", "An", "Every", "Each", "All"} and rest:
        return f"{head.lower()} {rest}"
    return subject if any(c.isupper() for c in subject[1:]) or not subject[:1].isupper() else subject[0].lower() + subject[1:]


GENERATORS: dict[str, Generator] = {
    "section": section, "definition": definition, "fact": fact, "citation": citation, "keyword": keyword, "unanswerable": unanswerable,
}  # fmt: skip
