"""A connection of its own for signs of life: nothing else that is done holds them up."""

from __future__ import annotations

import time
from dataclasses import field
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import anyio

from openfang.core.errors import HomeError
from openfang.core.values import dataclass
from openfang.storage.members import DEAD_NS, MEMBERS, Member, member
from openfang.storage.postgres.driver import connect
from openfang.storage.postgres.errors import Unreachable, explain, is_lost
from openfang.storage.processes import Vanished

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from openfang.storage.postgres.address import Address

CUT_SECONDS: Final = 6.0
"""Who could not beat for so long does nothing more, before others take it for dead."""
_BEAT: Final = (
    "UPDATE processes SET beat_at = clock_ns() WHERE id = ANY($1::text[]) AND ended_at IS NULL "
    "AND heir = '' RETURNING id"
)
_MEMBER: Final = (
    "UPDATE members SET beat_at = clock_ns(), address = $3 WHERE node = $1 AND process = $2 "
    "AND left_at IS NULL RETURNING draining"
)
_OPEN: Final = "SELECT id, low_water, node, beat_at, heir FROM processes WHERE ended_at IS NULL"
_JOIN: Final = (
    "INSERT INTO members (node, process, version, schema, address, started_at, beat_at) "
    "VALUES ($1, $2, $3, $4, $5, clock_ns(), clock_ns()) "
    "ON CONFLICT (node) DO UPDATE SET process = excluded.process, version = excluded.version, "
    "schema = excluded.schema, address = excluded.address, started_at = excluded.started_at, "
    "beat_at = excluded.beat_at, left_at = NULL, "
    "draining = CASE WHEN $8::boolean THEN members.draining ELSE 0 END "
    "WHERE members.left_at IS NOT NULL "
    "OR members.beat_at < clock_ns() - $6 OR members.process = ANY($7::text[]) RETURNING node"
)


class Seen(NamedTuple):
    """What one look shows: which of our processes are ours still, and everybody else."""

    ours: frozenset[str]
    members: Sequence[Member]
    unended: Sequence[Vanished]
    draining: bool | None
    """Whether this node is to take nothing new; None if the member of its name is not we."""


class Joining(NamedTuple):
    """A node that wants to be a member; `schema` is the newest that it knows."""

    node: str
    process: str
    version: str
    schema: int
    address: str


def since_boot() -> float:
    """A clock that only goes forward, also while the machine sleeps, in seconds."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(slots=True)
class Pulse:
    """Until when this process may take itself for alive, by its own clock."""

    until: float = inf

    @property
    def lost(self) -> bool:
        """Whether others may take us for dead: then nothing may be written."""
        return since_boot() > self.until

    def beat(self, began: float) -> None:
        """Others have heard of us, not before then."""
        self.until = began + CUT_SECONDS

    def check(self) -> None:
        """Refuse what would be written by a process that others may take for dead."""
        if self.lost:
            raise HomeError(
                f"This node was cut off from its database for more than {CUT_SECONDS:g} s, and "
                "stopped its work.",
                way_out="it goes on by itself when the database answers: openfang nodes list",
            )


@dataclass(slots=True)
class Beating:
    """Beats and looks, each time within its time; a connection that broke is opened again."""

    address: Address
    _connection: Any = field(init=False, default=None)
    _turns: anyio.Lock = field(init=False, default_factory=anyio.Lock)

    async def join(self, new: Joining, ours: Collection[str], *, again: bool = False) -> bool:
        """Be a member, unless another process beats under this name; `ours` are no others.

        Who joins again drains if it did.
        """
        given = (*new, DEAD_NS, list(ours), again)
        return bool(await self._do(lambda one: one.fetch(_JOIN, *given), CUT_SECONDS))

    async def named(self, node: str) -> Member | None:
        """Look at the member of a name."""
        rows = await self._do(lambda one: one.fetch(MEMBERS), CUT_SECONDS)
        return next((found for found in map(member, rows) if found.node == node), None)

    async def turn(self, me: Joining | None, processes: Collection[str], seconds: float) -> Seen:
        """Beat, for the member too if there is one, and look at all others."""
        return await self._do(lambda one: _turn(one, me, processes), seconds)

    async def run(self, sql: str, *given: object) -> None:
        """Change something of these tables."""
        await self._do(lambda one: one.execute(sql, *given), CUT_SECONDS)

    async def aclose(self) -> None:
        """Give the connection back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                await connection.close(timeout=1.0)
            except Exception:  # noqa: BLE001 - of the driver or of the network: it is gone anyway
                connection.terminate()

    async def _do(self, work: Callable[[Any], Awaitable[Any]], seconds: float) -> Any:  # noqa: ANN401 - the driver has no types
        async with self._turns:
            return await self._done(work, seconds)

    async def _done(self, work: Callable[[Any], Awaitable[Any]], seconds: float) -> Any:  # noqa: ANN401 - as above
        try:
            with anyio.fail_after(seconds):
                if self._connection is None or self._connection.is_closed():
                    self._connection = await connect(self.address, seconds=seconds)
                return await work(self._connection)
        except BaseException as error:
            self._drop()
            if isinstance(error, Exception) and not isinstance(error, HomeError):
                raise self._said(error) from error
            raise

    def _said(self, error: Exception) -> HomeError:
        if is_lost(error) or hasattr(error, "sqlstate"):
            return explain(self.address, error)
        return Unreachable(f"{self.address} was lost: {error}", way_out="see whether it runs")

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()


async def _turn(connection: Any, me: Joining | None, processes: Collection[str]) -> Seen:  # noqa: ANN401 - as above
    ours = await connection.fetch(_BEAT, list(processes))
    draining: bool | None = False
    if me is not None:
        rows = await connection.fetch(_MEMBER, me.node, me.process, me.address)
        draining = bool(rows[0][0]) if rows else None
    members = await connection.fetch(MEMBERS)
    found = await connection.fetch(_OPEN)
    return Seen(
        ours=frozenset(row[0] for row in ours),
        members=[member(row) for row in members],
        unended=[
            Vanished(id=row[0], low_water=row[1], node=row[2], beat_at=row[3], heir=row[4])
            for row in found
        ],
        draining=draining,
    )
