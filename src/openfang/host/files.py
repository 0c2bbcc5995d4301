"""A folder that nothing leads out of: every step is taken relative to an open directory.

Names are never resolved twice, so swapping a directory for a symlink between check and use finds
no gap. Symlinks are not followed at all. The calls block: run them in a thread.
"""

from __future__ import annotations

import contextlib
import errno
import heapq
import os
import secrets
import stat
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from openfang.core.values import dataclass
from openfang.safety.paths import FileRefused, components

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

__all__ = ["FileEntry", "FileRefused", "Folder"]

Kind: TypeAlias = Literal["file", "folder", "link", "other"]

_STEP: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LISTED: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a fifo would wait for somebody to write into it.
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK: Final = 1 << 20
_REASONS: Final = {
    errno.ENOENT: "does not exist",
    errno.ENOTDIR: "leads through something that is not a folder, or through a symlink",
    errno.ELOOP: "is a symlink, and symlinks are not followed",
    errno.EACCES: "may not be opened by this user",
    errno.EISDIR: "is a folder",
    errno.ENXIO: "is not a regular file",
    errno.ENOSPC: "cannot be written: the disk is full",
    errno.EROFS: "cannot be written: the disk is read-only",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """One name in a folder. The size of anything but a file is 0."""

    name: str
    kind: Kind
    size: int


class Folder:
    """A root and what lies below it. The root itself may be reached by a symlink: we chose it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        with _explained(str(root)):
            self._root = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def close(self) -> None:
        """Let go of the root; closing twice is fine."""
        root, self._root = self._root, -1
        if root >= 0:
            os.close(root)

    def read(self, path: str, *, limit: int, setting: str = "") -> bytes:
        """Read a whole regular file of at most `limit` bytes, which the `setting` may raise."""
        folder, name = self._split(path)
        with (
            _explained(path),
            self._entered(folder) as parent,
            _opened(name, _READ, parent) as file,
        ):
            bound = _Bound(path, limit, setting)
            _check_readable(bound, os.fstat(file))
            return _read_up_to(bound, file)

    def write(self, path: str, data: bytes) -> None:
        """Put a whole file in place at once, with the folders that lead to it.

        A new file is for its owner only; one that is replaced keeps its mode.
        """
        folder, name = self._split(path)
        with _explained(path), self._entered(folder, create=True) as parent:
            mode = _mode_to_keep(path, name, parent)
            temporary = f".{secrets.token_hex(12)}.tmp"
            try:
                _write_new(temporary, data, mode, parent)
                os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=parent)
                raise

    def list(self, path: str, *, limit: int) -> Sequence[FileEntry]:
        """List at most `limit` names, in order."""
        parts = components(path, root=str(self.root))
        with (
            _explained(path),
            self._entered(parts) as parent,
            _opened(".", _LISTED, parent) as folder,
            os.scandir(folder) as found,
        ):
            names = heapq.nsmallest(limit, (entry.name for entry in found))
            entries = [_entry(name, folder) for name in names]
        return tuple(entry for entry in entries if entry is not None)

    def _split(self, path: str) -> tuple[tuple[str, ...], str]:
        parts = components(path, root=str(self.root))
        if not parts:
            raise FileRefused(f"{path!r} is the folder itself", way_out="name a file in it")
        return parts[:-1], parts[-1]

    @contextlib.contextmanager
    def _entered(self, parts: Sequence[str], *, create: bool = False) -> Generator[int]:
        """Walk down one name at a time, and hold the last folder open."""
        here = os.dup(self._root)
        try:
            for part in parts:
                here = _step(here, part, create=create)
            yield here
        finally:
            os.close(here)


def _step(here: int, part: str, *, create: bool) -> int:
    """Open the next folder; the one before is closed once that has worked."""
    if create:
        with contextlib.suppress(FileExistsError):
            os.mkdir(part, mode=0o700, dir_fd=here)
    below = os.open(part, _STEP, dir_fd=here)
    os.close(here)
    return below


@contextlib.contextmanager
def _opened(name: str, flags: int, parent: int, mode: int = 0o600) -> Generator[int]:
    file = os.open(name, flags, mode, dir_fd=parent)
    try:
        yield file
    finally:
        os.close(file)


@contextlib.contextmanager
def _explained(path: str) -> Generator[None]:
    """Say in words what the kernel said in numbers."""
    try:
        yield
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, os.strerror(error.errno or 0).lower())
        raise FileRefused(f"{path!r} {reason}") from error


@dataclass(frozen=True, slots=True)
class _Bound:
    """How much of a file may be read, and which setting says so."""

    path: str
    limit: int
    setting: str

    def exceeded(self, size: str) -> FileRefused:
        return FileRefused(
            f"{self.path!r} has {size}; at most {self.limit} can be read at once",
            way_out=self.setting,
        )


def _check_readable(bound: _Bound, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise FileRefused(f"{bound.path!r} is not a regular file")
    if found.st_nlink > 1:
        # A second name can lie outside of the folder; nothing tells the two apart.
        raise FileRefused(
            f"{bound.path!r} is one of {found.st_nlink} hard links to a file",
            way_out="put a copy of the file into the folder",
        )
    if found.st_size > bound.limit:
        raise bound.exceeded(f"{found.st_size} bytes")


def _read_up_to(bound: _Bound, file: int) -> bytes:
    """Read on to the end: a file can grow after its size was taken."""
    data = bytearray()
    while chunk := os.read(file, min(_CHUNK, bound.limit + 1 - len(data))):
        data += chunk
        if len(data) > bound.limit:
            raise bound.exceeded("grown")
    return bytes(data)


def _mode_to_keep(path: str, name: str, parent: int) -> int:
    try:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return 0o600
    if not stat.S_ISREG(found.st_mode):
        raise FileRefused(f"{path!r} exists and is not a regular file")
    return stat.S_IMODE(found.st_mode) & 0o777


def _write_new(name: str, data: bytes, mode: int, parent: int) -> None:
    with _opened(name, _CREATE, parent) as file:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(file, rest) :]
        os.fchmod(file, mode)
        os.fsync(file)


def _entry(name: str, folder: int) -> FileEntry | None:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    kind = _kind(found.st_mode)
    shown = os.fsencode(name).decode(errors="replace")
    return FileEntry(name=shown, kind=kind, size=found.st_size if kind == "file" else 0)


def _kind(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "other"
