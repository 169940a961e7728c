"""Which part of a page is its content: what the page says of itself, else what names and trafilatura tell."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

DROPPED = frozenset(
    "script style noscript template iframe svg object embed canvas audio video map select input textarea datalist meter progress link meta head title".split()
)
HEADINGS = {f"h{n}": n for n in range(1, 7)}
BLOCKS = frozenset(
    """
    address article aside blockquote body center dd details dialog div dl dt fieldset figcaption figure footer form header hgroup hr html legend li main
    menu nav ol p section summary table tbody td tfoot th thead tr ul caption
    """.split()
)
_NOT_MAIN_ROLE = frozenset("navigation banner contentinfo search complementary menu menubar toolbar dialog alert".split())
_NOT_MAIN_WORD = frozenset(
    """
    nav navbar navigation navheader navfooter sidebar sphinxsidebar breadcrumb breadcrumbs footer masthead menu pagination pager cookie cookies toc
    toctree headerlink permalink skiplink related advert advertisement social sharing newsletter
    """.split()
)
_POSITION = frozenset(
    """
    main site page left right top bottom primary secondary global local header wrapper container inner outer bar list links box block area panel
    bd md wy js sphinx rst mobile desktop sticky fixed navi section
    """.split()
)
_SELF_LINK = frozenset("headerlink permalink anchor-link anchorjs-link".split())


def main(body: Any) -> tuple[Any, bool]:
    """The element that the page itself calls main, and whether there is one."""
    for path in (".//main", ".//*[@role='main']"):
        found = body.xpath(path)
        if len(found) == 1 and found[0].text_content().strip():
            return found[0], True
    articles = body.xpath(".//article[not(ancestor::article)]")
    if len(articles) == 1 and len(articles[0].text_content()) > 0.3 * len(body.text_content()):
        return articles[0], True
    return body, False


def drop_navigation(root: Any, total: int) -> bool:
    """Takes out what is no content; whether anything was."""
    found = False
    for element in list(root.iter()):
        if element is root or not isinstance(element.tag, str):
            continue
        if element.tag in DROPPED:
            _remove(element)
        elif _is_outside(element) or (_is_named_navigation(element) and len(element.text_content()) <= 0.5 * total):
            _remove(element)
            found = True
    return found


def _remove(element: Any) -> None:
    if element.getparent() is not None:
        element.drop_tree()  # keeps the text behind it


def _is_outside(element: Any) -> bool:
    """Whether the page itself says that an element is no content."""
    if element.tag == "nav" or "hidden" in element.attrib or (element.get("role") or "").lower() in _NOT_MAIN_ROLE:
        return True
    if re.search(r"display\s*:\s*none", element.get("style") or ""):
        return True
    if element.tag in {"header", "footer"} and not any(a.tag in {"article", "section", "blockquote"} for a in element.iterancestors()):
        # the page's own; that of a section holds its heading
        return element.tag == "footer" or not any(child.tag in HEADINGS for child in element.iter()) or element.find(".//nav") is not None
    return False


def _is_named_navigation(element: Any) -> bool:
    """Whether class or id call an element navigation: names deceive, so the caller keeps what holds most of the page."""
    if element.tag in {"h1", "h2", "h3", "h4", "h5", "h6", "p", "section", "article", "main", "body", "dt", "dd", "span", "code", "pre", "td"}:
        return False
    if element.tag == "a":
        return not _SELF_LINK.isdisjoint((element.get("class") or "").lower().split())
    names = [*(element.get("class") or "").lower().split(), (element.get("id") or "").lower()]
    # Every part of the name must be such a word: an id made from a heading ("related-documents") is no navigation.
    parts = [set(re.split(r"[^a-z]+", name)) - {""} for name in names]
    return any(part & _NOT_MAIN_WORD and part <= _NOT_MAIN_WORD | _POSITION for part in parts)


def boilerplate_judge(text: str, total: int) -> frozenset[str] | None:
    """The words of what trafilatura keeps, None where it keeps too little to be believed."""
    if total > 400_000:
        return None
    import logging

    import trafilatura

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    # Which words are kept is all that is asked: spans, which it multiplies out, only cost time.
    plain = re.sub(r"(?i)\b(?:col|row)span\s*=\s*[\"']?\d+[\"']?", "", re.sub(r"^\s*<\?xml[^>]*\?>", "", text, count=1))
    kept = trafilatura.extract(plain, favor_recall=True, include_comments=False, include_tables=True, output_format="txt")
    if not kept or len(kept) < 0.6 * total:
        return None
    return frozenset(words(kept))


def words(text: str) -> Iterator[str]:
    return (word for word in re.findall(r"\w+", text.lower()))
