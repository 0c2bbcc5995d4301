"""A task of the first dialect as a stream: the whole task, again with each of its states."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import orjson

from openfang.core.errors import OpenFangError
from openfang.core.tasks import Spoken, Task
from openfang.edges.a2a.pump import Pump
from openfang.edges.a2a.seed_words import enveloped, failure
from openfang.edges.api.serving import go_on
from openfang.edges.api.watch import Watch
from openfang.protocols.a2a.seed import write_task

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from openfang.core.tasks import Seen
    from openfang.edges.a2a.seed_words import Number
    from openfang.edges.a2a.staying import Stay, Staying
    from openfang.edges.api.mount import Came


async def stream(staying: Staying, came: Came, seen: AsyncGenerator[Seen], number: Number) -> None:
    """Tell a task until it has ended or waits for its caller; then the stream ends as well."""
    watch = Watch(came.receive)
    try:
        with staying.stream(came) as stay:
            await _told(came, seen, number, stay)
    except asyncio.CancelledError:
        if not watch.gone:
            raise
    finally:
        watch.end()


async def _told(came: Came, seen: AsyncGenerator[Seen], number: Number, stay: Stay) -> None:
    pump = Pump(came)
    stay.beat = pump.ping
    try:
        await _tell(pump, seen, number, stay)
    except asyncio.CancelledError:
        if not stay.ended:
            raise
        go_on()
    except OpenFangError as error:
        if not pump.begun:
            raise
        if came.node.ready:
            await pump.write(failure(number, error).body)
    finally:
        pump.leave()
    await pump.end()


async def _tell(pump: Pump, seen: AsyncGenerator[Seen], number: Number, stay: Stay) -> None:
    # Closed at once: who has gone must not be told until the garbage collector comes by.
    async with aclosing(seen):
        async for one in seen:
            if not isinstance(one, Task) and isinstance(one.what, Spoken):
                continue
            task = one if isinstance(one, Task) else one.task
            stay.silent = 0.0
            await pump.write(orjson.dumps(enveloped(number, write_task(task))).decode())
            if task.state.resting:
                return
