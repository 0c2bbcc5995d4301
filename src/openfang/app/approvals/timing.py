"""What is done for questions at its time: they are sent, and denied when nobody answered."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import anyio

from openfang.app.approvals.webhook import KIND, Hook
from openfang.app.timers import Again
from openfang.core.errors import OpenFangError
from openfang.storage.approvals import EXPIRY, expire_by
from openfang.storage.units import Unit

if TYPE_CHECKING:
    from openfang.app.parts import Parts
    from openfang.storage.timers import Timer

_log = logging.getLogger("openfang.approvals")
_SECOND: Final = 1_000_000_000
_BETWEEN_TRIES: Final = 5.0


async def watch_approvals(parts: Parts) -> None:
    """Have both done by the one loop of the node; what is overdue already at once."""
    parts.timers.register(KIND, Hook(parts).deliver)
    parts.timers.register(EXPIRY, Expiry(parts).look)
    while True:
        try:
            await parts.writer.write(Unit(statements=(expire_by(parts.clock.time_ns()),)))
        except OpenFangError as error:  # a full disk, a locked database: until it passes
            _log.warning("What nobody answered waits: %s", error.message)
            await anyio.sleep(_BETWEEN_TRIES)
        else:
            return parts.timers.wake()


class Expiry:
    """Denies what nobody answered in time, on record, whether anybody looks or not."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def look(self, _: Timer) -> Again:
        """Deny what is overdue; come again when the next one is."""
        clock = self._parts.clock
        until = await self._parts.approvals.expire(clock.time_ns())
        return Again(max(0.0, (until - clock.time_ns()) / _SECOND))
