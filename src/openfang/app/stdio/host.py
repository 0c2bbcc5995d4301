"""A home that `openfang mcp` opens by itself where no daemon has it, for itself and for others."""

from __future__ import annotations

import asyncio
import gc
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio

from openfang.app.lifespan import beside, open_app
from openfang.app.offering.offers import Offers
from openfang.app.stdio.hello import HOST_SOCKET
from openfang.app.stdio.serving import PrivateServer
from openfang.edges.mcp.handler import Handler

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from openfang.app.home.paths import Home
    from openfang.app.parts import Parts
    from openfang.app.stdio.reach import Stop

_DRAIN_SECONDS: Final = 5.0


def host(home: Home, environ: Mapping[str, str], serving: Callable[[Stop], None]) -> None:
    """Serve a home. When it can be reached, `serving` is told how to end that, from any thread."""
    options = {"use_uvloop": True}
    anyio.run(_host, home, environ, serving, backend="asyncio", backend_options=options)


async def _host(home: Home, environ: Mapping[str, str], serving: Callable[[Stop], None]) -> None:
    loop, stop = asyncio.get_running_loop(), anyio.Event()

    def end() -> None:
        loop.call_soon_threadsafe(stop.set)

    async with open_app(home, environ) as parts:
        gc.enable()
        server = _server(parts)
        async with beside(partial(server.run, stop)):
            await server.ready.wait()
            serving(end)
            await server.ended.wait()
        server.handler.close()


def _server(parts: Parts) -> PrivateServer:
    if parts.servers is not None:
        parts.servers.want()
    if parts.agents is not None:
        parts.agents.want()
    if parts.installs is not None:
        parts.installs.want()
    return PrivateServer(
        parts=parts,
        handler=Handler(secret=parts.master.derive("mcp-state"), clock=parts.clock),
        offers=Offers(parts),
        path=parts.home.processes / HOST_SOCKET,
        drain_seconds=_DRAIN_SECONDS,
    )
