"""The plainest of transports: a POST with a request, one JSON answer, nothing else."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from openfang.protocols.mcp import messages
from openfang.sources.mcp.dialogue import Carrier
from openfang.sources.mcp.transport import LOG, Errand, Lost, NotSpoken, Peer, owned_tasks
from openfang.sources.mcp.wire import JSON, Wire, check_status, read_json

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from anyio.abc import TaskGroup

    from openfang.sources.mcp.dialogue import Waiting
    from openfang.sources.mcp.spec import Http
    from openfang.sources.mcp.wire import Asks

_HEADERS: Final = {"Accept": JSON, "Content-Type": JSON}


class PlainTransport(Carrier):
    """One server that only ever answers; whatever it calls its answer, it is read as JSON."""

    kind = "plain"
    mirrors = False

    def __init__(self, wire: Wire, peer: Peer, tasks: TaskGroup) -> None:
        super().__init__(peer, tasks, self._unasked)
        self.wire = wire

    def speak(self, version: str) -> None:
        """Nothing but the messages themselves depends on the revision here."""

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        *,
        errand: Errand | None = None,
        headers: Mapping[str, str] | None = None,  # noqa: ARG002 - none are mirrored here
    ) -> dict[str, Any]:
        """Ask, and read the one answer."""
        waiting = self._dialogue.begin(method, errand)
        try:
            with waiting.exchange():
                await self._ask(waiting, waiting.line(params))
            if not waiting.future.done():
                raise NotSpoken(f"{self.wire.shown} did not answer {method}")
            return waiting.future.result()
        finally:
            self._dialogue.finish(waiting)

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Tell the server something; one that knows no notifications may say so."""
        try:
            line = messages.notification(method, params)
            async with self.wire.send("POST", _HEADERS, line):
                pass
        except Lost as lost:
            LOG.debug("%s was not told %s: %s", self.wire.shown, method, lost)

    def leave(self) -> None:
        """Fail what is under way: the connection is about to be closed."""
        self._dialogue.lose("The connection was closed")

    async def _ask(self, waiting: Waiting, line: bytes) -> None:
        async with self.wire.send("POST", _HEADERS, line) as answer:
            await check_status(answer)
            self._dialogue.heard(await read_json(answer), waiting.errand)

    async def _unasked(self, line: bytes) -> None:
        """There is no way to answer a server that only answers."""


@asynccontextmanager
async def open_plain(http: Asks, reached: Http, peer: Peer) -> AsyncGenerator[PlainTransport]:
    """Hold what there is to hold of such a server."""
    async with owned_tasks() as tasks:
        transport = PlainTransport(Wire(http, reached), peer, tasks)
        try:
            yield transport
        finally:
            transport.leave()
