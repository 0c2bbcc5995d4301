"""What a daemon does for schedules: it sees to those that are due, once it has its agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio

from openfang.app.agents.holders import TRIGGER
from openfang.app.schedules.clock import plan_anew
from openfang.app.schedules.due import Due
from openfang.app.schedules.triggers import Triggered, over
from openfang.storage.schedules import KIND

if TYPE_CHECKING:
    from openfang.app.parts import Parts

_LOOK_SECONDS: Final = 60.0


async def watch_schedules(parts: Parts) -> None:
    """Take part in the one loop, once runs that were interrupted are known to go on or not."""
    if parts.agents is None:
        return
    agents = await parts.agents.opened()
    await agents.recovered.wait()
    await parts.broker.append([], (over(),))
    await plan_anew(parts)
    parts.timers.register(KIND, Due(parts, agents).run)
    parts.timers.register(TRIGGER, Triggered(parts, agents).run)
    while True:
        await anyio.sleep(_LOOK_SECONDS)
        await plan_anew(parts)
