"""Waiting for what a node begins with, before its lists are missed: in its first seconds only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio

from openfang.core.ids import Kind, tool_id, wire_name
from openfang.core.tools import Tool
from openfang.core.values import dataclass
from openfang.policy.selection import AGENTS

if TYPE_CHECKING:
    from openfang.app.parts import Parts
    from openfang.core.calls import Caller

_SECONDS: Final = 5.0


@dataclass(slots=True)
class Settling:
    """Waits for agents and servers; a daemon has them long before anybody asks."""

    parts: Parts
    _until: float | None = None
    _agents: bool = False
    _servers: bool = False

    async def wait(self, caller: Caller) -> None:
        """Wait until the lists can be complete, but never long; who sees no server waits for none.

        Servers that sleep until they are called go on sleeping.
        """
        wanted = caller.within is not AGENTS and not self._servers
        if self._agents and not wanted:
            return
        now = self.parts.clock.monotonic()
        if self._until is None:
            self._until = now + _SECONDS
        with anyio.move_on_after(max(0.0, self._until - now)):
            await self._wait(servers=wanted)
        self._agents = True
        self._servers = self._servers or wanted

    async def _wait(self, *, servers: bool) -> None:
        if self.parts.agents is not None:
            await self.parts.agents.opened()
        if servers and self.parts.servers is not None:
            await self.parts.servers.settled(woken=False, lists=True)

    async def wake(self, caller: Caller, name: str) -> None:
        """Connect a server that sleeps and never said what it has, if the caller may call this."""
        servers = self.parts.servers
        if servers is None:
            return
        for source in list(servers.running.values()):
            maybe = _tool_of(source.name, name)
            hidden = maybe is None or not self.parts.catalog.sees(caller, maybe)
            if source.spec.lazy and not source.tools() and not hidden:
                await servers.reached(source.name)


def _tool_of(server: str, name: str) -> Tool | None:
    """Make the tool of the server's that the name may be of."""
    beginnings = (tool_id(Kind.MCP, server, ""), f"{wire_name('mcp', server)}_")
    own = next((name.removeprefix(one) for one in beginnings if name.startswith(one)), None)
    if own is None:
        return None
    return Tool(
        id=tool_id(Kind.MCP, server, own),
        kind=Kind.MCP,
        source=server,
        name=own,
        wire_name=wire_name("mcp", server, own),
    )
