"""Reads what `host/archive.py` writes, and trusts none of it. It blocks.

Any other kind of member, a name or a link that leads out, a size beyond the limits and whatever is
damaged ends it: `ArchiveRefused`.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import os
import tarfile
import zlib
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING, BinaryIO, Final

from openfang.core.errors import HomeError
from openfang.core.values import dataclass
from openfang.host.archive import (
    CHUNK,
    DEEPEST,
    LONGEST_NAME,
    MOST_MEMBERS,
    MOST_RATIO,
    stays_inside,
    within_range,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from pathlib import Path

_ALWAYS: Final = 64 << 20
_BLOCK: Final = tarfile.BLOCKSIZE
_LONGEST_HEADER: Final = 64 << 10
_STEP: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_ABOUT_NAMES: Final = frozenset(
    {errno.EEXIST, errno.ENOTDIR, errno.ENOENT, errno.ELOOP, errno.ENAMETOOLONG, errno.EISDIR}
)


class ArchiveRefused(HomeError):  # noqa: N818 - it reads as what it is
    """An archive that is damaged, or that nobody's backup looks like."""

    code = "archive"

    def __init__(
        self, message: str, *, way_out: str = "take another file of openfang backup"
    ) -> None:
        super().__init__(message, way_out=way_out)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """What stands in the archive before the bytes of a member."""

    name: str
    kind: bytes
    mode: int
    size: int
    mtime: int
    target: str

    @property
    def parts(self) -> Sequence[str]:
        """The names that lead to it, each of them plain."""
        parts = self.name.split("/")
        if len(parts) > DEEPEST or len(os.fsencode(self.name)) >= LONGEST_NAME:
            raise ArchiveRefused(f"{self.name[:100]!a}... lies too deep.")
        if "\0" in self.name or not {"", ".", ".."}.isdisjoint(parts):
            raise ArchiveRefused(f"The member {self.name!a} leads out of its folder.")
        return parts


def unpack(file: BinaryIO, into: Path, *, most_bytes: int) -> dict[str, str]:
    """Write every member below an empty folder of ours, and return their digests."""
    stream = _Inflated(file, most_bytes)
    digests: dict[str, str] = {}
    links: list[Member] = []
    root = os.open(into, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for member in _members(stream):
            digests[member.name] = _write(member, stream, root)
            if member.kind == tarfile.SYMTYPE:
                links.append(member)
            if len(digests) > MOST_MEMBERS:
                raise ArchiveRefused(f"The archive has more than {MOST_MEMBERS} members.")
        # Links come last: nothing is ever written through one.
        for link in links:
            _write_link(link, root)
    finally:
        os.close(root)
    return digests


@dataclass(slots=True)
class _Inflated:
    """The bytes of an archive, counted: no more than there is room for, no bombs."""

    file: BinaryIO
    most_bytes: int
    count: int = 0
    _gzip: gzip.GzipFile = field(init=False)

    def __post_init__(self) -> None:
        self._gzip = gzip.GzipFile(fileobj=self.file, mode="rb")

    def some(self, size: int) -> bytes:
        """Read up to so many bytes; fewer only at the end."""
        try:
            data = self._gzip.read(size)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ArchiveRefused(f"The archive is damaged: {error}.") from error
        self.count += len(data)
        if self.count > self.most_bytes:
            raise ArchiveRefused(
                f"The archive unpacks to more than the {self.most_bytes / 1e6:,.0f} MB "
                "that there is room for.",
                way_out="free some space, or set OPENFANG_HOME to a folder on another disk",
            )
        if self.count > max(_ALWAYS, MOST_RATIO * self.file.tell()):
            raise ArchiveRefused(f"The archive unpacks to more than {MOST_RATIO} times its size.")
        return data

    def take(self, size: int) -> bytes:
        """Read exactly so many bytes."""
        data = self.some(size)
        if len(data) < size:
            raise ArchiveRefused("The archive ends too early.")
        return data


def _members(stream: _Inflated) -> Iterator[Member]:
    """Read header after header; whoever takes a member reads its bytes before the next."""
    while (block := stream.take(_BLOCK)).strip(b"\0"):
        info, fields = _header(block), dict[str, str]()
        if info.type == tarfile.XHDTYPE:
            if not 0 <= info.size <= _LONGEST_HEADER:
                raise ArchiveRefused(f"A header has {info.size} bytes.")
            fields = _extended(_padded(stream, info.size))
            info = _header(stream.take(_BLOCK))
        yield _member(info, fields)
    while rest := stream.some(_BLOCK):  # up to the end, where the checksum stands
        if rest.strip(b"\0"):
            raise ArchiveRefused("Something follows the end of the archive.")


def _header(block: bytes) -> tarfile.TarInfo:
    try:
        return tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except (tarfile.HeaderError, ValueError) as error:
        raise ArchiveRefused(f"The archive is damaged: {error}.") from error


def _member(info: tarfile.TarInfo, fields: dict[str, str]) -> Member:
    if info.type not in {tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE}:
        raise ArchiveRefused(f"The member {info.name!a} is neither a file, a folder nor a link.")
    size = fields.get("size", str(info.size))
    if not (size.isascii() and size.isdigit()):
        raise ArchiveRefused(f"The member {info.name!a} has no size.")
    name = fields.get("path", info.name)
    return Member(
        name=name.rstrip("/") if info.isdir() else name,
        kind=info.type,
        mode=info.mode,
        size=int(size[:20]) if info.isreg() else 0,
        mtime=within_range(info.mtime),
        target=fields.get("linkpath", info.linkname),
    )


def _extended(text: bytes) -> dict[str, str]:
    """Read the records of an extended header: `length key=value`, each with its line break."""
    fields: dict[str, str] = {}
    while text:
        digits, _, _ = text[:8].partition(b" ")
        size = int(digits) if digits.isdigit() else 0
        record = text[len(digits) + 1 : size]
        if not len(digits) < size <= len(text) or not record.endswith(b"\n"):
            raise ArchiveRefused("An extended header is damaged.")
        key, _, value = record[:-1].partition(b"=")
        fields[key.decode(errors="replace")] = value.decode(errors="surrogateescape")
        text = text[size:]
    return fields


def _padded(stream: _Inflated, size: int) -> bytes:
    """Read so many bytes, and what fills up their last block."""
    return stream.take(size + -size % _BLOCK)[:size]


def _write(member: Member, stream: _Inflated, root: int) -> str:
    """Put a member in its place and return its digest; a link waits, but is checked."""
    parts = member.parts
    if member.kind == tarfile.SYMTYPE:
        if not stays_inside(member.name, member.target):
            raise ArchiveRefused(f"The link {member.name!a} leads out of its folder.")
        return hashlib.sha256(os.fsencode(member.target)).hexdigest()
    with _explained(member), _entered(root, parts[:-1]) as parent:
        if member.kind == tarfile.DIRTYPE:
            os.mkdir(parts[-1], 0o700, dir_fd=parent)
            return ""
        mode = 0o600 | member.mode & 0o100
        file = os.open(parts[-1], _CREATE, mode, dir_fd=parent)
    with os.fdopen(file, "wb") as opened:
        digest = _copy(stream, opened, member.size)
        opened.flush()
        os.utime(file, (member.mtime, member.mtime))
    return digest


def _copy(stream: _Inflated, to: BinaryIO, size: int) -> str:
    hashed, left = hashlib.sha256(), size
    while left:
        data = stream.take(min(left, CHUNK))
        hashed.update(data)
        left -= to.write(data)
    stream.take(-size % _BLOCK)
    return hashed.hexdigest()


def _write_link(link: Member, root: int) -> None:
    parts = link.parts
    with _explained(link), _entered(root, parts[:-1]) as parent:
        os.symlink(link.target, parts[-1], dir_fd=parent)


@contextmanager
def _entered(root: int, parts: Sequence[str]) -> Generator[int]:
    """Walk down one name at a time, through folders only, and hold the last one open."""
    here = os.dup(root)
    try:
        for part in parts:
            below = os.open(part, _STEP, dir_fd=here)
            os.close(here)
            here = below
        yield here
    finally:
        os.close(here)


@contextmanager
def _explained(member: Member) -> Generator[None]:
    """Tell a name that cannot be from a disk that is full."""
    try:
        yield
    except OSError as error:
        if error.errno not in _ABOUT_NAMES:
            raise
        raise ArchiveRefused(
            f"The member {member.name!a} has no place: {error.strerror}."
        ) from error
