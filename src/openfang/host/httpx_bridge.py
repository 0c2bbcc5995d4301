"""httpx without a network of its own: what a library sends by it goes out by our one way.

Importing this module imports httpx, a tenth of a second.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final, Protocol

import anyio
import httpx

from openfang.core.errors import SourceFailed
from openfang.host.weight import check_weight

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
    from contextlib import AbstractAsyncContextManager
    from typing import TypeAlias

    from openfang.host.http import Streaming

    Changes: TypeAlias = Callable[[bytes], bytes]

EVENTS: Final = "text/event-stream"
_BLANK_LINES: Final = (b"\n\n", b"\n\r\n", b"\r\r")
_SHOWN: Final = ("ETag", "Retry-After")
# Decided by who sends it in the end.
_OURS: Final = frozenset(
    {"host", "connection", "content-length", "transfer-encoding", "accept-encoding", "user-agent"}
)


class Opens(Protocol):
    """Makes a request, and holds its answer."""

    def __call__(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> AbstractAsyncContextManager[Streaming]:
        """Make this one."""
        ...


class Bridge(httpx.AsyncBaseTransport):
    """Sends by `opens`. A plain body has `seconds` from the request on, and `limit` bytes.

    A stream of events, where the request asks for one, lasts as long as somebody reads it, and has
    `most` bytes. Who reads an answer does so in the loop: no JSON of many small values comes by.
    `heard` may write a body, or whole events, in another way before they are read.
    """

    def __init__(
        self, opens: Opens, *, seconds: float, limit: int, most: int, heard: Changes
    ) -> None:
        self._opens = opens
        self._seconds = seconds
        self._limit = limit
        self._most = most
        self._heard = heard
        self._open: set[_Body] = set()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request; the body of its answer is read later."""
        until = anyio.current_time() + self._seconds
        headers = request.headers.items()
        kept = {name: value for name, value in headers if name.lower() not in _OURS}
        stack = AsyncExitStack()
        opened = self._opens(request.method, str(request.url), kept, await request.aread() or None)
        answer = await stack.enter_async_context(opened)
        endless = _kind(answer) == EVENTS and EVENTS in request.headers.get("Accept", "")
        body = _Body(
            answer,
            stack.aclose,
            self._open.discard,
            until=None if endless else until,
            limit=self._limit,
            most=self._most if endless else self._limit,
            heard=self._heard,
        )
        self._open.add(body)
        shown = {name: value for name in _SHOWN if (value := answer.header(name)) is not None}
        # Whatever else it names, JSON and events are in UTF-8.
        return httpx.Response(
            answer.status, headers={**shown, "Content-Type": _kind(answer)}, stream=body
        )

    async def aclose(self) -> None:
        """Hang up on every answer that nobody has read to its end."""
        for body in tuple(self._open):
            await body.aclose()


class _Body(httpx.AsyncByteStream):
    def __init__(  # noqa: PLR0913 - an answer, its end, and its bounds
        self,
        answer: Streaming,
        close: Callable[[], Awaitable[None]],
        closed: Callable[[_Body], None],
        *,
        until: float | None,
        limit: int,
        most: int,
        heard: Changes,
    ) -> None:
        self._answer = answer
        self._close = close
        self._closed = closed
        self._until = until
        self._limit = limit
        self._most = most
        self._heard = heard

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Give the body as a whole, or one or more events as a whole."""
        read, held = 0, bytearray()
        while piece := await self._some():
            read += len(piece)
            _check_size(self._answer.url, read, self._most)
            held += piece
            if self._until is None and (end := _last_event(held, len(piece))):
                yield await self._weighed(held[:end])
                del held[:end]
            _check_size(self._answer.url, len(held), self._limit)
        if held:
            yield await self._weighed(held)

    async def _weighed(self, held: bytearray) -> bytes:
        body = bytes(held)
        await check_weight(self._answer.url, body)
        return self._heard(body)

    async def _some(self) -> bytes:
        if self._until is None:
            return await self._answer.some()
        try:
            with anyio.fail_after(self._until - anyio.current_time()):
                return await self._answer.some()
        except TimeoutError:
            raise SourceFailed(f"{self._answer.url} took too long to answer") from None

    async def aclose(self) -> None:
        self._closed(self)
        await self._close()


def _kind(answer: Streaming) -> str:
    return (answer.header("Content-Type") or "").partition(";")[0].strip().lower()


def _check_size(url: str, size: int, limit: int) -> None:
    if size > limit:
        raise SourceFailed(f"{url} answered with more than {limit} bytes")


def _last_event(held: bytearray, new: int) -> int:
    """Say where the last event ends of which something is new; 0 is nowhere."""
    start = max(0, len(held) - new - 2)
    found = ((held.rfind(line, start), len(line)) for line in _BLANK_LINES)
    return max(at + length if at >= 0 else 0 for at, length in found)


def bridged(
    opens: Opens,
    *,
    seconds: float = 30.0,
    limit: int = 10_000_000,
    most: int = 64_000_000,
    heard: Changes = bytes,
) -> httpx.AsyncClient:
    """Make a client that keeps nothing, follows nothing and reads no proxies of the environment."""
    return httpx.AsyncClient(
        transport=Bridge(opens, seconds=seconds, limit=limit, most=most, heard=heard),
        trust_env=False,
        follow_redirects=False,
        timeout=None,  # noqa: S113 - it is kept by the transport
    )
