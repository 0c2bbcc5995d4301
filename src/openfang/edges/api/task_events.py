"""A task told as a stream of events: as it is, then all that happens to it, until it has ended.

What goes wrong on the way is its last event. While nothing happens a comment says so now and then.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AbstractContextManager, aclosing
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio
import orjson

from openfang.core.bodies import failure_body, problem_body
from openfang.core.errors import CallFailed, OpenFangError
from openfang.core.task_wire import seen_body, seen_name
from openfang.edges.api.exchange import Stream
from openfang.edges.api.progress import EVENTS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from openfang.core.tasks import Seen

Item: TypeAlias = "Seen | OpenFangError"
Told: TypeAlias = "MemoryObjectReceiveStream[Item]"

_log = logging.getLogger("openfang.tasks")
_UNREAD: Final = 16
_LOOK_SECONDS: Final = 1.0
_BEAT_SECONDS: Final = 15.0
_BEAT: Final = b": still at it\n\n"


class _Silence:
    """Nothing was told for a while."""


async def task_stream(
    watch: AsyncGenerator[Seen],
    place: AbstractContextManager[None],
    still: Callable[[], bool],
    *,
    beat: float = _BEAT_SECONDS,
) -> Stream:
    """Answer with what is told of a task, for as long as the caller may hear it.

    If there is no such task, or no `place` for one more stream, that is raised and not told.
    """
    pieces = _pieces(watch, place, still, beat)
    await anext(pieces)
    return Stream(pieces=pieces, content_type=EVENTS)


async def _pieces(
    watch: AsyncGenerator[Seen],
    place: AbstractContextManager[None],
    still: Callable[[], bool],
    beat: float,
) -> AsyncGenerator[bytes]:
    tell, told = anyio.create_memory_object_stream["Item"](_UNREAD)
    with tell, told, place:
        pump = asyncio.ensure_future(_pump(watch, tell))
        try:
            seen = await _next(told)
            if isinstance(seen, OpenFangError):
                raise seen
            yield b""  # from here on the answer is a stream, and who closes it closes all of this
            async for piece in _written(seen, told, still, beat):
                yield piece
        finally:
            pump.cancel()
            await asyncio.wait((pump,))


async def _written(
    item: Item | _Silence | None, told: Told, still: Callable[[], bool], beat: float
) -> AsyncGenerator[bytes]:
    look, silent = min(_LOOK_SECONDS, beat), 0.0
    while item is not None and still():
        if not isinstance(item, _Silence):
            silent = 0.0
            yield _event(item)
        elif (silent := silent + look) >= beat:
            silent = 0.0
            yield _BEAT
        item = await _next(told, look)


async def _next(told: Told, seconds: float | None = None) -> Item | _Silence | None:
    """Wait for what is told next; nothing: that was all."""
    with anyio.move_on_after(seconds):
        try:
            return await told.receive()
        except anyio.EndOfStream:
            return None
    return _Silence()


async def _pump(watch: AsyncGenerator[Seen], tell: MemoryObjectSendStream[Item]) -> None:
    """Watch in one task from beginning to end; who does not read is waited for."""
    with tell:
        try:
            async with aclosing(watch):
                async for seen in watch:
                    await tell.send(seen)
        except OpenFangError as error:
            await tell.send(error)
        except Exception:  # noqa: BLE001 - a mistake of ours: whoever waits hears that there was one
            _log.exception("A task could not be watched any longer")
            await tell.send(OpenFangError("Something broke while the task was watched."))


def _event(seen: Item) -> bytes:
    match seen:
        case CallFailed():
            name, body = "failure", failure_body(seen)
        case OpenFangError():
            name, body = "problem", problem_body(seen)
        case _:
            name, body = seen_name(seen), seen_body(seen)
    return b"event: %b\ndata: %b\n\n" % (name.encode(), orjson.dumps(body))
