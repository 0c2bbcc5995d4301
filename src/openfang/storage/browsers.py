"""Browsers that are signed in, as rows, for nodes that share a database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.storage.ports import Reader

Statement = tuple[str, "Sequence[Any]"]


async def find(reader: Reader, mark: str) -> tuple[str, int, int] | None:
    """Find what one signed in with, when it was used last, and when it ends."""
    sql = "SELECT masked, used_at, ends_at FROM browsers WHERE mark = ?"
    rows = await reader.read(sql, (mark,))
    return (rows[0][0], rows[0][1], rows[0][2]) if rows else None


def keep(mark: str, masked: str, used_at: int, ends_at: int) -> Statement:
    """Keep one as it is now."""
    sql = (
        "INSERT INTO browsers (mark, masked, used_at, ends_at) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (mark) DO UPDATE SET used_at = excluded.used_at"
    )
    return sql, (mark, masked, used_at, ends_at)


def drop(mark: str) -> Statement:
    """Forget one."""
    return "DELETE FROM browsers WHERE mark = ?", (mark,)


def drop_over(now: int, idle: int, most: int) -> Statement:
    """Forget those that are over, and the oldest of too many."""
    sql = (
        "DELETE FROM browsers WHERE ends_at <= ? OR used_at <= ? OR mark NOT IN "
        "(SELECT mark FROM browsers ORDER BY used_at DESC, mark LIMIT ?)"
    )
    return sql, (now, now - idle, most)
