"""What a node holds in memory of what all nodes share, read again when another one changed it."""

from __future__ import annotations

import logging
from dataclasses import field
from typing import TYPE_CHECKING, Final

import anyio

from openfang.app.definitions import is_spoken, sift_again
from openfang.app.stores import names_in, pins_beside
from openfang.core.errors import OpenFangError
from openfang.core.ids import Kind
from openfang.core.values import dataclass
from openfang.storage.units import INSTALLS, NAMES, PEERS, PINS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from openfang.app.parts import Parts
    from openfang.storage.ports import Storage

    Look = Callable[[], Awaitable[None]]
_log = logging.getLogger("openfang.cluster")
_NET_SECONDS: Final = 30.0
"""After so long it is looked at although nobody told: a notice may be lost."""
_BETWEEN: Final = 0.05
"""Those that are told in a row are looked at together."""


@dataclass(slots=True)
class _Topic:
    """One thing that is looked at again, in turn."""

    name: str
    look: Look
    news: anyio.Event = field(default_factory=anyio.Event)

    def hear(self, subject: str) -> None:
        del subject
        self.news.set()

    async def run(self) -> None:
        while True:
            with anyio.move_on_after(_NET_SECONDS):
                await self.news.wait()
            self.news = anyio.Event()
            try:
                await self.look()
            except OpenFangError as error:  # it is looked at again
                _log.warning("What changed of %s is not seen yet: %s", self.name, error.message)
            await anyio.sleep(_BETWEEN)


@dataclass(frozen=True, slots=True)
class Fresh:
    """Keeps wire names, pins, installs and the cards of peers the same on all nodes."""

    parts: Parts

    async def run(self) -> None:
        """Look whenever it is told, until cancelled."""
        looks = {NAMES: self._names, PINS: self._pins}
        looks |= {INSTALLS: self._installs, PEERS: self._peers}
        async with anyio.create_task_group() as group:
            for notice, look in looks.items():
                group.start_soon(_listening(self.parts.database, notice.topic, look).run)

    async def _names(self) -> None:
        """Who lost a name to another node's tool gets another one, by what is there now."""
        self._take_in(self.parts.registry.learn(await names_in(self.parts.database)))

    async def _pins(self) -> None:
        """What is accepted, held or first seen elsewhere is so here."""
        board, registry = self.parts.registry.board, self.parts.registry
        found = await pins_beside(self.parts.database, board.pins)
        if not found:
            return
        board.learn(found)
        changed = {pin.id for pin in found}
        self._take_in(registry.sources_of(changed))
        if any(map(is_spoken, changed)):
            sift_again(self.parts)

    def _take_in(self, keys: Iterable[str]) -> None:
        for key in keys:
            kind, _, name = key.partition(":")
            source = self.parts.sources.get((Kind(kind), name))
            if source is not None:
                self.parts.add(Kind(kind), source)

    async def _installs(self) -> None:
        if self.parts.installs is not None:
            await self.parts.installs.look_again()

    async def _peers(self) -> None:
        if self.parts.peers is not None:
            await self.parts.peers.look_again()


def _listening(storage: Storage, name: str, look: Look) -> _Topic:
    topic = _Topic(name, look)
    storage.on(name, topic.hear)
    return topic
