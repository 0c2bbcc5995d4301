"""Budgets as values: which one is used up, what is said of it, and when there is room again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openfang.agents.budgets import month_of, reached
from openfang.agents.loop import Budget, smaller
from openfang.core.agents import NO_USAGE, Ending, Usage
from openfang.core.budgets import Account, Allowance, Whose, Window, clock_time, dollars
from openfang.core.usage import DAY_NS, NOTHING, Spending, day_name
from openfang.storage.database import at_once

if TYPE_CHECKING:
    from openfang.core.budgets import Reached

pytestmark = pytest.mark.requirement("C6.4")

MINUTE = 60_000_000_000
NODE = Account(whose=Whose.NODE)


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1_000_000_000


def bound(window: Window, *, tokens: int = 0, cost_usd: float = 0.0) -> Allowance:
    return Allowance(
        account=NODE,
        window=window,
        said="this node",
        setting="budget.max",
        tokens=tokens,
        cost_usd=cost_usd,
    )


@dataclass(slots=True)
class Book:
    """A ledger that is a list: when, how many tokens, how much money."""

    entries: list[tuple[int, int, float]] = field(default_factory=list[tuple[int, int, float]])

    async def minutes(self, account: Account, first: int) -> list[tuple[int, int, float]]:
        del account
        by_minute = [(moment // MINUTE, tokens, cost) for moment, tokens, cost in self.entries]
        return sorted(one for one in by_minute if one[0] >= first)

    async def days(self, account: Account, first: int, last: int) -> Spending:
        del account
        total = NOTHING
        for moment, tokens, cost in self.entries:
            if first <= moment // DAY_NS <= last:
                total += Spending(input_tokens=tokens, cost_usd=cost)
        return total


def found(one: Allowance, book: Book, now: int, used: Usage = NO_USAGE) -> Reached | None:
    return at_once(reached([one], book, used, now))


def said(one: Allowance, book: Book, now: int) -> str:
    full = found(one, book, now)
    assert full
    return full.sentence(now)


def test_an_hour_has_room_when_enough_of_it_is_older_than_that() -> None:
    now = at("2026-11-17 14:30")
    book = Book([(at("2026-11-17 13:40"), 60, 0.0), (at("2026-11-17 14:10"), 50, 0.0)])
    assert said(bound(Window.HOUR, tokens=100), book, now) == (
        "the budget of this node is used up: 110 of 100 tokens an hour. It resets at 14:41 UTC."
    )
    # Of a smaller one both must be gone.
    assert said(bound(Window.HOUR, tokens=40), book, now).endswith("It resets at 15:11 UTC.")
    assert found(bound(Window.HOUR, tokens=100), book, at("2026-11-17 14:41")) is None


def test_what_a_clock_wrote_that_was_ahead_does_not_fill_an_hour() -> None:
    book = Book([(at("2027-11-17 14:10"), 500, 0.0), (at("2026-11-17 14:31"), 50, 0.0)])
    now = at("2026-11-17 14:30")
    assert found(bound(Window.HOUR, tokens=100), book, now) is None
    assert found(bound(Window.HOUR, tokens=50), book, now)


@given(
    spent=st.lists(st.tuples(st.integers(0, 90), st.integers(1, 50)), min_size=1, max_size=20),
    most=st.integers(1, 300),
)
def test_when_an_hour_resets_there_is_room_and_a_minute_before_there_is_none(
    spent: list[tuple[int, int]], most: int
) -> None:
    now = at("2026-11-17 14:30")
    book = Book([(now - minutes * MINUTE, tokens, 0.0) for minutes, tokens in spent])
    one = bound(Window.HOUR, tokens=most)
    full = found(one, book, now)
    if full is None:
        assert sum(tokens for minutes, tokens in spent if minutes <= 60) < most
    else:
        assert full.resets_at
        assert full.used >= most
        assert found(one, book, full.resets_at) is None
        assert found(one, book, full.resets_at - 1) is not None


def test_a_day_and_a_month_are_those_of_the_calendar_in_utc() -> None:
    now = at("2026-12-31 23:59")
    book = Book([(at("2026-12-01 00:00"), 0, 2.0), (at("2026-12-31 00:00"), 0, 1.0)])
    assert said(bound(Window.DAY, cost_usd=1.0), book, now) == (
        "the budget of this node is used up: $1.00 of $1.00 a day. "
        "It resets at 00:00 UTC on 2027-01-01."
    )
    assert said(bound(Window.MONTH, cost_usd=2.5), book, now).startswith(
        "the budget of this node is used up: $3.00 of $2.50 a month."
    )
    new_year = at("2027-01-01 00:00")
    assert found(bound(Window.DAY, cost_usd=1.0), book, new_year) is None
    assert found(bound(Window.MONTH, cost_usd=2.5), book, new_year) is None
    assert found(bound(Window.DAY, cost_usd=1.5), book, now) is None


def test_a_month_has_the_days_that_it_has() -> None:
    days = {
        name: [day_name(day) for day in month_of(at(f"{name}-15 12:00"))]
        for name in ("2028-02", "2026-12", "2026-04")
    }
    assert days == {
        "2028-02": ["2028-02-01", "2028-03-01"],
        "2026-12": ["2026-12-01", "2027-01-01"],
        "2026-04": ["2026-04-01", "2026-05-01"],
    }


def test_the_tokens_of_a_run_do_not_come_back() -> None:
    one = bound(Window.RUN, tokens=10)
    assert found(one, Book(), 0, Usage(input_tokens=9)) is None
    full = found(one, Book(), 0, Usage(input_tokens=9, output_tokens=1))
    assert full
    assert full.ending is Ending.TOKENS
    assert full.sentence(0) == (
        "the budget of this node is used up: 10 of 10 tokens a run. It is raised by budget.max."
    )


def test_ten_tenths_of_a_cent_are_a_cent() -> None:
    now = at("2026-11-17 14:30")
    book = Book([(now, 0, 0.001)] * 10)
    for window in (Window.HOUR, Window.DAY, Window.MONTH):
        full = found(bound(window, cost_usd=0.01), book, now)
        assert full
        assert full.ending is Ending.COST


def test_a_bound_that_is_used_up_is_told_to_programs() -> None:
    now = at("2026-11-17 14:30")
    full = found(bound(Window.DAY, cost_usd=0.5), Book([(now, 0, 0.75)]), now)
    assert full
    assert full.as_json() == {
        "of": "this node",
        "setting": "budget.max",
        "window": "day",
        "unit": "usd",
        "limit": 0.5,
        "used": 0.75,
        "resets_at": "2026-11-18T00:00:00+00:00",
    }


@pytest.mark.parametrize(
    ("amount", "words"),
    [(1, "$1.00"), (0.5, "$0.50"), (0.00125, "$0.00125"), (12.3456789, "$12.345679")],
)
def test_money_is_said_as_small_as_it_is(amount: float, words: str) -> None:
    assert dollars(amount) == words


def test_a_time_is_never_said_earlier_than_it_is() -> None:
    now = at("2026-11-17 23:58")
    assert clock_time(now + 1, now) == "23:59 UTC"
    assert clock_time(now + MINUTE, now) == "23:59 UTC"
    assert clock_time(now + MINUTE + 1, now) == "00:00 UTC on 2026-11-18"


@pytest.mark.requirement("C6.6")
def test_the_tighter_of_two_budgets_is_so_in_each_of_its_bounds() -> None:
    one = Budget(rounds=3, run_tokens=5, tokens=0, cost_usd=1.0, daily_usd=2.0, monthly_usd=0.0)
    other = Budget(rounds=9, run_tokens=0, tokens=7, cost_usd=4.0, daily_usd=1.0, monthly_usd=9.0)
    assert smaller(one, other) == smaller(other, one)
    assert smaller(one, other) == replace(
        one, run_tokens=5, tokens=7, cost_usd=1.0, daily_usd=1.0, monthly_usd=9.0
    )
