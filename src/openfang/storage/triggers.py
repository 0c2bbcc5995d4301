"""When triggers have started an agent, on any node, as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.storage.ports import Reader

Statement = tuple[str, "Sequence[Any]"]
_HOUR: Final = 3_600_000_000_000


async def started(reader: Reader, name: str, now: int) -> int:
    """Count how often one has started something in the last hour."""
    sql = "SELECT COUNT(*) FROM trigger_starts WHERE name = ? AND at > ?"
    return (await reader.read(sql, (name, now - _HOUR)))[0][0]


def start(name: str, now: int) -> tuple[Statement, ...]:
    """Keep that one starts something; what is longer ago than an hour does not count."""
    return (
        ("DELETE FROM trigger_starts WHERE name = ? AND at <= ?", (name, now - _HOUR)),
        ("INSERT INTO trigger_starts (name, at) VALUES (?, ?)", (name, now)),
    )
