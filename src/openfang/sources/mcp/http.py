"""Streamable HTTP: one POST a request, answered by JSON or by a stream of events.

In the modern era every request stands alone, and to hang up is to cancel. In the handshake era
there may be a session: the server's own messages come on a GET, streams that broke off are taken up
again where they ended, and a session that the server has forgotten is the end of the connection.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio import CancelScope

from openfang.protocols.mcp import messages
from openfang.protocols.mcp.errors import RpcError
from openfang.protocols.mcp.headers import LAST_EVENT, SESSION, VERSION, standard_headers
from openfang.protocols.mcp.sse import EventReader
from openfang.protocols.mcp.versions import is_modern
from openfang.sources.mcp.dialogue import Carrier, Waiting
from openfang.sources.mcp.transport import LOG, Errand, Lost, NotSpoken, Peer, owned_tasks
from openfang.sources.mcp.wire import (
    EVENTS,
    JSON,
    NOT_FOUND,
    Wire,
    check_status,
    check_stream,
    has_body,
    linger,
    media_type,
    read_events,
    read_failure,
    read_json,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from anyio.abc import TaskGroup

    from openfang.host.http import Streaming
    from openfang.sources.mcp.spec import Http
    from openfang.sources.mcp.wire import Asks

_ACCEPT: Final = {"Accept": f"{JSON}, {EVENTS}", "Content-Type": JSON}
_SESSION_ID = re.compile(r"[\x21-\x7e]{1,1024}")
_BAD_REQUEST: Final = 400
_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0
_DOUBLED: Final = 10
_LONGEST_RETRY: Final = 600.0
_BARREN_STREAMS: Final = 5
_GOODBYE: Final = 0.5
_OPENING: Final = 2.0


class StreamableTransport(Carrier):
    """One server at one address."""

    kind = "streamable"
    mirrors = True

    def __init__(self, wire: Wire, peer: Peer, tasks: TaskGroup) -> None:
        super().__init__(peer, tasks, self._reply)
        self.wire = wire
        self._tasks = tasks
        self._version = ""
        self._modern = False
        self._session = ""
        self._listening = anyio.Event()

    def speak(self, version: str) -> None:
        """Send the headers of this revision from now on."""
        self._version = version
        self._modern = is_modern(version)
        self._dialogue.serves = not self._modern

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        *,
        errand: Errand | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Ask by a POST of its own, and read what comes back on it."""
        waiting = self._dialogue.begin(method, errand)
        try:
            line = waiting.line(params)
            waiting.sent = True
            with waiting.exchange():
                await self._ask(waiting, line, {**self._headers(method, params), **(headers or {})})
            return await waiting.future
        except asyncio.CancelledError:
            self._withdraw(waiting)
            raise
        finally:
            self._dialogue.finish(waiting)

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Tell the server something, by a POST of its own."""
        await self._reply(messages.notification(method, params), self._headers(method, params))
        if method == "notifications/initialized":
            await self._begin_listening()

    async def leave(self) -> None:
        """Tell the server that the session is over."""
        held = self._session and not self.reason
        self._dialogue.lose("The connection was closed")
        if held:
            with CancelScope(shield=True), anyio.move_on_after(_GOODBYE):
                await self._end_session()

    async def _end_session(self) -> None:
        try:
            async with self.wire.send("DELETE", self._headers("", None)):
                pass
        except Lost as lost:
            LOG.debug("The session was not ended: %s", lost)

    def _headers(self, method: str, params: Mapping[str, Any] | None) -> dict[str, str]:
        if self._modern:
            return {**_ACCEPT, **standard_headers(self._version, method, params)}
        headers = dict(_ACCEPT)
        if self._version:
            headers[VERSION] = self._version
        if self._session:
            headers[SESSION] = self._session
        return headers

    async def _ask(self, waiting: Waiting, line: bytes, headers: Mapping[str, str]) -> None:
        """Send a request and read until it is answered."""
        reader = EventReader()
        async with self.wire.send("POST", headers, line) as answer:
            await self._check(answer)
            if waiting.method == "initialize":
                self._remember(answer)
            if media_type(answer) == EVENTS:
                await self._read_until_answered(answer, reader, waiting)
            elif has_body(answer):
                self._dialogue.heard(await read_json(answer), waiting.errand)
        if not waiting.future.done():
            await self._take_up(waiting, reader)

    async def _read_until_answered(
        self, answer: Streaming, reader: EventReader, waiting: Waiting
    ) -> None:
        while not waiting.future.done():
            if not await self._read_some(answer, reader, waiting.errand):
                return
        await linger(answer)

    async def _read_some(
        self, answer: Streaming, reader: EventReader, errand: Errand | None
    ) -> bool:
        """Hand on the events that come next; say whether there may be more."""
        events = await read_events(answer, reader)
        for event in events or ():
            if event.name != "message" or not event.data:
                continue
            message = messages.salvage(event.data)
            if message is None:
                LOG.debug("%s sent an event that is not JSON", self.wire.shown)
            else:
                self._dialogue.heard(message, errand)
        return events is not None

    async def _check(self, answer: Streaming) -> None:
        """Raise what a status means; inside a session some mean that there is none any more."""
        if self._session and answer.status in {_BAD_REQUEST, NOT_FOUND}:
            failure = await read_failure(answer)
            # A server that knows the session, and refuses the request, names the request.
            if failure is None or failure.id is None or answer.status == NOT_FOUND:
                why = f": {failure.error}" if failure else ""
                self._dialogue.lose(f"{self.wire.shown} has forgotten the session{why}")
                raise Lost(self.reason)
            raise failure.error
        await check_status(answer)

    def _remember(self, answer: Streaming) -> None:
        session = answer.header(SESSION) or ""
        if session and not _SESSION_ID.fullmatch(session):
            raise NotSpoken(f"{self.wire.shown} gave a session id that no header can hold")
        self._session = "" if self._modern else session

    async def _take_up(self, waiting: Waiting, reader: EventReader) -> None:
        """Go on reading a stream that ended before the answer, if it can be found again."""
        barren = 0
        while reader.last_id and not self._modern and barren < _BARREN_STREAMS:
            # Some servers answer on the stream of their own in the meantime.
            await asyncio.wait([waiting.future], timeout=_pause(reader, 0))
            if waiting.future.done():
                return
            before, reader = reader.last_id, reader.again()
            async with self._open_stream(before) as answer:
                await self._read_until_answered(answer, reader, waiting)
            if waiting.future.done():
                return
            barren = barren + 1 if reader.last_id == before else 0
        raise NotSpoken(f"{self.wire.shown} gave no answer to {waiting.method}")

    @asynccontextmanager
    async def _open_stream(self, last_id: str) -> AsyncGenerator[Streaming]:
        headers = {**self._headers("", None), "Accept": EVENTS}
        del headers["Content-Type"]
        if last_id:
            headers[LAST_EVENT] = last_id
        async with self.wire.send("GET", headers) as answer:
            check_stream(answer)
            yield answer

    async def _begin_listening(self) -> None:
        """Open the stream for the server's own messages before it has any reason to send one.

        Else an answer that waits for its own stream to be taken up again could land on this one.
        """
        self._tasks.start_soon(self._listen)
        with anyio.move_on_after(_OPENING):
            await self._listening.wait()

    async def _listen(self) -> None:
        """Hear the server's own messages, for as long as it offers a stream for them."""
        barren, reader = 0, EventReader()
        while not self.reason:
            before, reader = reader.last_id, reader.again()
            try:
                async with self._open_stream(before) as answer:
                    self._listening.set()
                    while await self._read_some(answer, reader, None):
                        barren = 0
            except NotSpoken:
                return
            except Lost as lost:
                LOG.debug("%s: %s", self.wire.shown, lost)
            finally:
                self._listening.set()
            await anyio.sleep(_pause(reader, barren))
            barren += 1

    def _withdraw(self, waiting: Waiting) -> None:
        """Cancel for good: in the modern era hanging up has done it."""
        line = None if self._modern else waiting.cancellation()
        if line is not None and not self.reason:
            self._tasks.start_soon(self._send_quietly, line)

    async def _send_quietly(self, line: bytes) -> None:
        try:
            await self._reply(line)
        except (Lost, RpcError) as error:
            LOG.debug("A cancellation was not taken: %s", error)

    async def _reply(self, line: bytes, headers: Mapping[str, str] | None = None) -> None:
        async with self.wire.send("POST", headers or self._headers("", None), line) as answer:
            await self._check(answer)


def _pause(reader: EventReader, barren: int) -> float:
    """How long to wait before a stream is opened again: as long as asked, longer if in vain."""
    backoff = min(_PAUSE * 2.0 ** min(barren, _DOUBLED), _LONGEST_PAUSE)
    if reader.retry is None:
        return backoff
    asked = min(reader.retry, _LONGEST_RETRY)
    return max(asked, backoff) if barren else asked


@asynccontextmanager
async def open_streamable(
    http: Asks, reached: Http, peer: Peer
) -> AsyncGenerator[StreamableTransport]:
    """Hold a connection to a server at an address; the first request is the first contact."""
    async with owned_tasks() as tasks:
        transport = StreamableTransport(Wire(http, reached), peer, tasks)
        try:
            yield transport
        finally:
            await transport.leave()
