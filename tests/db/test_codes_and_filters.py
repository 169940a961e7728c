"""Codes and numbers found by the lexical arm on every engine; BM25 in plain SQL beside the extension; filters that starve no list."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.corpus.derived import reindex
from lab.corpus.ingest import ingest
from lab.errors import UsageError
from lab.records import Chunk, Document
from lab.retrieval.search import open_corpus, search
from lab.settings import IngestSettings
from lab.store import collections, documents
from lab.store.connect import Store
from tests.conftest import Databases, Lab, WithoutExtension, write

TEXTS = {
    "prv.txt": "Valve PRV-2041 is red.", "aprv.txt": "Valve PRV-20411 is blue.", "s42.txt": "4.2 Isolation comes first.", "s421.txt": "4.2.1 Isolation of pumps.",
    "s420.txt": "4.20 Drains are open.", "s142.txt": "14.2 Drains are shut.", "kg.txt": "The lift weighs 4.2 kg.", "table.txt": "Table 3-1 lists them.",
    "years.txt": "From 2019-2021 it rained.", "slash.txt": "The inlet/outlet is cleaned.", "snake.txt": "Set max_scan_tuples higher.",
    "money.txt": "It costs 1,250.00 EUR.", "cve.txt": "CVE-2024-38077 is open.", "cafe.txt": "The café opens early.", "hex.txt": "Error 0x80070005 came up.",
    "err.txt": "ERR_CONN_RESET was said.", "bolt.txt": "Take bolt AB-12/3 out.", "uuid.txt": "It is 550e8400-e29b-41d4-a716-446655440000 here.",
    "moc.txt": "Management of Change (MOC) has a form.", "quotes.txt": "A “quiet hour” begins—as the ‘night bell’ says—at ten… It is kept at 5–10 lux and ≥ 12 °C.",
    "apostrophe.txt": "The skipper’s lamp hangs aft.", "other.txt": "Nothing of note stands here.",
}  # fmt: skip
FIRST = [
    ("PRV 2041", "prv.txt"), ("prv2041", "prv.txt"), ("PRV-2041", "prv.txt"), ("section 4.2", "s42.txt"), ("4.2.1", "s421.txt"), ("Table 3-1", "table.txt"),
    ("2021", "years.txt"), ("2019-2021", "years.txt"), ("outlet pressure", "slash.txt"), ("inlet/outlet", "slash.txt"), ("max scan tuples", "snake.txt"),
    ("max_scan_tuples", "snake.txt"), ("1250", "money.txt"), ("1,250.00", "money.txt"), ("cve-2024-38077", "cve.txt"), ("cafe", "cafe.txt"),
    ("café", "cafe.txt"), ("0x80070005", "hex.txt"), ("ERR_CONN_RESET", "err.txt"), ("AB-12/3", "bolt.txt"),
    ("550E8400-E29B-41D4-A716-446655440000", "uuid.txt"), ("quiet hour", "quotes.txt"), ("What is a “quiet hour”?", "quotes.txt"), ("what the 'night bell' says", "quotes.txt"), ("«says»", "quotes.txt"), ("10 lux", "quotes.txt"), ("5–10 lux", "quotes.txt"),
    ("skipper's lamp", "apostrophe.txt"), ("skipper’s lamp", "apostrophe.txt"), ("“lamp”—aft", "apostrophe.txt"), ("MOC", "moc.txt"), ("management of change", "moc.txt"),
]  # fmt: skip


TOLERANCE = 1e-5  # the index adds up single-precision numbers


@pytest.fixture(scope="module", params=["bm25", "bm25_postings", "bm25_plain"])
def coded(request: pytest.FixtureRequest, databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Store]]:
    """The texts on each of the three engines."""
    kind = WithoutExtension if request.param == "bm25_postings" else Store
    with databases.fresh() as dsn, kind(dsn) as store:
        ingest(write(tmp_path_factory.mktemp("codes"), TEXTS), "c", store=store, embedder="none", chunker="whole")
        if request.param == "bm25_plain":
            with store.single() as connection:
                connection.execute("drop index kb_c.chunks_bm25")
        yield request.param, store


@pytest.mark.parametrize(("question", "source"), FIRST)
def test_a_code_is_found_however_it_is_written(coded: tuple[str, Store], question: str, source: str) -> None:
    engine, store = coded
    found = search("c", question, store=store, dense="none")
    assert found.arms["lexical"].engine == engine
    assert found.results[0].source == source


def test_whole_components_only(coded: tuple[str, Store]) -> None:
    found = [r.source for r in search("c", "section 4.2", store=coded[1], dense="none").results]
    assert found == ["s42.txt", "s421.txt"]
    assert [r.source for r in search("c", "PRV 2041", store=coded[1], dense="none").results][:1] == ["prv.txt"]
    assert search("c", "4.2 kg", store=coded[1], dense="none").results[0].source == "kg.txt"


def test_the_score_is_bm25_plus_the_rarity_of_each_token(coded: tuple[str, Store]) -> None:
    """`section 4.2` shares s:4.2 and s=4.2 with 4.2, and s:4.2 alone with 4.2.1. N = 22: df 2 and 1, idf = ln(1 + (N − df + 0.5)/(df + 0.5))."""
    arm = search("c", "section 4.2", store=coded[1], dense="none").arms["lexical"]
    scores = {hit.source: hit.score for hit in arm.hits}
    both, one = np.log(1 + 20.5 / 2.5), np.log(1 + 21.5 / 1.5)
    assert scores["s421.txt"] == pytest.approx(both, rel=1e-6)
    assert scores["s42.txt"] == pytest.approx(both + one, rel=1e-6)


def test_modes_that_say_what_must_match_are_not_widened_by_side_tokens(coded: tuple[str, Store]) -> None:
    assert [r.source for r in search("c", "inlet pump", store=coded[1], dense="none", query_mode="all").results] == []
    assert "slash.txt" not in [
        r.source for r in search("c", "cleaned -outlet -inlet/outlet", store=coded[1], dense="none", query_mode="websearch").results
    ]


def test_codes_off_is_the_text_index_alone(coded: tuple[str, Store]) -> None:
    found = [r.source for r in search("c", "prv2041", store=coded[1], dense="none", codes="off").results]
    assert found == []


def test_side_tokens_that_are_missing_are_said_and_made_by_index(store: Store, tmp_path: Path) -> None:
    ingest(write(tmp_path, TEXTS), "c", store=store, embedder="none", chunker="whole")
    with store.single() as connection:
        connection.execute("update kb_c.chunks set codes = '{}'; update lab.collections set codes = ''")
    found = search("c", "prv2041 valve", store=store, dense="none")
    assert "run `lab index c`" in (found.diagnostic.message if found.diagnostic else "")
    reindex(store, collections.get(store, "c"))
    assert search("c", "prv2041", store=store, dense="none").results[0].source == "prv.txt"


def test_postings_follow_every_change(databases: Databases, tmp_path: Path) -> None:
    """After edits, retirements and a rebuild the words as rows are those of the passages; the counts too."""
    check = (
        "select (select count(*) from kb_c.postings), (select count(*) from kb_c.chunks c, unnest(c.tsv)), (select sum(chunks) from kb_c.word_counts), "
        "(select count(*) from kb_c.chunks), (select sum(words) from kb_c.word_counts), (select sum(cardinality(l.positions)) from kb_c.chunks c, unnest(c.tsv) l)"
    )

    def same(store: Store) -> None:
        a, b, c, d, e, f = store.rows(check)[0]
        assert (a, c, e) == (b, d, f)

    with databases.fresh() as dsn, WithoutExtension(dsn) as store:
        ingest(write(tmp_path, TEXTS), "c", store=store, embedder="none")
        same(store)
        write(tmp_path, {"prv.txt": "Valve PRV-2041 is green and new and green.", "more.txt": "One more text."})
        (tmp_path / "cve.txt").unlink()
        ingest(tmp_path, "c", store=store, prune=True)
        same(store)
        assert search("c", "green", store=store, dense="none").results[0].source == "prv.txt"
        reindex(store, collections.get(store, "c"))
        same(store)


def test_three_engines_rank_alike(databases: Databases, tmp_path: Path) -> None:
    """300 texts of random words of unequal rarity: the same scores to 1e-4, the same order up to ties."""
    draw = random.Random(5)
    words = [f"word{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(200)]
    texts = {f"{i:03}.txt": " ".join(words[int(200 * draw.random() ** 2)] for _ in range(draw.randint(5, 60))) for i in range(300)}
    questions = [" ".join(words[int(200 * draw.random() ** 2)] for _ in range(4)) for _ in range(25)]
    write(tmp_path, texts)
    found: dict[str, list[dict[str, float]]] = {}
    for kind in (Store, WithoutExtension):
        with databases.fresh() as dsn, kind(dsn) as store:
            ingest(tmp_path, "c", store=store, embedder="none", chunker="whole")
            for drop in (False, True) if kind is Store else (False,):
                if drop:
                    with store.single() as connection:
                        connection.execute("drop index kb_c.chunks_bm25")
                corpus = open_corpus(store, "c")
                lists = [search(corpus, q, dense="none", codes="off", dedup="off", candidates=300).arms["lexical"] for q in questions]
                found[lists[0].engine] = [{hit.source: hit.score for hit in one.hits} for one in lists]
                for mode in ("all", "websearch"):
                    assert all(r.source in texts for r in search(corpus, questions[0], dense="none", query_mode=mode).results)
    assert set(found) == {"bm25", "bm25_postings", "bm25_plain"}
    for engine in ("bm25_postings", "bm25_plain"):
        for mine, theirs in zip(found[engine], found["bm25"], strict=True):
            assert mine.keys() == theirs.keys()
            assert all(mine[source] == pytest.approx(theirs[source], rel=TOLERANCE) for source in mine)
            top = sorted(theirs, key=lambda source: -theirs[source])[:10]
            assert set(top) <= {source for source in mine if mine[source] >= 0.9999 * sorted(mine.values())[-min(10, len(mine))]}


# ── filters ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def tagged(databases: Databases) -> Iterator[Store]:
    """10,000 passages of one word in common and vectors of 16 dimensions; one in 100 is `rare`, one is `single`, years from 2000 to 2024."""
    with databases.fresh() as dsn, Store(dsn) as store:
        target = collections.create(store, "t", IngestSettings(chunker="whole"), embedder="keyword", model_digest="test", dim=16, language="english")
        noise = np.random.default_rng(3)
        loads = []
        for i in range(10_000):
            text = f"valve number {i} {'pump' if i % 2 else 'fan'}"
            # What is rare lies far from where the questions look: an index search meets it last.
            vector = noise.normal(0, 1, 16) + (np.array([-9.0] + [0.0] * 15) if i % 100 == 7 else np.array([9.0] + [0.0] * 15))
            data: dict[str, Any] = {
                "tag": "rare" if i % 100 == 7 else "usual",
                "year": 2000 + i % 25,
                "tags": ["a", "b"] if i % 3 == 0 else ["c"],
                "number": f"{i % 25:03}",
            }
            if i == 7:
                data["single"] = True
            document = Document(f"s{i:05}", f"T {i}", text, metadata=data, updated="2024-03-01" if i % 2 else "2023-03-01", format="text")
            unit = (vector / np.linalg.norm(vector)).astype(np.float16)
            loads.append(documents.Load(document, "r", b"x", 1, 0, [Chunk(document.source, 1, 0, len(text), text, "")], [text], [unit]))
        documents.store_batch(store, target, loads)
        collections.build_indexes(store, target)
        documents.record_counts(store, target)
        yield store


def ask(store: Store, filters: str, **flags: Any) -> Any:
    from lab.retrieval.search import Shared, rank
    from lab.settings import Settings

    vector = np.zeros(16, dtype=np.float16)
    vector[0] = 1
    return rank(Shared(open_corpus(store, "t"), "valve", vector), Settings(filters=filters, **flags))


@pytest.mark.parametrize("arm", ["dense", "lexical"])
@pytest.mark.parametrize(
    ("filters", "many"),
    [
        ("tag=rare", 10),
        ("single=true", 1),
        ("tag=usual", 10),
        ("year>=2024, tag=rare", 0),
        ("year>=2020", 10),
        ("year=2007, tag=rare", 10),
        ("tag=none of it", 0),
    ],
)
def test_a_filter_starves_no_list(tagged: Store, filters: str, many: int, arm: str) -> None:
    flags = {"lexical": "none"} if arm == "dense" else {"dense": "none"}
    found = ask(tagged, filters, **flags)
    assert len(found.results) == many
    data = [r.provenance.metadata for r in found.results]
    if "rare" in filters:
        assert all(d["tag"] == "rare" for d in data)
    if "2020" in filters:
        assert all(d["year"] >= 2020 for d in data)
    if not many:
        assert found.diagnostic.stage == "filters"


def test_the_filtered_list_is_the_exact_one(tagged: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index search with a filter that keeps a quarter gives what comparing all of them gives. (So few would be compared one by one: not here.)"""
    monkeypatch.setattr("lab.store.arms._COMPARED", 1000)
    hnsw, exact = (ask(tagged, "year>=2019", lexical="none", dense=engine, candidates=50, k=50) for engine in ("hnsw", "exact"))
    assert hnsw.arms["dense"].engine == "hnsw"
    assert len({r.chunk_id for r in hnsw.results} & {r.chunk_id for r in exact.results}) >= 49


@pytest.mark.parametrize(
    ("filters", "share"),
    [
        ("tags=a", 3334), ("tags=a|c", 10_000), ("tags!=a", 6666), ("tag!=usual", 100), ("updated>=2024-01-01", 5000), ("updated<2024-01-01, year<2001", 200),
        ("source=s000*", 100), ('title="T 7"', 1), ("year=2001|2002", 800), ("format=text", 10_000), ("nothing=1", 0), ("year>word", 0), ("updated>=2024", 5000),
        ("number>=007", 7200), ("number=007", 400), ("tag=a(b", 0), ('tag="a|b"', 0), ('tag="rare"|x', 100), ("tag=*ar*", 100),
    ],
)  # fmt: skip
def test_what_a_filter_keeps(tagged: Store, filters: str, share: int) -> None:
    restriction = open_corpus(tagged, "t").restriction(filters)
    assert restriction is not None
    assert len(restriction.keys) == share


@pytest.mark.parametrize("bad", ["year", "=3", "year>=1|2", "year>", 'a="', "a=b,,", "a=" + "b" * 3000, "a" + " " * 1900, "a=\0"])
def test_a_filter_that_cannot_be_read_is_refused(tagged: Store, lab: Lab, bad: str) -> None:
    answer = lab("search", "t", "valve", "--dense", "none", "--filters", bad, store=tagged)
    assert (answer.code, "--filters cannot read" in answer.err) == (2, True)


def test_a_copy_that_does_not_pass_neither_speaks_nor_is_listed(store: Store, tmp_path: Path) -> None:
    """Three copies; the one of highest authority is of 2019. With year>=2020 another speaks, and only the third is listed with it."""
    copies = {
        f"{name}.md": f"---\nyear: {year}\n---\n# Same\n\nThe valve is tested yearly.\n" for name, year in (("a", 2019), ("b", 2020), ("c", 2021))
    }
    copies["source_authority.json"] = '{"default": 0, "rules": [{"match": "a.md", "tier": 9}]}'
    copies["d.md"] = "---\nyear: 2022\n---\n# D\n\nNothing else.\n"
    ingest(write(tmp_path, copies), "c", store=store, embedder="none")
    plain = search("c", "valve tested", store=store, dense="none").results[0]
    assert (plain.source, sorted(c.split("::")[0] for c in plain.copies)) == ("a.md", ["b.md", "c.md"])
    found = search("c", "valve tested", store=store, dense="none", filters="year>=2020").results[0]
    assert (found.source, [c.split("::")[0] for c in found.copies]) == ("b.md", ["c.md"])


def test_links_bring_nothing_past_a_filter(store: Store, tmp_path: Path) -> None:
    files = {"a.md": "---\nyear: 2020\n---\n# A\n\nThe valve follows [B](b.md).\n", "b.md": "---\nyear: 2010\n---\n# B\n\nOther words.\n"}
    ingest(write(tmp_path, files), "c", store=store, embedder="none")
    assert len(search("c", "valve", store=store, dense="none", cites="on").results) == 2
    assert len(search("c", "valve", store=store, dense="none", cites="on", filters="year=2020").results) == 1


def test_filters_are_drawn_from_what_the_question_names(store: Store, tmp_path: Path) -> None:
    files = {f"{n}.md": f"---\nstatus: {s}\nversion_number: {v}\ntags: [{t}]\n---\n# {n}\n\nThe valve rule of {n}.\n"
             for n, s, v, t in (("a", "final", "3.2", "x"), ("b", "draft", "3.21", "y"), ("c", "old draft", "4", "z"))}  # fmt: skip
    ingest(write(tmp_path, files), "c", store=store, embedder="none")

    def found(question: str, **flags: str) -> set[str]:
        return {r.source for r in search("c", question, store=store, dense="none", entities="on", **flags).results}

    assert found("valve rule with status final") == {"a.md"}
    assert found("the final status valve rule") == {"a.md"}
    assert found("valve rule, version number 3.2") == {"a.md"}
    assert found("valve rule with status: old draft") == {"c.md"}
    assert found("valve tags y") == {"b.md"}
    assert found("the final valve rule") == {"a.md", "b.md", "c.md"}, "a value alone is a word like others"
    assert found("valve status unknown") == {"a.md", "b.md", "c.md"}
    assert found("valve rule with status final", filters="tags=y") == {"b.md"}, "what would leave nothing is not set"
    notes = search("c", "valve rule with status final", store=store, dense="none", entities="on").ledger.notes
    assert notes == ('filter from the question: status="final"',)


def test_filters_reach_the_command_line_and_runs(store: Store) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        search("c", "x", store=store, filters="oops")


def test_a_filter_on_a_name_that_no_document_has_says_so(store: Store, lab: Lab, tmp_path: Path) -> None:
    ingest(write(tmp_path, {"a.md": "---\nyear: 2024\n---\n# A\n\nThe pump is greased.\n"}), "c", store=store, embedder="none")
    answer = lab("search", "c", "pump", "--dense", "none", "--filters", "yaer=2024", store=store)
    assert (answer.code, "did you mean 'year'?" in answer.err) == (0, True)
    assert "did you mean" not in lab("search", "c", "pump", "--dense", "none", "--filters", "year=1999", store=store).err


def test_a_blank_question_finds_nothing_and_says_why(store: Store, lab: Lab, tmp_path: Path) -> None:
    ingest(write(tmp_path, {"a.md": "# A\n\nThe pump is greased.\n"}), "c", store=store, embedder="minilm")
    for question in ("", "  \t\n"):
        answer = lab("search", "c", question, "--json", store=store).json
        assert (answer["results"], answer["diagnostic"]["stage"]) == ([], "arms")
        assert "it is empty" in answer["diagnostic"]["message"]


def test_sql_as_json(store: Store, lab: Lab, tmp_path: Path) -> None:
    ingest(write(tmp_path, {"a.md": "# A\n\nThe pump is greased.\n"}), "c", store=store, embedder="none")
    plain = lab("search", "c", "pump", "--dense", "none", "--sql", store=store).out
    assert lab("search", "c", "pump", "--dense", "none", "--sql", "--json", store=store).json["sql"].strip() == plain.strip()


def test_passages_indexed_by_an_older_version_are_indexed_anew(store: Store, tmp_path: Path) -> None:
    """As a collection looked before signs outside of ASCII were made plain: words beside quotation marks are lost until the next ingest or `lab index`."""
    ingest(write(tmp_path, {"a.md": "# A\n\nA “quiet hour” begins at ten.", "b.md": "# B\n\nWords."}), "c", store=store, embedder="none")
    with store.connection() as connection:
        connection.execute("update kb_c.chunks set body = context || e'\\n' || text, codes = '{}'")
        connection.execute("update lab.collections set codes = 'codes-1'")
    assert search("c", "quiet hour", store=store, dense="none").results == ()
    links = collections.get(store, "c").link_digest
    ingest(tmp_path, "c", store=store)
    found = search("c", "quiet hour", store=store, dense="none")
    assert ([r.source for r in found.results], found.results[0].text) == (["a.md"], "A “quiet hour” begins at ten.")
    again = collections.get(store, "c")
    assert (again.stale_rows, again.link_digest) == (0, links)
