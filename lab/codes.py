"""Codes, section numbers and compounds as side tokens: what a text search configuration tears apart or glues together.

One normaliser for passages and questions. A passage's tokens stand in a column of their own beside its text; a question finds those that it shares.

    e=prv2041   a code as a whole                    PRV-2041 · PRV 2041 · prv2041
    e:prv2041   a code, or the beginning of one      PRV-2041 · PRV-2041-A
    s=4.2       a section number as a whole          4.2 · section 4.2 · § 4.2
    s:4.2       that section or one inside of it     4.2 · 4.2.1
    r:table3-1  a numbered thing                     Table 3-1
    n:1250      a number                             1250 · 1,250.00 · 2019 and 2021 in 2019-2021
    q:4.2kg     a quantity, which is no section      4.2 kg
    w:outlet    a word inside a compound, or without its accents     inlet/outlet · os.path · maxScan · café

Whole components only: 4.2 is not in 4.20, 14.2 or 4.2 kg.
"""

from __future__ import annotations

import re
import unicodedata

from lab.text import STOP_WORDS, stem

VERSION = "codes-2"  # of the side tokens, and of the form in which a passage is indexed
_MOST = 400  # side tokens of one passage; a page of part numbers has no more to tell
_LONGEST = 64  # characters of a token: a longer one is data, no code, and an index takes no key of kilobytes
_ASKED = 20_000  # characters of a question that are looked at

_UNITS = (
    "kg|g|mg|t|tons?|tonnes?|lbs?|oz|km|m|cm|mm|µm|um|nm|ft|in|inch|inches|yd|mi|l|ml|litres?|liters?|gal|s|sec|ms|min|mins|h|hr|hrs|hours?|minutes?|seconds?|"
    "days?|weeks?|months?|years?|bar|mbar|pa|kpa|mpa|psi|v|kv|mv|a|ma|w|kw|mw|kwh|mwh|hz|khz|mhz|ghz|°c|°f|°|k|ppm|ppb|db|nm|n|kn|j|kj|rpm|kb|mb|gb|tb|kib|mib|"
    "gib|eur|usd|gbp|dollars?|euros?|percent|points?|times|million|billion|thousand|m2|m3|m²|m³|m/s|km/h|l/h|l/s|mol|lx|lm"
)
_UNIT = re.compile(rf"[ \u00a0\u202f]?(?P<unit>%|‰|€|(?:{_UNITS})(?![\w-]))", re.IGNORECASE)
_UUID = re.compile(r"(?<![\w-])[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}(?![\w-])", re.IGNORECASE)
_HEX = re.compile(r"(?<!\w)0x[0-9a-f]+(?!\w)", re.IGNORECASE)
_GROUPED = re.compile(r"(?<![\w.,])(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:[\u00a0\u202f']\d{3})+)(?![\d]|[.,]\d)")
_KIND = (
    r"(?P<kind>sections?|sec\.?|§+|chapters?|chap\.?|articles?|art\.?|rules?|clauses?|parts?|annex(?:es)?|appendix|appendices|tables?|figures?|fig\.?|"
    r"paragraphs?|para\.?|steps?|items?|schedules?|exhibits?|forms?|chapter)"
)
_REFERENCE = re.compile(
    rf"(?<!\w){_KIND}[ \t\u00a0]*\n?(?P<number>(?:[A-Z][.-]?)?\d{{1,4}}(?:[.-]\d{{1,4}}){{0,5}}[a-z]?|[A-Z])(?![\w]|[.-]\d)", re.IGNORECASE
)
_DOTTED = re.compile(
    r"(?<![\w.,/$€£])(?<!(?<!\d)-)(?!\d{1,2}\.\d{1,2}\.(?:19|20)\d\d(?!\d))(?P<number>(?:[A-Z]\.)?\d{1,3}(?:\.\d{1,4}){1,5})(?:\([0-9a-zA-Z]{1,4}\))*(?![\w]|[.,]\d)"
)
_HEADING = re.compile(r"(?:^|> |\n#{0,6} ?)(?P<number>\d{1,3})\.? (?=[A-Z“\"‘])")
_CODE = re.compile(r"(?<![\w@./-])(?=[\w/.-]*\d)(?=[\w/.-]*[^\W\d_])[^\W_]++(?:[-_/.][^\W_]++)*+(?![\w@])")
_SPACED = re.compile(
    r"(?<![\w@./-])(?P<letters>[^\W\d_]{1,12})[ \u00a0](?P<digits>\d{1,8}[A-Za-z]?(?:/[A-Za-z0-9]{1,8})?)(?![\w%]|[.,/]\d)(?P<more>[:-]\d)?"
)
_NUMBER = re.compile(r"(?<![\d.,])(?P<number>\d{3,12}(?:\.\d+)?)(?![\d]|[.,]\d)")
_ANYTHING = re.compile(r"\d|\b[A-Z]\b")
_COMPOUND = re.compile(
    r"(?<![\w@/:.])[^\W\d_]{2,}(?:/[^\W\d_]{2,})+(?![\w/@])|(?<![\w@/:.])[^\W\d]\w*(?:\.[^\W\d]\w*)+(?![\w@/])|(?<!\w)[^\W\d_][^\W_]*[a-z][A-Z][^\W_]*"
)
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[^\W\d_]?[^\W\d_A-Z]+|\d+")
_WORD = re.compile(r"[^\W\d_]{2,}")
_SHORT_KIND = {"sec": "section", "§": "section", "§§": "section", "chap": "chapter", "art": "article", "fig": "figure", "para": "paragraph",
               "annexes": "annex", "appendices": "appendix", "boxes": "box"}  # fmt: skip
_SECTIONS = frozenset({"section", "chapter", "clause", "rule", "paragraph", "article", "part"})


def side_tokens(text: str) -> list[str]:
    """The side tokens of a passage, sorted; at most 400.

    >>> side_tokens("PRV-2041 is in section 4.2.1")
    ['e:prv2041', 'e=prv2041', 'n:2041', 'r:section4.2.1', 's:4', 's:4.2', 's:4.2.1', 's=4.2.1']
    """
    return sorted(_found(_plain_text(text), asked=False))[:_MOST]


def question_tokens(question: str) -> list[str]:
    """The side tokens that a question looks for: its codes and numbers as wholes, and each of its words, which may stand inside a compound.

    >>> question_tokens("section 4.2")
    ['r:section4.2', 's:4.2', 's=4.2', 'w:section']
    """
    text = _plain_text(question[:_ASKED])
    found = _found(text, asked=True)
    words = [_fold(word) for word in _WORD.findall(text)]
    return sorted(found | {f"w:{stem(word)}" for word in words[:200] if word not in STOP_WORDS and len(word) < _LONGEST - 2})[:_MOST]


def question_words(question: str) -> str:
    """The question as the text index is to be asked: numbers of named sections taken out, since as words they also mean quantities ("4.2 kg") and the side
    tokens know better; the parts of compounds and words without accents put behind.

    >>> question_words("the café at inlet/outlet, section 4.2")
    'the café at inlet/outlet, section  cafe inlet outlet'
    """
    text = unicodedata.normalize("NFKC", question)
    more: list[str] = []
    for match in _WORD.finditer(text):
        if _fold(match[0]) != match[0].casefold():
            more.append(_fold(match[0]))
    for match in _COMPOUND.finditer(text):
        more += [piece.casefold() for piece in _PIECE.findall(match[0]) if len(piece) > 1]
    bare = _REFERENCE.sub(lambda m: f"{m['kind']} " if "." in m["number"] else m[0], text)
    return f"{bare} {' '.join(dict.fromkeys(more))}".rstrip() if more or bare != text else question


def _plain_text(text: str) -> str:
    """NFKC, with every hyphen of the same kind, and raised digits kept apart: 10³ is no 103."""
    if text.isascii():
        return text
    raised = re.sub(r"(?<=\d)[⁰¹²³⁴-⁹]+", lambda match: "^" + match[0], text)
    return re.sub(r"(?<=\w)[\u2010-\u2013\u2212](?=\w)", "-", unicodedata.normalize("NFKC", raised))


def _found(text: str, *, asked: bool) -> set[str]:
    found: set[str] = set()
    if text.isascii() and not _ANYTHING.search(text) and not _COMPOUND.search(text):
        return found  # most sentences
    hidden = list(text)

    def hide(start: int, end: int) -> None:
        hidden[start:end] = " " * (end - start)

    for pattern in (_UUID, _HEX):
        for match in pattern.finditer(text):
            found.add(f"e={match[0].replace('-', '').casefold()}")
            hide(match.start(), match.end())
    rest = "".join(hidden)
    for match in _GROUPED.finditer(rest):
        digits = match[0]
        comma = digits.rfind(",") > digits.rfind(".") and re.search(r",\d{1,2}$|,\d{4,}$", digits)  # 1.250,00
        plain = re.sub(r"[.\u00a0\u202f']", "", digits).replace(",", ".") if comma else re.sub(r"[,\u00a0\u202f']", "", digits)
        found.add(f"n:{_plain(plain)}")
        hide(match.start(), match.end())
    rest = "".join(hidden)
    named = {match.start("number") for match in _REFERENCE.finditer(rest)}  # "section 4.2 in the manual" is no length
    quantities: set[int] = set()
    for match in re.finditer(r"(?<![\w.,-])\d+(?:[.,]\d+)*", rest):
        unit = _UNIT.match(rest, match.end())
        if unit is not None and match.start() not in named and _is_unit(rest, match.start(), match.end(), unit):
            found.add(f"q:{_plain(match[0])}{unit['unit'].casefold()}")
            quantities.add(match.start())

    def is_quantity(start: int) -> bool:
        return start in quantities

    for match in _REFERENCE.finditer(rest):
        kind = match["kind"].casefold().rstrip(".")
        kind = _SHORT_KIND.get(kind, kind.removesuffix("s") if kind not in {"annex", "appendix"} else kind)
        if is_quantity(match.start("number")):
            continue
        if match["number"].isalpha() and not (len(match["number"]) == 1 and match["number"].isupper()):
            continue
        number = match["number"].casefold()
        found.add(f"r:{kind}{number}")
        if kind in _SECTIONS:
            found |= _section(number, asked)
    for match in _DOTTED.finditer(rest):
        if not is_quantity(match.start()):
            found |= _section(match["number"].casefold(), asked)
    for match in _HEADING.finditer(rest):
        found |= _section(match["number"], asked)
    for match in _CODE.finditer(rest):
        if not is_quantity(match.start()):
            found |= _code(match[0], asked)
    for match in _SPACED.finditer(rest):
        letters = match["letters"].casefold()
        if letters not in STOP_WORDS and match.start("digits") not in named and not is_quantity(match.start("digits")):
            found.add(f"e:{letters}{match['digits'].casefold()}")
            if not match["more"]:  # of ISO 9001:2015 the beginning alone
                found.add(f"e={letters}{match['digits'].casefold()}")
    for match in _NUMBER.finditer(rest):
        if asked and re.search(r"[^\W\d_][-_/.]?$", rest[max(0, match.start() - 2) : match.start()]):
            continue  # a part of a code, which is asked for as a whole
        found.add(f"n:{_plain(match['number'])}")
    for match in _COMPOUND.finditer(rest):
        found |= {f"w:{stem(_fold(piece))}" for piece in _PIECE.findall(match[0]) if len(piece) > 1}
    if not text.isascii():
        for match in _WORD.finditer(text):
            folded = _fold(match[0])
            if folded != match[0].casefold() and folded not in STOP_WORDS:
                found.add(f"w:{stem(folded)}")
    return {token for token in found if len(token) <= _LONGEST}


def _is_unit(text: str, start: int, end: int, unit: re.Match[str]) -> bool:
    """Whether what follows a number is a unit: not the A of a heading "4.2 A pump", not the "in" of "rule 7 in short"."""
    word, spaced = unit["unit"], unit.start("unit") > end
    if word.lower() == "in" and spaced:
        return not re.match(r"\s+\w", text[unit.end() : unit.end() + 3])
    if len(word) == 1 and word.isupper() and spaced:
        at_start = start == 0 or text[start - 1] == "\n" or text[max(0, start - 2) : start] in {"> ", "# "}
        return not (at_start and re.match(r"\s+[a-z]", text[unit.end() : unit.end() + 3]))
    return True


def _section(number: str, asked: bool) -> set[str]:
    """`4.2.1` → itself as a whole, and every section that it lies in; of a question itself alone."""
    parts = number.split(".")
    return {f"s={number}"} | {f"s:{'.'.join(parts[: at + 1])}" for at in range(len(parts) - 1 if asked else 0, len(parts))}


def _code(code: str, asked: bool) -> set[str]:
    """A code as a whole, and its beginnings: up to every sign between components, from the first digit on. `/` stays: AB-12/3 is no AB-123."""
    if len(code) > _LONGEST:
        return set()
    if re.fullmatch(r"\d+(?:st|nd|rd|th)|\d+(?:\.\d+)+[a-z]?", code, re.IGNORECASE):
        return set()
    if "." in code and not re.search(r"\d", code.split(".")[0]):
        return set()  # os.path2, notes2.txt: a compound of words
    found = {f"e={_joined(code)}", f"e:{_joined(code)}"}
    if not asked:
        for match in list(re.finditer(r"[-_/.]", code))[:8]:
            head = code[: match.start()]
            if any(sign.isdigit() for sign in head) and any(sign.isalpha() for sign in head):
                found.add(f"e:{_joined(head)}")
    return found


def _joined(code: str) -> str:
    return re.sub(r"[-_.]", "", code).casefold()


def _plain(number: str) -> str:
    """A number without grouping, and without zeros that say nothing: 1,250.00 → 1250; 0.50 → 0.5."""
    plain = number.replace(",", "") if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", number) else number.replace(",", ".")
    if re.fullmatch(r"\d+\.\d+", plain):
        plain = plain.rstrip("0").rstrip(".")
    return plain.lstrip("0") or "0"


def _fold(word: str) -> str:
    """Lower case without accents."""
    if word.isascii():
        return word.lower()
    return "".join(sign for sign in unicodedata.normalize("NFKD", word.casefold()) if not unicodedata.combining(sign))
