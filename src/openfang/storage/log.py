"""Reading the audit log: ranges, searches, open calls, checkpoints. Writing is the writer's."""

from __future__ import annotations

from contextlib import aclosing
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from openfang.core.bookmarks import ALONE, LAST, Bookmark, bookmark, read_bookmark
from openfang.core.errors import Rejected
from openfang.core.events import TOOL_INVOCATION_END, TOOL_INVOCATION_START
from openfang.storage.chains import Part, chains, in_time, of_chain, within
from openfang.storage.database import looked
from openfang.storage.units import GENESIS, Head

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
LogRow: TypeAlias = tuple[str, int, int, str, str, str, str, str, str, bytes]


async def batches(
    reader: Reader, *, after: int | Bookmark = 0, node: str | None = None
) -> AsyncGenerator[list[LogRow]]:
    """Read the chains of the log, one after the other, each in its order, some records at once."""
    for name in [node] if node is not None else await chain_names(reader):
        last = bookmark(after).of(name)
        while found := await batch(reader, name, last):
            yield found
            last = found[-1][1]


async def rows(
    reader: Reader, *, after: int | Bookmark = 0, node: str | None = None
) -> AsyncGenerator[LogRow]:
    """Read the same, one by one, without holding it all."""
    async with aclosing(batches(reader, after=after, node=node)) as some:
        async for found in some:
            for row in found:
                yield row


async def chain_names(reader: Reader) -> list[str]:
    """Name the chains of the log, in their order."""
    return sorted(chain.node for chain in await chains(reader))


async def batch(reader: Reader, node: str, after: int) -> list[LogRow]:
    """Read the next records of a chain: so many at once, or fewer if they are long."""
    where, names = of_chain(node)
    sql = f"SELECT {_COLUMNS} FROM audit WHERE {where} AND seq > ? ORDER BY seq LIMIT {_BATCH}"  # noqa: S608 - constants
    return await reader.read(sql, (*names, after), most=_BATCH_BYTES)  # type: ignore[return-value]


def all_rows(path: Path) -> list[LogRow]:
    """Read all of the log of a database file. Blocks."""

    async def read(reader: Reader) -> list[LogRow]:
        return [row async for row in rows(reader)]

    return looked(path, read)


async def search(reader: Reader, wanted: Search) -> list[LogRow]:
    """Find the newest matching records, oldest first."""
    if wanted.record:
        return await named(reader, wanted.record)
    found = await reader.read(*await _searched(reader, wanted), most=_QUERY_BYTES)
    if sum(len(row[7]) for row in found) > _QUERY_BYTES:
        raise Rejected(
            f"The records have more than {_QUERY_BYTES} bytes.",
            status=422,
            rule="query",
            way_out="ask for fewer at once (limit), or export them",
        )
    if reader.dialect == "sqlite":
        return found[::-1]  # type: ignore[return-value]
    return in_time(sorted(found, key=itemgetter(0, 1)), reader.dialect)  # type: ignore[return-value]


async def _searched(reader: Reader, wanted: Search) -> tuple[str, list[Any]]:
    """Look in each chain from its end; of what they have, the newest is wanted."""
    conditions, values = _conditions(wanted)
    each, parameters = list[str](), list[Any]()
    after = bookmark(wanted.after)
    for name in await _searched_chains(reader, wanted):
        where, names = of_chain(name)
        all_of = " AND ".join((where, "seq > ?", *conditions))
        each.append(f"SELECT {_COLUMNS} FROM audit WHERE {all_of} ORDER BY seq DESC LIMIT ?")  # noqa: S608 - marks only
        parameters += (*names, after.of(name), *values, wanted.limit)
    if len(each) == 1:
        return each[0], parameters
    joined = " UNION ALL ".join(f"({one})" for one in each)
    newest = "ORDER BY at DESC, node DESC, seq DESC LIMIT ?"
    return f"SELECT * FROM ({joined}) AS found {newest}", [*parameters, wanted.limit]  # noqa: S608 - as above


async def _searched_chains(reader: Reader, wanted: Search) -> list[str]:
    if wanted.node:
        return [wanted.node]
    return [ALONE] if reader.dialect == "sqlite" else await chain_names(reader) or [ALONE]


async def record(reader: Reader, seq: int, digest: bytes) -> LogRow | None:
    """Find the record with this number and this hash, whosever it is."""
    names = await chain_names(reader)
    where, parameters = within(Part(name, seq - 1, seq) for name in names)
    sql = f"SELECT {_COLUMNS} FROM audit WHERE {where} AND hash = ?"  # noqa: S608 - marks only
    found = await reader.read(sql, (*parameters, digest))
    return found[0] if found else None  # type: ignore[return-value]


async def places(reader: Reader, after: int | Bookmark) -> dict[str, Head]:
    """Say where the chain of each node stood at this record."""
    found, at = list[tuple[Any, ...]](), bookmark(after)
    for name in await chain_names(reader):
        sql, names = (_IN_FILE, ()) if name == ALONE else (_ON_SERVER, (name,))
        found += await reader.read(sql, (*names, at.of(name)))
    # SQLite stores anything anywhere: what is no hash is none.
    return {
        node: Head(last, digest if isinstance(digest, bytes) else b"")
        for node, last, digest in found
    }


# Whatever stands in a file under a second name is told, too.
_IN_FILE: Final = (
    "SELECT audit.node, audit.seq, audit.hash FROM audit JOIN "
    "(SELECT node, MAX(seq) AS last FROM audit WHERE seq <= ? GROUP BY node) AS ends "
    "ON audit.node = ends.node AND audit.seq = ends.last ORDER BY audit.node"
)
_ON_SERVER: Final = (
    "SELECT node, seq, hash FROM audit WHERE node = ? AND seq <= ? ORDER BY seq DESC LIMIT 1"
)


async def named(reader: Reader, name: str) -> list[LogRow]:
    """Find the record of this name: its number, or its node and its number there."""
    node, number = _name(name)
    names = [node] if node else await chain_names(reader)
    where, parameters = within(Part(one, number - 1, number) for one in names)
    sql = f"SELECT {_COLUMNS} FROM audit WHERE {where} ORDER BY node"  # noqa: S608 - marks only
    found = await reader.read(sql, parameters, most=_QUERY_BYTES)
    if len(found) > 1:
        nodes = [row[0] for row in found]
        raise Rejected(
            f"The nodes {', '.join(nodes)} have a record {number} each.",
            status=422,
            rule="record",
            way_out=f"name the node with it: {nodes[0]}:{number}",
        )
    return found  # type: ignore[return-value]


def _name(name: str) -> tuple[str, int]:
    """Read the name of a record."""
    mark = read_bookmark(name)
    if mark is None or "," in name:
        raise Rejected(
            f"{name[:100]} is no record.",
            status=422,
            rule="record",
            way_out="a number, as 12, or a node and a number, as node-1:12",
        )
    return next(iter(mark.places.items()), ("", mark.rest))


def _conditions(wanted: Search) -> tuple[list[str], list[Any]]:
    exact = {
        "event": wanted.event,
        "call_id": wanted.call_id,
        "task_id": wanted.task_id,
        "level": wanted.level,
        "json_extract(context, '$.tool')": wanted.tool,
        "json_extract(context, '$.caller')": wanted.caller,
    }
    conditions, parameters = list[str](), list[Any]()
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


async def head_of(reader: Reader, node: str) -> Head:
    """Say where the chain of a node ends."""
    return (await places(reader, Bookmark({node: LAST}))).get(node, GENESIS)


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
