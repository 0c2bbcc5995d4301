"""When a rule holds: times of day, days of the week, in a time zone. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
EVERY_DAY: Final = frozenset(range(len(DAYS)))
MIDNIGHT: Final = 24 * 60
_SECOND: Final = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Hours:
    """From one minute of the day to before another; over midnight if that is earlier.

    What goes over midnight belongs to the day on which it began.
    """

    zone: ZoneInfo
    start: int = 0
    end: int = MIDNIGHT
    days: frozenset[int] = EVERY_DAY

    def hold(self, now: int) -> bool:
        """Whether this moment, in nanoseconds, lies in them."""
        local = datetime.fromtimestamp(now / _SECOND, self.zone)
        minute, today = local.hour * 60 + local.minute, local.weekday()
        if self.start < self.end:
            return self.start <= minute < self.end and today in self.days
        if minute >= self.start:
            return today in self.days
        yesterday = (local.date() - timedelta(days=1)).weekday()
        return minute < self.end and yesterday in self.days
