"""What the files of each node ask for, as rows: while files differ, what one lacks is another's.

A file's home has one node, and nobody to be told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.core.values import dataclass
from openfang.storage.units import Unit

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from openfang.storage.ports import Storage, Writes

Statement = tuple[str, "Sequence[Any]"]
SCHEDULES: Final = "schedule"
PEERS: Final = "peer"
_AWAY_NS: Final = 3_600_000_000_000
_OWN: Final = "SELECT name FROM asked WHERE node = ? AND kind = ?"
# Who is not there may be on its way back, with the same file or with another.
_ELSEWHERE: Final = (
    "SELECT DISTINCT name FROM asked WHERE kind = ? AND node <> ? AND NOT EXISTS "
    "(SELECT 1 FROM members WHERE members.node = asked.node AND beat_at <= clock_ns() - ?)"
)


@dataclass(frozen=True, slots=True)
class AskedFor:
    """Says what this node's files ask for, and knows what those of others do."""

    database: Storage
    writer: Writes

    async def say(self, kind: str, names: Collection[str]) -> None:
        """Say what is asked for here, if it is not known."""
        if self._alone:
            return
        rows = await self.database.read(_OWN, (self.writer.node, kind))
        if {row[0] for row in rows} != {*names}:
            await self.writer.write(Unit(statements=_say(self.writer.node, kind, names)))

    async def elsewhere(self, kind: str) -> frozenset[str]:
        """Name what is asked for by other nodes that were there within the last hour."""
        if self._alone:
            return frozenset()
        rows = await self.database.read(_ELSEWHERE, (kind, self.writer.node, _AWAY_NS))
        return frozenset(row[0] for row in rows)

    @property
    def _alone(self) -> bool:
        return self.database.dialect == "sqlite"


def _say(node: str, kind: str, names: Collection[str]) -> tuple[Statement, ...]:
    sql = "INSERT INTO asked (node, kind, name) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
    return (
        ("DELETE FROM asked WHERE node = ? AND kind = ?", (node, kind)),
        *((sql, (node, kind, name)) for name in sorted(names)),
    )
