"""One stream on the wire: what the library tells, as server-sent events, until it ends.

While nothing is told, that is said now and then, so that nobody in between takes it for dead.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from openfang.edges.a2a.sdk import EventSourceResponse
    from openfang.edges.api.exchange import Send
    from openfang.edges.api.mount import Came

Piece: TypeAlias = "Mapping[str, str] | str | bytes"

_TYPE: Final = (b"content-type", b"text/event-stream; charset=utf-8")
_UNBUFFERED: Final = (b"x-accel-buffering", b"no")
_NO_STORE: Final = (b"cache-control", b"no-store")
_NO_SNIFF: Final = (b"x-content-type-options", b"nosniff")
_STILL_HERE: Final = b": still here\n\n"


class Pump:
    """The writing end. Its answer begins with the first event; `fill` completes what it says."""

    __slots__ = ("_came", "_fill", "_headers", "_pings", "_send")

    def __init__(
        self,
        came: Came,
        headers: tuple[tuple[bytes, bytes], ...] = (),
        fill: Callable[[bytes], bytes] = bytes,
    ) -> None:
        self._came = came
        self._fill = fill
        self._headers = headers
        self._send: Send | None = None
        self._pings: set[asyncio.Task[None]] = set()

    @property
    def begun(self) -> bool:
        """Whether anything has been sent."""
        return self._send is not None

    async def write(self, piece: Piece) -> None:
        """Send one event."""
        await self._write(_framed(piece, self._fill))

    def leave(self) -> None:
        """Say nothing more by itself."""
        for ping in self._pings:
            ping.cancel()

    async def end(self) -> None:
        """End the answer."""
        send = self._send or await self._begin()
        await send({"type": "http.response.body", "body": b""})

    def ping(self) -> None:
        """Say that it is still there, unless it still says so."""
        if self.begun and not self._pings:
            ping = asyncio.ensure_future(self._write(_STILL_HERE))
            self._pings.add(ping)
            ping.add_done_callback(self._pinged)

    def _pinged(self, ping: asyncio.Task[None]) -> None:
        self._pings.discard(ping)
        if not ping.cancelled():
            ping.exception()  # who has gone is noticed by who serves it

    async def _write(self, body: bytes) -> None:
        send = self._send or await self._begin()
        await send({"type": "http.response.body", "body": body, "more_body": True})

    async def _begin(self) -> Send:
        send = self._send = self._came.begin(200)
        headers = [_TYPE, _UNBUFFERED, _NO_STORE, _NO_SNIFF, *self._headers, *self._came.left()]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        return send


def _framed(piece: Piece, fill: Callable[[bytes], bytes]) -> bytes:
    """Frame one event; what is told is JSON, and so one line."""
    match piece:
        case bytes():
            return b"data: %b\n\n" % piece
        case str():
            kind, data = None, piece
        case _:
            kind, data = piece.get("event"), piece["data"]
    named = f"event: {kind}\n".encode() if kind else b""
    return b"%bdata: %b\n\n" % (named, fill(data.encode()))


def pieces_of(response: EventSourceResponse) -> AsyncGenerator[Piece]:
    """Take what the library would have sent itself."""
    return cast("Any", response).body_iterator


def error_event(payload: Mapping[str, object]) -> dict[str, str]:
    """Say what went wrong in the middle of a stream."""
    return {"event": "error", "data": json.dumps(payload, ensure_ascii=False)}
