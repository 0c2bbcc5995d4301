"""When something is to be done: cron expressions and plain English in, moments out. No I/O.

A moment is nanoseconds since the epoch. What repeats by the clock follows the clock of its zone,
over the changes of summer time, too: a time that does not exist that day comes as soon as it can,
and one that comes twice is taken once. What repeats by a distance counts seconds.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Final, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from openfang.core.errors import Rejected
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import tzinfo

SECOND: Final = 1_000_000_000
LONGEST: Final = 366 * 86_400
"""Nothing is planned further ahead, in seconds."""
EXAMPLES: Final = (
    "every 15 minutes",
    "every hour",
    "daily at 9am",
    "weekdays at 9:30",
    "every monday at 14:00",
    "in 10 minutes",
    "at 2026-12-01T09:00",
    "0 9 * * 1-5",
)
_LOOKED_AT: Final = 50
_FIELDS: Final = 5
_CRON: Final = re.compile(r"[0-9A-Za-z*/,#-]+( [0-9A-Za-z*/,#-]+){4}")
_HOUR: Final = 3_600
_DAY: Final = 86_400
_MINUTE: Final = 60
_NOON: Final = 12
_UNITS: Final = {"s": 1, "m": _MINUTE, "h": _HOUR, "d": _DAY, "w": 7 * _DAY}
_LENGTH: Final = r"(\d{1,6}) ?(s|m|h|d|w|(?:sec(?:ond)?|min(?:ute)?|hour|day|week)s?)"
_EVERY: Final = re.compile(rf"every {_LENGTH}")
_IN: Final = re.compile(rf"in {_LENGTH}")
_AT: Final = re.compile(r"(?:once )?at (\d{4}-\d\d-\d\d.*)")
_DAYS_AT: Final = re.compile(r"(?:on )?(.+?)(?: at (.+))?")
_TIME: Final = re.compile(r"(\d{1,2})(?::(\d\d))? ?(am|pm)?")
_TIMES: Final = {"noon": (12, 0), "midnight": (0, 0)}
_WORDS: Final = {
    **dict.fromkeys(("hourly", "every hour"), "0 * * * *"),
    **dict.fromkeys(("daily", "every day"), "0 0 * * *"),
    **dict.fromkeys(("weekly", "every week"), "0 0 * * 0"),
    **dict.fromkeys(("monthly", "every month"), "0 0 1 * *"),
    "every minute": "* * * * *",
}
_DAYS: Final = {
    **dict.fromkeys(("daily", "every day"), "*"),
    **dict.fromkeys(("weekdays", "every weekday", "weekday"), "1-5"),
    **dict.fromkeys(("weekends", "every weekend", "weekend"), "0,6"),
}
_NAMES: Final = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_NAMED: Final = {name[:length]: day for day, name in enumerate(_NAMES) for length in (3, len(name))}


@dataclass(frozen=True, slots=True)
class Cron:
    """By the clock of a zone."""

    expression: str
    zone: tzinfo

    def next_after(self, moment: int) -> int | None:
        """Find the first moment behind this one; None if there is none in our time."""
        local = datetime.fromtimestamp(moment // SECOND, self.zone)
        found = (int(one.timestamp()) * SECOND for one in _moments(self.expression, local))
        return next((one for one in found if one > moment), None)

    def holds(self, moment: int) -> bool:
        """Whether the minute of a moment is one of those that the expression names."""
        minute = moment - moment % (_MINUTE * SECOND)
        return self.next_after(minute - 1) == minute

    def closest(self, start: int) -> float:
        """Tell how near its next moments lie to each other, in seconds."""
        local = datetime.fromtimestamp(start // SECOND, self.zone)
        found = islice(_moments(self.expression, local), _LOOKED_AT)
        gaps = [(b.timestamp() - a.timestamp()) for a, b in pairwise(found)]
        return min((gap for gap in gaps if gap > 0), default=LONGEST)


@dataclass(frozen=True, slots=True)
class Every:
    """At a distance of so many seconds, counted from a moment."""

    seconds: int
    start: int

    def next_after(self, moment: int) -> int:
        """Find the first moment behind this one."""
        step = self.seconds * SECOND
        return self.start + ((moment - self.start) // step + 1) * step

    def closest(self, start: int) -> float:
        """Tell the distance."""
        del start
        return self.seconds


@dataclass(frozen=True, slots=True)
class Once:
    """At one moment."""

    at: int

    def next_after(self, moment: int) -> int | None:
        """Give the moment, until it is over."""
        return self.at if self.at > moment else None

    def closest(self, start: int) -> float:
        """Tell how far ahead it is."""
        return (self.at - start) / SECOND


When: TypeAlias = Cron | Every | Once


def read_zone(name: str) -> ZoneInfo:
    """Find a time zone by its name, `Europe/Berlin`."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise _rejected(
            f'There is no time zone "{name}".', "a name such as UTC or Europe/Berlin"
        ) from None


def read_when(text: str, zone: tzinfo, now: int) -> When:
    """Read a schedule that somebody writes at this moment."""
    said = " ".join(text.split())
    low = said.lower()
    if len(said.split()) == _FIELDS and _CRON.fullmatch(said) and _is_cron(said):
        return Cron(said, zone)
    if low in _WORDS:
        return Cron(_WORDS[low], zone)
    if found := _EVERY.fullmatch(low):
        return _every(_seconds(found, text), zone, now)
    if found := _IN.fullmatch(low):
        return Once(now + _seconds(found, text) * SECOND)
    if found := _AT.fullmatch(low):
        return Once(_moment(found[1], zone, text))
    return Cron(_on_days(low, text), zone)


def check_apart(when: When, now: int, least: float) -> None:
    """Refuse what comes too often, too soon, never, or too far ahead."""
    later = when.next_after(now)
    if later is None:
        raise _rejected("That never comes: it is over, or no day is like it.", _examples())
    if later - now > LONGEST * SECOND:
        raise _rejected("That is more than a year ahead.", "a moment within a year")
    by_minutes = isinstance(when, Cron) and least <= _MINUTE
    if not by_minutes and when.closest(now) < least:
        what = "ahead" if isinstance(when, Once) else "apart"
        raise _rejected(
            f"Runs are at least {least:g} s {what}, and this is {when.closest(now):g} s.",
            f"a longer time, or schedules.min_interval_secs = {max(1, int(when.closest(now)))}",
        )


def _moments(expression: str, local: datetime) -> Iterator[datetime]:
    try:
        yield from CronSim(expression, local)
    except (OverflowError, ValueError):  # behind the last year that there is
        return


def _is_cron(text: str) -> bool:
    try:
        CronSim(text, datetime(2000, 1, 1, tzinfo=UTC))
    except (CronSimError, AssertionError, ValueError):
        return False
    return True


def _seconds(found: re.Match[str], text: str) -> int:
    seconds = int(found[1]) * _UNITS[found[2][0]]
    if not 0 < seconds <= LONGEST:
        raise _nonsense(text)
    return seconds


def _every(seconds: int, zone: tzinfo, now: int) -> When:
    """What divides an hour or a day keeps to the clock; the rest counts from now."""
    if seconds % _MINUTE == 0 and _HOUR % seconds == 0 and seconds < _HOUR:
        minutes = seconds // _MINUTE
        return Cron("* * * * *" if minutes == 1 else f"*/{minutes} * * * *", zone)
    if seconds % _HOUR == 0 and _DAY % seconds == 0 and seconds < _DAY:
        hours = seconds // _HOUR
        return Cron("0 * * * *" if hours == 1 else f"0 */{hours} * * *", zone)
    return Every(seconds, now)


def _moment(text: str, zone: tzinfo, whole: str) -> int:
    try:
        read = datetime.fromisoformat(text.upper())
    except ValueError:
        raise _nonsense(whole) from None
    at = read if read.tzinfo else read.replace(tzinfo=zone)
    return int(at.timestamp()) * SECOND


def _on_days(low: str, text: str) -> str:
    found = _DAYS_AT.fullmatch(low)
    days = _days(found[1]) if found else ""
    if found is None or not days:
        raise _nonsense(text)
    hour, minute = _time(found[2], text) if found[2] else (0, 0)
    return f"{minute} {hour} * * {days}"


def _days(words: str) -> str:
    """Read days of the week as cron writes them; empty if they are none."""
    if words in _DAYS:
        return _DAYS[words]
    names = re.split(r", and |, | and ", words.removeprefix("every "))
    found = [_NAMED.get(name, _NAMED.get(name.removesuffix("s"))) for name in names]
    return "" if None in found else ",".join(str(day) for day in found)


def _time(words: str, text: str) -> tuple[int, int]:
    if words in _TIMES:
        return _TIMES[words]
    found = _TIME.fullmatch(words)
    if found is None:
        raise _nonsense(text)
    hour, minute, half = int(found[1]), int(found[2] or 0), found[3]
    if half:
        if not 1 <= hour <= _NOON:
            raise _nonsense(text)
        hour = hour % _NOON + (_NOON if half == "pm" else 0)
    if hour >= _DAY // _HOUR or minute >= _MINUTE:
        raise _nonsense(text)
    return hour, minute


def _nonsense(text: str) -> Rejected:
    return _rejected(f'"{text[:100]}" is no schedule that is understood.', _examples())


def _examples() -> str:
    return f"for example: {'; '.join(EXAMPLES)}"


def _rejected(why: str, way_out: str) -> Rejected:
    return Rejected(why, status=422, rule="schedule", way_out=way_out)
