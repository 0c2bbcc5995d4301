"""What a process left: its calls get their ending on record, and what it had taken is due."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Final

import orjson

from openfang.core.errors import Conflict
from openfang.core.events import TOOL_INVOCATION_END, Record
from openfang.core.results import Outcome
from openfang.storage import timers
from openfang.storage.log import open_calls
from openfang.storage.units import TIMERS

if TYPE_CHECKING:
    from openfang.app.parts import Parts
    from openfang.storage.processes import Vanished

_INTERRUPTED: Final = "the process ended before the call did"


async def end_interrupted(parts: Parts) -> int:
    """Give every call of a vanished process of this home its ending."""
    count, process = 0, parts.broker.process
    async with aclosing(process.roll.vanished(parts.database, me=process.id)) as others:
        async for gone in others:
            count += await end_calls_of(parts, gone) or 0
    return count


async def end_calls_of(parts: Parts, gone: Vanished) -> int | None:
    """End the calls of one that is gone, and say how many; none if somebody else was faster."""
    broker = parts.broker
    await broker.process.roll.fence(gone.id)
    endings = [
        _interrupted(call_id, task_id, context)
        for call_id, task_id, context in await open_calls(parts.database, gone)
    ]
    closing = broker.process.roll.closing(gone, broker.low_water)
    due = timers.release(gone.id, parts.clock.time_ns())
    try:
        await broker.append(endings, (*closing, due), (TIMERS,))
    except Conflict:
        return None
    parts.timers.wake()
    broker.process.known = broker.process.known or len(closing) > 1
    return len(endings)


def _interrupted(call_id: str, task_id: str, context: str) -> Record:
    return Record(
        event=TOOL_INVOCATION_END,
        level="error",
        call_id=call_id,
        task_id=task_id,
        payload={"outcome": Outcome.INTERRUPTED.value, "reason": _INTERRUPTED},
        context=orjson.loads(context),
    )
