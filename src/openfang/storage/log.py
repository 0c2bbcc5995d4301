"""Reading the audit log: ranges, searches, open calls, checkpoints. Writing is the writer's."""

from __future__ import annotations

import re
import sqlite3
import time
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from openfang.core.errors import Rejected
from openfang.core.events import TOOL_INVOCATION_END, TOOL_INVOCATION_START
from openfang.core.log import QUERY_ROWS
from openfang.storage.database import BUSY_SECONDS, Database, explained, up_to
from openfang.storage.writer import Head

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from openfang.core.log import Search, Table

_COLUMNS = "node, seq, at, event, level, call_id, task_id, payload, context, hash"
_QUERY_SECONDS = 10.0
_QUERY_STEPS = 10_000
_QUERY_BYTES = 20_000_000
_BATCH = 500
_BATCH_BYTES = 1_000_000
_READING = frozenset(
    {
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
    }
)
_READABLE = frozenset({"audit", "task_audits", "checkpoints", "sqlite_master"})
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
        found = database.read(sql, (*parameters, wanted.limit), most=_QUERY_BYTES)
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
        found = database.read(sql, (seq, digest))
    return found[0] if found else None  # type: ignore[return-value]


def places(path: Path, seq: int) -> dict[str, Head]:
    """Say where the chain of each node stood at this record."""
    sql = (
        "SELECT audit.node, audit.seq, audit.hash FROM audit JOIN "
        "(SELECT node, MAX(seq) AS last FROM audit WHERE seq <= ? GROUP BY node) AS ends "
        "ON audit.node = ends.node AND audit.seq = ends.last ORDER BY audit.node"
    )
    with closing(Database(path, patience=BUSY_SECONDS)) as database:
        found = database.read(sql, (seq,))
    # SQLite stores anything anywhere: what is no hash is none.
    return {
        node: Head(last, digest if isinstance(digest, bytes) else b"")
        for node, last, digest in found
    }


def last_number(database: Database) -> int:
    """The number of the newest record."""
    return database.read("SELECT COALESCE(MAX(seq), 0) FROM audit")[0][0]


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
    return database.read(sql, started)  # type: ignore[return-value]


def last_checkpoint(database: Database, node: str) -> int | None:
    """When the newest checkpoint of a node was signed, in nanoseconds since the epoch."""
    sql = "SELECT at FROM checkpoints WHERE node = ? ORDER BY seq DESC LIMIT 1"
    found = database.read(sql, (node,))
    return found[0][0] if found else None


def checkpoints_after(
    database: Database, node: str, seq: int, limit: int
) -> list[tuple[str, int, int, bytes, str, bytes]]:
    """Read the checkpoints of a node behind a record, oldest first."""
    sql = (
        "SELECT node, seq, at, hash, signer, signature FROM checkpoints "
        "WHERE node = ? AND seq > ? ORDER BY seq LIMIT ?"
    )
    return database.read(sql, (node, seq, limit))  # type: ignore[return-value]


def unanchored(database: Database, node: str, seq: int) -> tuple[int, int | None]:
    """How many checkpoints of a node are behind a record, and when the oldest was signed."""
    sql = "SELECT COUNT(*), MIN(at) FROM checkpoints WHERE node = ? AND seq > ?"
    return database.read(sql, (node, seq))[0]  # type: ignore[return-value]


def checkpoints(database: Database) -> list[tuple[str, int, int, bytes, str, bytes]]:
    """Read the signed checkpoints that the database itself keeps."""
    sql = "SELECT node, seq, at, hash, signer, signature FROM checkpoints ORDER BY node, seq"
    return database.read(sql)  # type: ignore[return-value]


def query(path: Path, sql: str, *, limit: int = QUERY_ROWS) -> list[Table]:
    """Run queries of the operator's own: read-only, bounded, on a connection of their own."""
    with closing(Database(path, patience=BUSY_SECONDS)) as database:
        connection = database.connection
        connection.execute("PRAGMA query_only = ON")
        # That alone still lets ATTACH make files, and PRAGMA change the database's own settings.
        connection.set_authorizer(_only_the_log(database))
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _QUERY_BYTES)
        until = time.monotonic() + _QUERY_SECONDS
        connection.set_progress_handler(lambda: time.monotonic() > until, _QUERY_STEPS)
        try:
            return [_table(database, one, limit) for one in _statements(sql)]
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            raise _not_run(str(error).rstrip(".")) from error


def _table(database: Database, sql: str, limit: int) -> Table:
    cursor = database.connection.execute(sql)
    names = [column[0] for column in cursor.description or ()]
    rows, size = list["Sequence[Any]"](), 0
    for row in islice(cursor, limit):
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
        if size > _QUERY_BYTES:
            raise _not_run(f"its answer has more than {_QUERY_BYTES} bytes")
        rows.append(row)
    return names, rows


def _not_run(why: str) -> Rejected:
    return Rejected(
        f"The query could not be run: {why}.",
        status=422,
        rule="query",
        way_out="only SELECT runs here, on audit, task_audits and checkpoints, for a few seconds",
    )


def _statements(sql: str) -> list[str]:
    """Cut where SQLite itself sees the end of a statement; comments alone are none."""
    found, rest = list[str](), ""
    for piece in re.split(r"(?<=;)", sql):
        rest += piece
        if sqlite3.complete_statement(rest):
            found.append(rest)
            rest = ""
    without_comments = re.sub(r"--[^\n]*|/\*.*?\*/", "", rest, flags=re.DOTALL)
    return [*found, rest] if without_comments.strip() or not found else found


def _only_the_log(database: Database) -> Callable[..., int]:
    """Let a query read the log and nothing else: keys, memory and results are not an auditor's."""
    found = database.read("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
    hidden = {str(name).lower() for (name,) in found} - _READABLE

    def decide(action: int, table: str | None, column: str | None, *_: object) -> int:
        allowed = action in _READING
        if action == sqlite3.SQLITE_READ:
            name = (table or "").lower()
            # A table that is only counted comes without a column; so does a query's own WITH.
            allowed = name in _READABLE or (not column and name not in hidden)
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    return decide
