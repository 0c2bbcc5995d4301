"""What is done for tasks at its time: notifications, and the end of those that got stuck."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from openfang.app.timers import Again
from openfang.storage.pushes import KIND
from openfang.storage.timers import Timer

if TYPE_CHECKING:
    from openfang.app.a2a.delivery import Delivery
    from openfang.app.timers import Handler, Timers
    from openfang.core.ports import Clock

TASKS: Final = "tasks"
_SECOND: Final = 1_000_000_000


class Expiring(Protocol):
    """Something that has to be looked through now and then."""

    async def expire(self, now: int) -> int:
        """End what has waited for too long; returns when to look again."""
        ...


async def register_task_timers(timers: Timers, service: Expiring, delivery: Delivery) -> None:
    """Have both done by this loop: what is stuck is looked for at once, and then when it says."""
    timers.register(KIND, delivery.deliver)
    timers.register(TASKS, _looking(service, timers.clock))
    now = timers.clock.time_ns()
    await timers.plan(Timer(id=TASKS, kind=TASKS, subject="", due=now))


def _looking(service: Expiring, clock: Clock) -> Handler:
    async def look(_: Timer) -> Again:
        until = await service.expire(clock.time_ns())
        return Again((until - clock.time_ns()) / _SECOND)

    return look
