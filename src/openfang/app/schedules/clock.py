"""A clock that was ahead and is put right: what was planned by it would be silent until then."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from openfang.app.schedules.due import when_of
from openfang.core.errors import OpenFangError
from openfang.storage import schedules, timers
from openfang.storage.schedules import ScheduleStore
from openfang.storage.units import TIMERS

if TYPE_CHECKING:
    from openfang.app.parts import Parts
    from openfang.core.schedules import Schedule

_SLACK: Final = 60_000_000_000
_log = logging.getLogger("openfang.schedules")


async def plan_anew(parts: Parts) -> None:
    """Plan what was seen to at a time that is yet to come; the same moment is not run twice."""
    now = parts.clock.time_ns()
    for schedule in await ScheduleStore(parts.database).ahead_of(now + _SLACK):
        try:
            await _plan(parts, schedule, now)
        except OpenFangError as error:  # it is looked at again in a minute
            _log.warning("%s is not planned anew: %s", schedule.id, error.message)


async def _plan(parts: Parts, schedule: Schedule, now: int) -> None:
    due = (await when_of(schedule)).next_after(now)
    if due is None or due >= schedule.due:
        return
    after = replace(schedule, due=due)
    plan = timers.replace(schedules.timer(after, due))
    await parts.broker.append([], (schedules.change(schedule, after), plan), (TIMERS,))
    parts.timers.wake()
