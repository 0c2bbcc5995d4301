"""Writes one compressed archive of files, folders and links that stay inside. It blocks.

It is a `.tar.gz` that every program can list; `host/unpack.py` reads it, and nothing else.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tarfile
from dataclasses import field
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol

from openfang.core.errors import HomeError
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from hashlib import _Hash

MOST_MEMBERS: Final = 500_000
DEEPEST: Final = 100
LONGEST_NAME: Final = 4096
# At this level nothing shrinks to less than 1/229: more than `MOST_RATIO` is nobody's backup.
_LEVEL: Final = 1
MOST_RATIO: Final = 300
CHUNK: Final = 1 << 18
_LAST_MTIME: Final = 0o77777777777


class Readable(Protocol):
    """What bytes are read from: fewer than asked for only at the end."""

    def read(self, size: int, /) -> bytes:
        """Read the next bytes."""
        ...


def stays_inside(name: str, target: str) -> bool:
    """Whether a link of this name leads to something below the same root, whatever lies there.

    It may climb at its beginning only: `a/../..` is no way up when `a` is a link itself.
    """
    steps = target.split("/")
    ups = next((number for number, step in enumerate(steps) if step != ".."), len(steps))
    plain = "\0" not in target and {"", ".", ".."}.isdisjoint(steps[ups:])
    return plain and ups <= name.count("/") and len(os.fsencode(target)) < LONGEST_NAME


def within_range(mtime: float) -> int:
    """Bring a time into what every archive and file system can hold."""
    return max(0, min(int(mtime), _LAST_MTIME))


class Packer:
    """Writes an archive into an open file. `digests` tells of each member that was written."""

    def __init__(self, file: BinaryIO) -> None:
        self.digests: dict[str, str] = {}
        self._gzip = gzip.GzipFile("", "wb", _LEVEL, file, mtime=0)
        self._tar = tarfile.TarFile(
            fileobj=self._gzip, mode="w", format=tarfile.PAX_FORMAT, copybufsize=CHUNK
        )

    def folder(self, name: str) -> None:
        """Add a folder; it comes before what lies in it."""
        self._tar.addfile(self._info(name, tarfile.DIRTYPE, 0o700))
        self.digests[name] = ""

    def link(self, name: str, target: str) -> None:
        """Add a symlink that stays inside."""
        info = self._info(name, tarfile.SYMTYPE, 0o777)
        info.linkname = target
        self._tar.addfile(info)
        self.digests[name] = hashlib.sha256(os.fsencode(target)).hexdigest()

    def file(self, name: str, content: Readable, *, size: int, mode: int, mtime: float) -> bool:
        """Add exactly `size` bytes of a file. One that has shrunk ends with zeros: then false."""
        info = self._info(name, tarfile.REGTYPE, mode & 0o700 | 0o600)
        info.size = size
        info.mtime = within_range(mtime)
        exact = _Exactly(content, size)
        self._tar.addfile(info, exact)
        self.digests[name] = exact.digest
        return exact.whole

    def close(self) -> None:
        """Write the end."""
        self._tar.close()
        self._gzip.close()

    def _info(self, name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
        if len(self.digests) >= MOST_MEMBERS:
            raise HomeError(
                f"There are more than {MOST_MEMBERS} files and folders.",
                way_out="move some of them out of the home",
            )
        info = tarfile.TarInfo(name)
        info.type, info.mode = kind, mode
        return info


@dataclass(slots=True)
class _Exactly:
    """So many bytes of a file, hashed as they are read."""

    content: Readable
    left: int
    whole: bool = True
    _hash: _Hash = field(init=False, default_factory=hashlib.sha256)

    def read(self, size: int = -1) -> bytes:
        """Read on; what is missing at the end is zeros."""
        wanted = self.left if size < 0 else min(size, self.left)
        data = self.content.read(wanted)
        if len(data) < wanted:
            data, self.whole = data + bytes(wanted - len(data)), False
        self.left -= wanted
        self._hash.update(data)
        return data

    @property
    def digest(self) -> str:
        """The hash of what was read."""
        return self._hash.hexdigest()
