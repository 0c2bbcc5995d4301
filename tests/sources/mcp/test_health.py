"""How a server is, and when it is tried again: arithmetic, without any server (C3.7)."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.sources.mcp.health import (
    Health,
    Status,
    answered,
    failed,
    in_short,
    lost,
    wait_before,
)

pytestmark = pytest.mark.requirement("C3.7")


def chance(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - the same numbers each time


@given(st.integers(1, 100), st.integers(0, 2**32))
@settings(max_examples=200)
def test_the_wait_doubles_from_one_second_to_sixty_with_full_jitter(row: int, seed: int) -> None:
    wait = wait_before(row, chance(seed))
    assert 0 <= wait <= min(60.0, 2.0 ** (row - 1))


def test_the_whole_of_the_wait_is_used() -> None:
    dice = chance(1)
    for row, most in ((1, 1.0), (2, 2.0), (3, 4.0), (6, 32.0), (7, 60.0), (1000, 60.0)):
        waits = [wait_before(row, dice) for _ in range(500)]
        assert min(waits) < most * 0.05
        assert max(waits) > most * 0.95


def test_one_and_two_failures_degrade_and_three_are_too_many() -> None:
    health, words = answered(Health()), list[str]()
    for _ in range(4):
        health = failed(health, "no")
        words.append(health.word)
    assert words == ["degraded", "degraded", "unhealthy", "unhealthy"]
    assert answered(health) == Health(status=Status.HEALTHY)


def test_a_slow_probe_degrades() -> None:
    assert answered(Health(), 5.0).word == "healthy"
    slow = answered(Health(), 5.1)
    assert (slow.word, slow.error, slow.failures) == ("degraded", "a probe took 5.1 s", 0)


def test_what_was_never_there_is_unhealthy_and_what_was_is_degraded_first() -> None:
    assert lost("no", row=1, known=False).word == "unhealthy"
    rows = [lost("no", row=row, known=True).word for row in range(1, 5)]
    assert rows == ["degraded", "degraded", "unhealthy", "unhealthy"]


@given(st.text(max_size=3000))
@settings(max_examples=200)
def test_a_reason_is_one_short_line_that_does_nothing_to_a_terminal(text: str) -> None:
    short = in_short(text)
    assert short.isprintable()
    assert len(short) <= 503


def test_the_waits_grow() -> None:
    most = [max(wait_before(row, chance(seed)) for seed in range(200)) for row in range(1, 8)]
    assert all(one < other for one, other in pairwise(most))
