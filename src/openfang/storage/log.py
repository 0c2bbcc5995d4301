"""Reading the audit log: ranges, searches, open calls, checkpoints. Writing is the writer's."""

from __future__ import annotations

from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from openfang.core.errors import Rejected
from openfang.core.events import TOOL_INVOCATION_END, TOOL_INVOCATION_START
from openfang.storage.database import BUSY_SECONDS, Database, explained, up_to
from openfang.storage.units import Head

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from openfang.core.log import Search

_COLUMNS = "node, seq, at, event, level, call_id, task_id, payload, context, hash"
_QUERY_BYTES = 20_000_000
_BATCH = 500
_BATCH_BYTES = 1_000_000
LogRow: TypeAlias = tuple[str, int, int, str, str, str, str, str, str, bytes]


def rows(path: Path, *, after: int = 0, node: str | None = None) -> Iterator[LogRow]:
    """Read the log in order, without holding it all."""
    where = "seq > ?" if node is None else "node = ? AND seq > ?"
    parameters: tuple[Any, ...] = (after,) if node is None else (node, after)
    with closing(Database(path, patience=BUSY_SECONDS)) as database, explained(path):
        sql = f"SELECT {_COLUMNS} FROM audit WHERE {where} ORDER BY seq"  # noqa: S608 - constants
        yield from database.connection.execute(sql, parameters)


def batch(found: Iterator[LogRow]) -> list[LogRow]:
    """Take the next records: so many at once, or fewer if they are long."""
    return list(up_to(islice(found, _BATCH), _BATCH_BYTES))


def search(path: Path, wanted: Search) -> list[LogRow]:
    """Find the newest matching records, oldest first, on a connection of its own."""
    conditions, parameters = _conditions(wanted)
    where = " AND ".join(conditions)
    sql = f"SELECT {_COLUMNS} FROM audit WHERE {where} ORDER BY seq DESC LIMIT ?"  # noqa: S608 - marks only
    with closing(Database(path, patience=BUSY_SECONDS)) as database:
        found = database.read_now(sql, (*parameters, wanted.limit), most=_QUERY_BYTES)
    if sum(len(row[7]) for row in found) > _QUERY_BYTES:
        raise Rejected(
            f"The records have more than {_QUERY_BYTES} bytes.",
            status=422,
            rule="query",
            way_out="ask for fewer at once (limit), or export them",
        )
    return found[::-1]  # type: ignore[return-value]


def record(path: Path, seq: int, digest: bytes) -> LogRow | None:
    """Find the record with this number and this hash."""
    sql = f"SELECT {_COLUMNS} FROM audit WHERE seq = ? AND hash = ?"  # noqa: S608 - constants
    with closing(Database(path, patience=BUSY_SECONDS)) as database:
        found = database.read_now(sql, (seq, digest))
    return found[0] if found else None  # type: ignore[return-value]


def places(path: Path, seq: int) -> dict[str, Head]:
    """Say where the chain of each node stood at this record."""
    sql = (
        "SELECT audit.node, audit.seq, audit.hash FROM audit JOIN "
        "(SELECT node, MAX(seq) AS last FROM audit WHERE seq <= ? GROUP BY node) AS ends "
        "ON audit.node = ends.node AND audit.seq = ends.last ORDER BY audit.node"
    )
    with closing(Database(path, patience=BUSY_SECONDS)) as database:
        found = database.read_now(sql, (seq,))
    # SQLite stores anything anywhere: what is no hash is none.
    return {
        node: Head(last, digest if isinstance(digest, bytes) else b"")
        for node, last, digest in found
    }


def last_number(database: Database) -> int:
    """The number of the newest record."""
    return database.read_now("SELECT COALESCE(MAX(seq), 0) FROM audit")[0][0]


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
        conditions.append("(instr(payload, ?) OR instr(context, ?))")
        parameters += [wanted.text, wanted.text]
    return conditions, parameters


def open_calls(database: Database, process: str, low_water: int) -> list[tuple[str, str, str]]:
    """Find calls that a process started and nobody ended: call id, task id, context."""
    sql = """
        SELECT call_id, task_id, context FROM audit AS started
        WHERE seq >= ? AND event = ? AND json_extract(context, '$.process') = ?
          AND NOT EXISTS (
            SELECT 1 FROM audit AS ended
            WHERE ended.seq > started.seq AND ended.node = started.node
              AND ended.event = ? AND ended.call_id = started.call_id)
    """
    started = (low_water, TOOL_INVOCATION_START, process, TOOL_INVOCATION_END)
    return database.read_now(sql, started)  # type: ignore[return-value]


def last_checkpoint(database: Database, node: str) -> int | None:
    """When the newest checkpoint of a node was signed, in nanoseconds since the epoch."""
    sql = "SELECT at FROM checkpoints WHERE node = ? ORDER BY seq DESC LIMIT 1"
    found = database.read_now(sql, (node,))
    return found[0][0] if found else None


def checkpoints_after(
    database: Database, node: str, seq: int, limit: int
) -> list[tuple[str, int, int, bytes, str, bytes]]:
    """Read the checkpoints of a node behind a record, oldest first."""
    sql = (
        "SELECT node, seq, at, hash, signer, signature FROM checkpoints "
        "WHERE node = ? AND seq > ? ORDER BY seq LIMIT ?"
    )
    return database.read_now(sql, (node, seq, limit))  # type: ignore[return-value]


def unanchored(database: Database, node: str, seq: int) -> tuple[int, int | None]:
    """How many checkpoints of a node are behind a record, and when the oldest was signed."""
    sql = "SELECT COUNT(*), MIN(at) FROM checkpoints WHERE node = ? AND seq > ?"
    return database.read_now(sql, (node, seq))[0]  # type: ignore[return-value]


def checkpoints(database: Database) -> list[tuple[str, int, int, bytes, str, bytes]]:
    """Read the signed checkpoints that the database itself keeps."""
    sql = "SELECT node, seq, at, hash, signer, signature FROM checkpoints ORDER BY node, seq"
    return database.read_now(sql)  # type: ignore[return-value]
