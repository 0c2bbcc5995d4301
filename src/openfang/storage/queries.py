"""The operator's own queries of the audit log: nothing else is read, nothing is changed."""

from __future__ import annotations

import re
import sqlite3
import time
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any

from openfang.core.errors import Rejected
from openfang.core.log import QUERY_ROWS
from openfang.storage.database import BUSY_SECONDS, Database

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from openfang.core.log import Table

QUERY_SECONDS = 10.0
_QUERY_STEPS = 10_000
QUERY_BYTES = 20_000_000
_READING = frozenset(
    {
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
    }
)
_READABLE = frozenset({"audit", "task_audits", "checkpoints", "sqlite_master"})


def query(path: Path, sql: str, *, limit: int = QUERY_ROWS) -> list[Table]:
    """Run queries of the operator's own: read-only, bounded, on a connection of their own."""
    with closing(Database(path, patience=BUSY_SECONDS)) as database:
        connection = database.connection
        connection.execute("PRAGMA query_only = ON")
        # That alone still lets ATTACH make files, and PRAGMA change the database's own settings.
        connection.set_authorizer(_only_the_log(database))
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, QUERY_BYTES)
        until = time.monotonic() + QUERY_SECONDS
        connection.set_progress_handler(lambda: time.monotonic() > until, _QUERY_STEPS)
        try:
            return [_table(database, one, limit) for one in statements(sql)]
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            raise not_run(str(error).rstrip(".")) from error


def _table(database: Database, sql: str, limit: int) -> Table:
    cursor = database.connection.execute(sql)
    names = [column[0] for column in cursor.description or ()]
    rows, size = list["Sequence[Any]"](), 0
    for row in islice(cursor, limit):
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
        if size > QUERY_BYTES:
            raise not_run(f"its answer has more than {QUERY_BYTES} bytes")
        rows.append(row)
    return names, rows


def not_run(why: str) -> Rejected:
    """Say why a query was not run, and which ones are."""
    return Rejected(
        f"The query could not be run: {why}.",
        status=422,
        rule="query",
        way_out="only SELECT runs here, on audit, task_audits and checkpoints, for a few seconds",
    )


def statements(sql: str) -> list[str]:
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
    found = database.read_now("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
    hidden = {str(name).lower() for (name,) in found} - _READABLE

    def decide(action: int, table: str | None, column: str | None, *_: object) -> int:
        allowed = action in _READING
        if action == sqlite3.SQLITE_READ:
            name = (table or "").lower()
            # A table that is only counted comes without a column; so does a query's own WITH.
            allowed = name in _READABLE or (not column and name not in hidden)
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    return decide
