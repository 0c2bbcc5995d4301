"""Messages on their way to another node, as server-sent events."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_MOST: Final = 1000
_BEAT: Final = b": still here\n\n"


class Lines:
    """What is to be sent. A node that does not read is told no more than so much."""

    __slots__ = ("_ended", "_lines", "_wake")

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque()
        self._wake = asyncio.Event()
        self._ended = False

    def put(self, message: bytes) -> None:
        """Send one, unless too many wait."""
        if len(self._lines) < _MOST:
            self._lines.append(b"data: %b\n\n" % message)
            self._wake.set()

    def end(self, message: bytes | None = None) -> None:
        """Send the last one, if there is one, however many wait."""
        if message is not None:
            self._lines.append(b"data: %b\n\n" % message)
        self._ended = True
        self._wake.set()

    async def send(
        self, write: Callable[[bytes], Awaitable[None]], beat: float, still: Callable[[], bool]
    ) -> None:
        """Write them as they come, and something that says nothing between, while it is `still`."""
        while self._lines or not self._ended:
            self._wake.clear()
            while self._lines:
                await write(self._lines.popleft())
            if not self._ended and not await self._within(beat):
                if not still():
                    return
                await write(_BEAT)

    async def _within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await self._wake.wait()
        except TimeoutError:
            return False
