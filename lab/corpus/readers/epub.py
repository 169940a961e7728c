"""EPUB: the chapters in the order of its spine, each read as a page; the navigation document is left out. EPUB 3.3, and 2."""

from __future__ import annotations

import io
import posixpath
import zipfile
from typing import Any
from urllib.parse import unquote

from lab.corpus.readers import html
from lab.corpus.readers.compose import Composer, as_metadata, iso_date
from lab.corpus.readers.odt import xml
from lab.corpus.validate import Refused
from lab.records import Document

_OPF = "{http://www.idpf.org/2007/opf}"
_DC = "{http://purl.org/dc/elements/1.1/}"
_CONTAINER = "{urn:oasis:names:tc:opendocument:xmlns:container}"


def read(source: str, data: bytes) -> Document:
    composer = Composer(source, "epub")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if "META-INF/encryption.xml" in archive.namelist() and b"font" not in archive.read("META-INF/encryption.xml").lower():
                raise Refused("encrypted: the EPUB is protected")
            container = xml(archive.read("META-INF/container.xml"), "container.xml")
            root = container.find(f".//{_CONTAINER}rootfile")
            path = root.get("full-path") if root is not None else None
            if not path:
                raise Refused("corrupt: the EPUB names no package file")
            package = xml(archive.read(path), "the package file")
            _about(composer, package)
            for member in _spine(package, posixpath.dirname(path)):
                content = archive.read(_named(member, archive.namelist()))
                text = html.decoded(content) if content.strip() else ""
                if text:
                    tree = html.parse(text)
                    composer.anchor(member)
                    html.compose(composer, tree, prefix=member)
    except Refused:
        raise
    except Exception:  # zipfile and zlib let many kinds through
        raise Refused("corrupt: the EPUB cannot be opened") from None
    return composer.document()


def _named(member: str, names: list[str]) -> str:
    """The name under which a member lies in the archive: as written, undecoded, or in other case."""
    for found in names:
        if member in {found, unquote(found)}:
            return found
    for found in names:
        if found.lower() == member.lower():
            return found
    raise Refused(f"corrupt: the chapter {posixpath.basename(member)} that the EPUB names is missing")


def _about(composer: Composer, package: Any) -> None:
    def first(name: str) -> str:
        element = package.find(f".//{_DC}{name}")
        return " ".join((element.text or "").split()) if element is not None else ""

    composer.title = first("title")
    modified = next((e.text or "" for e in package.iter(_OPF + "meta") if e.get("property") == "dcterms:modified"), "")
    composer.updated = iso_date(modified) or iso_date(first("date"))
    composer.metadata = as_metadata({"author": first("creator"), "publisher": first("publisher"), "language": first("language")})


def _spine(package: Any, base: str) -> list[str]:
    """Members in reading order, the navigation left out."""
    items = {item.get("id"): item for item in package.iter(_OPF + "item")}
    guide = {unquote((ref.get("href") or "").split("#")[0]) for ref in package.iter(_OPF + "reference") if ref.get("type") == "toc"}
    members = []
    for ref in package.iter(_OPF + "itemref"):
        item = items.get(ref.get("idref"))
        if item is None:
            raise Refused(f"corrupt: the EPUB's reading order names {ref.get('idref')!r}, which is missing")
        if "nav" in (item.get("properties") or "").split():
            continue
        href = unquote(item.get("href") or "")
        if href and href not in guide and "html" in (item.get("media-type") or "html"):
            members.append(posixpath.normpath(posixpath.join(base, href)))
    return members
