"""The way back to a client that sent a POST: one JSON answer, unless something is told before.

Then it is a stream of events, of which the answer is the last.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from openfang.edges.api.exchange import Answer
from openfang.edges.api.staying import in_force
from openfang.edges.mcp.events import Events
from openfang.protocols.mcp.errors import INTERNAL_ERROR, RpcError
from openfang.protocols.mcp.messages import notification

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.edges.api.mount import Came

Headers: TypeAlias = tuple[tuple[bytes, bytes], ...]
EVENTS: Final = b"text/event-stream"
_JSON: Final = (b"application/json", b"application/*", b"*/*")
_HEAD: Final = (
    (b"content-type", EVENTS),
    (b"cache-control", b"no-store, no-transform"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-accel-buffering", b"no"),
)


def accepted(came: Came) -> bytes:
    """What the client says that it can read; some say it in two headers."""
    if len(came.raw) == len(came.headers):
        return came.headers.get(b"accept", b"").lower()
    return b",".join(value for name, value in came.raw if name == b"accept").lower()


@lru_cache(maxsize=64)
def _reads(accept: bytes) -> tuple[bool, bool]:
    """Whether a client reads streams of events, and whether it reads JSON."""
    return EVENTS in accept, any(kind in accept for kind in _JSON)


async def stream(
    came: Came,
    events: Events,
    *,
    after: int = 0,
    beat: float,
    headers: Headers = (),
) -> None:
    """Answer with a stream of events, until it ends."""
    send, head = came.begin(200), [*_HEAD, *headers, *came.left()]
    await send({"type": "http.response.start", "status": 200, "headers": head})

    async def write(piece: bytes) -> None:
        await send({"type": "http.response.body", "body": piece, "more_body": True})

    await events.send(write, after=after, beat=beat)
    await send({"type": "http.response.body", "body": b""})


class Reply:
    """One answer, and what is told before it.

    It is what a request is linked to its client by; this one can be asked nothing. After `silent`
    seconds it is a stream, if the client reads those; without a `beat` it never is.
    """

    __slots__ = (
        "_beat",
        "_came",
        "_only_streams",
        "_sending",
        "_timer",
        "events",
        "headers",
        "streams",
    )

    def __init__(self, came: Came, *, silent: float = 0.0, beat: float = 0.0) -> None:
        self.events: Events | None = None
        self.headers: Headers = ()
        self._came = came
        self._beat = beat
        self._sending: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        events, json = _reads(accepted(came))
        self.streams = beat > 0 and events
        self._only_streams = self.streams and not json
        if self.streams:
            self._timer = asyncio.get_running_loop().call_later(silent, self.begin)

    @property
    def hears(self) -> bool:
        """Whether the client reads what it is told, and may be told anything."""
        return self.streams and in_force(self._came)

    @property
    def open(self) -> bool:
        """Nobody can be asked over a single answer."""
        return False

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Tell the client something before the answer, if it can hear it."""
        if self.hears:
            self.begin().put(notification(method, params), notice=True)

    async def ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Refuse to ask."""
        del params
        raise RpcError(INTERNAL_ERROR, f"The client cannot be asked for {method}")

    def begin(self) -> Events:
        """Make a stream of it."""
        if self.events is None:
            self.events = self.stream()
            work = stream(self._came, self.events, beat=self._beat, headers=self.headers)
            self._sending = asyncio.ensure_future(work)
        return self.events

    def stream(self) -> Events:
        """Make the stream's events."""
        return Events()

    async def end(self, body: bytes, status: int = 200) -> None:
        """Give the answer. What is told of the request later is told to nobody."""
        if self._timer is not None:
            self._timer.cancel()
        if self._only_streams:
            self.begin()
        self.streams = False
        if self.events is None:
            await self._came.answer(Answer(body=body, status=status, headers=self.headers))
            return
        self.events.put(body)
        await self.finish()

    async def finish(self) -> None:
        """End the stream, and wait until everything has been sent."""
        if self.events is not None and self._sending is not None:
            self.events.end()
            await self._sending

    def close(self) -> None:
        """Leave nothing behind, however it ended."""
        self.streams = False
        if self._timer is not None:
            self._timer.cancel()
        if self._sending is not None:
            self._sending.cancel()
