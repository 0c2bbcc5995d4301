"""Server-sent events on their way out; on a stream with a name, so that it can be taken up again.

A client that lost its connection goes on after the last event that it saw: `{stream}-{number}`.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

MOST: Final = 256
MOST_BYTES: Final = 1_000_000
KEEP_ALIVE: Final = b": still here\n\n"
_RETRY_MILLISECONDS: Final = 1000
_ID = re.compile(r"([0-9]{1,18})-([0-9]{1,18})")


class _Event(NamedTuple):
    number: int
    text: bytes
    notice: bool


class Events:
    """One stream. What was sent stays if the stream has a name, as far as there is room.

    When there is too much, the oldest goes that was sent or can be spared, but never the newest.
    Whoever began to read it last has it to itself.
    """

    __slots__ = ("_events", "_last", "_reader", "_wake", "ended", "name", "sent", "size")

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.ended = False
        self.size = 0
        self.sent = 0
        self._last = 0
        self._events: deque[_Event] = deque()
        self._reader: object = None
        self._wake: asyncio.Future[bool] | None = None

    @property
    def count(self) -> int:
        """How many events are kept."""
        return len(self._events)

    def prime(self) -> None:
        """Begin with an event that says nothing: from here on there is something to go on from."""
        self._last += 1
        self._keep(b"id: %b\nretry: %d\ndata: \n\n" % (self._id(), _RETRY_MILLISECONDS))

    def put(self, message: bytes, *, notice: bool = False) -> None:
        """Send a message; a notice can be spared."""
        self._last += 1
        id_line = b"id: %b\n" % self._id() if self.name else b""
        self._keep(b"%bevent: message\ndata: %b\n\n" % (id_line, message), notice=notice)

    def _id(self) -> bytes:
        return b"%b-%d" % (self.name.encode(), self._last)

    def _keep(self, text: bytes, *, notice: bool = False) -> None:
        self._events.append(_Event(self._last, text, notice))
        self.size += len(text)
        while len(self._events) > MOST or self.size > MOST_BYTES:
            if not self._drop_one():
                break
        self._look(some=True)

    def _drop_one(self) -> bool:
        for place, event in enumerate(self._events):
            if event.number != self._last and (event.notice or event.number <= self.sent):
                self.size -= len(event.text)
                del self._events[place]
                return True
        return False

    def end(self) -> None:
        """Say that nothing more comes."""
        self.ended = True
        self._look(some=True)

    def leave(self) -> None:
        """Let whoever reads it stop; it can be taken up again."""
        self._reader = None
        self._look(some=True)

    def forget(self) -> None:
        """Keep nothing of what was sent."""
        self._events.clear()
        self.size = 0

    async def send(
        self, write: Callable[[bytes], Awaitable[None]], *, after: int = 0, beat: float
    ) -> None:
        """Write everything after an event, until the stream ends or somebody else reads it.

        While there is nothing to say, that is said at once and with each beat.
        """
        reader = self._reader = object()
        self._look(some=True)
        silent = True
        while self._reader is reader:
            piece, after = self._after(after)
            if piece or silent:
                await write(piece or KEEP_ALIVE)
                silent = False
            elif self.ended:
                return
            else:
                silent = not await self._more(beat)

    def _after(self, number: int) -> tuple[bytes, int]:
        found = [event for event in self._events if event.number > number]
        if not found:
            return b"", number
        if not self.name:
            self.forget()
        self.sent = max(self.sent, found[-1].number)
        return b"".join(event.text for event in found), found[-1].number

    async def _more(self, seconds: float) -> bool:
        """Wait for something to happen, but not for longer."""
        loop = asyncio.get_running_loop()
        self._wake = loop.create_future()
        timer = loop.call_later(seconds, self._look)
        try:
            return await self._wake
        finally:
            timer.cancel()

    def _look(self, *, some: bool = False) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(some)


def read_event_id(text: str) -> tuple[str, int] | None:
    """Read the stream and the number that a client saw last; nothing if we never wrote that."""
    found = _ID.fullmatch(text)
    return (found[1], int(found[2])) if found else None
