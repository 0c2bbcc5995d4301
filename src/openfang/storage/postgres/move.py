"""Copying all tables of a SQLite home into an empty Postgres database, in one transaction."""

from __future__ import annotations

from contextlib import closing
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from anyio import to_thread

from openfang.core.errors import Conflict, HomeError
from openfang.core.values import dataclass
from openfang.storage.database import Database
from openfang.storage.postgres.dialect import clean
from openfang.storage.postgres.driver import connect
from openfang.storage.postgres.errors import explain
from openfang.storage.postgres.migrate import LOCK, migrate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from openfang.storage.postgres.address import Address

_TABLES: Final = (
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'migrations' "
    "AND name NOT LIKE 'memory_words%' AND name NOT LIKE 'sqlite_%' ORDER BY name"
)
_LOG: Final = (
    "SELECT node, seq, at, event, level, call_id, task_id, payload, context, hash FROM audit "
    "ORDER BY node, seq"
)
_NODE: Final = "SELECT value FROM settings WHERE name = 'node'"
_OF_ITS_NODE: Final = """
    UPDATE settings SET name = name || '@' || (
        SELECT own.value FROM settings AS own WHERE own.name = 'node')
    WHERE (name = 'ledger.folded' OR name LIKE 'sink:%' OR name LIKE 'anchor:%')
      AND EXISTS (SELECT 1 FROM settings AS own WHERE own.name = 'node')
"""
"""A place in the log that was the only one of a file is here one in the chain of that node."""
_AT_ONCE: Final = 1_000
_NUMBERED: Final = (("tasks", "seq"), ("memory", "id"))


@dataclass(slots=True, kw_only=True)
class Moved:
    """Whose rows, and how many each table has; `new` is false where they were there already."""

    node: str
    rows: dict[str, int] = field(default_factory=dict[str, int])
    new: bool = True


async def move(file: Path, address: Address, check: Callable[[Iterable[Any]], None]) -> Moved:
    """Copy everything, or nothing. `check` raises if rows of the log are not what was written."""
    database = await to_thread.run_sync(Database, file)
    with closing(database):
        await to_thread.run_sync(database.connection.execute, "BEGIN")
        connection = await connect(address)
        try:
            await migrate(connection)
            await connection.execute("SET statement_timeout = 0")
            async with connection.transaction():
                return await _moved(database, connection, address, check)
        except (OSError, ValueError) as error:
            raise explain(address, error) from error
        except Exception as error:
            if hasattr(error, "sqlstate"):
                raise explain(address, error) from error
            raise
        finally:
            await connection.close(timeout=2)


async def _moved(
    database: Database,
    connection: Any,  # noqa: ANN401 - the driver has no types
    address: Address,
    check: Callable[[Iterable[Any]], None],
) -> Moved:
    await connection.execute("SELECT pg_advisory_xact_lock($1)", LOCK)
    tables = [name for (name,) in database.read_now(_TABLES)]
    here = {table: _count(database, table) for table in tables}
    there = {table: await connection.fetchval(f"SELECT COUNT(*) FROM {table}") for table in tables}  # noqa: S608 - names of our own
    if any(there.values()):
        return await _known(database, connection, address, there)
    await to_thread.run_sync(check, database.connection.execute(_LOG))
    for table in tables:
        await _copy(database, connection, table)
    await connection.execute(_OF_ITS_NODE)
    for table, column in _NUMBERED:
        await connection.execute(
            f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'), MAX({column})) "  # noqa: S608 - as above
            f"FROM {table} HAVING MAX({column}) IS NOT NULL"
        )
    await to_thread.run_sync(check, [tuple(row) for row in await connection.fetch(_LOG)])
    return Moved(node=_node(database), rows=here)


def _node(database: Database) -> str:
    return "".join(name for (name,) in database.read_now(_NODE))


def _count(database: Database, table: str) -> int:
    return database.read_now(f"SELECT COUNT(*) FROM {table}")[0][0]  # noqa: S608 - names of our own


async def _known(
    database: Database,
    connection: Any,  # noqa: ANN401 - as above
    address: Address,
    there: dict[str, int],
) -> Moved:
    """Tell a home that was moved already from another one."""
    ours = _node(database)
    theirs = await connection.fetchval(_NODE)
    last = "SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1"
    head = database.read_now(last)
    found = await connection.fetch(
        "SELECT 1 FROM audit WHERE seq = $1 AND hash = $2", *(head[0] if head else (0, b""))
    )
    if ours == theirs and found:
        return Moved(node=ours, rows=there, new=False)
    filled = ", ".join(f"{table} ({count})" for table, count in there.items() if count)
    raise Conflict(
        f"{address} holds something else already: {filled}.",
        way_out="name an empty database: createdb makes one",
    )


async def _copy(database: Database, connection: Any, table: str) -> None:  # noqa: ANN401 - as above
    columns = [row[1] for row in database.read_now(f"PRAGMA table_info({table})")]
    cursor = database.connection.execute(f"SELECT {', '.join(columns)} FROM {table}")  # noqa: S608 - names of our own
    while some := await to_thread.run_sync(cursor.fetchmany, _AT_ONCE):
        try:
            await connection.copy_records_to_table(
                table, records=list(_storable(some)), columns=columns
            )
        except ValueError as error:
            raise HomeError(
                f"A row of the table {table} is not of the types that it should have ({error}).",
                way_out="see what somebody wrote into the file: openfang audit verify",
            ) from error


def _storable(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    for row in rows:
        yield tuple(clean(value) if isinstance(value, str) else value for value in row)
