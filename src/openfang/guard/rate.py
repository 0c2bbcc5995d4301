"""GCRA: how many cells a key may spend, decided from one number per key and a clock value."""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import NamedTuple, TypeAlias

from openfang.core.values import dataclass

_ROUNDING = 0.001
_KEYS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """So many cells a minute in the long run, and so many at once."""

    cells_per_minute: int
    burst: int

    def __post_init__(self) -> None:
        if self.cells_per_minute < 1 or self.burst < 1:
            raise ValueError(f"A quota needs at least one cell: {self}")

    @property
    def interval(self) -> float:
        """Seconds that one cell takes to come back."""
        return 60.0 / self.cells_per_minute

    @property
    def window(self) -> float:
        """Seconds that all of them take to come back."""
        return self.interval * self.burst


class Granted(NamedTuple):
    """Spent. `tat` is the state to keep; the bucket is full again in `reset` seconds."""

    tat: float
    remaining: int
    reset: float


class Limited(NamedTuple):
    """Nothing spent. A wait of `retry_after` seconds is enough; None: no wait ever is."""

    tat: float
    retry_after: float | None


Charge: TypeAlias = Granted | Limited


def take(tat: float | None, now: float, cost: int, quota: Quota, windows: int = 1) -> Charge:
    """Spend `cost` cells at `now`, or say how long to wait.

    `tat` is the moment at which the bucket is full again. A moment further away than `windows`
    whole ones can only come from a clock that was set back, and counts as so many: one node fills
    one. A thousandth of a cell is forgiven, so that rounding never refuses what arithmetic allows;
    what costs nothing is never refused.
    """
    interval = quota.interval
    window = interval * quota.burst
    full_at = now if tat is None else min(max(tat, now), now + window * windows)
    if cost > quota.burst:
        return Limited(full_at, None)
    after = full_at + cost * interval
    excess = after - now - window
    if cost and excess > interval * _ROUNDING:
        return Limited(full_at, excess)
    room = (window - (after - now)) / interval
    return Granted(after, max(0, math.floor(room + _ROUNDING)), after - now)


@dataclass(slots=True)
class Use:
    """What a key spent and others were not told yet: seconds of its rate, since a moment."""

    seconds: float
    since: float
    window: float


class Limiter:
    """The state of every key that is not full. A full bucket is the same as no state at all.

    One that is shared notes what is spent, to be told to other limiters of the same keys.
    """

    __slots__ = ("_capacity", "_shared", "_tats", "_uses", "_windows")

    def __init__(self, *, capacity: int = _KEYS) -> None:
        self._capacity = capacity
        self._tats: OrderedDict[str, float] = OrderedDict()
        self._uses: dict[str, Use] = {}
        self._shared, self._windows = False, 1

    @property
    def size(self) -> int:
        """How many keys are remembered."""
        return len(self._tats)

    def charge(self, key: str, cost: int, quota: Quota, now: float) -> Charge:
        """Spend for `key`, and keep what must be remembered."""
        tats = self._tats
        charge = take(tats.get(key), now, cost, quota, self._windows)
        tats[key] = charge.tat
        tats.move_to_end(key)
        if self._shared and isinstance(charge, Granted):
            self._note(key, cost, quota, now)
        self._forget(now)
        return charge

    def look(self, key: str, cost: int, quota: Quota, now: float) -> Charge:
        """Say what `charge` would answer, and change nothing."""
        return take(self._tats.get(key), now, cost, quota, self._windows)

    def share(self, *, windows: int) -> None:
        """Note what is spent from now on; so many windows may be owed to what others let pass."""
        self._shared, self._windows = True, windows

    def _note(self, key: str, cost: int, quota: Quota, now: float) -> None:
        uses, seconds, window = self._uses, cost * quota.interval, quota.window
        use = uses.get(key)
        if use is not None:
            use.seconds, use.window = use.seconds + seconds, window
        elif seconds and len(uses) < self._capacity:
            uses[key] = Use(seconds, now, window)

    def uses(self) -> dict[str, Use]:
        """Hand out what was spent and nobody was told of; it is not handed out again."""
        taken, self._uses = self._uses, {}
        return taken

    def untold(self, uses: dict[str, Use]) -> None:
        """Take back what nobody could be told of: it is handed out with the next."""
        for key, use in self._uses.items():
            before = uses.get(key)
            seconds, since = (before.seconds, before.since) if before else (0.0, use.since)
            uses[key] = Use(seconds + use.seconds, since, use.window)
        self._uses = uses

    def hear(self, key: str, debt: float, then: float) -> None:
        """Take in that all together owed so many seconds of a key's rate, at a moment then."""
        later = self._uses.get(key)
        owed = then + debt + (later.seconds if later else 0.0)
        if owed > self._tats.get(key, then):
            self._tats[key] = owed
            self._tats.move_to_end(key)

    def _forget(self, now: float) -> None:
        """Drop the longest unused keys: two that are full again, and whoever is over the bound.

        Two for each one added, so that idle keys go faster than new ones come.
        """
        tats = self._tats
        for _ in range(2):
            oldest = next(iter(tats), None)
            if oldest is None or (tats[oldest] > now and len(tats) <= self._capacity):
                return
            del tats[oldest]
