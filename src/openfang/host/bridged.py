"""What libraries of HTTP have in common that go out by our one way: a body, and its bounds.

It knows neither of them: each has a file of its own, which is imported where it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import anyio

from openfang.core.errors import SourceFailed
from openfang.core.values import dataclass
from openfang.host.weight import check_weight

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
    from contextlib import AbstractAsyncContextManager
    from typing import TypeAlias

    from openfang.host.http import Streaming

    Changes: TypeAlias = Callable[[bytes], bytes]

EVENTS: Final = "text/event-stream"
_BLANK_LINES: Final = (b"\n\n", b"\n\r\n", b"\r\r")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """A plain body has `seconds` from the request on, and `limit` bytes.

    A stream of events lasts as long as somebody reads it, and has `most` bytes. Who reads an answer
    does so in the loop: no JSON of many small values comes by. `heard` may write a body, or whole
    events, in another way before they are read.
    """

    seconds: float = 30.0
    limit: int = 10_000_000
    most: int = 64_000_000
    heard: Changes = bytes


class Body:
    """The body of an answer, as it comes."""

    def __init__(
        self,
        answer: Streaming,
        close: Callable[[], Awaitable[None]],
        closed: Callable[[Body], None],
        *,
        until: float | None,
        bounds: Bounds,
    ) -> None:
        self._answer = answer
        self._close = close
        self._closed = closed
        self._until = until
        self._limit = bounds.limit
        self._most = bounds.limit if until is not None else bounds.most
        self._heard = bounds.heard

    async def pieces(self) -> AsyncIterator[bytes]:
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

    async def hang_up(self) -> None:
        """Let go of the answer, read or not."""
        self._closed(self)
        await self._close()

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


def sent(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Keep the headers that are not decided by who sends them in the end."""
    return {name: value for name, value in headers if name.lower() not in _OURS}


def kind(answer: Streaming) -> str:
    """Say what an answer holds. Whatever else it names, JSON and events are in UTF-8."""
    return (answer.header("Content-Type") or "").partition(";")[0].strip().lower()


def shown(answer: Streaming, names: Iterable[str]) -> dict[str, str]:
    """Keep what of an answer's headers somebody reads."""
    found = {name: value for name in names if (value := answer.header(name)) is not None}
    return {**found, "Content-Type": kind(answer)}


def _check_size(url: str, size: int, limit: int) -> None:
    if size > limit:
        raise SourceFailed(f"{url} answered with more than {limit} bytes")


def _last_event(held: bytearray, new: int) -> int:
    """Say where the last event ends of which something is new; 0 is nowhere."""
    start = max(0, len(held) - new - 2)
    found = ((held.rfind(line, start), len(line)) for line in _BLANK_LINES)
    return max(at + length if at >= 0 else 0 for at, length in found)
