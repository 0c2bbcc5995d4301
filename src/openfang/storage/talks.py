"""Sessions of MCP clients as rows, for the nodes that do not have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from openfang.storage.marks import among

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.storage.ports import Reader

Statement = tuple[str, "Sequence[Any]"]
_COLUMNS: Final = "id, caller, toolset, agent, talk, node, generation, used_at"


class TalkRow(NamedTuple):
    """One session: whose it is and where, and the node that has it, none if that let it go."""

    id: str
    caller: str
    toolset: str
    agent: str
    talk: str
    node: str
    generation: int
    used_at: int


async def find(reader: Reader, number: str) -> TalkRow | None:
    """Find one."""
    sql = f"SELECT {_COLUMNS} FROM mcp_sessions WHERE id = ?"  # noqa: S608 - constants
    rows = await reader.read(sql, (number,))
    return TalkRow(*rows[0]) if rows else None


async def strayed(reader: Reader, numbers: Sequence[str], node: str) -> list[str]:
    """Name those of these that another node has, or nobody."""
    sql = f"SELECT id FROM mcp_sessions WHERE node = ? AND {among('id', numbers)}"  # noqa: S608 - marks
    held = {number for (number,) in await reader.read(sql, (node, *numbers))}
    return [number for number in numbers if number not in held]


def keep(row: TalkRow) -> Statement:
    """Keep one as it is now, unless another node has taken it over."""
    marks = ", ".join("?" * len(row))
    sql = (
        f"INSERT INTO mcp_sessions ({_COLUMNS}) VALUES ({marks}) "  # noqa: S608 - constants
        "ON CONFLICT (id) DO UPDATE SET talk = excluded.talk, used_at = excluded.used_at, "
        "node = excluded.node WHERE mcp_sessions.generation = excluded.generation"
    )
    return sql, row


def take(row: TalkRow, node: str, now: int) -> Statement:
    """Take one over, unless another node has by now: whoever reads it afterwards knows."""
    sql = (
        "UPDATE mcp_sessions SET node = ?, generation = generation + 1, used_at = ? "
        "WHERE id = ? AND generation = ?"
    )
    return sql, (node, now, row.id, row.generation)


def drop(number: str, node: str) -> Statement:
    """Forget one that has ended on this node."""
    return "DELETE FROM mcp_sessions WHERE id = ? AND node = ?", (number, node)


def renew(numbers: Sequence[str], node: str, now: int) -> Statement:
    """Note that these of a node's are used."""
    sql = f"UPDATE mcp_sessions SET used_at = ? WHERE node = ? AND {among('id', numbers)}"  # noqa: S608 - marks
    return sql, (now, node, *numbers)


def drop_unused(before: int) -> Statement:
    """Forget those that nobody has used since then."""
    return "DELETE FROM mcp_sessions WHERE used_at < ?", (before,)
