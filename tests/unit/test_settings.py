"""Flags: one declaration, words that mean what they say, unknown ones refused."""

from __future__ import annotations

import pytest

from lab.errors import UsageError
from lab.grids import clean_factors, grid
from lab.settings import NAMED, IngestSettings, Settings, named


@pytest.mark.parametrize(
    ("flag", "word", "value"),
    [
        ("defines", "0", "off"), ("defines", "false", "off"), ("defines", "no", "off"), ("defines", "1", "question"), ("defines", "on", "question"),
        ("cites", "yes", "on"), ("dense", "off", "none"), ("dense", "1", "hnsw"), ("reranker", "true", "maxsim"), ("authority_weight", "0", 0.0),
        ("authority_weight", "on", 0.3), ("mmr_lambda", "off", 1.0), ("mmr_lambda", "on", 0.7), ("mmr_lambda", "0", 0.0), ("k", "3", 3), ("authority-weight", "0.5", 0.5),
    ],
)  # fmt: skip
def test_a_word_has_one_canonical_value(flag: str, word: str, value: object) -> None:
    name = flag.replace("-", "_")
    assert getattr(Settings().with_words({flag: word}), name) == value


@pytest.mark.parametrize(
    ("flag", "word"),
    [("k", "0"), ("k", "2.5"), ("k", "many"), ("dense", "ivf"), ("mmr_lambda", "1.5"), ("ef_search", "1001"), ("rrf_k", "nan"), ("k", "inf")],
)
def test_a_value_out_of_range_is_refused_in_one_sentence(flag: str, word: str) -> None:
    with pytest.raises(UsageError) as error:
        Settings().with_words({flag: word})
    assert "\n" not in str(error.value) and f"--{flag.replace('_', '-')}" in str(error.value)


def test_a_misspelt_flag_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'dense'"):
        Settings().with_words({"densee": "none"})


def test_the_last_arm_cannot_be_turned_off() -> None:
    with pytest.raises(UsageError, match="no arm is left"):
        Settings(dense="none", lexical="none")
    with pytest.raises(UsageError, match="no arm is left"):
        Settings(dense="none", lexical_weight=0.0)


def test_off_values_of_the_design() -> None:
    off = {name: flag.off for name, flag in Settings.flags().items()}
    assert (off["dense"], off["lexical"], off["authority_weight"], off["dedup"], off["cites"], off["defines"]) == (
        "none",
        "none",
        0.0,
        "off",
        "off",
        "off",
    )
    assert (off["link_parents"], off["links_max"], off["link_hub_max"], off["reranker"], off["mmr_lambda"]) == (0, 0, 0, "none", 1.0)


def test_the_digest_depends_on_values_only() -> None:
    assert Settings().digest == Settings().with_words({"authority_weight": "0.30"}).digest
    assert Settings().digest != Settings(k=5).digest


def test_every_shipped_name_is_a_settings_object() -> None:
    for name in NAMED:
        assert isinstance(named(name), Settings)
    classic = named("classic")
    assert (classic.query_mode, classic.lexical, classic.ef_search, classic.authority_weight, classic.dedup) == (
        "websearch",
        "ts_rank_cd",
        1000,
        0.0,
        "off",
    )
    deep = named("deep")
    assert (deep.candidates, deep.rerank_depth, deep.reranker, deep.mmr_pool, deep.mmr_lambda, deep.k) == (50, 50, "maxsim", 10, 0.7, 5)


def test_settings_from_a_file(tmp_path: object) -> None:
    path = tmp_path / "mine.toml"  # type: ignore[operator]
    path.write_text('[settings]\nlexical = "none"\nk = 7\n')
    assert named(str(path)) == Settings(lexical="none", k=7)
    path.write_text("densee = 1\n")
    with pytest.raises(UsageError, match="dense"):
        named(str(path))
    with pytest.raises(UsageError, match="cannot be read"):
        named("nowhere.toml")


def test_a_grid_is_every_combination_in_order_of_declaration() -> None:
    members = grid({"defines": ["off", "question"], "dense": ["none", "hnsw"]}, Settings())
    assert [tuple(passed.items()) for passed, _ in members] == [
        (("dense", "none"), ("defines", "off")),
        (("dense", "none"), ("defines", "question")),
        (("dense", "hnsw"), ("defines", "off")),
        (("dense", "hnsw"), ("defines", "question")),
    ]
    assert members[3][1] == Settings(dense="hnsw", defines="question")


@pytest.mark.parametrize("words", [["off"], ["off", "0"], ["0.08", "0.080"]])
def test_a_factor_needs_two_different_values(words: list[str]) -> None:
    name = "defines" if "off" in words else "authority_weight"
    with pytest.raises(UsageError, match="factor"):
        grid({name: words}, Settings())


def test_zero_is_a_value_not_a_missing_one() -> None:
    assert Settings().with_words({"authority_weight": "0"}).authority_weight == 0.0
    assert not Settings().with_words({"defines": "0"}).links_on
    assert not Settings().with_words({"cites": "on", "links_max": "0"}).links_on


def test_work_is_shared_exactly_when_no_flag_that_reaches_it_differs() -> None:
    assert Settings().reaching("dense") == Settings(rrf_k=10, k=3, defines="always").reaching("dense")
    assert Settings().reaching("dense") != Settings(ef_search=100).reaching("dense")
    assert Settings().reaching("lexical") == Settings(ef_search=100).reaching("lexical")


def test_overlap_must_be_smaller_than_the_window() -> None:
    with pytest.raises(UsageError, match="smaller"):
        IngestSettings(chunker="fixed", chunk_size=100, overlap=100)


def test_a_settings_object_is_always_runnable() -> None:
    assert Settings(k=5.0).k == 5 and isinstance(Settings(k=5.0).k, int)  # type: ignore[arg-type]
    assert isinstance(Settings(authority_weight=0).authority_weight, float)
    for wrong in ("5", True, None):
        with pytest.raises(UsageError):
            Settings(k=wrong)  # type: ignore[arg-type]


def test_words_of_a_factor_are_stripped_everywhere() -> None:
    assert clean_factors({"defines": [" off", "question "]}) == {"defines": ["off", "question"]}
    assert [passed for passed, _ in grid({"defines": [" off", "question "]}, Settings())] == [{"defines": "off"}, {"defines": "question"}]
