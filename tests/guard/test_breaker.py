"""The breaker's transitions, and the map of them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.guard.breaker import (
    CLOSED,
    BreakerLimits,
    Breakers,
    Broken,
    Closed,
    HalfOpen,
    Open,
    State,
    abandoned,
    admit,
    failed,
    succeeded,
)

pytestmark = pytest.mark.requirement("C3.7", "C8.5")


def opened(at: float = 0.0) -> Breakers:
    breakers = Breakers()
    for _ in range(5):
        assert breakers.admit("files", at) is None
        breakers.failed("files", "spawn failed", at)
    return breakers


def test_the_fifth_failure_in_a_row_opens_it() -> None:
    state: State = CLOSED
    for number in range(1, 5):
        state = failed(state, "boom", 7.0)
        assert state == Closed(number)
    assert failed(state, "boom", 7.0) == Open(37.0, "boom")


def test_a_success_between_failures_starts_the_count_again() -> None:
    assert succeeded(Closed(4)) == CLOSED


def test_an_open_breaker_refuses_with_the_last_error_and_the_time_left() -> None:
    breakers = opened()
    assert breakers.admit("files", 10.0) == Broken("spawn failed", 20.0)
    assert breakers.admit("other", 10.0) is None


def test_after_the_rest_exactly_one_probe_passes() -> None:
    breakers = opened()
    assert breakers.admit("files", 29.999) is not None
    assert breakers.admit("files", 30.0) is None
    refused = [breakers.admit("files", 30.0 + step) for step in range(10)]
    assert all(isinstance(answer, Broken) for answer in refused)


def test_a_good_probe_closes_it() -> None:
    breakers = opened()
    breakers.admit("files", 30.0)
    breakers.succeeded("files")
    assert breakers.state("files") == CLOSED
    assert breakers.size == 0


def test_a_bad_probe_opens_it_again_for_the_whole_rest() -> None:
    breakers = opened()
    breakers.admit("files", 31.0)
    breakers.failed("files", "still broken", 32.0)
    assert breakers.state("files") == Open(62.0, "still broken")


def test_a_probe_that_was_cancelled_makes_room_for_the_next() -> None:
    breakers = opened()
    breakers.admit("files", 31.0)
    breakers.abandoned("files", 32.0)
    assert breakers.admit("files", 32.0) is None
    assert breakers.admit("files", 32.0) is not None


def test_a_probe_that_never_reports_does_not_close_the_door_for_ever() -> None:
    assert admit(HalfOpen(60.0, "lost"), 60.0) == HalfOpen(90.0, "lost")


def test_calls_that_began_before_neither_close_nor_prolong_it() -> None:
    state = Open(30.0, "first")
    assert succeeded(state) == state
    assert failed(state, "second", 25.0) == Open(30.0, "second")
    assert abandoned(state, 25.0) == state


def test_looking_takes_no_probe() -> None:
    breakers = opened()
    assert breakers.look("files", 29.0) == Broken("spawn failed", 1.0)
    assert breakers.look("files", 31.0) is None
    assert breakers.admit("files", 31.0) is None


def test_the_number_of_keys_is_bounded() -> None:
    breakers = Breakers(capacity=10)
    for number in range(100):
        breakers.failed(f"server {number}", "x", 0.0)
    assert breakers.size == 10


def test_the_key_that_failed_longest_ago_is_forgotten_first() -> None:
    breakers = Breakers(capacity=2)
    for key in "abac":
        breakers.failed(key, "x", 0.0)
    assert [breakers.state(key) for key in "abc"] == [Closed(2), CLOSED, Closed(1)]


@settings(max_examples=150, deadline=None)
@given(
    moves=st.lists(
        st.tuples(st.sampled_from(["admit", "ok", "fail", "gone"]), st.integers(0, 20)),
        max_size=80,
    ),
    limit=st.integers(1, 6),
)
def test_whatever_happens_it_never_lets_two_through_while_not_closed(
    moves: list[tuple[str, int]], limit: int
) -> None:
    limits = BreakerLimits(failures=limit, rest=30.0)
    breakers, now, last_probe = Breakers(limits), 0.0, -1e9
    for move, wait in moves:
        now += wait
        before = breakers.state("key")
        match move:
            case "admit":
                passed = breakers.admit("key", now) is None
                if passed and not isinstance(before, Closed):
                    assert before.until <= now
                    assert not isinstance(before, HalfOpen) or now - last_probe >= 30.0
                    last_probe = now
            case "ok":
                breakers.succeeded("key")
                assert not isinstance(breakers.state("key"), HalfOpen)
            case "fail":
                breakers.failed("key", "x", now)
            case _:
                breakers.abandoned("key", now)
        after = breakers.state("key")
        assert not isinstance(after, Closed) or after.failures < limit


def test_what_was_begun_anew_is_tried_by_the_next_call() -> None:
    breakers = opened()
    assert breakers.admit("files", 10.0) is not None
    breakers.revived("files", 10.0)
    assert breakers.admit("files", 10.0) is None
    assert breakers.admit("files", 10.0) == Broken("spawn failed", 30.0)
    breakers.failed("files", "again", 11.0)
    assert breakers.state("files") == Open(41.0, "again")
    breakers.revived("files", 12.0)
    breakers.admit("files", 12.0)
    breakers.succeeded("files")
    assert breakers.size == 0
    breakers.revived("files", 13.0)
    assert breakers.size == 0
