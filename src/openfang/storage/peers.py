"""Agents elsewhere as rows: how each introduced itself, and who began which task there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.storage.ports import Reader

Statement = tuple[str, "Sequence[Any]"]
MOST_TASKS: Final = 10_000
"""So many tasks of one peer are remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptPeer:
    """A peer that was found under `url`; `seen_at` is in nanoseconds."""

    name: str
    url: str
    card: Mapping[str, Any]
    seen_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunTask:
    """A task at a peer, and for whom it was begun; `context` is the peer's word for it."""

    peer: str
    task: str
    caller: str
    context: str
    seen_at: int


@dataclass(frozen=True, slots=True)
class PeerStore:
    """Reads them; the statements below change them."""

    database: Reader

    async def all(self) -> dict[str, KeptPeer]:
        """Read every one, by name."""
        rows = await self.database.read("SELECT name, url, card, seen_at FROM peers ORDER BY name")
        return {
            row[0]: KeptPeer(name=row[0], url=row[1], card=orjson.loads(row[2]), seen_at=row[3])
            for row in rows
        }

    async def owner(self, peer: str, task: str) -> str | None:
        """Say for whom a task was begun."""
        sql = "SELECT caller FROM peer_tasks WHERE peer = ? AND task = ?"
        rows = await self.database.read(sql, (peer, task))
        return rows[0][0] if rows else None

    async def speaks_in(self, peer: str, caller: str, context: str) -> bool:
        """Whether a conversation at a peer is this caller's."""
        sql = "SELECT 1 FROM peer_tasks WHERE peer = ? AND context = ? AND caller = ? LIMIT 1"
        return bool(await self.database.read(sql, (peer, context, caller)))


def keep(peer: KeptPeer) -> Statement:
    """Keep what a peer says of itself, in place of what it said before."""
    sql = (
        "INSERT INTO peers VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE "
        "SET url = excluded.url, card = excluded.card, seen_at = excluded.seen_at"
    )
    return sql, (peer.name, peer.url, orjson.dumps(peer.card).decode(), peer.seen_at)


def forget(name: str) -> tuple[Statement, ...]:
    """Forget a peer, and what was begun there."""
    return (
        ("DELETE FROM peers WHERE name = ?", (name,)),
        ("DELETE FROM peer_tasks WHERE peer = ?", (name,)),
    )


def begin(begun: BegunTask) -> tuple[Statement, ...]:
    """Remember who began a task; of those of one peer the oldest go."""
    put = (
        "INSERT INTO peer_tasks VALUES (?, ?, ?, ?, ?) ON CONFLICT (peer, task) DO UPDATE "
        "SET caller = excluded.caller, context = excluded.context, seen_at = excluded.seen_at"
    )
    trim = (
        "DELETE FROM peer_tasks WHERE peer = ? AND seen_at < (SELECT seen_at FROM peer_tasks "
        "WHERE peer = ? ORDER BY seen_at DESC LIMIT 1 OFFSET ?)"
    )
    row = (begun.peer, begun.task, begun.caller, begun.context, begun.seen_at)
    return (put, row), (trim, (begun.peer, begun.peer, MOST_TASKS - 1))
