"""Who is connected: who waits longest, who has a place, and the beat that counts their time."""

from __future__ import annotations

import asyncio
import contextvars
from email.utils import formatdate
from math import ceil
from typing import TYPE_CHECKING, Final, cast

from uvicorn.server import ServerState

from openfang.core.values import dataclass
from openfang.host.refusals import OVERLOADED, STOPPING

if TYPE_CHECKING:
    from openfang.host.connection import Connection
    from openfang.host.refusals import Refusal

_LONGEST_BEAT: Final = 1.0
_BEATS_PER_DEADLINE: Final = 4
_LINGER_SECONDS: Final = 2.0
# An upload this fast is never late.
_BYTES_PER_SECOND: Final = 65_536
# Connections that were answered for the last time hold no place, so they are few.
_MOST_LEAVING: Final = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """How many connections there may be, and how long each may take over what."""

    connections: int = 1000
    head_seconds: float = 10.0
    body_seconds: float = 30.0
    idle_seconds: float = 75.0
    drain_seconds: float = 10.0


class Crowd(ServerState):
    """The connections of one server.

    Time is counted in beats. A process that stood still for a minute has counted one beat, so that
    nobody is late for what nobody could read.
    """

    def __init__(self, limits: ServerLimits) -> None:
        super().__init__()
        shortest = min(limits.head_seconds, limits.body_seconds, limits.idle_seconds)
        self.period = min(_LONGEST_BEAT, shortest / _BEATS_PER_DEADLINE)
        self.places = limits.connections
        self.head = self._beats(limits.head_seconds)
        self.body = self._beats(limits.body_seconds)
        self.idle = self._beats(limits.idle_seconds)
        self.drain_seconds = limits.drain_seconds
        self.linger = self._beats(min(_LINGER_SECONDS, limits.head_seconds))
        self.bytes_per_beat = int(_BYTES_PER_SECOND * self.period)
        self.beat = 0
        # In the order in which they began to wait for their client.
        self.waiting: dict[Connection, None] = {}
        self.leaving: dict[Connection, None] = {}
        # Every request begins with this context, not with what another one left behind.
        self.context = contextvars.copy_context()
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self.stopping = False
        self.nobody = asyncio.Event()
        self.nobody.set()

    def _beats(self, seconds: float) -> int:
        return ceil(seconds / self.period)

    def present(self) -> tuple[Connection, ...]:
        """Everybody who has not hung up, in no order."""
        return cast("tuple[Connection, ...]", tuple(self.connections))

    def count_time(self) -> None:
        """Let time pass until `stop_time`."""
        self._timer = self._loop.call_later(self.period, self.count_time)
        self.default_headers = [(b"date", formatdate(usegmt=True).encode())]
        self.beat += 1
        for connection in self.present():
            connection.on_beat()

    def stop_time(self) -> None:
        """Count no more beats."""
        if self._timer is not None:
            self._timer.cancel()

    def arrive(self, newcomer: Connection) -> Refusal | None:
        """Give the newcomer a place, if need be of whoever waits longest, or say why not."""
        self.nobody.clear()
        if self.stopping:
            return STOPPING
        if len(self.connections) - len(self.leaving) > self.places:
            longest = next(iter(self.waiting), None)
            if longest is None:
                return OVERLOADED
            longest.evict()
        self.waiting[newcomer] = None
        return None

    def leave(self, connection: Connection) -> None:
        """Free the place of somebody who only has to hang up yet."""
        self.waiting.pop(connection, None)
        self.leaving[connection] = None
        if len(self.leaving) > _MOST_LEAVING:
            first = next(iter(self.leaving))
            self.gone(first)
            first.transport.abort()

    def gone(self, connection: Connection) -> None:
        """Forget somebody."""
        self.waiting.pop(connection, None)
        self.leaving.pop(connection, None)
        self.connections.discard(connection)
        if not self.connections:
            self.nobody.set()

    async def finished(self) -> None:
        """Wait until no request is worked on, and everybody has their answer and hung up."""
        while self.tasks:
            await asyncio.wait(self.tasks)
        await self.nobody.wait()
