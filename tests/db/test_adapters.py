"""The adapters against the real libraries, and the knowledge base of a published tutorial."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab.corpus.ingest import ingest
from lab.errors import UsageError
from lab.models.embedders import unregister
from lab.retrieval.search import open_corpus, search
from lab.serving.adapters import knowledge_base
from lab.serving.adapters.knowledge_base import Embed, KnowledgeBase, keyword_embed, minilm_embed
from lab.store import collections
from lab.store.connect import Store
from tests.conftest import Lab, write
from tests.db.test_answers import DOORS, VALVES, Scripted

QUESTION = "At which pressure does the relief valve open?"


@pytest.fixture
def plant(store: Store, tmp_path: Path) -> Store:
    ingest(write(tmp_path / "d", {"valves.md": VALVES, "doors.md": DOORS}), "c", store=store, embedder="keyword")
    return store


def guides(store: Store, folder: Path, embed: Embed | str) -> KnowledgeBase:
    made = KnowledgeBase(embed=embed, store=store)
    for name in ("kyoto-guide", "sapporo-guide"):
        made.add_document(name, (folder / f"{name}.txt").read_text(encoding="utf-8"))
    return made


def test_the_tutorial_and_its_scores(store: Store, shared_data: Callable[[str], Path]) -> None:
    with guides(store, shared_data("tutorial"), keyword_embed) as kb:
        assert len(kb) == 4
        foliage, grove = kb.search("When do autumn leaves peak in Kyoto?", k=3)
        assert (foliage[0], foliage[2], grove[0], grove[2]) == ("kyoto-guide", 0.187, "kyoto-guide", 0.123)
        assert foliage[1].startswith("Kyoto in autumn is famous") and grove[1].startswith("Arashiyama")
        [only] = kb.search("When should I visit Arashiyama bamboo grove?")
        assert only[1].startswith("Arashiyama") and only[2] == 0.342
        assert kb.search("zebra") == [] and len(keyword_embed("red leaves")) == 1024
        name = kb.collection
    assert name not in [c.name for c in collections.all_collections(store)]


def test_nothing_but_the_embedder_changes(store: Store, shared_data: Callable[[str], Path]) -> None:
    """The passages about foliage come first, though but one of the question's words stands in them; by words the question finds no more than that one."""
    question = "where can I see colorful trees in fall?"
    with guides(store, shared_data("tutorial"), minilm_embed) as kb:
        found = kb.search(question, k=4)
        assert len(kb) == 4 and [score for _, _, score in found] == [0.417, 0.349, 0.314, 0.312]
        assert ["foliage" in text for _, text, _ in found] == [True, True, False, False]
    with guides(store, shared_data("tutorial"), "minilm") as kb:
        assert kb.search(question, k=4) == found
    with guides(store, shared_data("tutorial"), keyword_embed) as kb:
        assert not any("foliage season" in text for _, text, _ in kb.search(question, k=4))


def test_a_function_of_ones_own(store: Store) -> None:
    def by_letters(text: str) -> list[float]:
        return [float(text.lower().count(sign)) for sign in "abz"]

    with KnowledgeBase(embed=by_letters, store=store) as kb:
        kb.add_document("one", "aab")
        kb.add_document("two", "bbbb")
        # (2, 1, 0) and (0, 4, 0) against (1, 0, 0): 2/√5 and 0
        assert kb.search("A") == [("one", "aab", 0.894)]
        kb.add_document("two", "aaaa")
        assert kb.search("a", k=1) == [("two", "aaaa", 1.0)] and len(kb) == 2


def test_the_function_that_was_given_is_the_one_that_is_called(store: Store) -> None:
    """Both make the same of whatever holds neither word, and stand in one process."""

    def by(word: str) -> Callable[[str], list[float]]:
        return lambda text: [float(text.count(word)), 0.001]

    with KnowledgeBase(embed=by("zebra"), store=store) as zebras, KnowledgeBase(embed=by("quagga"), store=store) as quaggas:
        for kb in (zebras, quaggas):
            kb.add_document("z", "a zebra")
            kb.add_document("q", "a quagga")
        assert [zebras.search("zebra", k=1)[0][0], quaggas.search("quagga", k=1)[0][0]] == ["z", "q"]
        assert zebras.search("zebra", k=1)[0][2] == 1.0 and zebras.search("quagga", k=1)[0][0] == "q"
    assert store.rows("select count(*) from lab.embeddings where model_digest like 'function-%'") == [(0,)]
    named = KnowledgeBase(embed=by("zebra"), collection="first", store=store), KnowledgeBase(embed=by("quagga"), collection="second", store=store)
    for kb in named:
        kb.add_document("z", "a zebra")
        kb.add_document("q", "a quagga")
    assert [kb.search(word, k=1)[0][0] for kb, word in zip(named, ("zebra", "quagga"), strict=True)] == ["z", "q"]
    assert named[0].search("quagga", k=1) == [("q", "a quagga", 1.0)] and named[0].search("zebra", k=1)[0][0] == "z"
    again = KnowledgeBase(embed=by("zebra"), collection="first", store=store)
    assert again.embedder == named[0].embedder and again.search("zebra", k=1)[0][0] == "z", "the same function is known again"


def test_a_function_belongs_to_its_process(store: Store, lab: Lab) -> None:
    """Elsewhere its collection is searched by words, and what needs vectors says what to do, before anything is written."""
    with KnowledgeBase(embed=lambda text: [float(text.count("z")), 1.0], collection="notes", store=store) as kb:
        kb.add_document("z", "The zebra must be fed.")
        assert len(kb) == 1
    unregister(kb.embedder)
    for words in (["search", "notes", "zebra"], ["claims", "extract", "notes"], ["answer", "notes", "zebra"]):
        told = lab(*words, store=store)
        assert told.code == 2 and "KnowledgeBase(embed=that function" in told.err, words
    assert not store.rows("select from kb_notes.claims")
    assert lab("search", "notes", "zebra", "--dense", "none", store=store).code == 0
    assert "must be fed" in lab("answer", "notes", "zebra", "--dense", "none", store=store).out
    assert lab("claims", "extract", "notes", "--no-embed", store=store).code == 0


def test_a_knowledge_base_is_asked_from_threads(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    made: list[int] = []
    held = knowledge_base.connect
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(knowledge_base, "connect", lambda: (made.append(1), held())[1])
        with KnowledgeBase(embed="keyword") as kb, ThreadPoolExecutor(4) as pool:
            kb.add_document("a", "red leaves")
            assert [found[0][0] for found in pool.map(kb.search, ["leaves"] * 8)] == ["a"] * 8
    assert made == [1]


def test_large_numbers_are_scaled(store: Store) -> None:
    with KnowledgeBase(embed=lambda text: [1e300 * text.count("a"), 1e300 * text.count("b")], store=store) as kb:
        kb.add_document("a", "aaa")
        assert kb.search("ab") == [("a", "aaa", 0.707)]  # (1, 0) and (1, 1)/√2
    with KnowledgeBase(embed=lambda text: [1e-300 * text.count("a"), 1e-300 * text.count("b")], store=store) as kb:
        kb.add_document("a", "aaa")
        assert kb.search("ab") == [("a", "aaa", 0.707)]


def test_a_named_one_is_a_collection_that_stays(store: Store) -> None:
    with KnowledgeBase(embed="keyword", collection="notes", store=store) as kb:
        assert len(kb) == 0 and kb.search("doors") == []
        kb.add_document("https://example.org/doors?x=1", "The door is blue.\n\nThe window is green.")
        assert len(kb) == 2
    found = search(open_corpus(store, "notes"), "blue door", k=1)
    assert found.results[0].source == "https://example.org/doors?x=1"
    again = KnowledgeBase(embed="keyword", collection="notes", store=store)
    again.add_document("second", "A gate of iron.")
    assert len(again) == 3


def test_wrong_knowledge(store: Store) -> None:
    kb = KnowledgeBase(store=store)
    for call, said in (
        (lambda: kb.add_document("", "x"), "its name is empty"),
        (lambda: kb.add_document("x", " "), "its text is empty"),
        (lambda: kb.search(" "), "question is empty"),
        (lambda: KnowledgeBase(embed="mini", store=store), "mini"),
        (lambda: kb.search("x", k=0), "from 1 to 1000"),
        (lambda: KnowledgeBase(embed="none", store=store), "makes no vectors"),
        (lambda: KnowledgeBase(embed=lambda text: [1.0] * len(text), store=store), "one length"),
        (lambda: KnowledgeBase(embed=3, store=store), "function from a text"),  # type: ignore[arg-type]
        (lambda: KnowledgeBase(embed=lambda text: [[1.0]], store=store), "one vector"),  # type: ignore[list-item]
        (lambda: KnowledgeBase(embed=lambda text: "0.1 0.2", store=store), "embed gave no vector"),  # type: ignore[arg-type,return-value]
        (lambda: KnowledgeBase(embed=lambda text: {0: 1.0}, store=store), "embed gave no vector"),  # type: ignore[arg-type,return-value]
        (lambda: KnowledgeBase(embed=lambda text: [[1.0], [1.0, 2.0]], store=store), "embed gave no vector"),  # type: ignore[list-item]
        (lambda: KnowledgeBase(embed=lambda text: [float("nan")], store=store), "NaN or infinity"),
        (lambda: KnowledgeBase(embed=lambda text: [1.0] * 20_000, store=store), "20,000 numbers"),
        (lambda: KnowledgeBase(collection=" ", store=store), "collection's name is empty"),
        (lambda: kb.add_document("a", 3), "its text cannot be '3'"),  # type: ignore[arg-type]
        (lambda: kb.add_document("a\0b", "x"), "cannot name a document"),
        (lambda: kb.search(3), "cannot be 3"),  # type: ignore[arg-type]
        (lambda: kb.search("x", k="3"), "cannot be '3'"),  # type: ignore[arg-type]
    ):
        with pytest.raises(UsageError, match=said):
            call()


def test_another_embedder_than_the_collections_is_refused(store: Store) -> None:
    with KnowledgeBase(embed="keyword", collection="notes", store=store) as kb:
        kb.add_document("a", "red leaves")
        assert len(kb) == 1
    with pytest.raises(UsageError, match="was made with embedder keyword, and not minilm"):
        KnowledgeBase(embed="minilm", collection="notes", store=store).search("leaves")


def test_one_that_is_left_goes_with_its_object(store: Store) -> None:
    kb = KnowledgeBase(store=store)
    kb.add_document("many", "\n\n".join(f"leaf {'abcdefghij'[n % 10]}{'klmnopqrst'[n // 10 % 10]}{'uvwxyzklmn'[n // 100]}" for n in range(150)))
    assert len(kb.search("leaf", k=120)) == 120
    name = kb.collection
    kb.close()
    with pytest.raises(UsageError, match="is closed"):
        kb.search("leaf")
    left = KnowledgeBase(store=store)
    left.add_document("a", "leaf")
    assert len(left) == 1
    del left
    assert not [c.name for c in collections.all_collections(store) if c.name.startswith("kb_")], name


def test_langchain(plant: Store) -> None:
    from langchain_core.retrievers import BaseRetriever

    from lab.serving.adapters.langchain import LabRetriever

    retriever = LabRetriever(collection="c", k=2, store=plant, flags={"rrf_k": 60})
    assert isinstance(retriever, BaseRetriever)
    found = retriever.invoke(QUESTION)
    served = search(open_corpus(plant, "c"), QUESTION, k=2, rrf_k=60).results
    assert [d.id for d in found] == [r.chunk_id for r in served] and found[0].page_content == served[0].text
    assert found[0].metadata["source"] == "valves.md" and found[0].metadata["similarity"] == served[0].similarity
    chain = retriever | (lambda documents: documents[0].metadata["source"])
    assert chain.invoke(QUESTION) == "valves.md" and retriever.batch([QUESTION, "door"])[1][0].metadata["source"] == "doors.md"
    with pytest.raises(UsageError, match="unknown"):
        LabRetriever(collection="c", store=plant, flags={"rrfk": 60})
    with pytest.raises(ValueError, match="rrf_k"):
        LabRetriever(collection="c", store=plant, rrf_k=60)
    with pytest.raises(UsageError, match="k is a field of its own"):
        LabRetriever(collection="c", store=plant, flags={"k": 5})
    retriever.k = 1
    assert len(retriever.invoke(QUESTION)) == 1 and len(retriever.model_copy(update={"k": 2}).invoke(QUESTION)) == 2
    with pytest.raises(UsageError, match="nope"):
        retriever.model_copy(update={"collection": "nope"}).invoke(QUESTION)
    alone = LabRetriever(collection="c", k=2)
    assert pickle.loads(pickle.dumps(alone)).k == copy.deepcopy(alone).k == 2


def test_llama_index(plant: Store) -> None:
    from llama_index.core.retrievers import BaseRetriever

    from lab.serving.adapters.llama_index import LabRetriever

    retriever = LabRetriever("c", k=2, store=plant)
    assert isinstance(retriever, BaseRetriever)
    found = retriever.retrieve(QUESTION)
    served = search(open_corpus(plant, "c"), QUESTION, k=2).results
    assert [n.node.node_id for n in found] == [r.chunk_id for r in served] and [n.score for n in found] == [r.score for r in served]
    assert (found[0].node.start_char_idx, found[0].node.end_char_idx) == (served[0].start, served[0].end)  # type: ignore[attr-defined]


@pytest.fixture
def server() -> Iterator[Scripted]:
    made = Scripted({"answer": "It opens at 12 bar [1].", "sufficient": True})
    yield made
    made.close()


def test_langgraph(plant: Store, server: Scripted) -> None:
    from lab.serving.adapters.langgraph import answering

    told = answering("c", store=plant).invoke({"question": QUESTION})
    assert told["status"] == "ok" and "12 bar" in told["answer"] and told["sources"][0]["source"] == "valves.md"
    by_model = answering("c", store=plant, answerer="chat", chat=server.chat)
    assert by_model.invoke({"question": QUESTION})["answer"] == "It opens at 12 bar [1]." and len(server.asked) == 1
    none = answering("c", store=plant, answerer="chat", chat=server.chat, floor=0.99).invoke({"question": "zebras"})
    assert (none["answer"], none["status"], none["sources"], len(server.asked)) == (None, "no_relevant_context", [], 1)
    assert [*by_model.get_graph().nodes] == ["__start__", "retrieve", "synthesise", "nothing", "__end__"]


def test_a_graph_without_a_question(plant: Store) -> None:
    from lab.serving.adapters.langgraph import answering

    with pytest.raises(UsageError, match="was given no question"):
        answering("c", store=plant).invoke({})
    with pytest.raises(UsageError, match="unknown"):
        answering("c", store=plant, foo=1)


def test_first_asked_from_threads(tmp_path: Path) -> None:
    """A process whose first question comes from worker threads finds the server, and so does its main thread afterwards."""
    code = (
        "import lab\nfrom lab.serving.adapters.langchain import LabRetriever\n"
        "retriever = LabRetriever(collection='c', k=1)\n"
        "found = retriever.batch(['Where is the door?', 'What opens at 12 bar?', 'doors', 'valves'])\n"
        "with lab.connect() as store: print([documents[0].metadata['source'] for documents in found], store.rows('select 1'))\n"
        "retriever.close()\n"
    )
    write(tmp_path / "d", {"valves.md": VALVES, "doors.md": DOORS})
    surroundings = {**os.environ, "LAB_HOME": str(tmp_path / "home")}
    surroundings.pop("LAB_DATABASE_URL", None)
    lab = [sys.executable, "-m", "lab"]
    subprocess.run([*lab, "ingest", str(tmp_path / "d"), "-c", "c", "--embedder", "keyword"], env=surroundings, capture_output=True, check=True)
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], env=surroundings, capture_output=True, text=True, timeout=110)
    assert done.stdout == "['doors.md', 'valves.md', 'doors.md', 'valves.md'] [(1,)]\n", done.stderr
    assert done.stderr == ""


def test_none_of_them_is_needed() -> None:
    """The package imports, and the knowledge base too, where no other library is there."""
    code = (
        "import sys\nfor name in ('langchain_core', 'langgraph', 'llama_index'): sys.modules[name] = None\n"
        "import lab, lab.cli.main, lab.serving.tool, lab.serving.adapters.knowledge_base\n"
        "try:\n    import lab.serving.adapters.langchain\nexcept ImportError:\n    print('absent')"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "absent\n"
