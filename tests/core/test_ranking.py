"""Which of many short texts fit some words best."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openfang.core.ranking import Ranking

pytestmark = pytest.mark.requirement("C17.2")
WORDS = st.lists(st.sampled_from("abcdef"), max_size=8)


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    ranking = Ranking([["read", "file"], ["read", "mail"], ["read", "page"]])

    assert ranking.best(["read", "mail"], 3) == [1, 0, 2]
    assert ranking.best(["mail"], 3) == [1]
    assert ranking.best(["none"], 3) == ranking.best([], 3) == []


def test_a_short_text_fits_better_than_a_long_one_with_the_same_word() -> None:
    ranking = Ranking([["a", "b", "c", "d", "x"], ["x"]])

    assert ranking.best(["x"], 2) == [1, 0]


def test_the_score_is_that_of_the_formula() -> None:
    ranking = Ranking([["x", "x", "y"], ["y"]])
    rare, length = 0.6931471805599453, 1.5  # log(1 + 1.5 / 1.5); three words where two are usual

    expected = rare * 2 * 2.2 / (2 + 1.2 * (0.5 + 0.5 * length))
    assert ranking.score(0, ["x", "x"]) == pytest.approx(expected)


@given(st.lists(WORDS, max_size=8), WORDS, st.integers(0, 9))
def test_the_best_are_those_that_hold_a_word_by_falling_score(
    texts: list[list[str]], words: list[str], most: int
) -> None:
    ranking = Ranking(texts)
    best = ranking.best(words, most)
    holders = [number for number, text in enumerate(texts) if set(text) & set(words)]

    assert best == sorted(holders, key=lambda n: (-ranking.score(n, words), n))[:most]


def test_nothing_to_rank_is_no_error() -> None:
    assert Ranking([]).best(["x"], 3) == []
    assert Ranking([[], []]).best(["x"], 3) == []
