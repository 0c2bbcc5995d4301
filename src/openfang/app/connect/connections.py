"""What we wrote into other programs' files: the copies that were made before, and the way back.

All of it is kept in the home, for its owner alone: such files hold other people's secrets.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import time
from contextlib import contextmanager, suppress
from dataclasses import asdict
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, cast

import orjson

from openfang.core.errors import ConfigError, Conflict, HomeError
from openfang.core.values import dataclass
from openfang.host.private import write_private
from openfang.host.replace import replace_file, sync_parent

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable
    from pathlib import Path

FOLDER: Final = "connections"
MAX_BYTES: Final = 32 * 1024 * 1024
_PRIVATE: Final = 0o600
_SHARED: Final = 0o644
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_BY_HAND: Final = "add it by hand: --dry-run shows what"


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A file as it is now. `real` is where links lead; without content it is not there."""

    file: Path
    real: Path
    content: bytes | None = None
    mode: int = _PRIVATE

    def missing(self) -> list[Path]:
        """Name the folders that it would need, and that are not there."""
        return [one for one in self.real.parents if not one.exists()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """What was written last under one name of one file.

    `backup` is the file as it was before we first wrote, unless others wrote between; none if there
    was no file. `made` are the folders that we made for it.
    """

    client: str
    file: str
    name: str
    after: str
    entry: str
    restorable: bool
    backup: str = ""
    key: str = ""
    made: tuple[str, ...] = ()


def digest(content: bytes) -> str:
    """Give what a content is known by."""
    return sha256(content).hexdigest()


def digest_of(entry: object) -> str:
    """Give what an entry is known by, in whatever order it is written."""
    return digest(json.dumps(entry, sort_keys=True, default=str).encode())


def look(file: Path) -> Held:
    """Read a file, there or not; what is no plain file is refused."""
    try:
        real = file.resolve()
        found = real.stat()
        if not stat.S_ISREG(found.st_mode):
            what = "a folder" if stat.S_ISDIR(found.st_mode) else "no plain file"
            raise _unusable(file, f"is {what}", "move it away")
        with real.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return _absent(file)
    except RuntimeError:  # how a ring of links is told
        raise _unusable(file, "is a link that leads to itself", "mend the link") from None
    except OSError as error:
        raise _unusable(file, f"cannot be read: {error.strerror}", "look at its place") from None
    if len(content) > MAX_BYTES:
        raise _unusable(file, f"has more than {MAX_BYTES} bytes", _BY_HAND)
    return Held(file=file, real=real, content=content, mode=stat.S_IMODE(found.st_mode))


def _absent(file: Path) -> Held:
    """Accept a file that is not there, unless a link on the way leads nowhere."""
    lost = next((one for one in file.parents if one.is_symlink() and not one.exists()), None)
    if lost is None and file.is_symlink() and not file.resolve().parent.is_dir():
        lost = file
    if lost is not None:
        raise _unusable(lost, f"is a link to {lost.resolve()}, which is not there", "mend the link")
    return Held(file=file, real=file.resolve())


def require_writable(held: Held) -> None:
    """Refuse a file that its owner has closed, and a folder that is not ours to write in."""
    if held.content is None:
        above = next(one for one in held.real.parents if one.exists())
        if not (above.is_dir() and os.access(above, os.W_OK)):
            raise _unusable(held.file, f"cannot be made in {above}", "look at its permissions")
    elif not held.mode & 0o222 or not os.access(held.real, os.W_OK):
        raise _unusable(held.file, "is read-only", f"chmod u+w {held.real}, or {_BY_HAND}")
    elif not os.access(held.real.parent, os.W_OK):
        raise _unusable(held.file, "is in a folder that is read-only", _BY_HAND)


@dataclass(frozen=True, slots=True)
class Connections:
    """Those of one home. All of it waits for the disk."""

    home: Path

    @property
    def folder(self) -> Path:
        """Where they are kept."""
        return self.home / FOLDER

    def find(self, file: Path, name: str) -> Connection | None:
        """Find what was written under a name of a file."""
        try:
            body: object = orjson.loads(self._record(file, name).read_bytes())
            known = cast("dict[str, Any]", body)
            return Connection(made=tuple(known.pop("made")), **known)
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def remember(self, file: Path, connection: Connection) -> None:
        """Write it down."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        record = self._record(file, connection.name)
        write_private(record, orjson.dumps(asdict(connection)).decode() + "\n")

    def forget(self, file: Path, name: str) -> None:
        """Leave the copies, and nothing else."""
        self._record(file, name).unlink(missing_ok=True)

    def back_up(self, held: Held, word: str) -> str:
        """Keep a copy beside all older ones, and name it; of a file that is not there none."""
        if held.content is None:
            return ""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        stem = f"{word}-{time.strftime('%Y%m%d-%H%M%S')}"
        for number in range(1, 1000):
            numbered = f"{stem}-{number}" if number > 1 else stem
            copy = self.folder / f"{numbered}{held.real.suffix or '.txt'}.bak"
            with suppress(FileExistsError):
                _write_new(copy, held.content)
                return copy.name
        raise HomeError(f"{self.folder} is full of copies.", way_out="move the old ones away")

    def copy(self, name: str) -> bytes | None:
        """Read a copy that was made."""
        try:
            return (self.folder / name).read_bytes()
        except OSError:
            return None

    @contextmanager
    def alone(self) -> Generator[None]:
        """Keep every other command of this home out meanwhile."""
        handle = os.open(self.home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def _record(self, file: Path, name: str) -> Path:
        known = digest(f"{file.absolute()}\0{name}".encode(errors="surrogateescape"))
        return self.folder / f"{known[:16]}.json"


def write(held: Held, content: bytes, *, shared: bool = False) -> None:
    """Write a file whole, with the folders that lead to it, unless somebody else did so meanwhile.

    A file that is replaced keeps its mode; a new one is its owner's alone, unless it is `shared`.
    """
    _require_unchanged(held)
    mode = held.mode if held.content is not None else _usual_mode() if shared else _PRIVATE
    made = held.missing()
    try:
        held.real.parent.mkdir(parents=True, exist_ok=True)
        replace_file(held.real, content, mode)
    except OSError as error:
        take_away(made)
        raise _unusable(held.file, f"cannot be written: {error.strerror}", _BY_HAND) from error


def _usual_mode() -> int:
    """What others may do with a new file, as this user has it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return _SHARED & ~mask


def remove(held: Held, made: Iterable[Path]) -> None:
    """Take a file away, unless somebody wrote to it meanwhile, and the folders made for it."""
    _require_unchanged(held)
    try:
        held.real.unlink()
        sync_parent(held.real)
    except OSError as error:
        raise _unusable(held.file, f"cannot be removed: {error.strerror}", "do it") from error
    take_away(made)


def take_away(made: Iterable[Path]) -> None:
    """Remove folders that are empty, the innermost first."""
    for folder in sorted(made, reverse=True):
        with suppress(OSError):
            folder.rmdir()


def _require_unchanged(held: Held) -> None:
    if look(held.file).content != held.content:
        raise Conflict(f"{held.file} was changed meanwhile.", way_out="do it once more")


def _write_new(file: Path, content: bytes) -> None:
    with os.fdopen(os.open(file, _NEW, _PRIVATE), "wb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())


def _unusable(file: Path, why: str, way_out: str) -> ConfigError:
    return ConfigError(f"{file} {why}.", way_out=way_out)
