"""HTTP+SSE of 2024-11-05: one GET whose stream brings all messages, and an address to POST to."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio

from openfang.protocols.mcp import messages
from openfang.protocols.mcp.errors import RpcError
from openfang.protocols.mcp.headers import VERSION
from openfang.protocols.mcp.sse import EventReader
from openfang.safety.urls import AddressRefused, follow_reference, parse_target
from openfang.sources.mcp.dialogue import Carrier
from openfang.sources.mcp.transport import LOG, Errand, Lost, NotSpoken, Peer, owned_tasks
from openfang.sources.mcp.wire import (
    EVENTS,
    JSON,
    Wire,
    check_status,
    check_stream,
    has_body,
    media_type,
    read_events,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from anyio.abc import TaskGroup

    from openfang.host.http import Streaming
    from openfang.protocols.mcp.sse import Event
    from openfang.sources.mcp.spec import Http
    from openfang.sources.mcp.wire import Asks

_ENDPOINT_SECONDS: Final = 10.0
_MAX_RECEIPT: Final = 1 << 20


class SseTransport(Carrier):
    """One server, and the stream that it speaks on."""

    kind = "sse"
    mirrors = False

    def __init__(self, wire: Wire, peer: Peer, tasks: TaskGroup) -> None:
        super().__init__(peer, tasks, self._post)
        self.wire = wire
        self._tasks = tasks
        self._endpoint = ""
        self._ready = anyio.Event()
        self._failed: Lost | None = None
        self._version = ""

    def speak(self, version: str) -> None:
        """Send the header of this revision from now on."""
        self._version = version

    async def connect(self) -> None:
        """Open the stream and wait for the address to send to."""
        self._tasks.start_soon(self._stream)
        with anyio.move_on_after(_ENDPOINT_SECONDS):
            await self._ready.wait()
        if self._failed is not None:
            raise self._failed
        if not self._endpoint:
            raise NotSpoken(f"{self.wire.shown} named no endpoint in {_ENDPOINT_SECONDS:g} s")

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        *,
        errand: Errand | None = None,
        headers: Mapping[str, str] | None = None,  # noqa: ARG002 - none are mirrored in this revision
    ) -> dict[str, Any]:
        """Ask by a POST; the answer comes on the stream."""
        waiting = self._dialogue.begin(method, errand)
        try:
            line = waiting.line(params)
            waiting.sent = True
            with waiting.exchange():
                await self._post(line)
            return await waiting.future
        except asyncio.CancelledError:
            line = waiting.cancellation()
            if line is not None and not self.reason:
                self._tasks.start_soon(self._send_quietly, line)
            raise
        finally:
            self._dialogue.finish(waiting)

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Tell the server something."""
        await self._post(messages.notification(method, params))

    def leave(self) -> None:
        """Fail what is under way: the stream is about to be closed."""
        self._dialogue.lose("The connection was closed")

    async def _post(self, line: bytes) -> None:
        headers = {"Accept": JSON, "Content-Type": JSON}
        if self._version:
            headers[VERSION] = self._version
        async with self.wire.send("POST", headers, line, self._endpoint) as answer:
            await check_status(answer)
            if has_body(answer):
                await self._read_receipt(answer)

    async def _read_receipt(self, answer: Streaming) -> None:
        """Most say "Accepted" in words of their own; some give the answer right here."""
        body = await answer.whole(_MAX_RECEIPT)
        if media_type(answer) == JSON and body:
            self._hear(body)

    async def _send_quietly(self, line: bytes) -> None:
        try:
            await self._post(line)
        except (Lost, RpcError) as error:
            LOG.debug("A cancellation was not taken: %s", error)

    async def _stream(self) -> None:
        try:
            await self._read()
        except Lost as lost:
            self._end(lost)
        else:
            self._end(Lost(f"{self.wire.shown} ended its stream"))

    def _end(self, error: Lost) -> None:
        if not self._ready.is_set():
            self._failed = error
            self._ready.set()
        self._dialogue.lose(error.reason)

    async def _read(self) -> None:
        async with self.wire.send("GET", {"Accept": EVENTS}) as answer:
            check_stream(answer)
            reader = EventReader()
            while (events := await read_events(answer, reader)) is not None:
                for event in events:
                    self._take(event, answer.url)

    def _take(self, event: Event, url: str) -> None:
        if event.name == "endpoint" and not self._endpoint:
            self._endpoint = self._checked(event.data, url)
            self._ready.set()
        elif event.name == "message" and event.data:
            self._hear(event.data)

    def _checked(self, reference: bytes, url: str) -> str:
        """Send to nobody but the server itself: what is sent may hold its credentials."""
        base = parse_target(url)
        try:
            target = follow_reference(base, reference.decode(errors="replace").strip())
        except AddressRefused as refused:
            raise NotSpoken(f"{url} names an endpoint that is none: {refused.message}") from refused
        if target.origin != base.origin:
            raise NotSpoken(f"{url} names an endpoint of another server, {target.url}")
        return target.url

    def _hear(self, data: bytes) -> None:
        message = messages.salvage(data)
        if message is None:
            LOG.debug("%s sent an event that is not JSON", self.wire.shown)
        else:
            self._dialogue.heard(message)


@asynccontextmanager
async def open_sse(http: Asks, reached: Http, peer: Peer) -> AsyncGenerator[SseTransport]:
    """Hold a connection to a server of the first revision."""
    async with owned_tasks() as tasks:
        transport = SseTransport(Wire(http, reached), peer, tasks)
        await transport.connect()
        try:
            yield transport
        finally:
            transport.leave()
