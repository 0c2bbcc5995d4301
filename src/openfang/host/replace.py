"""Puts a folder or file in the place of another; a crash leaves either the one or the other."""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_AT_FDCWD: Final = -100
_EXCHANGE: Final = 2
_NOT_HERE: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.EOPNOTSUPP})


def replace_folder(new: Path, place: Path, aside: Path) -> bool:
    """Move `new` to `place`; what was there is moved to `aside`. Says whether anything was."""
    try:
        new.rename(place)  # also onto an empty folder
    except OSError as error:
        if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
            raise
    else:
        sync_parent(place)
        return False
    _change_places(new, place, aside)
    sync_parent(place)
    return True


def _change_places(new: Path, place: Path, aside: Path) -> None:
    if _exchanged(new, place):
        new.rename(aside)
        return
    # A file system that cannot do it at once: for a moment there is no folder at all.
    place.rename(aside)
    try:
        new.rename(place)
    except OSError:
        aside.rename(place)
        raise


def _exchanged(one: Path, other: Path) -> bool:
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "renameat2"):
        return False
    names = os.fsencode(one), os.fsencode(other)
    if library.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _NOT_HERE:
        return False
    raise OSError(number, os.strerror(number), str(other))


def replace_file(place: Path, content: bytes, mode: int) -> None:
    """Write a whole file in the place of another, or a new one; its owner stays, if we may."""
    temporary = place.with_name(f".{place.name}.{secrets.token_hex(8)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            with suppress(FileNotFoundError, PermissionError):
                was = place.stat()
                os.fchown(handle, was.st_uid, was.st_gid)
            os.fchmod(handle, mode)
            os.fsync(handle)
        temporary.replace(place)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync_parent(place)


def sync_below(folder: Path) -> None:
    """Make everything that was written to the folder's disk survive a loss of power."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        ctypes.CDLL(None).syncfs(handle)
    finally:
        os.close(handle)


def sync_parent(path: Path) -> None:
    """Make a name survive a loss of power."""
    handle = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
