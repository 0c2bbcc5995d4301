"""The calls under way, by the clients that can be asked and told things; and whose turn it is.

Over pipes a server does not say which call its question belongs to. While the calls of one
connection alone are under way, that is plain. For a while after a server has asked, connections
take turns with it, and those who have no client take theirs together. Nobody waits for long, and
only for a moment for a person whom somebody else's call has asked.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import anyio

from openfang.sources.mcp.questions import Unanswered

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from contextlib import AbstractContextManager


class Party(Protocol):
    """An errand, as far as turns care. One without a client has no `connection`."""

    @property
    def connection(self) -> str:
        """Which of all clients its own is."""
        ...

    async def asked(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer a question of the server's."""
        ...

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Tell its client something."""
        ...

    def held(self) -> AbstractContextManager[None]:
        """Let its time stand still, if anybody can."""
        ...


_Place: TypeAlias = tuple[Party, anyio.Event]

_LASTS_SECONDS: Final = 60.0
_GRACE_SECONDS: Final = 2.0
# A server may do nothing for anybody until it has the answer that is held up here.
_BACK_SECONDS: Final = 2.0


class Turns:
    """Knows the errands by the connections of their clients.

    `others` are calls without a client that were begun before anybody had to wait. A turn is waited
    for `longest` seconds, and then taken; `lasts` is how long a question is remembered. Whoever is
    asked and has not answered within `grace` gives their turn up until they do.
    """

    def __init__(self, longest: float, *, lasts: float = _LASTS_SECONDS) -> None:
        self.others = 0
        self.grace = _GRACE_SECONDS
        self._longest = longest
        self._lasts = lasts
        self._until: float | None = None
        self._present: dict[str, list[Party]] = {}
        self._asking: list[_Place] = []
        self._waiting: dict[str, list[_Place]] = {}

    @property
    def strict(self) -> bool:
        """Whether turns are taken: somebody is being asked, or was not long ago."""
        until = self._until
        return until is not None and (bool(self._asking) or anyio.current_time() < until)

    @strict.setter
    def strict(self, asked: bool) -> None:
        self._until = anyio.current_time() + self._lasts if asked else None

    @property
    def clients(self) -> int:
        """How many clients have calls under way."""
        return sum(map(bool, self._present))

    def only(self) -> Party | None:
        """Give the newest errand of the only connection, if there is one and nobody else."""
        if self.others or len(self._present) != 1:
            return None
        ((connection, errands),) = self._present.items()
        return errands[-1] if connection else None

    async def enter(self, errand: Party) -> None:
        """Count an errand in, when it is its connection's turn."""
        key = errand.connection
        self._next()
        if self.strict and (self._waiting or self._taken(key)):
            place = errand, anyio.Event()
            self._waiting.setdefault(key, []).append(place)
            await self._queued(place)
        else:
            self._present.setdefault(key, []).append(errand)

    def leave(self, errand: Party) -> None:
        """Count it out; the last of a connection lets the next in."""
        errands = self._present[errand.connection]
        errands.remove(errand)
        if not errands:
            del self._present[errand.connection]
        self._next()

    def leave_others(self) -> None:
        """Count one of the others out."""
        self.others -= 1
        self._next()

    @asynccontextmanager
    async def aside(self, errand: Party) -> AsyncGenerator[None]:
        """Let others have their turn while the client of this one takes its time to answer."""
        place = errand, anyio.Event()
        timer = asyncio.get_running_loop().call_later(self.grace, self._step_aside, place)
        try:
            try:
                yield
            except Unanswered:
                await self._back(place)
                raise
            await self._back(place)
        finally:
            timer.cancel()
            self.strict = self.strict  # an answer is as fresh as a question
            if place in self._asking:
                self._asking.remove(place)

    def _step_aside(self, place: _Place) -> None:
        if not self.strict:
            self._until = None
        self._asking.append(place)
        self._next()

    async def _queued(self, place: _Place) -> None:
        try:
            with place[0].held():
                await self._wait(place, self._longest)
        except BaseException:
            if place[1].is_set():
                self.leave(place[0])
            raise

    async def _back(self, place: _Place) -> None:
        """Take back a turn that was given up, ahead of everybody, once no question is open."""
        key = place[0].connection
        own = [asking for asking in self._asking if asking[0] is place[0]]
        if own == [place] and self.strict and self._taken(key):
            rest = self._waiting.pop(key, [])
            self._waiting = {key: [place, *rest], **self._waiting}
            await self._wait(place, min(_BACK_SECONDS, self._longest))

    def _taken(self, key: str | None = None) -> bool:
        """Whether somebody else has a turn: who only waits for a person has none."""
        asking = {errand for errand, _ in self._asking}
        return bool(self.others) or any(
            other != key and not asking.issuperset(errands)
            for other, errands in self._present.items()
        )

    async def _wait(self, place: _Place, seconds: float) -> None:
        try:
            with anyio.move_on_after(seconds):
                await place[1].wait()
        finally:
            if not place[1].is_set():
                self._unqueue(place)
        if not place[1].is_set():
            self._admit(place)

    def _unqueue(self, place: _Place) -> None:
        key = place[0].connection
        self._waiting[key].remove(place)
        if not self._waiting[key]:
            del self._waiting[key]

    def _next(self) -> None:
        """Let in whoever has waited longest; or everybody, when turns are no longer taken."""
        while self._waiting and not (self.strict and self._taken()):
            for place in self._waiting.pop(next(iter(self._waiting))):
                self._admit(place)

    def _admit(self, place: _Place) -> None:
        errand, admitted = place
        if place in self._asking:
            self._asking.remove(place)
        else:
            self._present.setdefault(errand.connection, []).append(errand)
        admitted.set()
