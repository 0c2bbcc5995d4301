"""What a daemon does for schedules: it sees to those that are due, once it has its agents."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import anyio

from openfang.app.agents.holders import TRIGGER
from openfang.app.schedules.clock import plan_anew
from openfang.app.schedules.due import Due
from openfang.app.schedules.triggers import Triggered, over
from openfang.core.errors import OpenFangError
from openfang.storage.schedules import KIND

if TYPE_CHECKING:
    from openfang.app.agents.running import Agents
    from openfang.app.parts import Parts

_LOOK_SECONDS: Final = 60.0
_BETWEEN_TRIES: Final = 5.0
_log = logging.getLogger("openfang.schedules")


async def watch_schedules(parts: Parts) -> None:
    """Take part in the one loop, once runs that were interrupted are known to go on or not."""
    if parts.agents is None:
        return
    agents = await parts.agents.opened()
    await agents.recovered.wait()
    begun = False
    while True:
        try:
            await (plan_anew(parts) if begun else _begin(parts, agents))
            begun = True
        except OpenFangError as error:  # a full disk, a locked database: until it passes
            _log.warning("What is due waits: %s", error.message)
        await anyio.sleep(_LOOK_SECONDS if begun else _BETWEEN_TRIES)


async def _begin(parts: Parts, agents: Agents) -> None:
    await parts.broker.append([], (over(),))
    await plan_anew(parts)
    parts.timers.register(KIND, Due(parts, agents).run)
    parts.timers.register(TRIGGER, Triggered(parts, agents).run)
