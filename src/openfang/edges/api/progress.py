"""A call that is heard of on its way: once it has told anything, its answer is a stream.

Events are those of `core.telling`, any number of them, and at last one of `result`, `failure` and
`problem`, whose data is the body that would have been the whole answer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

import orjson

from openfang.core.agents import Ended
from openfang.core.errors import OpenFangError
from openfang.core.progress import Progress
from openfang.core.telling import told_body, told_name
from openfang.edges.api.exchange import PROBLEM, Answer, Stream, problem
from openfang.edges.api.serving import go_on

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from openfang.core.progress import Listener, Told
    from openfang.edges.api.exchange import Headers

EVENTS: Final = b"text/event-stream"
_UNREAD: Final = 200
_UNREAD_BYTES: Final = 4_000_000
_BEAT_SECONDS: Final = 15.0
_BEAT: Final = b": still at it\n\n"


def wants_progress(headers: Headers) -> bool:
    """Whether the client can read a stream of events."""
    return EVENTS in headers.get(b"accept", b"")


async def streamed(make: Callable[[Listener], Awaitable[Answer]]) -> Answer | Stream:
    """Make a call, and answer when it ends or first tells anything."""
    told = _Told()
    call = asyncio.ensure_future(make(told.take))
    first = asyncio.ensure_future(told.some.wait())
    try:
        await asyncio.wait((call, first), return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        return await _cancelled(call)
    finally:
        first.cancel()
    if not told.some.is_set():
        return call.result()
    return Stream(pieces=_events(call, told), content_type=EVENTS)


def always_streamed(
    make: Callable[[Listener], Awaitable[Answer]], *, beat: float = _BEAT_SECONDS
) -> Stream:
    """Make a call when the stream is read: whatever becomes of it is an event.

    While nothing does, a comment now and then says that the connection is not dead.
    """
    return Stream(pieces=_from_the_start(make, beat), content_type=EVENTS)


async def _from_the_start(
    make: Callable[[Listener], Awaitable[Answer]], beat: float
) -> AsyncGenerator[bytes]:
    told = _Told()
    call = asyncio.ensure_future(make(told.take))
    async with aclosing(_events(call, told, beat)) as events:
        async for event in events:
            yield event


class _Told:
    """What was told and not sent yet.

    A client that is far behind misses some of it; the last events have the whole of what was said.
    """

    __slots__ = ("_events", "_size", "some")

    def __init__(self) -> None:
        self.some = asyncio.Event()
        self._events: deque[bytes] = deque()
        self._size = 0

    def take(self, one: Told) -> None:
        """Keep something until it is sent."""
        if isinstance(one, Progress) and len(self._events) >= _UNREAD:
            return
        event = _event(told_name(one).encode(), orjson.dumps(told_body(one)))
        if self._size + len(event) <= _UNREAD_BYTES or isinstance(one, Ended):
            self._events.append(event)
            self._size += len(event)
            self.some.set()

    def give(self) -> bytes:
        """All that is here, as it goes over the wire."""
        piece = b"".join(self._events)
        self._events.clear()
        self._size = 0
        self.some.clear()
        return piece


async def _cancelled(call: asyncio.Future[Answer]) -> Answer:
    """Cancel the call; one that has an answer nevertheless gives it."""
    call.cancel()
    answer = await call
    go_on()
    return answer


async def _events(
    call: asyncio.Future[Answer], told: _Told, beat: float = _BEAT_SECONDS
) -> AsyncGenerator[bytes]:
    try:
        while not call.done():
            await _more(call, told, beat)
            if not call.done():
                yield told.give() or _BEAT
        yield told.give() + _ending(call)
    except asyncio.CancelledError:
        yield _event(*_named(await _cancelled(call)))
    finally:
        call.cancel()


async def _more(call: asyncio.Future[Answer], told: _Told, beat: float) -> None:
    """Wait for a word or the end, but not for long."""
    word = asyncio.ensure_future(told.some.wait())
    try:
        await asyncio.wait((call, word), timeout=beat, return_when=asyncio.FIRST_COMPLETED)
    finally:
        word.cancel()


def _ending(call: asyncio.Future[Answer]) -> bytes:
    try:
        answer = call.result()
    except OpenFangError as error:
        answer = problem(error)
    return _event(*_named(answer))


def _named(answer: Answer) -> tuple[bytes, bytes]:
    if answer.content_type == PROBLEM:
        return b"problem", answer.body
    failed = any(name == b"openfang-failure" for name, _ in answer.headers)
    return b"failure" if failed else b"result", answer.body


def _event(name: bytes, data: bytes) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name, data.rstrip(b"\n"))
