"""Reading the audit log: ranges, searches, open calls, checkpoints. Writing is the writer's."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from openfang.core.errors import Rejected
from openfang.core.events import TOOL_INVOCATION_END, TOOL_INVOCATION_START
from openfang.storage.database import looked
from openfang.storage.units import Head

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from openfang.core.log import Search
    from openfang.storage.ports import Reader
    from openfang.storage.processes import Vanished

_COLUMNS = "node, seq, at, event, level, call_id, task_id, payload, context, hash"
_QUERY_BYTES = 20_000_000
_BATCH = 500
_BATCH_BYTES = 1_000_000
_LAST: Final = "\U0010ffff"
"""Behind the name of every node."""
LogRow: TypeAlias = tuple[str, int, int, str, str, str, str, str, str, bytes]


async def batches(
    reader: Reader, *, after: int = 0, node: str | None = None
) -> AsyncGenerator[list[LogRow]]:
    """Read the log in order, some at once."""
    place = Place(after)
    while found := await batch(reader, place, node=node):
        yield found
        place = Place(found[-1][1], found[-1][0])


async def rows(
    reader: Reader, *, after: int = 0, node: str | None = None
) -> AsyncGenerator[LogRow]:
    """Read the log in order, one by one, without holding it all."""
    async with aclosing(batches(reader, after=after, node=node)) as some:
        async for found in some:
            for row in found:
                yield row


class Place(NamedTuple):
    """Where somebody has got in the log: behind this record, or behind all of this number."""

    seq: int
    node: str = _LAST


async def batch(reader: Reader, behind: Place, *, node: str | None = None) -> list[LogRow]:
    """Read the next records: so many at once, or fewer if they are long."""
    # Two nodes may number records alike: the log is in the order of both.
    where, parameters = "seq >= ? AND (seq > ? OR node > ?)", (behind.seq, *behind)
    if node is not None:
        where, parameters = "node = ? AND seq > ?", (node, behind.seq)
    sql = f"SELECT {_COLUMNS} FROM audit WHERE {where} ORDER BY seq, node LIMIT {_BATCH}"  # noqa: S608 - constants
    return await reader.read(sql, parameters, most=_BATCH_BYTES)  # type: ignore[return-value]


def all_rows(path: Path) -> list[LogRow]:
    """Read all of the log of a database file. Blocks."""

    async def read(reader: Reader) -> list[LogRow]:
        return [row async for row in rows(reader)]

    return looked(path, read)


async def search(reader: Reader, wanted: Search) -> list[LogRow]:
    """Find the newest matching records, oldest first."""
    conditions, parameters = _conditions(wanted)
    where = " AND ".join(conditions)
    sql = f"SELECT {_COLUMNS} FROM audit WHERE {where} ORDER BY seq DESC LIMIT ?"  # noqa: S608 - marks only
    found = await reader.read(sql, (*parameters, wanted.limit), most=_QUERY_BYTES)
    if sum(len(row[7]) for row in found) > _QUERY_BYTES:
        raise Rejected(
            f"The records have more than {_QUERY_BYTES} bytes.",
            status=422,
            rule="query",
            way_out="ask for fewer at once (limit), or export them",
        )
    return found[::-1]  # type: ignore[return-value]


async def record(reader: Reader, seq: int, digest: bytes) -> LogRow | None:
    """Find the record with this number and this hash."""
    sql = f"SELECT {_COLUMNS} FROM audit WHERE seq = ? AND hash = ?"  # noqa: S608 - constants
    found = await reader.read(sql, (seq, digest))
    return found[0] if found else None  # type: ignore[return-value]


async def places(reader: Reader, seq: int) -> dict[str, Head]:
    """Say where the chain of each node stood at this record."""
    sql = (
        "SELECT audit.node, audit.seq, audit.hash FROM audit JOIN "
        "(SELECT node, MAX(seq) AS last FROM audit WHERE seq <= ? GROUP BY node) AS ends "
        "ON audit.node = ends.node AND audit.seq = ends.last ORDER BY audit.node"
    )
    found = await reader.read(sql, (seq,))
    # SQLite stores anything anywhere: what is no hash is none.
    return {
        node: Head(last, digest if isinstance(digest, bytes) else b"")
        for node, last, digest in found
    }


async def last_number(reader: Reader) -> int:
    """The number of the newest record."""
    return (await reader.read("SELECT COALESCE(MAX(seq), 0) FROM audit"))[0][0]


def _conditions(wanted: Search) -> tuple[list[str], list[Any]]:
    exact = {
        "event": wanted.event,
        "call_id": wanted.call_id,
        "task_id": wanted.task_id,
        "level": wanted.level,
        "json_extract(context, '$.tool')": wanted.tool,
        "json_extract(context, '$.caller')": wanted.caller,
    }
    conditions, parameters = ["seq > ?"], list[Any]([wanted.after])
    for column, value in exact.items():
        if value:
            conditions.append(f"{column} = ?")
            parameters.append(value)
    if wanted.text:
        conditions.append("(instr(payload, ?) > 0 OR instr(context, ?) > 0)")
        parameters += [wanted.text, wanted.text]
    return conditions, parameters


async def open_calls(reader: Reader, left: Vanished) -> list[tuple[str, str, str]]:
    """Find calls that a process started and did not end: call id, task id, context.

    They stand in the chain of its node, and so do the endings that it wrote.
    """
    sql = """
        SELECT call_id, task_id, context FROM audit AS started
        WHERE node = ? AND seq >= ? AND event = ? AND json_extract(context, '$.process') = ?
          AND NOT EXISTS (
            SELECT 1 FROM audit AS ended
            WHERE ended.seq > started.seq AND ended.node = started.node
              AND ended.event = ? AND ended.call_id = started.call_id)
    """
    started = (left.node, left.low_water, TOOL_INVOCATION_START, left.id, TOOL_INVOCATION_END)
    return await reader.read(sql, started)  # type: ignore[return-value]


async def last_checkpoint(reader: Reader, node: str) -> int | None:
    """When the newest checkpoint of a node was signed, in nanoseconds since the epoch."""
    sql = "SELECT at FROM checkpoints WHERE node = ? ORDER BY seq DESC LIMIT 1"
    found = await reader.read(sql, (node,))
    return found[0][0] if found else None


async def checkpoints_after(
    reader: Reader, node: str, seq: int, limit: int
) -> list[tuple[str, int, int, bytes, str, bytes]]:
    """Read the checkpoints of a node behind a record, oldest first."""
    sql = (
        "SELECT node, seq, at, hash, signer, signature FROM checkpoints "
        "WHERE node = ? AND seq > ? ORDER BY seq LIMIT ?"
    )
    return await reader.read(sql, (node, seq, limit))  # type: ignore[return-value]


async def unanchored(reader: Reader, node: str, seq: int) -> tuple[int, int | None]:
    """How many checkpoints of a node are behind a record, and when the oldest was signed."""
    sql = "SELECT COUNT(*), MIN(at) FROM checkpoints WHERE node = ? AND seq > ?"
    return (await reader.read(sql, (node, seq)))[0]  # type: ignore[return-value]


async def checkpoints(reader: Reader) -> list[tuple[str, int, int, bytes, str, bytes]]:
    """Read the signed checkpoints that the database itself keeps."""
    sql = "SELECT node, seq, at, hash, signer, signature FROM checkpoints ORDER BY node, seq"
    return await reader.read(sql)  # type: ignore[return-value]
