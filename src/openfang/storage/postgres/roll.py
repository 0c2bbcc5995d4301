"""Who is gone, where several machines share a database: nobody sees another one's locks there.

A process is gone when it has ended, when another one has taken over what it left, or when it is one
of this home and holds its lock no longer. That it is silent is for others to judge who have watched
it (`app/cluster/watching.py`): one look, and one clock, can be wrong. Only silence beyond all doubt
counts here as well.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from anyio import to_thread

from openfang.core.values import dataclass
from openfang.storage.marks import among
from openfang.storage.postgres.fence import fence
from openfang.storage.processes import Statement, Vanished, forget, held

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection
    from pathlib import Path

    from openfang.storage.ports import Reader
    from openfang.storage.processes import Process

NONE_OPEN: Final = (1 << 63) - 1
"""Behind every record: no call of the process is open."""
_BEYOND_DOUBT: Final = 60_000_000_000
_LEFT: Final = (
    "EXISTS (SELECT 1 FROM tasks WHERE tasks.process = processes.id AND final = 0) OR "
    "EXISTS (SELECT 1 FROM agent_runs WHERE agent_runs.process = processes.id "
    "AND agent_runs.state = 'running') OR "
    "EXISTS (SELECT 1 FROM members WHERE members.process = processes.id AND left_at IS NULL)"
)


@dataclass(frozen=True, slots=True)
class Beats:
    """Knows the processes of all nodes by their rows, and those of this home by their locks."""

    reader: Reader
    process: Process

    async def gone(self, processes: Collection[str]) -> frozenset[str]:
        """Name those that will do nothing any more."""
        asked = frozenset(processes) - {self.process.id}
        if not asked:
            return asked
        sql = (
            f"SELECT id FROM processes WHERE {among('id', asked)} AND ended_at IS NULL "  # noqa: S608 - marks only
            "AND heir = '' AND beat_at > clock_ns() - ?"
        )
        living = {row[0] for row in await self.reader.read(sql, (*asked, _BEYOND_DOUBT))}
        unlocked = await to_thread.run_sync(_unlocked, self.process.folder, living)
        return asked - (living - unlocked - self.process.former)

    async def vanished(self, reader: Reader, *, me: str) -> AsyncGenerator[Vanished]:
        """Yield each of this home that is gone."""
        folder = self.process.folder
        left = {one.id: one for one in await unended(reader) if one.id != me and not one.heir}
        for process in _unlocked(folder, left):
            yield left[process]
            if all(one.id != process or one.heir for one in await unended(reader)):
                forget(folder / f"{process}.lock")

    async def fence(self, process: str) -> None:
        """End the connection on which it writes, if the server still serves it."""
        await fence(self.reader, process)

    def closing(self, gone: Vanished, low_water: int) -> tuple[Statement, ...]:
        """Be its heir; and end it, if it has left nothing but calls.

        If it beats again, or somebody else was faster, a column turns NULL and the unit fails.
        """
        process = self.process
        begin = () if process.known else (process.begin(low_water),)
        sql = (
            f"UPDATE processes SET low_water = ?, heir = ?, ended_at = CASE WHEN {_LEFT} THEN NULL "  # noqa: S608 - constants
            "ELSE CAST(? AS BIGINT) END, started_at = CASE WHEN ended_at IS NULL AND heir = ? "
            "AND beat_at = ? THEN started_at END WHERE id = ?"
        )
        mine = (NONE_OPEN, process.id, time.time_ns(), gone.heir, gone.beat_at, gone.id)
        return *begin, (sql, mine)

    def end(self, process: str) -> Statement:
        """End it; what it had under way is there for others to go on with at once."""
        sql = (
            f"UPDATE processes SET low_water = ?, beat_at = 0, ended_at = CASE WHEN {_LEFT} "  # noqa: S608 - constants
            "THEN NULL ELSE CAST(? AS BIGINT) END WHERE id = ?"
        )
        return sql, (NONE_OPEN, time.time_ns(), process)


async def unended(reader: Reader) -> list[Vanished]:
    """List the processes that have not said that they ended: those that live, and others."""
    sql = "SELECT id, low_water, node, beat_at, heir FROM processes WHERE ended_at IS NULL"
    return [
        Vanished(id=row[0], low_water=row[1], node=row[2], beat_at=row[3], heir=row[4])
        for row in await reader.read(sql)
    ]


def _unlocked(folder: Path, processes: Collection[str]) -> frozenset[str]:
    """Name those that are of this home, and hold their lock no longer."""
    return frozenset(one for one in processes if held(folder / f"{one}.lock") is False)
