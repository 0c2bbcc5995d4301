"""A slot that its call lends to others while its client is being asked (C7.11)."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import anyio

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from types import TracebackType

    from openfang.guard.concurrency import Slots

# Those who have the slots may themselves wait for the answer that is held up here.
_BACK_SECONDS: Final = 2.0


class Slot:
    """One of `limit` slots of `key`, for the length of an `async with`."""

    __slots__ = ("_held", "_key", "_lent", "_limit", "_over", "_slots", "_who")

    def __init__(self, slots: Slots, key: str, limit: int, who: str) -> None:
        self._slots = slots
        self._key = key
        self._limit = limit
        self._who = who
        self._lent = 0
        self._held = self._over = False

    async def __aenter__(self) -> None:
        await self._slots.acquire(self._key, self._limit, self._who)
        self._held = True

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over = True
        self._give_back()

    @asynccontextmanager
    async def lent(self) -> AsyncGenerator[None]:
        """Let others have it. Who comes back waits a moment for one, and then goes on without.

        So does a call whose question was taken back.
        """
        self._lent += 1
        self._give_back()
        try:
            yield
        finally:
            self._lent -= 1
        with anyio.move_on_after(_BACK_SECONDS):
            await self._take_back()

    def _give_back(self) -> None:
        if self._held:
            self._held = False
            self._slots.release(self._key)

    async def _take_back(self) -> None:
        if self._lent or self._over:
            return
        await self._slots.acquire(self._key, self._limit, self._who)
        # It may have asked again, or ended, while it waited.
        if self._held or self._lent or self._over:
            self._slots.release(self._key)
        else:
            self._held = True
