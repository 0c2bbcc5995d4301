"""httpx2 without a network of its own: what the libraries of models send goes out by our one way.

What breaks on the way is told in the words of httpx2, which those libraries know; what of ours was
the reason is the cause of it. Importing this module imports httpx2, a tenth of a second.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

import anyio
import httpx2

from openfang.core.errors import OpenFangError
from openfang.host.bridged import EVENTS, Body, Bounds, Opens, kind, sent, shown

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_SHOWN: Final = ("Retry-After", "Retry-After-Ms", "Request-Id", "X-Request-Id")


class Bridge(httpx2.AsyncBaseTransport):
    """Sends by `opens`, within bounds. Events are a stream: somebody else minds the time."""

    def __init__(self, opens: Opens, bounds: Bounds) -> None:
        self._opens = opens
        self._bounds = bounds
        self._open: set[Body] = set()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request; the body of its answer is read later."""
        until = anyio.current_time() + self._bounds.seconds
        stack = AsyncExitStack()
        kept, content = sent(request.headers.items()), await request.aread() or None
        try:
            opened = self._opens(request.method, str(request.url), kept, content)
            answer = await stack.enter_async_context(opened)
        except OpenFangError as error:
            raise httpx2.ConnectError(error.message, request=request) from error
        body = _Body(
            answer,
            stack.aclose,
            self._open.discard,
            until=None if kind(answer) == EVENTS else until,
            bounds=self._bounds,
        )
        self._open.add(body)
        return httpx2.Response(answer.status, headers=shown(answer, _SHOWN), stream=body)

    async def aclose(self) -> None:
        """Hang up on every answer that nobody has read to its end."""
        for body in tuple(self._open):
            await body.hang_up()


class _Body(Body, httpx2.AsyncByteStream):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self.pieces():
                yield piece
        except OpenFangError as error:
            raise httpx2.ReadError(error.message) from error

    async def aclose(self) -> None:
        await self.hang_up()


def bridged2(opens: Opens, bounds: Bounds) -> httpx2.AsyncClient:
    """Make a client that keeps nothing, follows nothing and reads no proxies of the environment."""
    return httpx2.AsyncClient(
        transport=Bridge(opens, bounds),
        trust_env=False,
        follow_redirects=False,
        timeout=None,
    )
