"""A clock that was ahead and is put right: what was planned by it would be silent until then."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from openfang.app.schedules.due import when_of
from openfang.core.errors import OpenFangError
from openfang.storage import schedules, timers
from openfang.storage.schedules import ScheduleStore

if TYPE_CHECKING:
    from openfang.app.parts import Parts
    from openfang.core.schedules import Schedule

_SLACK: Final = 60_000_000_000
_log = logging.getLogger("openfang.schedules")


async def plan_anew(parts: Parts) -> None:
    """Plan what was seen to at a time that is yet to come; the same moment is not run twice."""
    now = parts.clock.time_ns()
    for schedule in ScheduleStore(parts.database).ahead_of(now + _SLACK):
        due = (await when_of(schedule)).next_after(now)
        if due is not None and due < schedule.due:
            await _move(parts, schedule, due)
    parts.timers.wake()


async def _move(parts: Parts, schedule: Schedule, due: int) -> None:
    after = replace(schedule, due=due)
    plan = timers.replace(schedules.timer(after, due))
    try:
        await parts.broker.append([], (schedules.change(schedule, after), plan))
    except OpenFangError as error:  # it is looked at again in a minute
        _log.warning("%s is not planned anew: %s", schedule.id, error.message)
