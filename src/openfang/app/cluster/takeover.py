"""What a dead process left is taken over by one that lives, and by one alone.

Its calls are ended, its tasks and runs are gone on with or ended, and who has to know is told.
"""

from __future__ import annotations

import logging
from dataclasses import field
from typing import TYPE_CHECKING, Final

import anyio

from openfang.app.endings import end_calls_of
from openfang.core.errors import OpenFangError
from openfang.core.events import NODE_CHANGED, Record
from openfang.core.values import dataclass
from openfang.storage.processes import ended

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from openfang.app.agents.running import Agents
    from openfang.app.parts import Parts
    from openfang.storage.processes import Vanished

_PAUSE_SECONDS: Final = 2.0
_log = logging.getLogger("openfang.cluster")


@dataclass(slots=True)
class Takeover:
    """Takes over from one after the other, beside the beats. `hears` are told of dead members."""

    parts: Parts
    hears: list[Callable[[str], Awaitable[None]]] = field(
        default_factory=list["Callable[[str], Awaitable[None]]"]
    )
    _wanted: dict[str, tuple[Vanished, bool]] = field(
        default_factory=dict[str, "tuple[Vanished, bool]"]
    )
    _more: anyio.Event = field(default_factory=anyio.Event)

    def want(self, gone: Vanished, *, member: bool) -> None:
        """Take over from a process soon; `member` is whether it served a node."""
        if gone.id not in self._wanted:
            self._wanted[gone.id] = gone, member
            self._more.set()

    async def run(self) -> None:
        """Take over until cancelled."""
        while True:
            await self._more.wait()
            self._more = anyio.Event()
            for gone, member in list(self._wanted.values()):
                await self._try(gone, member=member)
                del self._wanted[gone.id]

    async def _try(self, gone: Vanished, *, member: bool) -> None:
        """Do it; what could not be done is found again by the next look."""
        try:
            await self._from(gone, member=member)
        except (OSError, OpenFangError) as error:  # of the network, or of this node's own disk
            _log.warning("What %s of %s left waits: %s", gone.id, gone.node, error)
            await anyio.sleep(_PAUSE_SECONDS)

    async def _from(self, gone: Vanished, *, member: bool) -> None:
        count = await end_calls_of(self.parts, gone)
        if count is None:
            return
        _log.warning("%s of %s is gone: %d of its calls were open", gone.id, gone.node, count)
        agents = self._agents
        if agents is not None:
            await agents.take_over()
        if member:
            for hear in self.hears:
                await hear(gone.node)
        left = "UPDATE members SET left_at = beat_at WHERE process = ? AND left_at IS NULL"
        records = [_record(gone, count)] if member else []
        await self.parts.broker.append(records, (ended(gone.id), (left, (gone.id,))))

    @property
    def _agents(self) -> Agents | None:
        return self.parts.agents.agents if self.parts.agents else None

    async def stopped(self, seconds: float) -> None:
        """Wait until nothing that was stopped is under way any more."""
        with anyio.move_on_after(seconds) as scope:
            await self.parts.tasks.stopped()
            if self._agents is not None:
                await self._agents.stopped()
        if scope.cancelled_caught:
            _log.error("Some work did not stop within %g s", seconds)


def _record(gone: Vanished, calls: int) -> Record:
    payload = {"node": gone.node, "act": "gone", "process": gone.id, "calls": calls}
    return Record(event=NODE_CHANGED, level="warning", payload=payload)
