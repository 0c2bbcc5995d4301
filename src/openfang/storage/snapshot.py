"""A copy of a database as it is at one moment, while others go on writing to it."""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING

from openfang.core.errors import HomeError
from openfang.storage.database import BUSY_SECONDS, Database, explain

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

COPY_SECONDS = 600.0
_STEPS = 5_000


class Stopped(HomeError):  # noqa: N818 - it reads as what it is
    """Whoever asked for the copy no longer waits for it."""


def snapshot(
    source: Path, target: Path, *, stop: Callable[[], bool], seconds: float = COPY_SECONDS
) -> None:
    """Write a whole copy to a new file. Blocks; writers are kept waiting by nothing.

    One read transaction sees one moment. What was deleted is not copied, and the WAL cannot be
    emptied meanwhile, so that there is a deadline.
    """
    deadline = time.monotonic() + seconds
    with closing(Database(source, patience=BUSY_SECONDS)) as database:
        watch = _watch(stop, deadline)
        database.connection.set_progress_handler(watch, _STEPS)
        try:
            database.connection.execute("VACUUM INTO ?", (str(target),))
        except sqlite3.Error as error:
            raise _meaning(source, target, error, stop=stop, seconds=seconds) from error


def _watch(stop: Callable[[], bool], deadline: float) -> Callable[[], bool]:
    return lambda: stop() or time.monotonic() > deadline


def _meaning(
    source: Path, target: Path, error: sqlite3.Error, *, stop: Callable[[], bool], seconds: float
) -> Exception:
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_FULL:
            return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))
        case sqlite3.SQLITE_INTERRUPT if stop():
            return Stopped("The copy was stopped.")
        case sqlite3.SQLITE_INTERRUPT:
            return HomeError(
                f"{source} could not be copied within {seconds:g} s.",
                way_out="copy to a faster disk, or at a quieter time",
            )
        case _:
            return explain(source, error)
