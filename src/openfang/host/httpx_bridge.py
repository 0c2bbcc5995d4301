"""httpx without a network of its own: what a library sends by it goes out by our one way.

Importing this module imports httpx, a tenth of a second.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

import anyio
import httpx

from openfang.host.bridged import EVENTS, Body, Bounds, Opens, kind, sent, shown

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from openfang.host.bridged import Changes

_SHOWN: Final = ("ETag", "Retry-After")


class Bridge(httpx.AsyncBaseTransport):
    """Sends by `opens`, within bounds; events are a stream where the request asks for one."""

    def __init__(self, opens: Opens, bounds: Bounds) -> None:
        self._opens = opens
        self._bounds = bounds
        self._open: set[Body] = set()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request; the body of its answer is read later."""
        until = anyio.current_time() + self._bounds.seconds
        stack = AsyncExitStack()
        kept, content = sent(request.headers.items()), await request.aread() or None
        opened = self._opens(request.method, str(request.url), kept, content)
        answer = await stack.enter_async_context(opened)
        endless = kind(answer) == EVENTS and EVENTS in request.headers.get("Accept", "")
        body = _Body(
            answer,
            stack.aclose,
            self._open.discard,
            until=None if endless else until,
            bounds=self._bounds,
        )
        self._open.add(body)
        return httpx.Response(answer.status, headers=shown(answer, _SHOWN), stream=body)

    async def aclose(self) -> None:
        """Hang up on every answer that nobody has read to its end."""
        for body in tuple(self._open):
            await body.hang_up()


class _Body(Body, httpx.AsyncByteStream):
    def __aiter__(self) -> AsyncIterator[bytes]:
        return self.pieces()

    async def aclose(self) -> None:
        await self.hang_up()


def bridged(
    opens: Opens,
    *,
    seconds: float = 30.0,
    limit: int = 10_000_000,
    most: int = 64_000_000,
    heard: Changes = bytes,
) -> httpx.AsyncClient:
    """Make a client that keeps nothing, follows nothing and reads no proxies of the environment."""
    bounds = Bounds(seconds=seconds, limit=limit, most=most, heard=heard)
    return httpx.AsyncClient(
        transport=Bridge(opens, bounds),
        trust_env=False,
        follow_redirects=False,
        timeout=None,  # noqa: S113 - it is kept by the transport
    )
