"""Who began what at a peer: it knows the node alone, and tells none of our callers apart."""

from __future__ import annotations

import hmac
import json
import logging
from dataclasses import field
from typing import TYPE_CHECKING

from openfang.core.values import dataclass
from openfang.storage.peers import BegunTask, begin
from openfang.storage.units import Unit

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Callable

    from openfang.storage.peers import PeerStore
    from openfang.storage.ports import Writes
    from openfang.storage.units import Written

_log = logging.getLogger("openfang.a2a")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Keeps callers apart: a task and a conversation are for who began them."""

    store: PeerStore
    writer: Writes
    key: bytes = field(repr=False)
    now: Callable[[], int]

    async def owner(self, peer: str, task: str) -> str | None:
        """Say for whom a task was begun; None if nobody here did."""
        return await self.store.owner(peer, task)

    async def abroad(self, peer: str, caller: str, context: str) -> str:
        """Name a conversation as the peer has it; any name that it did not give is the caller's."""
        if not context or await self.store.speaks_in(peer, caller, context):
            return context
        named = json.dumps([peer, caller, context]).encode()
        return f"context_{hmac.digest(self.key, named, 'sha256').hex()[:32]}"

    def begins(self, peer: str, caller: str, task: str, context: str) -> None:
        """Remember for whom a task was begun, soon: a node that is killed comes back to it."""
        written = self.writer.submit(self._unit(peer, caller, task, context))
        written.add_done_callback(_written)

    async def begun(self, peer: str, caller: str, task: str, context: str) -> None:
        """Remember it before anybody hears of the task."""
        await self.writer.write(self._unit(peer, caller, task, context))

    def _unit(self, peer: str, caller: str, task: str, context: str) -> Unit:
        row = BegunTask(peer=peer, task=task, caller=caller, context=context, seen_at=self.now())
        return Unit(statements=begin(row))


def _written(done: Future[Written]) -> None:
    error = None if done.cancelled() else done.exception()
    if error is not None:
        _log.warning("Who began a task elsewhere could not be kept yet: %s", error)
