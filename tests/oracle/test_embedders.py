"""The embedders against the libraries they stand on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lab.corpus.chunking import chunk
from lab.corpus.readers import plain
from lab.errors import LabError, UsageError
from lab.models.embedders import KeywordEmbedder, check_vectors, embedder
from lab.models.minilm import MiniLM
from lab.models.rerankers import MaxSim
from lab.settings import IngestSettings
from lab.text import text_hash

TEXTS = ["A short one.", "inspect the relief valve monthly " * 80, "Kyoto in autumn", "x", "What is a cold permit?", "é ✓ 𝔘", "word " * 30] * 3


@pytest.fixture(scope="module")
def minilm() -> MiniLM:
    return MiniLM()


def test_minilm_is_sentence_transformers_minilm(minilm: MiniLM) -> None:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(minilm.folder), device="cpu")
    theirs = model.encode(TEXTS[:7], normalize_embeddings=True)
    assert minilm.encode(TEXTS[:7]) == pytest.approx(theirs, abs=1e-5)
    assert minilm.limit == model.max_seq_length == 256 and minilm.dim == theirs.shape[1]


def test_a_text_has_the_same_vector_in_any_company(minilm: MiniLM, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = np.vstack([minilm.encode([text]) for text in TEXTS])
    for size in (1, 7, 64):
        monkeypatch.setattr("lab.models.sentence._BATCH", size)
        together = minilm.encode(TEXTS)
        assert together == pytest.approx(alone, abs=1e-4)


def test_token_counts_are_the_models_own(minilm: MiniLM) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(minilm.folder))
    for text in TEXTS[:7]:
        assert minilm.count_tokens(text) == len(tokenizer.encode(text, add_special_tokens=False))


def test_maxsim_scores_do_not_depend_on_the_company(minilm: MiniLM) -> None:
    def vectors(texts: object) -> dict[bytes, np.ndarray]:
        listed = list(texts)  # type: ignore[call-overload]
        return dict(zip(map(text_hash, listed), minilm.token_vectors(listed), strict=True))

    reranker = MaxSim(minilm, vectors)
    five, long = "the relief valve is inspected", "inspect the relief valve monthly " * 80
    together = reranker.score("relief valve", [five, long])
    alone = [reranker.score("relief valve", [five])[0], reranker.score("relief valve", [long])[0]]
    assert together == pytest.approx(alone, abs=1e-4)


def test_the_keyword_embedder_is_the_tutorials_procedure() -> None:
    import hashlib

    vector = KeywordEmbedder().encode(["The Valve valve, and 3 pumps"])[0]
    slots = [int(hashlib.md5(w.encode()).hexdigest(), 16) % 1024 for w in ("valve", "pumps")]
    assert vector[slots[0]] == pytest.approx(2 / 5**0.5) and vector[slots[1]] == pytest.approx(1 / 5**0.5)
    assert not KeywordEmbedder().encode(["the 12"]).any()


def test_what_no_index_could_hold_is_refused() -> None:
    with pytest.raises(LabError, match="shape"):
        check_vectors(np.zeros((2, 3)), "x", 2, 4)
    for bad in (np.nan, np.inf):
        with pytest.raises(LabError, match="NaN or infinity"):
            check_vectors(np.full((1, 4), bad), "x", 1, 4)
    with pytest.raises(UsageError, match="did you mean 'minilm'"):
        embedder("minilmm")


@pytest.mark.parametrize("line", ["word and another, ", "abcdefghij", "𝔘✓"])
def test_a_long_line_is_cut_in_time_that_grows_with_its_length(minilm: MiniLM, line: str) -> None:
    text = line * (300_000 // len(line))
    counted = 0

    def count(piece: str) -> int:
        nonlocal counted
        counted += len(piece)
        return minilm.count_tokens(piece)

    chunks = chunk(plain.read("big.txt", text), IngestSettings(), count, minilm.limit)
    assert counted <= 60 * len(text), "work grows with the length of the line, not with its square"
    assert max(len(c.text) for c in chunks) <= 64 * 256
    assert "".join(c.text for c in chunks).replace(" ", "") == text.replace(" ", "")


def test_a_folder_names_a_sentence_transformers_model() -> None:
    """The same weights by their folder give the same vectors, limit and tokens as `minilm`; another digest, since nothing vouches for the folder."""
    shipped, by_folder = MiniLM(), embedder(str(MiniLM().folder))
    texts = ["The relief valve opens at 12 bar.", "Quiet hours begin at ten."]
    np.testing.assert_allclose(by_folder.encode(texts), shipped.encode(texts), atol=1e-5)
    assert (by_folder.dim, by_folder.limit, by_folder.count_tokens(texts[0])) == (384, 256, shipped.count_tokens(texts[0]))
    assert by_folder.digest.startswith("sentence-") and by_folder.digest == by_folder.digest
    assert len(by_folder.token_vectors(texts)) == 2


def test_a_name_that_cannot_be_loaded_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be loaded"):
        embedder(f"{tmp_path}/nothing-here").encode(["x"])
