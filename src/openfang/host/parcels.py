"""A folder on its way: packed as `.tar.gz`, and taken out of a `.tar`, `.tar.gz` or `.zip`. Blocks.

Only plain files come out, below a folder of ours, within the bounds of `host/folders.py`: a link, a
device, a name that leads out and whatever is damaged ends it.
"""

from __future__ import annotations

import gzip
import io
import os
import stat
import tarfile
import zipfile
import zlib
from contextlib import contextmanager
from dataclasses import field
from typing import IO, TYPE_CHECKING, Final

from openfang.core.values import dataclass
from openfang.host.archive import Packer
from openfang.host.folders import (
    LARGEST_FILE,
    LEFT_OUT,
    MOST_BYTES,
    MOST_FILES,
    FolderRefused,
    check_path,
    files_of,
)

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

LARGEST_PARCEL: Final = 7_000_000
"""In base64 it fits into one request of the API."""
_CHUNK: Final = 1 << 18
_OVERHEAD: Final = 4 << 20
# Others are rare, and some of them reserve as much memory as the archive says.
_METHODS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_ANOTHER: Final = "pack the folder anew, as .tar.gz or .zip"
_DAMAGED: Final = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    gzip.BadGzipFile,
    RuntimeError,
    ValueError,
    OverflowError,
)


def pack(folder: Path) -> bytes:
    """Pack what `files_of` lists of a folder."""
    into = io.BytesIO()
    packer = Packer(into)
    for one in files_of(folder):
        with (folder / one.path).open("rb") as file:
            mode = 0o700 if one.executable else 0o600
            packer.file(one.path, file, size=one.size, mode=mode, mtime=0)
    packer.close()
    if into.tell() > LARGEST_PARCEL:
        raise FolderRefused(
            f"{folder} packs to {into.tell()} bytes; at most {LARGEST_PARCEL} are taken.",
            way_out="leave out what it does not need",
        )
    return into.getvalue()


def unpack(data: bytes, into: Path) -> Path:
    """Write every file below an empty folder of ours, and return where they begin.

    An archive with one folder at its top means that folder.
    """
    if len(data) > LARGEST_PARCEL:
        raise FolderRefused(f"An archive has at most {LARGEST_PARCEL} bytes.", way_out=_ANOTHER)
    room = _Room(into)
    with _explained():
        if data.startswith(b"PK"):
            _unzip(data, room)
        else:
            _untar(data, room)
    if not room.paths:
        raise FolderRefused("The archive has no file in it.", way_out=_ANOTHER)
    tops = {path.partition("/")[0] for path in room.paths}
    alone = len(tops) == 1 and all("/" in path for path in room.paths)
    return into / tops.pop() if alone else into


@contextmanager
def _explained() -> Generator[None]:
    try:
        yield
    except _DAMAGED as error:
        raise FolderRefused(
            f"The archive cannot be read: {str(error)[:200] or type(error).__name__}.",
            way_out=_ANOTHER,
        ) from error


@dataclass(slots=True)
class _Room:
    """The folder that is filled; it counts what comes."""

    root: Path
    paths: set[str] = field(default_factory=set[str])
    size: int = 0

    def put(self, name: str, content: IO[bytes], *, executable: bool) -> None:
        path = check_path(name.removeprefix("./"))
        if not LEFT_OUT.isdisjoint(path.split("/")):
            return
        self._claim(path)
        target = self.root / path
        try:
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            made = os.open(
                target,
                os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC,
                0o700 if executable else 0o600,
            )
        except OSError as error:
            raise FolderRefused(f"{path} has no place: {error.strerror}.") from error
        with os.fdopen(made, "wb") as to:
            self._copy(path, content, to)

    def _claim(self, path: str) -> None:
        if path in self.paths:
            raise FolderRefused(f"{path} is in the archive twice.", way_out=_ANOTHER)
        self.paths.add(path)
        if len(self.paths) > MOST_FILES:
            raise FolderRefused(f"The archive has more than {MOST_FILES} files.")

    def _copy(self, path: str, content: IO[bytes], to: IO[bytes]) -> None:
        size = 0
        while chunk := content.read(_CHUNK):
            size += len(chunk)
            self.size += len(chunk)
            if size > LARGEST_FILE:
                raise FolderRefused(f"{path} has more than {LARGEST_FILE >> 20} MiB.")
            if self.size > MOST_BYTES:
                raise FolderRefused(f"The archive unpacks to more than {MOST_BYTES >> 20} MiB.")
            to.write(chunk)


def _unzip(data: bytes, room: _Room) -> None:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for one in archive.infolist():
            mode = one.external_attr >> 16
            if one.is_dir():
                check_path(one.filename.rstrip("/"))
                continue
            if stat.S_IFMT(mode) not in {0, stat.S_IFREG}:
                raise FolderRefused(f"{one.filename!a} is a link or a device.")
            if one.compress_type not in _METHODS:
                raise FolderRefused(
                    f"{one.filename!a} is packed by method {one.compress_type}.", way_out=_ANOTHER
                )
            with archive.open(one) as content:
                room.put(one.filename, content, executable=bool(mode & 0o111))


def _untar(data: bytes, room: _Room) -> None:
    with tarfile.open(fileobj=io.BytesIO(_inflated(data)), mode="r:") as archive:
        for one in archive:
            if one.isdir():
                _check_folder(one.name)
                continue
            if not one.isreg():
                raise FolderRefused(f"{one.name!a} is a link or a device.")
            content = archive.extractfile(one)
            if content is not None:
                room.put(one.name, content, executable=bool(one.mode & 0o111))


def _inflated(data: bytes) -> bytes:
    if not data.startswith(b"\x1f\x8b"):
        return data
    most = MOST_BYTES + _OVERHEAD
    inflated = gzip.GzipFile(fileobj=io.BytesIO(data)).read(most + 1)
    if len(inflated) > most:
        raise FolderRefused(f"The archive unpacks to more than {MOST_BYTES >> 20} MiB.")
    return inflated


def _check_folder(name: str) -> None:
    plain = name.removeprefix("./").rstrip("/")
    if plain not in {"", "."}:
        check_path(plain)
