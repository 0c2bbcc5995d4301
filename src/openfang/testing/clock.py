"""A clock that stands still until a test moves it."""

from __future__ import annotations

import time
from dataclasses import field

from openfang.core.values import dataclass

_SECOND = 1_000_000_000


@dataclass(slots=True)
class ManualClock:
    """Starts at the machine's time, or at `now_ns`; `advance` moves both of its hands."""

    now_ns: int = field(default_factory=time.time_ns)
    _passed_ns: int = field(init=False, default=0)

    def monotonic(self) -> float:
        """Seconds since the clock was made."""
        return self._passed_ns / _SECOND

    def time_ns(self) -> int:
        """Nanoseconds since the epoch."""
        return self.now_ns

    def advance(self, seconds: float) -> None:
        """Let time pass. It only goes forward."""
        if seconds < 0:
            raise ValueError(f"A clock cannot go back by {-seconds:g} s")
        passed = round(seconds * _SECOND)
        self._passed_ns += passed
        self.now_ns += passed
