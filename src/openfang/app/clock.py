"""The real clock; tests hand in another."""

from __future__ import annotations

import time


class SystemClock:
    """Time as the machine tells it."""

    monotonic = staticmethod(time.monotonic)
    time_ns = staticmethod(time.time_ns)
