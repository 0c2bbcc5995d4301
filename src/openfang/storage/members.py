"""The nodes that share a database, as it knows them, and what the operator says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.storage.ports import Reader

Statement = tuple[str, "Sequence[Any]"]
DEAD_NS: Final = 10_000_000_000
"""Who has not beaten for so long is dead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One of them. `silent` is how long ago it beat, by the database's clock, in nanoseconds."""

    node: str
    process: str
    version: str
    schema: int
    address: str
    started_at: int
    silent: int
    draining: bool
    left: bool

    @property
    def state(self) -> str:
        """Say in a word how it is."""
        if self.left:
            return "left"
        if self.silent >= DEAD_NS:
            return "dead"
        return "draining" if self.draining else "alive"

    @property
    def present(self) -> bool:
        """Whether it beats."""
        return self.state in {"alive", "draining"}


MEMBERS: Final = (
    "SELECT node, process, version, schema, address, started_at, clock_ns() - beat_at, draining, "
    "left_at FROM members ORDER BY node"
)


def member(row: Sequence[Any]) -> Member:
    """Read a row of the query above."""
    node, process, version, schema, address, started_at, silent, draining, left_at = row
    return Member(
        node=node,
        process=process,
        version=version,
        schema=schema,
        address=address,
        started_at=started_at,
        silent=silent,
        draining=bool(draining),
        left=left_at is not None,
    )


async def members(reader: Reader) -> list[Member]:
    """List them by name; a file has one node, and no members."""
    if reader.dialect == "sqlite":
        return []
    return [member(row) for row in await reader.read(MEMBERS)]


def drain(node: str, *, on: bool) -> Statement:
    """Let a node take nothing new, or let it do so again."""
    return "UPDATE members SET draining = ? WHERE node = ?", (int(on), node)


def forget(known: Member) -> Statement:
    """Forget a member that is dead or has left. If it has come back the unit fails."""
    sql = (
        "UPDATE members SET version = CASE WHEN process = ? "
        "AND (left_at IS NOT NULL OR beat_at < clock_ns() - ?) THEN version END WHERE node = ?"
    )
    return sql, (known.process, DEAD_NS, known.node)


def forgotten(node: str) -> tuple[Statement, ...]:
    """Take its row away, and what its files asked for, behind what `forget` has made sure of."""
    return tuple((f"DELETE FROM {one} WHERE node = ?", (node,)) for one in ("members", "asked"))  # noqa: S608 - constants
