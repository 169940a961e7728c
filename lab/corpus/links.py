"""Links found in text: citations ("see section 4.2.1") and definitions ("X means …"). Pure functions on text; `linking` resolves what they find.

The patterns are those of statutes, rulebooks, manuals and contracts; English only.
"""

from __future__ import annotations

import re

from lab.corpus.sentences import sentences
from lab.records import Definition, Mention
from lab.text import term_key

# ── citations ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

_KINDS = {
    "section": "section", "sections": "section", "sec": "section", "subsection": "section", "subsections": "section", "§": "section", "§§": "section",
    "article": "article", "articles": "article", "art": "article", "rule": "rule", "rules": "rule", "clause": "clause", "clauses": "clause",
    "chapter": "chapter", "chapters": "chapter", "annex": "annex", "annexes": "annex", "appendix": "appendix", "appendices": "appendix",
    "table": "table", "tables": "table", "figure": "figure", "figures": "figure", "fig": "figure", "paragraph": "paragraph", "paragraphs": "paragraph", "part": "part", "schedule": "schedule",
    "standard": "chapter", "procedure": "chapter", "manual": "chapter",
}  # fmt: skip
# "consent has the meaning given in section 4": a citation, and no definition.
_ELSEWHERE = re.compile(
    r"\s*(?:has|have|shall have)\s+the\s+(?:same\s+)?(?:respective\s+)?meanings?\s+(?:(?:given|assigned|ascribed|attributed)(?:\s+to\s+(?:it|them|that\s+term))?|set\s+out|set\s+forth|specified|stated|provided|defined|as)\s+"
    r"(?:in|by|under|at|for)\b|\s*(?:is|are)\s+defined\s+(?:in|by|under)\b",
    re.IGNORECASE,
)
_NUMBER = r"(?:\d+(?:[.-]\d+)*[a-z]?|[A-Z](?:[.-]?\d+)*)(?![A-Za-z])(?:\(\w{1,4}\))*"
_CITATION = re.compile(
    rf"(?P<kind>§§?|\b(?:{'|'.join(sorted((k for k in _KINDS if k[0].isalpha()), key=len, reverse=True))})\b|\b(?:sec|art|fig)\.)[ \t]*\n?[ \t]*"
    rf"(?P<first>{_NUMBER})(?P<more>(?:(?:\s*[–—]\s*|\s*(?:,|;|and|or|to|through|-|\band\b|\bor\b|, and|, or)\s+)(?:(?:section|article|rule|clause|chapter)s?\s+)?{_NUMBER})*)",
    re.IGNORECASE,
)
_PART = re.compile(rf"(?P<join>,|;|and|or|to|through|–|—|-)?\s*(?:(?:section|article|rule|clause|chapter)s?\s+)?(?P<number>{_NUMBER})", re.IGNORECASE)
# "Article 6 of Directive 95/46/EC", "section 4 of the Companies Act": somebody else's text.
_EXTERNAL = re.compile(
    r"\s*(?:\([^)]*\)\s*)?(?:of|in|to|under)\s+(?:(?:the|that|this|said|its)\s+)?"
    r"(?:[A-Z][\w’'-]*\s+){0,6}?(?:Directive|Regulation|Act|Treaty|Charter|Convention|Code|Constitution|Decision|Agreement|Law|TFEU|TEU|RFC|ISO|EN|IEC)\b"
    r"(?!\s*(?:and|or)\b)"
)
_THEREOF = re.compile(r"\s+thereof\b", re.IGNORECASE)
_OWN = re.compile(r"\s*(?:of|in)\s+this\s+(?:Directive|Regulation|Act|Treaty|Code|Agreement|Law)\b", re.IGNORECASE)


def find_citations(text: str, left_out: list[Mention] | None = None) -> list[Mention]:
    """Every place where `text` names a numbered part, lists and ranges expanded; those of other acts are left out and put into `left_out`.

    >>> [(m.kind, m.number) for m in find_citations("See sections 4.2 and 4.3, and Rule 7(1).")]
    [('section', '4.2'), ('section', '4.3'), ('rule', '7')]
    """
    found: list[Mention] = []
    for match in _CITATION.finditer(text):
        word = match["kind"].lower().rstrip(".")
        if match["first"][0].isalpha() and not match["first"][0].isupper():
            continue
        if (
            word in {"part", "standard", "procedure", "manual", "table", "paragraph", "rules", "figure", "fig"}
            and match["first"][0].isalpha()
            and word != "table"
        ):
            continue
        if _EXTERNAL.match(text, match.end()) and not _OWN.match(text, match.end()):
            if left_out is not None:
                left_out.append(Mention(_KINDS[word], _bare(match["first"]), match.group(), match.start(), match.end()))
            continue
        if _THEREOF.match(text, match.end()) and _EXTERNAL.search(text, max(0, match.start() - 200), match.start()):
            continue  # "Article 8 of Regulation 182/2011, in conjunction with Article 5 thereof"
        kind = _KINDS[word]
        previous = ""
        for part in _PART.finditer(text, match.start("first"), match.end()):
            number = _bare(part["number"])
            ends = re.fullmatch(r"(\d+)-(\d+)", number)
            if ends and kind not in {"table", "annex", "appendix"}:  # "Articles 12-14" is a range, "Table 3-1" a number
                found += [Mention(kind, n, match.group(), match.start(), match.end()) for n in (ends[1], *_range(ends[1], ends[2]), ends[2])]
                previous = ends[2]
                continue
            if (part["join"] or "").lower() in {"to", "through", "–", "—", "-"} and previous:
                for between in _range(previous, number):
                    found.append(Mention(kind, between, match.group(), match.start(), match.end()))
            found.append(Mention(kind, number, match.group(), match.start(), match.end()))
            previous = number
    return found


def _bare(number: str) -> str:
    """Without the paragraph in brackets: `6(1)(a)` → `6`."""
    return number.split("(")[0].rstrip(".")


def _range(first: str, last: str) -> list[str]:
    """What lies strictly between two numbers that differ in their last component (`4.2` to `4.5` → 4.3, 4.4)."""
    sign = "-" if "-" in first else "."
    head, _, a = first.rpartition(sign)
    head_last, _, b = last.rpartition(sign)
    if head != head_last or not (a.isdigit() and b.isdigit()) or not 0 < int(b) - int(a) <= 200:
        return []
    return [f"{head}{sign}{n}" if head else str(n) for n in range(int(a) + 1, int(b))]


# ── definitions ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────

_OPEN, _CLOSE = r"[\"“‘'«*_`]+", r"[\"”’'»*_`]+"
_VERB = r"(?:means|shall mean|is defined as|are defined as|is defined to be|refers to|denotes|designates|shall have the meaning|has the meaning|is understood as|is understood to be)"
_QUOTED = re.compile(
    rf"{_OPEN}(?P<term>[^\"“”‘’«»*`\n]{{2,60}}?){_CLOSE}\s*(?:\([^)\n]{{1,60}}\)\s*)?,?\s*(?:of the [^,.;\n]{{2,40}}\s+)?(?:{_VERB}\b|\bis (?=when|where|a |an |the |any |every ))"
)
_THE_TERM = re.compile(
    rf"\b(?:the|this)\s+(?:term|word|words|expression|phrase)\s+(?:{_OPEN})?(?P<term>[^\"“”‘’«»*`,.;\n]{{2,60}}?)(?:{_CLOSE})?,?\s+"
    rf"(?:{_VERB}|covers|stands for|is used for|is used of|is reserved for|describes|includes|is applied to|applies to)\b",
    re.IGNORECASE,
)
_CALLED = re.compile(
    rf"\b(?:is|are|counts as|count as|(?:is|are) (?:called|known as|termed|said to be))\s+(?:an?\s+|the\s+)?{_OPEN}(?P<term>[^\"“”‘’«»*`\n]{{2,60}}?){_CLOSE}"
    r"(?=\s+(?:if|when|once|where|while|as soon as|only)\b|\s*[.,;:])"
)
_BARE = re.compile(
    rf"^[\s(]*(?:\(?[0-9a-z]{{1,3}}[.)]\s+|[-*•]\s+)?(?:(?:In|For the purposes? of)\s+(?:this|these)\s+[^,\n]{{2,60}},\s+)?(?:An?\s+|The\s+|By\s+)?"
    rf"(?P<term>[A-Za-z][\w’'/-]*(?:[ ][\w’'/-]+){{0,4}})\s+(?:{_VERB})\s+(?!that\b)",
    re.IGNORECASE,
)
# "the Gulf Water Company (the “Supplier”)", "erased without delay (‘accuracy’);": what stands before the bracket is the meaning.
_PARENTHESIS = re.compile(
    r"\((?:(?:each(?: of them)?,? )?(?:an?|the|collectively,? the|together,? the) |(?:hereinafter|hereafter|herein)(?: called| referred to as)?,? (?:the |an? )?)?"
    r"[\"“‘«](?P<term>[^\"“”‘’«»\n()]{2,60}?)[\"”’»]\)"
)
_GLOSSARY = re.compile(r"^\s*(?:[-*•]\s+)?(?:\*\*|__)(?P<term>[^*_\n]{2,60}?)[:.]?(?:\*\*|__)\s*(?:[:—–-]\s+)(?=\w)")
_NOT_A_TERM = frozenset(
    """
    this that it which what who they these those there here he she we you one such both each if when where as and or but so not no by
    means also often usually always never only then
    """.split()
)


def find_definitions(text: str) -> list[Definition]:
    """Every place where `text` says what a term means, with the defining sentence; the first per term and sentence.

    >>> find_definitions('**Cold permit** means a permit for work without a flame.')[0].term
    'Cold permit'
    """
    found: list[Definition] = []
    for start, end in sentences(text):
        sentence = text[start:end]
        terms: list[str] = []
        for pattern in (_THE_TERM, _QUOTED, _CALLED, _GLOSSARY, _PARENTHESIS, _BARE):
            for match in pattern.finditer(sentence):
                if _ELSEWHERE.match(sentence, _after_quotes(sentence, match.end("term"))):
                    continue
                term = " ".join(match["term"].strip(" *_`\"'“”‘’«»,:").split())
                if pattern is _BARE and (terms or (re.search(r"\bmeans$", sentence[: match.end()].rstrip()) and _noun_means(sentence, match.end()))):
                    continue
                if _is_term(term) and term_key(term) not in map(term_key, terms):
                    terms.append(term)
        found += [Definition(term, start, end) for term in terms]
    return found


def _after_quotes(sentence: str, at: int) -> int:
    while at < len(sentence) and sentence[at] in "\"”’'»*_`,":
        at += 1
    return at


def _noun_means(sentence: str, after: int) -> bool:
    """Whether "means" is the noun ("the use of electronic means for …"): nothing like a meaning follows."""
    return re.match(r"(?:for|of|to|by|and|or|which|shall|must|may|is|are|in order)\b|[,.;:)]", sentence[after:].lstrip()) is not None


def _is_term(term: str) -> bool:
    parts = term.lower().split()
    if not 1 <= len(parts) <= 7 or parts[0] in _NOT_A_TERM or parts[-1] in _NOT_A_TERM | {"the", "a", "an", "of", "to", "in"}:
        return False
    return any(ch.isalpha() for ch in term) and bool(term_key(term))


# ── headings ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────

_HEADING_NUMBER = re.compile(
    rf"^[^\w§]*(?:(?P<kind>{'|'.join(sorted((k for k in _KINDS if k[0].isalpha()), key=len, reverse=True))}|§)\s*)?(?P<number>\d+(?:[.-]\d+)*[a-z]?|[A-Z](?:[.-]?\d+)*)(?=[\s.:)—–]|$)",
    re.IGNORECASE,
)


_NUMBER_WORDS = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty".split()
)
# "Chapter One", "CHAPTER TWENTY-ONE", and the number alone in capitals.
_WORDED = re.compile(
    rf"(?:(?P<kind>chapter|part|section|article|appendix|annex)\s+)?(?P<word>twenty-(?:{'|'.join(_NUMBER_WORDS[:9])})|{'|'.join(sorted(_NUMBER_WORDS, key=len, reverse=True))})\b",
    re.IGNORECASE,
)


def heading_number(heading: str) -> tuple[str, str] | None:
    """(kind, number) of a numbered heading, kind empty where it names none.

    >>> heading_number("4.2.1 Before the isolation"), heading_number("Article 6"), heading_number("A warning")
    (('', '4.2.1'), ('article', '6'), None)
    """
    match = _HEADING_NUMBER.match(heading.strip())
    if match is None:
        worded = _WORDED.match(heading.strip())
        if worded is not None and (worded["kind"] or worded["word"].isupper()):
            tens, _, ones = worded["word"].lower().partition("-")
            number_word = _NUMBER_WORDS.index(tens) + 1 + (_NUMBER_WORDS.index(ones) + 1 if ones else 0)
            return _KINDS.get((worded["kind"] or "").lower(), ""), str(number_word)
        return None
    kind, number = (match["kind"] or "").lower(), match["number"]
    if not kind and (
        (number[0].isalpha() and (len(number) == 1 or not any(ch.isdigit() for ch in number))) or (not number[0].isdigit() and number[0].islower())
    ):
        return None
    return _KINDS.get(kind, ""), number
