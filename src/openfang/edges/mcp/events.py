"""Server-sent events on their way out; on a stream with a name, so that it can be taken up again.

A client that lost its connection goes on after the last event that it saw: `{stream}-{number}`, and
on the stream of a request also what that was, for when nobody knows the stream any more.
"""

from __future__ import annotations

import asyncio
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import orjson

from openfang.protocols.mcp.messages import read_id

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from openfang.protocols.mcp.messages import Id

MOST: Final = 256
MOST_BYTES: Final = 1_000_000
KEEP_ALIVE: Final = b": still here\n\n"
_RETRY_MILLISECONDS: Final = 1000
_LONGEST: Final = 400
_ID = re.compile(rf"([0-9]{{1,18}})-([0-9]{{1,18}})(?:-([A-Za-z0-9_-]{{1,{_LONGEST}}}))?")


class _Event(NamedTuple):
    number: int
    text: bytes
    notice: bool


class Events:
    """One stream. What was sent stays if the stream has a name, as far as there is room.

    When there is too much, the oldest goes that was sent or can be spared, but never the newest.
    Whoever began to read it last has it to itself. `answers` are the requests that it is for; the
    numbers of its events go on after `last`.
    """

    __slots__ = (
        "_end_of_id",
        "_events",
        "_last",
        "_reader",
        "_wake",
        "ended",
        "name",
        "sent",
        "size",
    )

    def __init__(self, name: str = "", answers: Sequence[Id] = (), *, last: int = 0) -> None:
        self.name = name
        self.ended = False
        self.size = 0
        self.sent = last
        self._last = last
        self._end_of_id = _written(answers)
        self._events: deque[_Event] = deque()
        self._reader: object = None
        self._wake: asyncio.Future[bool] | None = None

    @property
    def count(self) -> int:
        """How many events are kept."""
        return len(self._events)

    @property
    def unread(self) -> bool:
        """Whether there is anything that was never sent."""
        return self.sent < self._last

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
        return b"%b-%d%b" % (self.name.encode(), self._last, self._end_of_id)

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


class Seen(NamedTuple):
    """The event that a client saw last: on which stream, and for which requests that is."""

    stream: str
    number: int
    answers: Sequence[Id] = ()


def _written(answers: Sequence[Id]) -> bytes:
    """Write the end of an id; requests that are named at too great a length are not in it."""
    if not answers:
        return b""
    text = urlsafe_b64encode(orjson.dumps(list(answers))).rstrip(b"=")
    return b"-%b" % text if len(text) <= _LONGEST else b""


def read_event_id(text: str) -> Seen | None:
    """Read what a client saw last; nothing if we never wrote that."""
    found = _ID.fullmatch(text)
    answers = _read(found[3]) if found and found[3] else ()
    return Seen(found[1], int(found[2]), answers) if found and answers is not None else None


def _read(text: str) -> Sequence[Id] | None:
    """Read for which requests a stream is."""
    try:
        known: Any = orjson.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except ValueError:
        return None
    if not isinstance(known, list):
        return None
    ids = [read_id(one) for one in cast("list[object]", known)]
    return [one for one in ids if one is not None]
