"""Schedules as people write them, and the moments that they mean."""

from __future__ import annotations

import itertools
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openfang.agents.when import (
    EXAMPLES,
    SECOND,
    Cron,
    Every,
    Once,
    check_apart,
    read_when,
    read_zone,
)
from openfang.core.errors import Rejected

pytestmark = pytest.mark.requirement("C6.2")
BERLIN = ZoneInfo("Europe/Berlin")
NOW = int(datetime(2026, 11, 17, 9, 5, 30, tzinfo=UTC).timestamp()) * SECOND
MOMENTS = st.integers(NOW - 40 * 366 * 86_400 * SECOND, NOW + 20 * 366 * 86_400 * SECOND)
CRONS = {
    "every minute": "* * * * *",
    "every 1 minute": "* * * * *",
    "every 5 minutes": "*/5 * * * *",
    "every 15m": "*/15 * * * *",
    "Every  Hour": "0 * * * *",
    "hourly": "0 * * * *",
    "every 1h": "0 * * * *",
    "every 60 minutes": "0 * * * *",
    "every 6 hours": "0 */6 * * *",
    "every day": "0 0 * * *",
    "daily": "0 0 * * *",
    "every week": "0 0 * * 0",
    "weekly": "0 0 * * 0",
    "monthly": "0 0 1 * *",
    "daily at 9am": "0 9 * * *",
    "every day at 12am": "0 0 * * *",
    "daily at 12pm": "0 12 * * *",
    "daily at noon": "0 12 * * *",
    "daily at 6pm": "0 18 * * *",
    "daily at 9:30am": "30 9 * * *",
    "daily at 14": "0 14 * * *",
    "weekdays at 14:00": "0 14 * * 1-5",
    "weekends at 9 am": "0 9 * * 0,6",
    "every monday at 9:30": "30 9 * * 1",
    "mondays at 9:30": "30 9 * * 1",
    "every mon, wed and friday at 7": "0 7 * * 1,3,5",
    "every sunday": "0 0 * * 0",
    "0 9 * * 1-5": "0 9 * * 1-5",
    "*/7 8-18 1,15 JAN-JUN mon": "*/7 8-18 1,15 JAN-JUN mon",
}
NONSENSE = (
    "",
    "soon",
    "every blue moon",
    "every 0 minutes",
    "every 999999 days",
    "daily at 25:00",
    "daily at 9:60",
    "daily at 13pm",
    "daily at 0am",
    "weekdays at",
    "every monday and someday at 9",
    "in a while",
    "in 0 seconds",
    "at noon tomorrow",
    "at 2026-13-01T09:00",
    "60 * * * *",
    "* * * *",
    "0 0 31 2 *",
    "* * * * * *",
    "L/2 * * * *",
    "* * * * 5L/2",
    "0 0 * * 1#9",
)


def at(*moment: int, zone: ZoneInfo | None = None) -> int:
    return int(datetime(*moment, tzinfo=zone or UTC).timestamp()) * SECOND  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "expression"), CRONS.items())
def test_plain_english_is_a_cron_expression(text: str, expression: str) -> None:
    assert read_when(text, UTC, NOW) == Cron(expression, UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("every 90 minutes", 5400),
        ("every 90 seconds", 90),
        ("every 5 hours", 18_000),
        ("every 2d", 172_800),
    ],
)
def test_what_divides_neither_an_hour_nor_a_day_counts_from_now(text: str, seconds: int) -> None:
    when = read_when(text, UTC, NOW)
    assert when == Every(seconds, NOW)
    assert when.next_after(NOW) == NOW + seconds * SECOND


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("in 10 minutes", NOW + 600 * SECOND),
        ("in 1 hour", NOW + 3600 * SECOND),
        ("in 90s", NOW + 90 * SECOND),
        ("at 2026-12-01T09:00", at(2026, 12, 1, 9, zone=BERLIN)),
        ("at 2026-12-01 09:00", at(2026, 12, 1, 9, zone=BERLIN)),
        ("once at 2026-12-01T09:00Z", at(2026, 12, 1, 9)),
        ("at 2026-12-01T09:00+05:00", at(2026, 12, 1, 4)),
    ],
)
def test_once_is_one_moment_in_its_zone(text: str, moment: int) -> None:
    when = read_when(text, BERLIN, NOW)
    assert when == Once(moment)
    assert when.next_after(NOW) == moment
    assert when.next_after(moment) is None


@pytest.mark.parametrize("text", NONSENSE)
def test_nonsense_is_refused_with_examples_that_are_understood(text: str) -> None:
    with pytest.raises(Rejected) as refused:
        read_when(text, UTC, NOW)
    assert refused.value.rule == "schedule"
    assert all(example in refused.value.way_out for example in EXAMPLES)
    for example in EXAMPLES:
        assert read_when(example, UTC, NOW).next_after(NOW)


@given(st.text(max_size=60))
def test_whatever_is_written_is_understood_or_refused(text: str) -> None:
    with suppress(Rejected):
        when = read_when(text, BERLIN, NOW)
        assert when.next_after(NOW) is None or when.next_after(NOW)


@given(
    st.sampled_from([text for text in CRONS if text != "monthly"]),
    st.sampled_from(
        ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]
    ),
    MOMENTS,
)
def test_the_next_moment_is_behind_this_one_and_none_lies_between(
    text: str, zone: str, moment: int
) -> None:
    when = read_when(text, ZoneInfo(zone), NOW)
    following = when.next_after(moment)
    assert following is not None
    assert following > moment
    assert following % (60 * SECOND) == 0
    between = moment + (following - moment) // 2
    assert when.next_after(between) == following
    assert when.next_after(following - 1) == following


@given(st.integers(60, 10_000_000), MOMENTS)
def test_a_distance_is_kept_whenever_one_looks(seconds: int, moment: int) -> None:
    following = Every(seconds, NOW).next_after(moment)
    assert 0 < following - moment <= seconds * SECOND
    assert (following - NOW) % (seconds * SECOND) == 0


def test_a_day_of_every_quarter_of_an_hour_has_96_runs() -> None:
    moments, moment = list[int](), at(2026, 11, 17)
    while (moment := read_when("every 15 minutes", UTC, NOW).next_after(moment) or 0) <= at(
        2026, 11, 18
    ):
        moments.append(moment)
    assert len(moments) == 96
    assert {after - before for before, after in itertools.pairwise(moments)} == {900 * SECOND}


def test_a_daily_run_follows_the_clock_of_its_zone_over_the_changes_of_summer_time() -> None:
    daily = read_when("daily at 9:00", BERLIN, NOW)
    moment, hours = at(2026, 3, 27, 12), list[int]()
    for _ in range(5):
        moment = daily.next_after(moment) or 0
        hours.append(datetime.fromtimestamp(moment / SECOND, UTC).hour)
    assert hours == [8, 7, 7, 7, 7]


def test_a_time_that_does_not_exist_comes_as_soon_as_it_can_and_one_that_comes_twice_once() -> None:
    nightly = read_when("daily at 2:30", BERLIN, NOW)
    lost = nightly.next_after(at(2026, 3, 28, 12))
    assert lost == at(2026, 3, 29, 3, zone=BERLIN)
    assert nightly.next_after(lost or 0) == at(2026, 3, 30, 2, 30, zone=BERLIN)
    first = nightly.next_after(at(2026, 10, 24, 12))
    assert first
    assert first == at(2026, 10, 25, 2, 30, zone=BERLIN)
    assert nightly.next_after(first) == at(2026, 10, 26, 2, 30, zone=BERLIN)
    # Whoever looks in the hour that comes again is not sent back.
    again = int((datetime.fromtimestamp(first / SECOND, UTC) + timedelta(minutes=40)).timestamp())
    assert nightly.next_after(again * SECOND) == at(2026, 10, 26, 2, 30, zone=BERLIN)


def test_every_hour_has_23_runs_on_the_short_day_and_25_on_the_long_one() -> None:
    hourly = read_when("every hour", BERLIN, NOW)
    for day, count in (
        (datetime(2026, 3, 29, tzinfo=BERLIN), 23),
        (datetime(2026, 10, 25, tzinfo=BERLIN), 25),
    ):
        start, end = int(day.timestamp()), int((day + timedelta(days=1)).timestamp())
        found, moment = 0, start * SECOND - 1
        while (moment := hourly.next_after(moment) or 0) < end * SECOND:
            found += 1
        assert found == count


@pytest.mark.parametrize(
    ("text", "least", "part"),
    [
        ("every 30 seconds", 60, "at least 60 s apart, and this is 30 s"),
        ("every 5 minutes", 3600, "at least 3600 s apart, and this is 300 s"),
        ("in 10 seconds", 60, "at least 60 s ahead"),
        ("at 2020-01-01T00:00", 60, "never comes"),
        ("at 2030-01-01T00:00", 60, "more than a year"),
        ("0 0 29 2 *", 60, "more than a year"),
    ],
)
def test_what_comes_too_often_too_soon_or_never_is_refused(
    text: str, least: int, part: str
) -> None:
    with pytest.raises(Rejected) as refused:
        check_apart(read_when(text, UTC, NOW), NOW, least)
    assert part in refused.value.message


@pytest.mark.parametrize("text", ["every minute", "every 61 seconds", "in 60 seconds", "monthly"])
def test_what_is_far_enough_apart_is_taken(text: str) -> None:
    check_apart(read_when(text, UTC, NOW), NOW, 60)


@pytest.mark.parametrize("name", ["Europe/Nowhere", "", "../../etc/passwd", "/etc/passwd", "a\0b"])
def test_a_zone_that_is_none_is_named(name: str) -> None:
    with pytest.raises(Rejected):
        read_zone(name)


def test_a_minute_is_one_of_those_that_an_expression_names() -> None:
    quiet = Cron("* 22-23,0-6 * * *", BERLIN)
    assert quiet.holds(at(2026, 11, 17, 23, 0, 30, zone=BERLIN))
    assert not quiet.holds(at(2026, 11, 17, 7, 0, zone=BERLIN))
