"""Messages to one session go one after the other; while one waits for an answer, the next may."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

import anyio

from openfang.core.clients import Attended, Deputy
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from contextlib import AbstractContextManager

    from openfang.core.calls import Admitted
    from openfang.core.results import Result


_BACK_SECONDS: Final = 0.5


class Queues:
    """One for each session that somebody is in or waits for, forgotten with the last of them."""

    def __init__(self) -> None:
        self._of: dict[str, _Queue] = {}

    @asynccontextmanager
    async def place(self, session: str) -> AsyncGenerator[Place]:
        """Wait for one's turn, and have it."""
        queue = self._of.setdefault(session, _Queue())
        queue.size += 1
        place = Place(queue.turn)
        try:
            await place.take()
            yield place
        finally:
            place.give()
            queue.size -= 1
            if not queue.size:
                del self._of[session]


def _one() -> anyio.Semaphore:
    # Whoever asks and whoever began the run may be different tasks: a lock would have an owner.
    return anyio.Semaphore(1, fast_acquire=True)


@dataclass(slots=True)
class _Queue:
    turn: anyio.Semaphore = field(default_factory=_one)
    size: int = 0


@dataclass(slots=True)
class Place:
    """The turn of one message."""

    _turn: anyio.Semaphore
    _held: bool = False
    _lent: int = 0
    _returning: anyio.Lock = field(default_factory=lambda: anyio.Lock(fast_acquire=True))

    async def take(self) -> None:
        """Wait for it, unless another question waits still."""
        async with self._returning:
            if self._held or self._lent:
                return
            await self._turn.acquire()
            self._held = True
            if self._lent:
                self.give()

    def give(self) -> None:
        """Let the next one have it."""
        if self._held:
            self._held = False
            self._turn.release()

    @asynccontextmanager
    async def lent(self) -> AsyncGenerator[None]:
        """Let others have it for as long as this takes."""
        self._lent += 1
        self.give()
        try:
            yield
        finally:
            self._lent -= 1
            await self._take_back()

    async def _take_back(self) -> None:
        """Have it again; who is called off waits a moment for it, for it may go on all the same."""
        try:
            await self.take()
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(_BACK_SECONDS, shield=True):
                await self.take()
            raise


@dataclass(slots=True, eq=False)
class Lending(Deputy[Attended]):
    """The client of a message: while it is asked, the next message has its turn."""

    place: Place

    def held(self) -> AbstractContextManager[None]:
        """Let the call's time stand still."""
        return self.client.held()

    async def ask(self, method: str, params: Mapping[str, Any], name: str = "") -> Result:
        """Ask; what the wait for one's turn takes afterwards is not the call's time either."""
        with self.held():
            async with self.place.lent():
                return await self.client.ask(method, params, name)


def lending(admitted: Admitted, place: Place) -> Admitted:
    """Let this call, and those that it leads to, ask in this way."""
    if admitted.client is None:
        return admitted
    client = Lending(admitted.client, place)
    return replace(admitted, client=client, call=replace(admitted.call, client=client))
