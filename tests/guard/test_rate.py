"""GCRA, against the contract's figures and against a bucket that is filled by hand."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from openfang.guard.rate import Charge, Granted, Limited, Limiter, Quota, Use, take

pytestmark = pytest.mark.requirement("C12.3")

STANDARD = Quota(cells_per_minute=500, burst=500)


def spend(limiter: Limiter, times: int, cost: int, now: float) -> list[Charge]:
    return [limiter.charge("key", cost, STANDARD, now) for _ in range(times)]


def test_the_501st_cell_is_refused() -> None:
    limiter = Limiter()
    assert all(isinstance(charge, Granted) for charge in spend(limiter, 500, 1, 1_000_000.7))
    assert isinstance(limiter.charge("key", 1, STANDARD, 1_000_000.7), Limited)


@pytest.mark.parametrize("cost", [1, 5, 30])
@pytest.mark.parametrize("now", [0.0, 12.34, 987_654.321])
def test_waiting_as_told_is_enough_and_a_second_less_is_not(cost: int, now: float) -> None:
    limiter = Limiter()
    spend(limiter, 500, 1, now)
    limited = limiter.charge("key", cost, STANDARD, now)
    assert isinstance(limited, Limited)
    assert limited.retry_after is not None
    header = math.ceil(limited.retry_after)
    assert isinstance(limiter.look("key", cost, STANDARD, now + header - 1), Limited)
    assert isinstance(limiter.look("key", cost, STANDARD, now + limited.retry_after), Granted)
    assert isinstance(limiter.charge("key", cost, STANDARD, now + header), Granted)


def test_a_refusal_costs_nothing() -> None:
    limiter = Limiter()
    spend(limiter, 500, 1, 0.0)
    first = limiter.charge("key", 30, STANDARD, 0.0)
    for _ in range(100):
        assert limiter.charge("key", 30, STANDARD, 0.0) == first


def test_a_cost_above_the_burst_is_refused_for_ever_and_says_so() -> None:
    answer = take(None, 5.0, 501, STANDARD)
    assert answer == Limited(5.0, None)
    assert take(None, 5_000_000.0, 501, STANDARD) == Limited(5_000_000.0, None)


def test_a_clock_set_back_locks_nobody_out_for_longer_than_a_burst() -> None:
    limiter = Limiter()
    spend(limiter, 500, 1, 1_000_000.0)
    limited = limiter.charge("key", 30, STANDARD, 10.0)
    assert isinstance(limited, Limited)
    assert limited.retry_after is not None
    assert limited.retry_after <= 60.0
    assert isinstance(limiter.charge("key", 30, STANDARD, 10.0 + limited.retry_after), Granted)
    granted = limiter.charge("key", 470, STANDARD, 70.0)
    assert isinstance(granted, Granted)


@pytest.mark.parametrize("now", [0.0, 1_000_000.0])
def test_what_is_left_and_when_it_is_full_again_are_told(now: float) -> None:
    limiter = Limiter()
    granted = limiter.charge("key", 30, STANDARD, now)
    assert isinstance(granted, Granted)
    assert (granted.remaining, round(granted.reset, 6)) == (470, 3.6)
    granted = limiter.charge("key", 470, STANDARD, now)
    assert isinstance(granted, Granted)
    assert (granted.remaining, round(granted.reset, 6)) == (0, 60.0)


def test_keys_do_not_share() -> None:
    limiter = Limiter()
    spend(limiter, 500, 1, 0.0)
    assert isinstance(limiter.charge("other", 500, STANDARD, 0.0), Granted)


def test_looking_changes_nothing() -> None:
    limiter = Limiter()
    for _ in range(600):
        assert isinstance(limiter.look("key", 1, STANDARD, 0.0), Granted)
    assert limiter.size == 0


def test_idle_keys_are_forgotten() -> None:
    limiter = Limiter()
    for number in range(1_000):
        limiter.charge(f"key {number}", 1, STANDARD, 0.0)
    for number in range(1_000):
        limiter.charge("alive", 1, STANDARD, 100.0 + number)
    assert limiter.size == 1


def test_the_number_of_keys_is_bounded() -> None:
    limiter = Limiter(capacity=50)
    for number in range(1_000):
        limiter.charge(f"key {number}", 500, STANDARD, 0.0)
    assert limiter.size == 50
    assert isinstance(limiter.charge("key 999", 1, STANDARD, 0.0), Limited)


def test_the_key_that_rested_longest_is_forgotten_first() -> None:
    limiter = Limiter(capacity=2)
    for key in "abac":
        limiter.charge(key, 250, STANDARD, 0.0)
    left = [limiter.look(key, 1, STANDARD, 0.0) for key in "abc"]
    assert [isinstance(one, Limited) for one in left] == [True, False, False]


@pytest.mark.parametrize(("cells", "burst"), [(0, 5), (5, 0), (-1, 5)])
def test_a_quota_of_nothing_is_a_mistake(cells: int, burst: int) -> None:
    with pytest.raises(ValueError, match="at least one cell"):
        Quota(cells_per_minute=cells, burst=burst)


class Bucket:
    """The same promise in exact fractions: a bucket that refills all the time."""

    def __init__(self, quota: Quota) -> None:
        self.level = Fraction(quota.burst)
        self.quota = quota
        self.at = Fraction(0)

    def take(self, now: Fraction, cost: int) -> bool:
        refill = (now - self.at) * self.quota.cells_per_minute / 60
        self.level = min(self.level + refill, Fraction(self.quota.burst))
        self.at = now
        if cost > self.level:
            return False
        self.level -= cost
        return True


@settings(max_examples=150, deadline=None)
@given(
    quota=st.builds(
        Quota,
        cells_per_minute=st.integers(1, 6_000),
        burst=st.integers(1, 600),
    ),
    steps=st.lists(st.tuples(st.integers(0, 4_000), st.integers(1, 40)), max_size=60),
    start=st.integers(0, 10_000_000),
)
def test_it_agrees_with_a_bucket_filled_by_hand(
    quota: Quota, steps: list[tuple[int, int]], start: int
) -> None:
    bucket = Bucket(quota)
    bucket.at = Fraction(start)
    tat, now = None, Fraction(start)
    for wait, cost in steps:
        now += Fraction(wait, 1_000)
        charge = take(tat, float(now), cost, quota)
        tat = charge.tat
        if isinstance(charge, Granted) and bucket.level < cost:
            bucket.level += Fraction(1, 500)  # a thousandth of a cell is forgiven
        assert bucket.take(now, cost) is isinstance(charge, Granted)


@settings(max_examples=150, deadline=None)
@given(
    quota=st.builds(Quota, cells_per_minute=st.integers(1, 6_000), burst=st.integers(1, 600)),
    spent=st.floats(0, 1),
    cost=st.integers(1, 700),
    now=st.floats(0, 1e7),
)
def test_the_wait_it_names_is_always_enough(
    quota: Quota, spent: float, cost: int, now: float
) -> None:
    answer = take(now + spent * quota.interval * quota.burst, now, cost, quota)
    match answer:
        case Limited(tat, None):
            assert cost > quota.burst
            assert isinstance(take(tat, now + 1e9, cost, quota), Limited)
        case Limited(tat, float(wait)):
            assert isinstance(take(tat, now + wait, cost, quota), Granted)
            assert isinstance(take(tat, now + wait - 2 * quota.interval, cost, quota), Limited) or (
                wait < 2 * quota.interval
            )
        case Granted():
            assert answer.remaining <= quota.burst - cost
        case _:
            raise AssertionError(answer)


class Board:
    """Where limiters tell each other what they let pass: as the database adds it up."""

    def __init__(self) -> None:
        self.tat = 0.0

    def exchange(self, limiter: Limiter, now: float) -> None:
        for key, use in limiter.uses().items():
            self.tat = max(self.tat, use.since) + use.seconds
            limiter.hear(key, self.tat - now, now)


def test_what_is_left_is_told_also_to_who_owes_more_than_a_burst() -> None:
    limiter = Limiter()
    limiter.share(windows=3)
    limiter.hear("key", 150.0, 0.0)
    assert limiter.look("key", 0, STANDARD, 0.0) == Granted(150.0, 0, 150.0)
    limited = limiter.charge("key", 1, STANDARD, 0.0)
    assert isinstance(limited, Limited)
    assert limited.retry_after == pytest.approx(90.0 + 0.12)


def sharing(windows: int = 3) -> Limiter:
    limiter = Limiter()
    limiter.share(windows=windows)
    return limiter


def test_what_is_spent_is_handed_out_once_in_seconds_of_the_rate() -> None:
    quota, limiter = Quota(cells_per_minute=30, burst=10), sharing()
    for now in (0.0, 1.0):
        limiter.charge("key", 3, quota, now)
    limiter.charge("key", 0, quota, 2.0)
    limiter.charge("idle", 0, quota, 2.0)
    assert limiter.uses() == {"key": Use(12.0, 0.0, 20.0)}
    assert limiter.uses() == {}


def test_a_limiter_that_is_not_shared_notes_nothing() -> None:
    limiter = Limiter()
    spend(limiter, 3, 5, 0.0)
    assert limiter.uses() == {}


def test_what_nobody_could_be_told_of_is_handed_out_with_the_next() -> None:
    limiter = sharing()
    limiter.charge("key", 100, STANDARD, 0.0)
    untold = limiter.uses()
    limiter.charge("key", 50, STANDARD, 5.0)
    limiter.charge("other", 25, STANDARD, 5.0)
    limiter.untold(untold)
    assert limiter.uses() == {"key": Use(18.0, 0.0, 60.0), "other": Use(3.0, 5.0, 60.0)}


def test_what_is_heard_counts_beside_what_was_spent_since() -> None:
    limiter = sharing()
    limiter.charge("key", 100, STANDARD, 0.0)
    limiter.uses()
    limiter.charge("key", 50, STANDARD, 1.0)
    limiter.hear("key", 20.0, 1.0)
    assert limiter.look("key", 0, STANDARD, 1.0) == Granted(27.0, 283, 26.0)
    limiter.hear("key", 1.0, 1.0)
    assert limiter.look("key", 0, STANDARD, 1.0) == Granted(27.0, 283, 26.0)


@settings(max_examples=100, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sets(st.integers(0, 3)), st.sampled_from((0.0, 0.3, 1.0, 7.0))), max_size=60
    ),
    burst=st.integers(1, 12),
    cost=st.integers(1, 3),
)
@example(steps=[({0, 1, 2, 3}, 1.0)] * 60, burst=5, cost=1)
def test_limiters_that_tell_each_other_let_pass_no_more_than_a_burst_each_and_keep_the_rate(
    steps: list[tuple[set[int], float]], burst: int, cost: int
) -> None:
    """N of them that exchange every P seconds: at most what comes back in T + N * (w + P)."""
    quota, nodes, every = Quota(cells_per_minute=60, burst=burst), 4, 1.0
    board, limiters = Board(), [Limiter() for _ in range(nodes)]
    for limiter in limiters:
        limiter.share(windows=nodes + 1)
    due, now, full_at = [every] * nodes, 0.0, 0.0
    passed = list[tuple[float, int]]()
    for hammered, wait in steps:
        now += wait
        for index, limiter in enumerate(limiters):
            if now >= due[index]:
                board.exchange(limiter, due[index])
                due[index] = now + every
        for who in hammered:
            while isinstance(limiters[who].charge("key", cost, quota, now), Granted):
                full_at = max(full_at, now) + cost
                passed.append((now, cost))
        if hammered:
            fits = max(full_at, now) + cost <= now + quota.window
            assert not fits, "never stricter than one that knows all"
    for first, (begin, _) in enumerate(passed):
        total = 0
        for at, _ in passed[first:]:
            total += cost
            assert total <= at - begin + nodes * (quota.window + every)
