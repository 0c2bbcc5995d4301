"""A folder of somebody else's: what is in it, its digest, and a copy of exactly that. It blocks.

Nothing is followed and nothing is run. A link, a device, a name that nobody should see, and more
than the limits allow end it: `FolderRefused`.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from openfang.core.errors import Rejected, SourceFailed
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

MOST_FILES: Final = 2_000
MOST_BYTES: Final = 64 << 20
LARGEST_FILE: Final = 16 << 20
DEEPEST: Final = 20
LONGEST_PATH: Final = 400
# What other programs keep for themselves, and make again: never part of what is added.
LEFT_OUT: Final = frozenset(
    {".git", ".hg", ".svn", "__pycache__", ".venv", ".pytest_cache", ".ruff_cache", ".DS_Store"}
)
_CHUNK: Final = 1 << 18
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FolderRefused(Rejected):
    """A folder that cannot be taken in as it is."""

    def __init__(self, message: str, *, way_out: str = "take it out, and try again") -> None:
        super().__init__(message, status=422, rule="folder", way_out=way_out)


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderFile:
    """One file, by its path inside the folder."""

    path: str
    size: int
    executable: bool
    sha256: str


def digest_of(files: Sequence[FolderFile]) -> str:
    """Name a folder by all that is in it: the hash of the canonical list of its files."""
    listed = [asdict(one) for one in sorted(files, key=lambda one: one.path)]
    return hashlib.sha256(_canonical(listed)).hexdigest()


def _canonical(value: Any) -> bytes:  # noqa: ANN401 - any JSON
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class Seal:
    """What a folder must be whenever something of it is started: as it was accepted."""

    folder: Path
    digest: str

    def check(self) -> None:
        """Raise if it is anything else."""
        if digest_of(all_files_of(self.folder)) != self.digest:
            raise SourceFailed(
                f"The files of {self.folder.name} are not those that were accepted.",
                way_out=f"openfang ext show {self.folder.name}, then enable or install it again",
            )


def seal_of(folder: Path, digest: str) -> Seal | None:
    """Seal a folder that somebody accepted; without a digest nobody did."""
    return Seal(folder, digest) if digest else None


def files_of(folder: Path) -> tuple[FolderFile, ...]:
    """List every file of somebody's folder that would be taken in, by path."""
    return _walked(folder, _hashed)


def all_files_of(folder: Path) -> tuple[FolderFile, ...]:
    """List every file of a copy of ours, by path: what was left out of it has no place there."""
    return _walked(folder, _hashed, frozenset())


def copy_folder(folder: Path, into: Path) -> tuple[FolderFile, ...]:
    """Copy every file into an empty folder of ours, for its owner alone; tells what was copied."""

    def copied(file: int, path: str) -> str:
        target = into / path
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = 0o700 if os.fstat(file).st_mode & 0o111 else 0o600
        made = os.open(target, _NEW, mode)
        with os.fdopen(made, "wb") as to:
            return _hashed(file, path, to.write)

    return _walked(folder, copied)


def _walked(
    folder: Path, take: Callable[[int, str], str], left_out: frozenset[str] = LEFT_OUT
) -> tuple[FolderFile, ...]:
    try:
        root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise FolderRefused(
            f"{folder} cannot be read: {error.strerror}.", way_out="name a folder"
        ) from error
    found: list[FolderFile] = []
    total = 0
    try:
        for parent, name, path in _entries(root, "", left_out):
            one = _taken(parent, name, path, take)
            total += one.size
            found.append(one)
            if len(found) > MOST_FILES:
                raise FolderRefused(f"There are more than {MOST_FILES} files.")
            if total > MOST_BYTES:
                raise FolderRefused(f"There are more than {MOST_BYTES >> 20} MiB of files.")
    finally:
        os.close(root)
    return tuple(found)


def _entries(folder: int, prefix: str, left_out: frozenset[str]) -> Iterator[tuple[int, str, str]]:
    """Walk down through folders only; each file comes with its open folder, name and path."""
    for name in sorted(os.listdir(folder)):
        if name in left_out:
            continue
        path = check_path(prefix + name)
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            below = os.open(name, _FOLDER, dir_fd=folder)
            try:
                yield from _entries(below, f"{path}/", left_out)
            finally:
                os.close(below)
        elif stat.S_ISREG(mode):
            yield folder, name, path
        else:
            what = "a link" if stat.S_ISLNK(mode) else "neither a file nor a folder"
            raise FolderRefused(f"{path} is {what}, and only files and folders are taken in.")


def check_path(path: str) -> str:
    """Refuse a path that leads out, or that nobody could read on a page."""
    parts = path.split("/")
    plain = path.isprintable() and "\\" not in path and {"", ".", ".."}.isdisjoint(parts)
    if not plain:
        raise FolderRefused(f"{path!a} is no plain path inside the folder.")
    if len(parts) > DEEPEST or len(path.encode()) > LONGEST_PATH:
        raise FolderRefused(f"{path[:60]}... lies too deep.")
    return path


def _taken(parent: int, name: str, path: str, take: Callable[[int, str], str]) -> FolderFile:
    file = os.open(name, _FILE, dir_fd=parent)
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise FolderRefused(f"{path} is no file any more.")
        if found.st_size > LARGEST_FILE:
            raise FolderRefused(f"{path} has more than {LARGEST_FILE >> 20} MiB.")
        sha256 = take(file, path)
        size = os.lseek(file, 0, os.SEEK_CUR)
    finally:
        os.close(file)
    executable = bool(found.st_mode & 0o111)
    return FolderFile(path=path, size=size, executable=executable, sha256=sha256)


def _hashed(file: int, path: str, write: Callable[[bytes], object] | None = None) -> str:
    hashed, size = hashlib.sha256(), 0
    while chunk := os.read(file, _CHUNK):
        size += len(chunk)
        if size > LARGEST_FILE:
            raise FolderRefused(f"{path} grows while it is read.")
        hashed.update(chunk)
        if write is not None:
            write(chunk)
    return hashed.hexdigest()
