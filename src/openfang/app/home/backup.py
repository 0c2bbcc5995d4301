"""A whole copy of the home in one file, while others go on using it.

The second place of checkpoints is copied before the database: every checkpoint in it then speaks of
a record that the copy of the database has, and one whose record was cut off is still found out. The
database is copied as it is at one moment, and after it everything else.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import re
import threading
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, TypeVar

import anyio

from openfang.app.auth.identify import identify, require
from openfang.app.environment import credential
from openfang.app.home.manifest import MANIFEST, Manifest
from openfang.app.lifespan import open_app
from openfang.config.fields import Folders
from openfang.config.home import user_home
from openfang.core.errors import Conflict, HomeError, OpenFangError
from openfang.core.events import HOME_BACKUP, Level, Record
from openfang.core.values import dataclass
from openfang.host.archive import Packer
from openfang.host.replace import sync_parent
from openfang.host.tree import TreeCopy
from openfang.storage.database import Database
from openfang.storage.health import chain_head, schema_version
from openfang.storage.snapshot import Stopped, snapshot
from openfang.storage.upgrade import is_copy
from openfang.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from openfang.app.home.paths import Home
    from openfang.app.parts import Parts

T = TypeVar("T")
_ANOTHER: Final = "name a file in another folder"
# What belongs to processes that run now. The rest of the home is copied whole.
_OF_PROCESSES: Final = frozenset({"run", "daemon.json", "secrets.lock", MANIFEST})
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
# What is made again when it is wanted: environments, and what programs keep for themselves.
_MADE_AGAIN: Final = re.compile(
    r"\A(agents|extensions)-env(/|\Z)|\Achildren/[^/]+/(home|tmp)(/|\Z)"
    r"|\A(extensions|skills)/\.[^/]+\.[0-9a-f]{16}(/|\Z)"
)
_TEMPORARY = re.compile(r"\A\.[^/]+\.[0-9a-f]{16}\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """A copy that was made. `left_out` tells what is not in it, and why."""

    file: Path
    size: int
    sha256: str
    manifest: Manifest
    left_out: tuple[str, ...]


async def back_up(home: Home, environ: Mapping[str, str], file: str = "") -> Backup:
    """Copy the home into a new file, on record, for an administrator."""
    async with open_app(home, environ) as parts:
        caller = await identify(parts, credential(home, environ), "cli")
        await require(parts, caller)
        now = datetime.fromtimestamp(parts.clock.time_ns() / 1e9, UTC)
        target = await _in_thread(lambda _: _target(parts, file, now))
        note = partial(_note, parts, caller.id, str(target))
        await note("started")
        try:
            made = await _in_thread(lambda stop: _made(parts, environ, target, now, stop))
        except BaseException as error:
            reason = error.message if isinstance(error, OpenFangError) else "it was stopped"
            with anyio.CancelScope(shield=True), suppress(OpenFangError):
                await note("failed", "error", reason=reason)
            raise
        await note("made", sha256=made.sha256, head=made.manifest.seq)
        return made


async def _in_thread(work: Callable[[Callable[[], bool]], T]) -> T:
    """Run it in a thread. Whoever is cancelled tells the thread, and waits until it has tidied."""
    stop = threading.Event()
    running = asyncio.get_running_loop().run_in_executor(None, work, stop.is_set)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        stop.set()
        with anyio.CancelScope(shield=True), suppress(Stopped):
            return await running  # it was done already: that is no failure
        raise


async def _note(
    parts: Parts, caller: str, file: str, state: str, level: Level = "info", **facts: object
) -> None:
    payload = {"state": state, "file": file, **facts}
    record = Record(event=HOME_BACKUP, level=level, payload=payload, context={"caller": caller})
    await parts.broker.append([record])


def _target(parts: Parts, file: str, now: datetime) -> Path:
    """Say where the copy goes. A folder gets a file of our naming; no file is ever replaced."""
    target = Path(file).absolute()
    if target.is_dir():
        target /= f"openfang-{parts.writer.node}-{now:%Y%m%dT%H%M%SZ}.tar.gz"
    if target.exists() or target.is_symlink():
        raise _exists(target)
    if not target.parent.is_dir():
        raise HomeError(f"There is no folder {target.parent}.", way_out=_ANOTHER)
    home = parts.home.path.resolve()
    if target.parent.resolve().is_relative_to(home):
        raise HomeError(
            f"{target} would lie in the home that it is a copy of.",
            way_out="name a file outside the home, better on another disk",
        )
    if _name(parts, _file(parts)) is None:
        raise _outside(_file(parts))
    return target


def _name(parts: Parts, path: Path) -> str | None:
    """The name of a file from the home on; none for one that lies outside."""
    home, plain = (Path(os.path.normpath(one.absolute())) for one in (parts.home.path, path))
    return str(plain.relative_to(home)) if plain.is_relative_to(home) else None


def _file(parts: Parts) -> Path:
    """The file that is copied; what a server keeps is copied by its own means."""
    if not isinstance(parts.database, Database):
        raise HomeError(
            "The home keeps its state on a Postgres server: a backup of it is the server's.",
            way_out="pg_dump, and a copy of master.key and config.toml",
        )
    return parts.database.path


def _outside(database: Path) -> HomeError:
    return HomeError(
        f"The database {database} lies outside the home, and would not be in the copy.",
        way_out='move it into the home, for example with storage.url = "sqlite:openfang.db"',
    )


def _exists(target: Path) -> Conflict:
    return Conflict(f"{target} exists already, and is not replaced.", way_out="name another file")


def _made(
    parts: Parts, environ: Mapping[str, str], target: Path, now: datetime, stop: Callable[[], bool]
) -> Backup:
    try:
        with TemporaryDirectory(prefix=".openfang-backup-", dir=target.parent) as folder:
            work = _Work(parts, Path(folder), stop)
            manifest, left_out = work.archive(now)
            return Backup(
                file=target,
                size=work.packed.stat().st_size,
                sha256=_published(work.packed, target),
                manifest=manifest,
                left_out=(*left_out, *_elsewhere(parts, environ)),
            )
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        raise HomeError(
            f"The home could not be copied to {target}: {what}. Nothing is left of the copy.",
            way_out=f"free some space, or {_ANOTHER}",
        ) from error


@dataclass(frozen=True, slots=True)
class _Work:
    """A home that is being copied, and the folder next to the target where that is done."""

    parts: Parts
    folder: Path
    stop: Callable[[], bool]

    @property
    def packed(self) -> Path:
        return self.folder / "archive"

    def archive(self, now: datetime) -> tuple[Manifest, list[str]]:
        """Write the archive; its own words on itself come last."""
        instead = self._taken_before()
        manifest = self._facts(now)
        with os.fdopen(os.open(self.packed, _NEW, 0o600), "wb") as file:
            packer = Packer(file)
            tree = TreeCopy(
                packer=packer, check=self._check, without=self._left_out, instead=instead
            )
            tree.copy(self.parts.home.path)
            if manifest.database not in packer.digests:  # a folder on the way to it is a link
                raise _outside(_file(self.parts))
            manifest = replace(manifest, members=dict(packer.digests))
            text = manifest.text()
            packer.file(
                MANIFEST, io.BytesIO(text), size=len(text), mode=0o600, mtime=now.timestamp()
            )
            packer.close()
            file.flush()
            os.fsync(file.fileno())
        return manifest, tree.left_out

    def _taken_before(self) -> dict[str, Path]:
        """Copy what must fit together, in this order; see above."""
        instead: dict[str, Path] = {}
        config = self.parts.home.config_file
        if config.is_symlink():  # people keep theirs elsewhere, and it is ours to copy
            instead[config.name] = config
        checkpoints = Path(self.parts.config.audit.checkpoint_file)
        name = _name(self.parts, checkpoints)
        if name is not None and checkpoints.exists():
            instead[name] = self._whole_lines(checkpoints)
        copy = self.folder / "database"
        snapshot(_file(self.parts), copy, stop=self.stop)
        instead[self._database] = copy
        return instead

    def _whole_lines(self, file: Path) -> Path:
        """Copy a file that others append lines to, up to its last whole line."""
        copy = self.folder / "checkpoints"
        text = file.read_bytes()
        copy.write_bytes(text[: text.rfind(b"\n") + 1])
        return copy

    def _facts(self, now: datetime) -> Manifest:
        """Read from the copy what it is a copy of."""
        node = self.parts.writer.node
        with closing(Database(self.folder / "database")) as database:
            head = chain_head(database, node)
            return Manifest(
                version=__version__,
                schema=schema_version(database),
                node=node,
                created_at=now.isoformat(timespec="seconds"),
                seq=head.seq,
                hash=head.hash.hex(),
                database=self._database,
                members={},
            )

    @property
    def _database(self) -> str:
        return _name(self.parts, _file(self.parts)) or ""

    def _left_out(self, path: str) -> bool:
        beside = {f"{self._database}{end}" for end in ("-wal", "-shm", "-journal")}
        if path in _OF_PROCESSES or path in beside or is_copy(self._database, path):
            return True
        return any(pattern.match(path) for pattern in (_TEMPORARY, _MADE_AGAIN))

    def _check(self) -> None:
        if self.stop():
            raise Stopped("The copy was stopped.")


def _published(archive: Path, target: Path) -> str:
    """Give the whole file its name, and return its digest."""
    with archive.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    try:
        target.hardlink_to(archive)
    except FileExistsError:
        raise _exists(target) from None
    except OSError:  # a file system without hard links
        archive.rename(target)
    sync_parent(target)
    return digest


def _elsewhere(parts: Parts, environ: Mapping[str, str]) -> Iterator[str]:
    """Tell what the node uses and a copy of its home does not hold."""
    config = parts.config
    folders = Folders(home=parts.home.path, user=user_home(environ))
    plugins = (*config.plugins.gates, *config.plugins.adapters, *config.plugins.audit_handlers)
    named = [config.audit.checkpoint_file, *filter(None, (config.policy.file,))]
    used = [*map(Path, named), *(plugin.path for plugin in plugins)]
    for path in (*used, *map(folders.resolve, config.include)):
        if _name(parts, path) is None:
            yield f"{path} lies outside the home"
    if config.secrets.keyring:
        yield "the master key is in the system's keyring"
