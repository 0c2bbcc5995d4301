from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.registry.words import bases, clauses, grams, singular, split

pytestmark = pytest.mark.requirement("C11.1")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("HTTPServer", ("http", "server")),
        ("getUserProfile", ("get", "user", "profile")),
        ("get_created-items.v2/all:x", ("get", "created", "items", "v", "all", "x")),
        ("list2files", ("list", "files")),
        ("DELETE_FILE", ("delete", "file")),
        ("getHTTPResponse", ("get", "http", "response")),
        ("", ()),
        ("__--__", ()),
        ("größe", ("größe",)),
    ],
)
def test_a_name_splits_into_whole_words(name: str, words: tuple[str, ...]) -> None:
    assert split(name) == words


@given(st.text(max_size=60))
@settings(max_examples=200, deadline=None)
def test_words_are_lower_case_and_hold_no_separator(name: str) -> None:
    for word in split(name):
        assert word
        assert word == word.lower()
        assert not set(word) & set("_-./: 0123456789")


@given(st.lists(st.from_regex(r"\A[a-z]{1,8}\Z"), min_size=1, max_size=6))
@settings(max_examples=100, deadline=None)
def test_snake_case_splits_back_into_what_it_was_made_of(words: list[str]) -> None:
    assert split("_".join(words)) == tuple(words)


def test_prose_is_cut_into_clauses_and_identifiers_are_not_words() -> None:
    assert clauses("Reads a file, then deletes it. See delete_file!") == (
        ("reads", "a", "file"),
        ("deletes", "it"),
        ("see",),
    )


def test_the_singular_is_found_where_there_is_one() -> None:
    words = ["files", "directories", "address", "dns", "status", "ids", "bus"]
    assert [singular(word) for word in words] == [
        "file", "directory", "address", "dns", "status", "id", "bus",
    ]  # fmt: skip


def test_pairs_of_neighbours_are_found_in_the_singular() -> None:
    assert "api key" in grams(("list", "api", "keys"))


@pytest.mark.parametrize(
    ("word", "forms"),
    [
        ("runs", ("runs", "run")),
        ("pushes", ("pushes", "pushe", "push")),
        ("copies", ("copies", "copie", "copi", "copy")),
        ("run", ("run",)),
    ],
)
def test_a_third_person_stands_for_its_verb(word: str, forms: tuple[str, ...]) -> None:
    assert bases(word) == forms


@pytest.mark.parametrize(
    ("word", "one"),
    [
        ("files", "file"),
        ("directories", "directory"),
        ("flies", "fly"),
        ("ties", "tie"),
        ("access", "access"),
        ("status", "status"),
        ("analysis", "analysis"),
        ("dns", "dns"),
        ("ids", "id"),
        ("as", "as"),
    ],
)
def test_many_are_known_by_the_word_for_one(word: str, one: str) -> None:
    assert singular(word) == one
