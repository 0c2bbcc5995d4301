"""Where the log goes: a file of ours, which is rotated, or a stream that somebody else owns.

A target takes whole lines and says how many of them did not get through: it never raises.
"""

from __future__ import annotations

import errno
import os
import select
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from openfang.core.errors import HomeError

if TYPE_CHECKING:
    from pathlib import Path

MAX_BYTES = 10_000_000
KEEP = 5
_NEWLINE = ord("\n")
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_PRIVATE = 0o600
_CLOSED = -1


class Target(Protocol):
    """Somewhere to write to. It may block, and it may fail."""

    def write(self, lines: bytes) -> int:
        """Write lines; return how many of them were lost."""
        ...

    def close(self) -> None:
        """Give back what is ours."""
        ...


class Stream:
    """A stream that was open before us, and stays open: we hold a handle of our own to it."""

    __slots__ = ("_fd", "_torn")

    def __init__(self, fd: int) -> None:
        self._fd = _CLOSED
        self._torn = False
        with suppress(OSError):
            self._fd = os.dup(fd)

    def write(self, lines: bytes) -> int:
        """Write lines; a line that was cut off last time is ended first."""
        ending = b"\n" if self._torn else b""
        done = _put(self._fd, ending + lines)
        if done:
            self._torn = (ending + lines)[done - 1] != _NEWLINE
        return lines.count(b"\n", max(0, done - len(ending)))

    def close(self) -> None:
        """Let go of it."""
        if self._fd != _CLOSED:
            os.close(self._fd)
            self._fd = _CLOSED


class File:
    """A file that only its owner reads: rotated by size, and opened again if it was moved away."""

    __slots__ = ("_fd", "_keep", "_max_bytes", "_path")

    def __init__(self, path: Path, *, max_bytes: int = MAX_BYTES, keep: int = KEEP) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._keep = keep
        try:
            self._fd = _open(path)
        except OSError as error:
            raise HomeError(
                f"The log {path} cannot be opened: {error.strerror}.",
                way_out="openfang doctor",
            ) from error

    def write(self, lines: bytes) -> int:
        """Write lines; one that does not fit on the disk is taken back."""
        size = self._size()
        if size and size + len(lines) > self._max_bytes:
            self._rotate()
        done = _put(self._fd, lines)
        whole = lines.rfind(b"\n", 0, done) + 1
        if whole < done:
            self._shorten(done - whole)
        return lines.count(b"\n", whole)

    def close(self) -> None:
        """Close the file."""
        if self._fd != _CLOSED:
            os.close(self._fd)
            self._fd = _CLOSED

    def _size(self) -> int:
        """How long the file is; one that is not the file of that name any more is let go."""
        with suppress(OSError):
            ours, there = os.fstat(self._fd), os.lstat(self._path)
            if os.path.samestat(ours, there):
                return ours.st_size
        self._reopen()
        return 0

    def _rotate(self) -> None:
        with suppress(OSError):
            for number in range(self._keep, 0, -1):
                self._move(number)
            self._reopen()

    def _move(self, number: int) -> None:
        with suppress(FileNotFoundError):
            self._numbered(number - 1).replace(self._numbered(number))

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}") if number else self._path

    def _reopen(self) -> None:
        self.close()
        with suppress(OSError):
            self._fd = _open(self._path)

    def _shorten(self, torn: int) -> None:
        with suppress(OSError):
            os.ftruncate(self._fd, os.fstat(self._fd).st_size - torn)


def _open(path: Path) -> int:
    """Open a plain file, never by way of a link, and for its owner only."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = os.open(path, _FLAGS, _PRIVATE)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "it is not a plain file")
    with suppress(PermissionError):
        os.fchmod(fd, _PRIVATE)
    return fd


def _put(fd: int, data: bytes) -> int:
    """Write as much as possible, and return how much that was."""
    view, done = memoryview(data), 0
    with suppress(OSError):
        while done < len(data):
            done += _put_some(fd, view[done:])
    return done


def _put_some(fd: int, data: memoryview) -> int:
    try:
        return os.write(fd, data)
    except BlockingIOError:
        # Whoever gave us the stream made it non-blocking; here is a thread that may wait.
        poll = select.poll()
        poll.register(fd, select.POLLOUT)
        poll.poll()
        return 0
