"""Chunkers: exact quotes, nothing lost, nothing too long, nothing empty."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.corpus.chunking import body, chunk, context_line
from lab.corpus.readers import markdown, plain, rest
from lab.models.minilm import MiniLM
from lab.records import Chunk, Document
from lab.settings import IngestSettings


def words(text: str) -> int:
    return len(text.split())


def cut(text: str, chunker: str, read: Callable[[str, str], Document] = markdown.read, limit: int | None = None, **flags: int) -> list[Chunk]:
    return chunk(read("a.md", text), IngestSettings(chunker=chunker, embedder="none", **flags), words, limit)


PIECE = st.sampled_from(
    ["# Title\n", "## 4.2 Pumps\n", "### Deeper\n", "\n", "\n\n", "A short sentence. ", "Another one, longer than the first! ", "word " * 30, "- item\n", "| a | b |\n|---|---|\n| 1 | 2 |\n",
     "```\ncode  here\n```\n", "é ✓ 𝔘 ", "x" * 300 + " ", "\t", "\x0c", "\u2028", "\x85", "    indented\n"]
)  # fmt: skip


@pytest.mark.parametrize("chunker", ["heading", "fixed", "paragraph", "sentence-window", "whole"])
@given(pieces=st.lists(PIECE, max_size=25))
@settings(max_examples=60, deadline=None)
def test_laws_of_chunks(chunker: str, pieces: list[str]) -> None:
    document = markdown.read("a.md", "".join(pieces))
    chunks = chunk(document, IngestSettings(chunker=chunker, embedder="none"), words, 40)
    covered = [False] * len(document.text)
    for c in chunks:
        assert c.text == document.text[c.start : c.end]
        assert c.text.strip() == c.text != ""
        if chunker in {"heading", "sentence-window"}:
            assert words(c.text) <= 38
        if chunker == "fixed":
            assert len(c.text) <= 800
        if chunker == "paragraph":
            assert words(c.text) <= 40
        covered[c.start : c.end] = [True] * (c.end - c.start)
    # A heading with text below it stands in the context of that text; everything else stands in a chunk.
    in_heading = [False] * len(document.text)
    if chunker in {"heading", "paragraph", "sentence-window"}:
        for block in document.blocks:
            if block.kind == "heading":
                in_heading[block.start : block.end] = [True] * (block.end - block.start)
    lost = [document.text[i] for i, seen in enumerate(covered) if not seen and not in_heading[i] and not document.text[i].isspace()]
    assert set(lost) <= set("#=-`|"), lost
    assert bool(chunks) == bool(document.text.strip())
    assert [c.n for c in chunks] == list(range(1, len(chunks) + 1))


def test_leaf_sections_stay_whole_and_carry_their_path() -> None:
    text = "# 4 Isolation\n\nOpening words.\n\n## 4.2 Pumps\n\n### 4.2.1 Before\n\nClose it. Lock it.\n\n### 4.2.2 After\n\nOpen it.\n"
    assert [(c.context, c.text) for c in cut(text, "heading")] == [
        ("4 Isolation", "Opening words."),
        ("4 Isolation > 4.2 Pumps > 4.2.1 Before", "Close it. Lock it."),
        ("4 Isolation > 4.2 Pumps > 4.2.2 After", "Open it."),
    ]


def test_the_same_paragraph_under_two_headings_is_the_same_text() -> None:
    a, b = cut("# A\n\nSame words.\n\n# B\n\nSame words.\n", "heading")
    assert a.text == b.text and a.context != b.context


def test_a_long_section_is_cut_at_sentence_ends_into_pieces_of_about_equal_length() -> None:
    sentences = " ".join(f"Sentence number {i} has exactly seven words." for i in range(20))
    pieces = cut("# T\n\n" + sentences, "heading", limit=62)
    assert all(piece.text.endswith("words.") for piece in pieces)
    assert [words(piece.text) for piece in pieces] == [49, 49, 42]


def test_a_row_and_a_code_block_are_not_cut() -> None:
    code = "```\n" + "line of code. Next. \n" * 6 + "```"
    pieces = cut(f"# T\n\nBefore it. {'Filler words here. ' * 8}\n\n{code}\n\nAfter it.\n", "heading", limit=42)
    assert [p for p in pieces if "```" in p.text and p.text.count("```") == 2]


def test_a_heading_with_nothing_below_is_kept() -> None:
    assert [c.text for c in cut("# Only a title\n", "heading")] == ["# Only a title"]
    assert [c.text for c in cut("# T\n\n## Empty\n\n## Full\n\nWords.\n", "heading")] == ["## Empty", "Words."]


def test_fixed_windows_overlap_by_100_characters() -> None:
    text = "".join(chr(97 + i % 26) for i in range(2000))
    pieces = cut(text, "fixed", plain.read)
    assert [(p.start, p.end) for p in pieces] == [(0, 800), (700, 1500), (1400, 2000)]


def test_the_tutorials_guides_give_four_passages(shared_data: Callable[[str], Path]) -> None:
    folder = shared_data("tutorial")
    pieces = [p for name in ("kyoto-guide", "sapporo-guide") for p in cut((folder / f"{name}.txt").read_text(), "paragraph", plain.read)]
    assert len(pieces) == 4
    assert all(words(p.text) <= 40 for p in pieces)


def test_paragraphs_of_more_than_forty_words_are_cut_at_sentence_ends() -> None:
    text = ("One two three four five six seven eight nine ten. " * 6).strip()
    assert [words(p.text) for p in cut(text, "paragraph", plain.read)] == [40, 20]


def test_context_line_and_body() -> None:
    assert context_line("Title", ("Title", "4.2 Pumps")) == "Title > 4.2 Pumps"
    made = Chunk("s", 1, 0, 1, "x", "Title")
    assert body(made, IngestSettings()) == "Title\nx"
    assert body(made, IngestSettings(context="off")) == "x"


def test_rest_sections_by_adornment() -> None:
    text = "Manual\n======\n\nIntro.\n\nScope\n-----\n\nText of scope::\n\n    literal  block\n\n    goes on\n\nDeeper\n~~~~~~\n\nMore.\n"
    document = rest.read("m.rst", text)
    assert [c.context for c in chunk(document, IngestSettings(embedder="none"), words, None)] == [
        "Manual",
        "Manual > Scope",
        "Manual > Scope > Deeper",
    ]
    assert [text[b.start : b.end] for b in document.blocks if b.kind == "code"] == ["    literal  block\n\n    goes on"]


def test_a_table_row_becomes_a_sentence_with_its_heads() -> None:
    document = markdown.read(
        "t.md", "# T\n\n| Pump | Test interval | Owner |\n| --- | --- | --- |\n| Pump A | 6 months | crew |\n| **Pump B** | | stores |\n"
    )
    rows = [document.text[b.start : b.end] for b in document.blocks if b.kind == "row"]
    assert rows == ["For Pump A, the test interval is 6 months; the owner is crew.", "For Pump B, the owner is stores."]


def test_a_file_without_tables_is_stored_as_its_author_wrote_it() -> None:
    text = "---\nkey: value\n---\n# T *x*\n\n> quote\n\n* item **bold** [link](http://x)\n\n    code\n"
    assert markdown.read("t.md", text).text == text


def test_a_line_of_two_megabytes_is_cut_and_no_chunk_is_too_long() -> None:
    pieces = cut("word " * 400_000, "heading", plain.read, limit=256)
    assert len(pieces) > 1000
    assert max(words(p.text) for p in pieces) <= 254


@pytest.mark.parametrize("sign", ["\x0c", "\x0b", "\x85", "\u2028", "\u2029", "\x1c"])
def test_a_sign_that_only_python_takes_for_a_line_end_loses_no_text(sign: str) -> None:
    text = f"# T\n\nfirst{sign}second\n\n## Relief valves\n\nThe relief valve opens.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    assert [c.text for c in cut(text, "heading")] == [f"first{sign}second", "The relief valve opens.\n\nFor 1, the b is 2."]
    assert (
        "The relief valve opens."
        in cut(text.replace("# ", ""), "paragraph", plain.read)[-2].text + cut(text.replace("# ", ""), "whole", plain.read)[0].text
    )


def test_front_matter_is_metadata_and_not_a_heading() -> None:
    document = markdown.read("t.md", "---\ntitle: Pumps\ndate: 2024-01-01\n---\n\n# Real title\n\nWords.\n")
    assert document.title == "Pumps" and document.metadata == {"title": "Pumps", "date": "2024-01-01"}
    assert [c.text for c in chunk(document, IngestSettings(embedder="none"), words, None)] == ["Words."]
    assert markdown.read("t.md", "---\n\nWords below a rule.\n").metadata == {}


def test_a_sentence_is_read_with_its_neighbours() -> None:
    chunks = cut("# T\n\nOne is here. Two is here. Three is here.\n\nFour is here. Five is here.\n", "sentence-window", window=1)
    assert [c.text for c in chunks] == ["One is here.", "Two is here.", "Three is here.", "Four is here.", "Five is here."]
    text = "# T\n\nOne is here. Two is here. Three is here.\n\nFour is here. Five is here.\n"
    assert [text[slice(*c.window)] for c in chunks if c.window] == [
        "One is here. Two is here.", "One is here. Two is here. Three is here.", "Two is here. Three is here.\n\nFour is here.",
        "Three is here.\n\nFour is here. Five is here.", "Four is here. Five is here.",
    ]  # fmt: skip


@pytest.mark.parametrize("chunker", ["heading", "fixed", "paragraph", "sentence-window"])
def test_no_row_and_no_code_is_cut_unless_it_alone_is_too_long(chunker: str) -> None:
    code = "```\n" + "step one two three four five six seven eight nine ten\n" * 6 + "```"
    row = "For pump A, the interval is " + "long " * 50 + "months."
    text = f"# T\n\n{'Some words stand here. ' * 30}\n\n{code}\n\n| Pump | Interval |\n| --- | --- |\n| pump A | {'long ' * 50}months |\n\n{'More words. ' * 60}"
    chunks = cut(text, chunker, **({"chunk_size": 500} if chunker == "fixed" else {}))
    assert any(code in c.text for c in chunks), "the block stands whole in a chunk"
    assert any(row in c.text for c in chunks), "the row stands whole in a chunk"
    for c in chunks:
        assert c.text.count("```") in {0, 2}


def test_the_page_is_that_of_the_first_character() -> None:
    document = Document("a.pdf", "T", "One. Two. Three.", (), "pdf", pages=((0, 3), (5, 4)))
    chunks = chunk(document, IngestSettings(chunker="sentence-window", embedder="none"), words, None)
    assert [(c.text, c.page) for c in chunks] == [("One.", 3), ("Two.", 4), ("Three.", 4)]


@pytest.mark.parametrize("chunker", ["heading", "fixed", "paragraph", "sentence-window", "whole"])
def test_answers_of_xquad_lie_in_one_chunk(chunker: str, shared_data: Callable[[str], Path]) -> None:
    """At least 99.5 % of 1,190 answer spans. Those that do not are listed in the message."""
    folder = shared_data("xquad")
    spans = [line.split("\t") for line in (folder / "articles_gold_spans.tsv").read_text(encoding="utf-8").splitlines()[1:]]
    chunks: dict[str, list[Chunk]] = {}
    for path in sorted((folder / "articles").glob("*.txt")):
        chunks[path.name] = chunk(
            plain.read(path.name, path.read_text(encoding="utf-8")), IngestSettings(chunker=chunker), minilm().count_tokens, 256
        )
    lost = [row for row in spans if not any(c.start <= int(row[2]) and int(row[3]) <= c.end for c in chunks[row[1]])]
    assert len(spans) == 1190 and len(lost) <= 5, (len(lost), lost)


def minilm() -> MiniLM:
    return MiniLM()
