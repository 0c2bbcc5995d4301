"""The HTTP server that every edge sits on: uvicorn's HTTP, with deadlines, a cap and a drain.

It has no signal handlers and never exits the process: whoever runs it says when to stop.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import anyio
from uvicorn.config import Config

from openfang.host.connection import Connection
from openfang.host.crowd import Crowd, ServerLimits
from openfang.host.exchange import LOG
from openfang.host.listen import BACKLOG, Listener, listen, raise_file_limit

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

    from starlette.types import ASGIApp

__all__ = ["Listener", "ServerLimits", "listen", "raise_file_limit", "serve"]

# After the drain: for an app to clean up, and for the last bytes to leave.
_CLEAN_UP_SECONDS: Final = 5.0
_GOODBYE_SECONDS: Final = 0.5


async def serve(
    app: ASGIApp,
    listener: Listener,
    crowd: Crowd,
    *,
    stop: anyio.Event,
    ready: Callable[[], None],
) -> None:
    """Serve until `stop`, then let requests in flight finish for `drain_seconds`, and end the rest.

    Who is connected shows in the crowd. The event is also in `scope["state"]["stopping"]`: a stream
    that ends with it holds up nobody.
    """
    config = _config(app)
    accepting: list[asyncio.Server] = []
    try:
        for one in listener.sockets:
            accepting.append(await _accept(one, config, crowd, stop))  # noqa: PERF401 - closed below
        crowd.count_time()
        ready()
        await stop.wait()
        _close_doors(accepting, listener, crowd)
        await _drain(crowd)
    finally:
        _close_doors(accepting, listener, crowd)
        with anyio.CancelScope(shield=True):
            await _end(crowd)


def _config(app: ASGIApp) -> Config:
    config = Config(
        app,
        http=Connection,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
    )
    config.load()
    return config


async def _accept(
    one: socket.socket, config: Config, crowd: Crowd, stop: anyio.Event
) -> asyncio.Server:
    state = {"stopping": stop}
    loop = asyncio.get_running_loop()
    return await loop.create_server(
        lambda: Connection(config, crowd, state), sock=one, backlog=BACKLOG
    )


def _close_doors(accepting: Sequence[asyncio.Server], listener: Listener, crowd: Crowd) -> None:
    crowd.stopping = True
    for server in accepting:
        server.close()
    listener.close()


async def _drain(crowd: Crowd) -> None:
    for connection in crowd.present():
        connection.shutdown()
    with anyio.move_on_after(crowd.drain_seconds):
        await crowd.finished()


async def _end(crowd: Crowd) -> None:
    """Leave nothing running: first the apps, which may still answer, then the connections."""
    for task in crowd.tasks:
        task.cancel()
    if crowd.tasks:
        _, stuck = await asyncio.wait(crowd.tasks, timeout=_CLEAN_UP_SECONDS)
        for task in stuck:
            LOG.error("A request could not be cancelled: %r", task)
    for connection in crowd.present():
        connection.close()
    with anyio.move_on_after(_GOODBYE_SECONDS):
        await crowd.nobody.wait()
    crowd.stop_time()
    for connection in crowd.present():
        connection.transport.abort()
    await crowd.nobody.wait()
