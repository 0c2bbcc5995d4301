"""A server that is a child of ours: messages are lines on its standard input and output."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from openfang.host.lines import Gone, Lines, open_lines
from openfang.protocols.mcp import messages
from openfang.sources.mcp.dialogue import Carrier
from openfang.sources.mcp.transport import Errand, Lost, Peer, owned_tasks

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from anyio.abc import TaskGroup

    from openfang.host.process import Launch


class StdioTransport(Carrier):
    """One child. `complained` takes the lines that it writes for people."""

    kind = "stdio"
    mirrors = False

    def __init__(self, peer: Peer, tasks: TaskGroup, complained: Callable[[str], None]) -> None:
        super().__init__(peer, tasks, self._send)
        self._child: Lines | None = None
        self._complained = complained

    @property
    def child(self) -> Lines | None:
        """The child, once it was started."""
        return self._child

    @property
    def heeded(self) -> bool:
        """Whether the child has read any of what it was told."""
        return self._child is not None and self._child.heeded

    def attach(self, child: Lines) -> None:
        """Write to this child from now on."""
        self._child = child

    def heard(self, message: object) -> None:
        """Take a message of the child's."""
        self._dialogue.heard(message)

    def complained(self, line: str) -> None:
        """Take a line that it wrote for people."""
        self._complained(line)

    def gone(self, reason: str) -> None:
        """Hear that nothing more will come of it."""
        self._dialogue.lose(reason)

    def speak(self, version: str) -> None:
        """Nothing but the messages themselves depends on the revision here."""

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        *,
        errand: Errand | None = None,
        headers: Mapping[str, str] | None = None,  # noqa: ARG002 - there are none here
    ) -> dict[str, Any]:
        """Ask the child, and wait for its answer."""
        waiting = self._dialogue.begin(method, errand)
        try:
            await self._send(waiting.line(params))
            waiting.sent = True
            return await waiting.future
        except asyncio.CancelledError:
            self._withdraw(waiting.cancellation())
            raise
        finally:
            self._dialogue.finish(waiting)

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Tell the child something."""
        await self._send(messages.notification(method, params))

    async def _send(self, line: bytes) -> None:
        if self._child is None:
            raise Lost("The server was not started")
        try:
            await self._child.send(line)
        except Gone as gone:
            raise Lost(str(gone)) from None

    def _withdraw(self, line: bytes | None) -> None:
        if line and self._child is not None and not self._child.crowded:
            with suppress(Gone):
                self._child.post(line)


@asynccontextmanager
async def open_stdio(
    launch: Launch, peer: Peer, *, complained: Callable[[str], None]
) -> AsyncGenerator[StdioTransport]:
    """Start a server and hold it; nothing of it is left when the connection ends."""
    async with owned_tasks() as tasks:
        transport = StdioTransport(peer, tasks, complained)
        async with open_lines(launch, transport) as child:
            transport.attach(child)
            yield transport
