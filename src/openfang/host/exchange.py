"""One request and its response, and what becomes of an app that fails."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, cast

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from openfang.host.refusals import INTERNAL, STOPPING, Refusal

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application, ASGISendEvent, HTTPResponseStartEvent

LOG: Final = logging.getLogger("openfang.server")


class _Joined:
    """A connection whose first piece waits for the second: a head and its body are one packet."""

    __slots__ = ("_connection", "_first", "close", "is_closing")

    def __init__(self, connection: asyncio.Transport) -> None:
        self._connection = connection
        self._first: bytes | None = None
        self.close = connection.close
        self.is_closing = connection.is_closing

    def write(self, piece: bytes) -> None:
        if self._first is None:
            self._first = piece
        else:
            self._connection.write(self._first + piece)


class Exchange(RequestResponseCycle):
    """Runs the app for one request. `disconnected` means that nobody listens to it any more."""

    _head: HTTPResponseStartEvent | None = None

    async def send(self, message: ASGISendEvent) -> None:
        """Hold the head back until there is something to send with it."""
        if message["type"] == "http.response.start" and not self.response_started:
            if self._head is not None:
                raise RuntimeError("The answer has begun already.")
            self._head = message
            return
        head, self._head = self._head, None
        if head is None:
            await super().send(message)
        elif self.scope["method"] == "HEAD":
            await super().send(head)
            await super().send(message)
        else:
            await self._send_joined(head, message)

    async def _send_joined(self, head: HTTPResponseStartEvent, message: ASGISendEvent) -> None:
        connection = self.transport
        self.transport = cast("asyncio.Transport", _Joined(connection))
        try:
            await super().send(head)
            await super().send(message)
        finally:
            self.transport = connection

    async def run_asgi(self, app: ASGI3Application) -> None:
        """Run the app, and answer in its place when it does not."""
        try:
            await app(self.scope, self.receive, self.send)
        except asyncio.CancelledError as error:
            if not _is_being_cancelled():
                self._failed(error)
                return
            self._give_up(STOPPING)
            raise
        except Exception as error:  # noqa: BLE001 - other people's code
            self._failed(error)
        else:
            self._ended()

    def refuse(self, refusal: Refusal) -> None:
        """Answer in the app's place, for the last time on this connection."""
        self.response_started = self.response_complete = True
        self.keep_alive = False
        self.message_event.set()
        with_body = self.scope["method"] != "HEAD"
        self.transport.write(refusal.answer(self.default_headers, with_body=with_body))
        self.transport.close()
        self.on_response()

    def _failed(self, error: BaseException) -> None:
        if self.disconnected:
            kind = type(error).__name__
            LOG.info("%s: the client had gone when the app raised %s", self._name(), kind)
            return
        LOG.error("%s: the app failed", self._name(), exc_info=error)
        self._give_up(INTERNAL)

    def _ended(self) -> None:
        if not self.response_complete and not self.disconnected:
            LOG.error("%s: the app ended without an answer", self._name())
            self._give_up(INTERNAL)

    def _give_up(self, refusal: Refusal) -> None:
        """Tell the client, or cut an answer that has begun, so that it is not taken for whole."""
        if self.response_complete or self.disconnected:
            return
        if self.response_started:
            self.transport.close()
        else:
            self.refuse(refusal)

    def _name(self) -> str:
        return f"{self.scope['method']} {self.scope['raw_path']!r}"


def _is_being_cancelled() -> bool:
    """Whether somebody cancels this request, and not the app something of its own."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
