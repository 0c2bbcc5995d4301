"""Who holds what on this machine: open files, locks, ports. Read from /proc; all of it blocks."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

_LISTENING: Final = "0A"
_ADDRESS, _STATE, _INODE = 1, 3, 9
_WRITE_LOCK: Final = "120"  # the byte of the -shm file that whoever writes has locked
_TABLES: Final = ("/proc/net/tcp", "/proc/net/tcp6")


@dataclass(frozen=True, slots=True)
class Holder:
    """A process, and what its program is called."""

    pid: int
    program: str

    def __str__(self) -> str:
        return f"{self.program} (pid {self.pid})"


def holders_below(folder: Path) -> list[Holder]:
    """Find the other processes that have a file below this folder open."""
    prefix = f"{folder}/"
    found = {pid for pid, target in _open_files() if target.startswith(prefix)}
    return [_holder(pid) for pid in sorted(found - {os.getpid()})]


def lock_holder(file: Path) -> Holder | None:
    """Find who holds a lock on this file, if that process can be seen from here."""
    with suppress(OSError):
        inode = str(file.stat().st_ino)
        for line in Path("/proc/locks").read_text().splitlines():
            _, kind, _, _, pid, place, *_ = line.split()
            if kind == "FLOCK" and place.rpartition(":")[2] == inode and int(pid) > 0:
                return _holder(int(pid))
    return None


def writer(database: Path) -> Holder | None:
    """Find who writes to a SQLite database in WAL mode, if that process can be seen from here."""
    with suppress(OSError):
        inode = str(database.with_name(f"{database.name}-shm").stat().st_ino)
        for line in Path("/proc/locks").read_text().splitlines():
            _, kind, _, mode, pid, place, first, *_ = line.split()
            locked = (kind, mode, place.rpartition(":")[2], first)
            if locked == ("POSIX", "WRITE", inode, _WRITE_LOCK) and int(pid) > 0:
                return _holder(int(pid))
    return None


def listener(port: int) -> Holder | None:
    """Find who listens on this port, if that process can be seen from here."""
    sockets = {f"socket:[{inode}]" for inode in _listening(port)}
    pids = (pid for pid, target in _open_files() if target in sockets)
    return next(map(_holder, pids), None) if sockets else None


def _listening(port: int) -> Iterator[str]:
    for table in _TABLES:
        with suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                words = line.split()
                at = int(words[_ADDRESS].rpartition(":")[2], 16)
                if at == port and words[_STATE] == _LISTENING:
                    yield words[_INODE]


def _open_files() -> Iterator[tuple[int, str]]:
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            for handle in _handles(process):
                with suppress(OSError):
                    yield int(process.name), os.readlink(handle)  # noqa: PTH115 - not always a path


def _handles(process: Path) -> list[str]:
    try:
        with os.scandir(process / "fd") as found:
            return [entry.path for entry in found]
    except OSError:  # it has ended, or is somebody else's
        return []


def _holder(pid: int) -> Holder:
    try:
        return Holder(pid, Path(f"/proc/{pid}/comm").read_text().strip())
    except OSError:
        return Holder(pid, "a process")
