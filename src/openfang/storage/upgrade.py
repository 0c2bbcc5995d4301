"""What is kept when a database is brought to a newer schema: a copy of it, as it was before."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from secrets import token_hex
from typing import TYPE_CHECKING, Final

from openfang.core.errors import HomeError

if TYPE_CHECKING:
    from pathlib import Path

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_WORD: Final = ".schema-"


def kept_copies(database: Path) -> list[Path]:
    """Find the copies from before an upgrade."""
    return sorted(database.parent.glob(f"{database.name}{_WORD}[0-9]*"))


def is_copy(database: str, name: str) -> bool:
    """Whether a name is that of a copy of this database."""
    return name.startswith(f"{database}{_WORD}")


def keep_copy(database: Path, version: int) -> None:
    """Copy what is in the database, whole or not at all. Whoever will change it has locked it."""
    copy = database.with_name(f"{database.name}{_WORD}{version}")
    part = database.with_name(f".{copy.name}.{token_hex(8)}")
    try:
        os.close(os.open(part, _NEW, 0o600))
        with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(part)) as target:
            source.backup(target)
        _sync(part)
        part.replace(copy)
        _sync(copy.parent)
    except (OSError, sqlite3.Error) as error:
        with suppress(OSError):
            part.unlink()
        raise HomeError(
            f"The home is of an older version (schema {version}), and no copy of its database "
            f"can be kept before it is changed: {error}. Nothing was changed.",
            way_out=f"make {copy.parent} writable, with {_megabytes(database)} MB free",
        ) from error


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _megabytes(database: Path) -> int:
    return database.stat().st_size // 1_000_000 + 1
