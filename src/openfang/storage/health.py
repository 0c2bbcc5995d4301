"""What a look at the database tells of its state; nothing is changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from openfang.storage.database import Database


def damage(database: Database) -> str:
    """Say what SQLite finds wrong with its file; nothing when it is sound."""
    found = [str(row[0]) for row in database.read("PRAGMA quick_check(3)")]
    return "" if found == ["ok"] else "; ".join(found)


def schema_version(database: Database) -> int:
    """The number of the last migration that was applied."""
    return int(database.read("SELECT MAX(number) FROM migrations")[0][0] or 0)


def last_record(database: Database) -> int:
    """When the newest audit record was written, in nanoseconds."""
    return int(database.read("SELECT MAX(at) FROM audit")[0][0] or 0)
