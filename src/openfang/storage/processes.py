"""Who makes calls on this home, and who of them is gone.

A process of a file is known by the lock that it no longer holds. Where several machines share a
database nobody sees another one's locks: there it is known by its beats (`postgres/roll.py`).
"""

from __future__ import annotations

import fcntl
import os
import time
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol

from openfang.core.ids import new_id
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection, Iterator, Sequence
    from pathlib import Path

    from openfang.storage.ports import Reader

Statement = tuple[str, "Sequence[Any]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Vanished:
    """A process that ended without saying so. `heir` sees to what it left, if one does already."""

    id: str
    low_water: int
    node: str = ""
    beat_at: int = 0
    heir: str = ""


class Roll(Protocol):
    """Says who is gone."""

    async def gone(self, processes: Collection[str]) -> frozenset[str]:
        """Name those of these processes that will do nothing any more."""
        ...

    def vanished(self, reader: Reader, *, me: str) -> AsyncGenerator[Vanished]:
        """Yield each process of this home that left calls without an ending."""
        ...

    async def fence(self, process: str) -> None:
        """Let nothing come through any more that a process had under way."""
        ...

    def closing(self, gone: Vanished, low_water: int) -> tuple[Statement, ...]:
        """Return what goes into the unit of its calls' endings; if others were faster it fails.

        `low_water` is our own.
        """
        ...

    def end(self, process: str) -> Statement:
        """Return the statement that says: everything of a process ended as it should."""
        ...


@dataclass(slots=True)
class Process:
    """This process, as the home knows it: a row, and a file it keeps locked while it lives.

    `known` is for whoever commits the row to set: until then every start brings it along. `former`
    are those that it was before: what they had under way was stopped. `writer` is the first of
    them, by which a server knows the connection on which all of them write.
    """

    folder: Path
    node: str = ""
    id: str = field(default_factory=lambda: new_id("process"))
    known: bool = field(init=False, default=False)
    former: set[str] = field(init=False, default_factory=set[str])
    writer: str = field(init=False)
    roll: Roll = field(init=False)
    _lock: int = field(init=False, default=-1)

    def __post_init__(self) -> None:
        self.writer = self.id
        self.roll = Locks(self.folder)

    def begin(self, low_water: int) -> Statement:
        """Take the lock, and return the statement that makes the process known."""
        if self._lock < 0:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(self.folder / f"{self.id}.lock", os.O_CREAT | os.O_RDWR, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        sql = (
            "INSERT INTO processes (id, node, writer, started_at, low_water) "
            "VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        )
        return sql, (self.id, self.node, self.writer, time.time_ns(), low_water)

    def progress(self, low_water: int) -> Statement:
        """Return the statement that says: no call before this record is still open."""
        return "UPDATE processes SET low_water = ? WHERE id = ?", (low_water, self.id)

    def end(self) -> Statement:
        """Return the statement that says: everything ended as it should."""
        return self.roll.end(self.id)

    def renew(self) -> str:
        """Be another process from now on; return which one this was."""
        before = self.id
        self.release()
        self.former.add(before)
        self.id, self.known = new_id("process"), False
        return before

    def release(self) -> None:
        """Give the lock up; nobody will look for our calls any more."""
        if self._lock >= 0:
            (self.folder / f"{self.id}.lock").unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = -1


def ended(process: str) -> Statement:
    """Return the statement that closes a process's row."""
    return "UPDATE processes SET ended_at = ? WHERE id = ?", (time.time_ns(), process)


@dataclass(frozen=True, slots=True)
class Locks:
    """Knows the processes of one folder by the locks that they hold."""

    folder: Path

    async def gone(self, processes: Collection[str]) -> frozenset[str]:
        """Name those that hold their lock no longer."""
        from anyio import to_thread  # noqa: PLC0415 - who only asks for a lock needs none of it

        return await to_thread.run_sync(gone, self.folder, processes)

    async def vanished(self, reader: Reader, *, me: str) -> AsyncGenerator[Vanished]:
        """Yield each that is gone, holding its lock meanwhile so that one of us cleans up."""
        sql = "SELECT id, low_water, node FROM processes WHERE ended_at IS NULL AND id <> ?"
        for process, low_water, node in await reader.read(sql, (me,)):
            file = self.folder / f"{process}.lock"
            lock = taken(file)
            if lock is None:
                continue
            try:
                if await reader.read(f"{sql} AND id = ?", (me, process)):
                    yield Vanished(id=process, low_water=low_water, node=node)
                forget(file)
            finally:
                os.close(lock)

    async def fence(self, process: str) -> None:
        """Do nothing: whoever is gone has written what it could."""

    def closing(self, gone: Vanished, low_water: int) -> tuple[Statement, ...]:
        """End it: we hold its lock."""
        del low_water
        return (ended(gone.id),)

    def end(self, process: str) -> Statement:
        """End it: who looks for its works looks for its lock."""
        return ended(process)


def living(folder: Path) -> Iterator[Path]:
    """Yield each lock that a living process holds: those of calls, and the daemon's."""
    for file in sorted(folder.glob("*.lock")):
        if held(file):
            yield file


def gone(folder: Path, processes: Collection[str]) -> frozenset[str]:
    """Name those of these processes that hold their lock no longer."""
    return frozenset(process for process in processes if not held(folder / f"{process}.lock"))


def held(file: Path) -> bool | None:
    """Whether a living process holds a lock; None where there is no such lock."""
    try:
        lock = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def forget(file: Path) -> None:
    """Let nobody look at a lock any more."""
    file.unlink(missing_ok=True)


def taken(file: Path) -> int | None:
    """Take the lock of a process, if that holds it no longer."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(file, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock
