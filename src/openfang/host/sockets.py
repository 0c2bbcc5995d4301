"""The unix sockets that other programs listen at: whoever finds one can speak to that program.

Neither a network namespace nor a read-only disk keeps a child from a socket that it can see. What
the kernel lists is hidden at each start. Everything here looks at the machine.
"""

from __future__ import annotations

import os
import socket
import stat
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from openfang.host.process import LaunchFailed
from openfang.host.sandbox import Mask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_TABLE: Final = Path("/proc/net/unix")
_COLUMNS_BEFORE_THE_NAME: Final = 7
# Who has made a socket just now may not listen yet.
_YOUNG: Final = 60.0


def sockets() -> tuple[Mask, ...]:
    """Hide every socket that has a name on the disk now. Blocks."""
    try:
        table = _TABLE.read_bytes()
    except OSError as error:
        raise LaunchFailed(f"The sockets to hide are not known: {error}") from error
    may_enter = cache(_may_enter)
    found = (_hidden(path, may_enter) for path in dict.fromkeys(bound(table)))
    return tuple(dict.fromkeys(filter(None, found)))


def bound(table: bytes) -> Iterator[Path]:
    """Read the names of sockets out of the kernel's list, as they were given. Pure.

    One that was given relative to some program's folder cannot be told.
    """
    for line in table.split(b"\n"):
        columns = line.split(None, _COLUMNS_BEFORE_THE_NAME)
        if len(columns) > _COLUMNS_BEFORE_THE_NAME and columns[-1].startswith(b"/"):
            yield Path(os.fsdecode(columns[-1]))


def _hidden(named: Path, may_enter: Callable[[Path], bool]) -> Mask | None:
    try:
        path = Path(os.path.realpath(named))
        # A name can outlive its socket, and be taken by a file.
        if not stat.S_ISSOCK(path.lstat().st_mode):
            return None
        closed = (folder for folder in reversed(path.parents) if not may_enter(folder))
        folder = next(closed, None)
    except OSError:
        return None
    return Mask(path, folder=False) if folder is None else Mask(folder)


def _may_enter(folder: Path) -> bool:
    """Whether we could enter it without root's privileges, which bubblewrap does not have.

    It can lay nothing into such a folder, but over it.
    """
    status = folder.stat()
    if status.st_uid == os.geteuid():
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid in {os.getegid(), *os.getgroups()}:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)


def sweep(folder: Path, names: str) -> None:
    """Remove sockets of a folder that nobody listens at any more. Blocks."""
    for path in folder.glob(names):
        with suppress(OSError):
            if time.time() - path.lstat().st_mtime > _YOUNG and _is_deserted(path):
                path.unlink()


def _is_deserted(path: Path) -> bool:
    """Whether nobody listens; reached through its folder, for a name may be too long to dial."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as there:
            there.connect(f"/proc/self/fd/{folder}/{path.name}")
    except ConnectionRefusedError:
        return True
    finally:
        os.close(folder)
    return False
