"""Notices a client that has hung up. Most requests are over before it looks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from openfang.edges.api.exchange import Receive

_UNWATCHED_SECONDS = 0.05


class Watch:
    """Made by the task that serves the request; `end` it when the answer is on its way.

    Unless it is told otherwise, it cancels that task.
    """

    __slots__ = ("_receive", "_serving", "_timer", "_watching", "gone")

    def __init__(self, receive: Receive, *, cancels: bool = True) -> None:
        self.gone = False
        self._serving = asyncio.current_task() if cancels else None
        self._receive = receive
        self._watching: asyncio.Task[None] | None = None
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(_UNWATCHED_SECONDS, self._begin)

    def _begin(self) -> None:
        self._watching = asyncio.ensure_future(self._watch())

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.gone = True
        if self._serving is not None:
            self._serving.cancel()

    def end(self) -> None:
        """Look no longer."""
        self._timer.cancel()
        if self._watching is not None:
            self._watching.cancel()
