"""Who makes calls on this home. A process that vanished is known by the lock it no longer holds."""

from __future__ import annotations

import fcntl
import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from openfang.core.ids import new_id

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
    from pathlib import Path

    from openfang.storage.ports import Reader


@dataclass(slots=True)
class Process:
    """This process, as the home knows it: a row, and a file it keeps locked while it lives.

    `known` is for whoever commits the row to set: until then every start brings it along.
    """

    folder: Path
    id: str = field(default_factory=lambda: new_id("process"))
    known: bool = field(init=False, default=False)
    _lock: int = field(init=False, default=-1)

    def begin(self, low_water: int) -> tuple[str, Sequence[Any]]:
        """Take the lock, and return the statement that makes the process known."""
        if self._lock < 0:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(self.folder / f"{self.id}.lock", os.O_CREAT | os.O_RDWR, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        sql = (
            "INSERT INTO processes (id, started_at, low_water) VALUES (?, ?, ?) "
            "ON CONFLICT DO NOTHING"
        )
        return sql, (self.id, time.time_ns(), low_water)

    def progress(self, low_water: int) -> tuple[str, Sequence[Any]]:
        """Return the statement that says: no call before this record is still open."""
        return "UPDATE processes SET low_water = ? WHERE id = ?", (low_water, self.id)

    def end(self) -> tuple[str, Sequence[Any]]:
        """Return the statement that says: everything ended as it should."""
        return ended(self.id)

    def release(self) -> None:
        """Give the lock up; nobody will look for our calls any more."""
        if self._lock >= 0:
            (self.folder / f"{self.id}.lock").unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = -1


@dataclass(frozen=True, slots=True)
class Vanished:
    """A process that ended without saying so, while we hold its lock."""

    id: str
    low_water: int


def ended(process: str) -> tuple[str, Sequence[Any]]:
    """Return the statement that closes a process's row."""
    return "UPDATE processes SET ended_at = ? WHERE id = ?", (time.time_ns(), process)


def living(folder: Path) -> Iterator[Path]:
    """Yield each lock that a living process holds: those of calls, and the daemon's."""
    for file in sorted(folder.glob("*.lock")):
        if _held(file):
            yield file


def gone(folder: Path, processes: Iterable[str]) -> frozenset[str]:
    """Name those of these processes that hold their lock no longer."""
    return frozenset(process for process in processes if not _held(folder / f"{process}.lock"))


def _held(file: Path) -> bool:
    try:
        lock = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _forget(file: Path) -> None:
    file.unlink(missing_ok=True)


def _taken(file: Path) -> int | None:
    """Take the lock of a process, if that holds it no longer."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(file, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


async def vanished(reader: Reader, folder: Path, *, me: str) -> AsyncGenerator[Vanished]:
    """Yield each process that is gone, holding its lock meanwhile so that one of us cleans up."""
    sql = "SELECT id, low_water FROM processes WHERE ended_at IS NULL AND id <> ?"
    for process, low_water in await reader.read(sql, (me,)):
        file = folder / f"{process}.lock"
        lock = _taken(file)
        if lock is None:
            continue
        try:
            if await reader.read(f"{sql} AND id = ?", (me, process)):
                yield Vanished(process, low_water)
            _forget(file)
        finally:
            os.close(lock)
