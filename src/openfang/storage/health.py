"""What a look at the database tells of its state; nothing is changed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from openfang.storage.units import GENESIS, Head

if TYPE_CHECKING:
    from pathlib import Path

    from openfang.storage.database import Database

_NEWEST = 10_000
_SECOND = 1_000_000_000


def damage(database: Database) -> str:
    """Say what SQLite finds wrong with its file; nothing when it is sound."""
    found = [str(row[0]) for row in database.read_now("PRAGMA quick_check(3)")]
    return "" if found == ["ok"] else "; ".join(found)


def is_locked(database: Path) -> bool:
    """Whether somebody else keeps the database from being written to, for a second."""
    try:
        with closing(sqlite3.connect(database, timeout=1, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        return error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
    return False


def schema_version(database: Database) -> int:
    """The number of the last migration that was applied."""
    sql = "SELECT CAST(MAX(number) AS BIGINT) FROM migrations"
    return int(database.read_now(sql)[0][0] or 0)


def last_record(database: Database) -> int:
    """When the newest audit record was written, in nanoseconds."""
    return int(database.read_now("SELECT MAX(at) FROM audit")[0][0] or 0)


def chain_head(database: Database, node: str) -> Head:
    """The end of a node's chain."""
    sql = "SELECT seq, hash FROM audit WHERE node = ? ORDER BY seq DESC LIMIT 1"
    rows = database.read_now(sql, (node,))
    if not rows:
        return GENESIS
    seq, found = rows[0]  # SQLite stores anything anywhere
    return Head(seq, found if isinstance(found, bytes) else str(found or "").encode())


def times_set_back(database: Database) -> int:
    """How often, in the newest records, the clock fell by more than a second."""
    sql = """
        SELECT COUNT(*) FROM (
            SELECT at, LAG(at) OVER (ORDER BY seq) AS before
            FROM (SELECT seq, at FROM audit ORDER BY seq DESC LIMIT ?) AS newest) AS pairs
        WHERE at < before - ?
    """
    return int(database.read_now(sql, (_NEWEST, _SECOND))[0][0])


def wal_bytes(database: Path) -> int:
    """The size of the log in front of a database file, into which everything is written first."""
    try:
        return database.with_name(f"{database.name}-wal").stat().st_size
    except FileNotFoundError:
        return 0


def held_back(database: Database) -> list[str]:
    """Name the definitions that were held back at first sight, and that nobody has accepted."""
    return [
        row[0]
        for row in database.read_now("SELECT tool FROM pins WHERE accepted = 0 ORDER BY tool")
    ]
