"""One request and its response, and what becomes of an app that fails."""

from __future__ import annotations

import asyncio
import logging
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from openfang.host.refusals import INTERNAL, STOPPING, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from uvicorn._types import ASGI3Application, ASGISendEvent

LOG: Final = logging.getLogger("openfang.server")
_FOREIGN_IN_NAME: Final = re.compile(rb"[^!#$%&'*+\-.^_`|~0-9a-z]")
_FOREIGN_IN_VALUE: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_OF_THE_FRAME: Final = frozenset({b"content-length", b"transfer-encoding", b"connection"})
_WITHOUT_BODY: Final = frozenset({204, 304})


@lru_cache(maxsize=1024)
def _line(name: bytes, value: bytes) -> bytes:
    """Write one header, its name in small letters; most are the same in every answer."""
    if not name or _FOREIGN_IN_NAME.search(name) or _FOREIGN_IN_VALUE.search(value):
        raise RuntimeError(f"A header that cannot be sent: {name!r}.")
    return b"%b: %b\r\n" % (name, value)


class Exchange(RequestResponseCycle):
    """Runs the app for one request. `disconnected` means that nobody listens to it any more."""

    _head: bytes | None = None

    async def send(self, message: ASGISendEvent) -> None:
        """Hold the head back until there is something to send with it: they are one packet."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if message["type"] == "http.response.start":
            self._begin(message["status"], message.get("headers", ()))
        elif message["type"] == "http.response.body":
            self._go_on(message.get("body", b""), more=message.get("more_body", False))
        else:
            raise RuntimeError(f"{message['type']} is no part of an answer.")

    def _begin(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        if self._head is not None or self.response_started:
            raise RuntimeError("The answer has begun already.")
        lines = [STATUS_LINE[status]]
        for name, value in (*self.default_headers, *headers):
            lines.append(_line(name, value))
            if name in _OF_THE_FRAME:
                self._frame(name, value)
        if not self.keep_alive:
            lines.append(b"connection: close\r\n")
        bodiless = status in _WITHOUT_BODY or self.scope["method"] == "HEAD"
        if self.chunked_encoding is None and not bodiless:
            self.chunked_encoding = True
            lines.append(b"transfer-encoding: chunked\r\n")
        lines.append(b"\r\n")
        self._head = b"".join(lines)

    def _frame(self, name: bytes, value: bytes) -> None:
        """Take from the head how the body is framed; only we end connections."""
        if name != b"content-length":
            raise RuntimeError(f"{name.decode()} is not the app's to say.")
        self.expected_content_length = int(value)
        self.chunked_encoding = False

    def _go_on(self, body: bytes, *, more: bool) -> None:
        head, self._head = self._head, None
        if self.response_complete or (head is None and not self.response_started):
            raise RuntimeError("There is no answer that this would be a part of.")
        piece = self._framed(body, more=more)
        self.response_started = True
        self.waiting_for_100_continue = False
        if head or piece:
            self.transport.write(head + piece if head else piece)
        if not more:
            self._complete()

    def _framed(self, body: bytes, *, more: bool) -> bytes:
        if self.scope["method"] == "HEAD":
            self.expected_content_length = 0
            return b""
        if self.chunked_encoding:
            chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            return chunk if more else chunk + b"0\r\n\r\n"
        self.expected_content_length -= len(body)
        if self.expected_content_length < 0:
            raise RuntimeError("The answer is longer than its Content-Length.")
        return body

    def _complete(self) -> None:
        if self.expected_content_length:
            raise RuntimeError("The answer is shorter than its Content-Length.")
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()

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
