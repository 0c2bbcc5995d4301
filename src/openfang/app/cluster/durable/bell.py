"""When the threads of DBOS look whether there is something to take: soon, where there may be."""

from __future__ import annotations

import threading
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Final

from openfang.app.cluster.durable.queues import LOOK_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterable

AWAKE_SECONDS: Final = 2.0
"""For so long after the last thing that happened it is looked often."""
_OFTENER: Final = 10.0
_LONGEST_AWAKE: Final = 0.5
_WORKER: Final = "queue-worker-openfang"
"""How DBOS names the thread of a queue of ours."""


class Bell:
    """Has whoever waits between two looks wait a tenth of that while something happens here.

    Each look is two transactions, ten a second were 4 % of a core: so idle nodes look rarely. What
    is put on a queue at this node wakes it at once. DBOS waits ever longer where nodes collide,
    up to two minutes; it waits no longer than `longest` here.
    """

    def __init__(self, longest: float = LOOK_SECONDS) -> None:
        self._longest = longest
        self._rung = threading.Condition()
        self._until = float("-inf")

    def hang(self, stops: Iterable[threading.Event]) -> None:
        """Be what they wait for who wait for these events, as the threads of DBOS do."""
        for stop in stops:
            vars(stop)["wait"] = partial(self.wait, stop)

    def ring(self) -> None:
        """Say that something has happened, or that somebody is to stop."""
        with self._rung:
            self._until = monotonic() + AWAKE_SECONDS
            self._rung.notify_all()

    def wait(self, stop: threading.Event, timeout: float) -> bool:
        """Wait until it is time to look, or to stop; whether it is that."""
        with self._rung:
            if not threading.current_thread().name.startswith(_WORKER):
                self._rung.wait_for(stop.is_set, timeout)
            elif self._awake:
                self._rung.wait_for(stop.is_set, min(timeout / _OFTENER, _LONGEST_AWAKE))
            else:
                rung = partial(self._is_rung, stop)
                self._rung.wait_for(rung, min(timeout, self._longest))
        return stop.is_set()

    def _is_rung(self, stop: threading.Event) -> bool:
        return self._awake or stop.is_set()

    @property
    def _awake(self) -> bool:
        return monotonic() < self._until
