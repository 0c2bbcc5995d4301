"""The private socket of a home: where `openfang mcp` is served, as `local-mcp`, never as admin."""

from __future__ import annotations

import logging
from dataclasses import field
from typing import TYPE_CHECKING, Final

import anyio
from anyio import to_thread

from openfang.app.offering.local import local_caller
from openfang.app.stdio.hello import FAREWELL, READY, read_hello, refusal_line
from openfang.core.errors import HomeError, NotFound, OpenFangError
from openfang.core.trace import new_chain
from openfang.core.values import dataclass
from openfang.edges.mcp.lines import Leaving, serve_lines
from openfang.edges.mcp.ports import Place
from openfang.host.private_socket import accepted, forget, listen_privately, streams

if TYPE_CHECKING:
    import asyncio
    import socket
    from collections.abc import Callable
    from pathlib import Path

    from openfang.app.parts import Parts
    from openfang.app.stdio.hello import Hello
    from openfang.edges.mcp.handler import Handler
    from openfang.edges.mcp.ports import Offer, Offers

_log = logging.getLogger("openfang.mcp")
_HELLO_SECONDS: Final = 10.0


@dataclass(slots=True, kw_only=True)
class PrivateServer:
    """Serves whoever connects at `path`. `ended` is set when nobody is served any more."""

    parts: Parts
    handler: Handler
    offers: Offers
    path: Path
    drain_seconds: float
    ready: anyio.Event = field(default_factory=anyio.Event)
    ended: anyio.Event = field(default_factory=anyio.Event)

    async def run(self, stop: anyio.Event) -> None:
        """Serve until `stop`; those who are served are asked to hang up, and answered first."""
        listener = await to_thread.run_sync(listen_privately, self.path)
        try:
            async with anyio.create_task_group() as group:
                self.ready.set()
                accepting = anyio.CancelScope()
                group.start_soon(_cancel, accepting, stop)
                with accepting:
                    while True:
                        group.start_soon(self._connected, await accepted(listener), stop)
                await to_thread.run_sync(forget, self.path, listener)
                group.cancel_scope.deadline = anyio.current_time() + self.drain_seconds
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(forget, self.path, listener)
            self.ended.set()

    async def _connected(self, connection: socket.socket, stop: anyio.Event) -> None:
        reader, writer = await streams(connection)
        leaving = Leaving(stop=stop, farewell=FAREWELL)
        try:
            offer_for = await self._greeted(reader)
            writer.write(READY + b"\n")
            await serve_lines(reader, writer, self.handler, offer_for, leaving=leaving)
        except OpenFangError as error:
            writer.write(refusal_line(error) + b"\n")
        except Exception:  # noqa: BLE001 - a mistake of ours costs one client, not the node
            _log.exception("A client was cut off")
        finally:
            writer.close()

    async def _greeted(self, reader: asyncio.StreamReader) -> Callable[[], Offer]:
        """Hear what is wanted, and say how it is found for each request."""
        hello = await _hello(reader)
        place, chain = Place(toolset=hello.toolset, agent=hello.agent), hello.chain

        def offer() -> Offer:
            caller = local_caller(self.parts, place)
            return self.offers(caller, place, chain or new_chain())

        if self.parts.agents is not None:
            await self.parts.agents.opened()
        try:
            offer()
        except NotFound as error:
            raise NotFound(
                f"{error.message} {self._known(place)}", way_out=error.way_out
            ) from error
        return offer

    def _known(self, place: Place) -> str:
        """Name those that there are."""
        agents = self.parts.agents.agents if self.parts.agents else None
        running = agents.running if agents else ()
        names = sorted(self.parts.config.toolsets if place.toolset else running)
        return f"There are: {', '.join(names)}." if names else "There is none."


async def _cancel(scope: anyio.CancelScope, stop: anyio.Event) -> None:
    await stop.wait()
    scope.cancel()


async def _hello(reader: asyncio.StreamReader) -> Hello:
    line = b""
    with anyio.move_on_after(_HELLO_SECONDS):
        try:
            line = await reader.readline()
        except (OSError, ValueError):
            line = b""
    hello = read_hello(line)
    if hello is None:
        raise HomeError("Whoever connects here says first what it wants.", way_out="openfang mcp")
    return hello
