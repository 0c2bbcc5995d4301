"""Copies a folder into an archive while others change what is in it. It blocks.

Nothing is followed: a link that stays inside is kept as a link, and what is neither a file, a
folder nor such a link is left out and told of.
"""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import field
from typing import TYPE_CHECKING, BinaryIO, Final

from openfang.core.values import dataclass
from openfang.host.archive import DEEPEST, LONGEST_NAME, Packer, stays_inside

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_REASONS: Final = {
    errno.EACCES: "may not be read",
    errno.ELOOP: "is a link now",
    errno.ENOTDIR: "is no folder any more",
    errno.ENXIO: "is neither a file nor a folder",
}


@dataclass(slots=True, kw_only=True)
class TreeCopy:
    """Copies one folder. `instead` names files whose content comes from elsewhere.

    `check` is asked between reads, and raises to end it. `left_out` tells what was not copied.
    """

    packer: Packer
    check: Callable[[], None]
    without: Callable[[str], bool]
    instead: Mapping[str, Path]
    left_out: list[str] = field(default_factory=list[str])

    def copy(self, root: Path) -> None:
        """Copy everything below this folder."""
        handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._inside(handle, "")
        finally:
            os.close(handle)

    def _inside(self, folder: int, prefix: str) -> None:
        for name in sorted(os.listdir(folder)):
            path = prefix + name
            if path in self.instead:
                self._substitute(path)
            elif not self.without(path):
                self._entry(folder, name, path)

    def _substitute(self, path: str) -> None:
        with self.instead[path].open("rb") as file:
            self._pack(path, file)

    def _entry(self, folder: int, name: str, path: str) -> None:
        try:
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        except FileNotFoundError:  # gone since it was listed
            return
        if path.count("/") >= DEEPEST - 1 or len(os.fsencode(path)) >= LONGEST_NAME:
            self.left_out.append(f"{path[:100]} lies too deep")
        elif stat.S_ISDIR(mode):
            self._folder(folder, name, path)
        elif stat.S_ISREG(mode):
            self._file(folder, name, path)
        elif stat.S_ISLNK(mode):
            self._link(folder, name, path)
        else:
            self.left_out.append(f"{path} is neither a file nor a folder")

    def _folder(self, folder: int, name: str, path: str) -> None:
        handle = self._opened(folder, name, path, _FOLDER)
        if handle is None:
            return
        try:
            self.packer.folder(path)
            self._inside(handle, f"{path}/")
        finally:
            os.close(handle)

    def _file(self, folder: int, name: str, path: str) -> None:
        handle = self._opened(folder, name, path, _FILE)
        if handle is not None:
            with os.fdopen(handle, "rb") as file:
                self._pack(path, file)

    def _link(self, folder: int, name: str, path: str) -> None:
        try:
            target = os.readlink(name, dir_fd=folder)
        except OSError:  # it is none any more
            return
        if stays_inside(path, target):
            self.packer.link(path, target)
        else:
            self.left_out.append(f"{path} is a link that leads out")

    def _opened(self, folder: int, name: str, path: str, flags: int) -> int | None:
        """Open it, unless it is gone or not for us; what the home itself needs must be there."""
        try:
            return os.open(name, flags, dir_fd=folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno not in _REASONS or "/" not in path:
                raise
            self.left_out.append(f"{path} {_REASONS[error.errno]}")
            return None

    def _pack(self, path: str, file: BinaryIO) -> None:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            self.left_out.append(f"{path} is no file any more")
            return
        content = _Checked(file, self.check)
        whole = self.packer.file(
            path, content, size=found.st_size, mode=found.st_mode, mtime=found.st_mtime
        )
        if not whole:
            self.left_out.append(f"{path} shrank while it was copied: it ends with zeros")


@dataclass(frozen=True, slots=True)
class _Checked:
    file: BinaryIO
    check: Callable[[], None]

    def read(self, size: int, /) -> bytes:
        self.check()
        return self.file.read(size)
