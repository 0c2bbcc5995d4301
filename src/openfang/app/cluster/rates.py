"""Rates over several nodes: what each of them lets pass is told to the others once a second.

A call asks its own node alone. Where w is the time in which a burst comes back, P the second
between two exchanges and N the number of nodes, all together let pass, in any T seconds, at most
what comes back in T + N * (w + P) seconds; one node alone, T + w. What is let pass above the rate
is owed, and nobody passes anywhere until it has come back: in the long run the rate is kept.
"""

from __future__ import annotations

import logging
import random
from dataclasses import field
from typing import TYPE_CHECKING, Final

import anyio

from openfang.core.errors import OpenFangError
from openfang.core.values import dataclass
from openfang.storage.postgres.rates import Told, add, drop_paid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.ports import Clock
    from openfang.guard.rate import Limiter, Use
    from openfang.storage.postgres.database import PostgresStorage

EVERY: Final = 1.0
"""Seconds between two exchanges."""
NODES: Final = 32
"""So many windows may be owed: as many as nodes that let pass a whole burst at one moment."""
AT_ONCE: Final = 10_000
_SOON: Final = 0.02
_PAID: Final = 60.0
_BETWEEN: Final = "/"
_log = logging.getLogger("openfang.cluster")
_CHANCE: Final = random.Random()  # noqa: S311 - it spreads load, it keeps no secret


@dataclass(slots=True, kw_only=True)
class Rates:
    """Shares the limiters of a node, each under a name of its own."""

    storage: PostgresStorage
    clock: Clock
    limiters: Mapping[str, Limiter]
    _dropped: float = field(init=False)
    _failing: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self._dropped = self.clock.monotonic()
        for limiter in self.limiters.values():
            limiter.share(windows=NODES)

    async def run(self) -> None:
        """Exchange until cancelled. Without a database each node goes on with what it knows."""
        wait = EVERY
        while True:
            await anyio.sleep(wait)
            try:
                done = await self.exchange()
            except OpenFangError as error:
                self._tell(error)
                wait = EVERY
            else:
                self._failing = False
                wait = EVERY if done else _CHANCE.uniform(_SOON, 2 * _SOON)

    def _tell(self, error: OpenFangError) -> None:
        if not self._failing:
            _log.warning("Rates are not shared for now: %s", error.message)
        self._failing = True

    async def exchange(self) -> bool:
        """Tell what was used here and hear what all owe; false if it is another node's turn."""
        uses = {name: limiter.uses() for name, limiter in self.limiters.items()}
        heard: Mapping[str, float] | None = None
        then = self.clock.monotonic()
        told = [
            _told(f"{name}{_BETWEEN}{key}", use, then)
            for name, used in uses.items()
            for key, use in used.items()
        ][:AT_ONCE]
        try:
            heard = await add(self.storage, told) if told else {}
        finally:
            self._keep(uses, {one.subject for one in told} if heard is not None else set())
        self._hear(heard or {}, then)
        if then - self._dropped >= _PAID:
            self._dropped = then
            await drop_paid(self.storage)
        return heard is not None

    def _keep(self, uses: dict[str, dict[str, Use]], told: set[str]) -> None:
        """Keep for the next time what nobody was told of."""
        for name, used in uses.items():
            left = {key: use for key, use in used.items() if f"{name}{_BETWEEN}{key}" not in told}
            if left:
                self.limiters[name].untold(left)

    def _hear(self, heard: Mapping[str, float], then: float) -> None:
        for subject, debt in heard.items():
            name, _, key = subject.partition(_BETWEEN)
            self.limiters[name].hear(key, debt, then)


def _told(subject: str, use: Use, now: float) -> Told:
    return Told(subject, use.seconds, now - use.since, use.window * NODES)
