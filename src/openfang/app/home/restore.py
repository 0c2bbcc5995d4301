"""Puts a home back from a backup: unpacked beside it, checked, and then moved in at once.

Nothing is deleted: a home that was there is moved aside. A restore that is killed leaves the home
as it was or as the backup has it, and perhaps a hidden folder next to it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import time
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, BinaryIO, Final

import orjson

from openfang.app.daemon.discovery import claimed
from openfang.app.home.manifest import MANIFEST, Manifest
from openfang.app.home.paths import Home
from openfang.audit.chain import digest
from openfang.core.errors import Conflict, HomeError, NotFound
from openfang.core.events import HOME_RESTORED
from openfang.core.values import dataclass
from openfang.host.holders import holders_below, lock_holder
from openfang.host.machine import free_bytes
from openfang.host.replace import replace_folder, sync_below
from openfang.host.unpack import ArchiveRefused, unpack
from openfang.storage.agent_runs import AgentRunStore, give_up
from openfang.storage.database import Database, at_once, migrations, open_home
from openfang.storage.health import chain_head, damage, schema_version
from openfang.storage.ledger import LedgerStore
from openfang.storage.processes import living
from openfang.storage.state import Settings
from openfang.storage.units import Line, Unit
from openfang.storage.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Generator

_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_LOCK: Final = os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
_OF_A_HOME: Final = ("config.toml", "key", "master.key", "openfang.db", "checkpoints")
_DAEMON: Final = "daemon.lock"
_TRIES: Final = 10
_PAUSE: Final = 0.02
_USABLE: Final = 0.95
_MOST_MANIFEST: Final = 128 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """A home that was put back. `aside` is where the one before it lies now, if there was any."""

    home: Path
    manifest: Manifest
    record: int
    aside: Path | None


def restore(file: Path, home: Path, now: int) -> Restored:
    """Put the home back from this file; `now` is the wall clock in nanoseconds. Blocks."""
    place = _place(home)
    with _opened(file) as archive, to_ourselves(place):
        new = Path(mkdtemp(prefix=f".{place.name}.restore-", dir=place.parent))
        try:
            manifest = _unpacked(archive, new)
            record = _recorded(new / manifest.database, manifest, file, now)
            sync_below(new)
            _refuse_if_used(place)
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise
        aside = _put(new, place, now)
        return Restored(home=place, manifest=manifest, record=record, aside=aside)


def _place(home: Path) -> Path:
    """Say which folder will be replaced: the real one, if the home is reached by a link."""
    place = home.resolve()
    if place.exists() and not place.is_dir():
        raise HomeError(f"{place} is no folder.", way_out="set OPENFANG_HOME to another one")
    if _filled(place) and not any((place / name).exists() for name in _OF_A_HOME):
        raise HomeError(
            f"{place} is not empty, and no OpenFang home.",
            way_out="set OPENFANG_HOME to the home that should be replaced, or to a new folder",
        )
    if place.is_mount():
        raise HomeError(
            f"{place} is a mount point and cannot be moved aside.",
            way_out="set OPENFANG_HOME to a folder inside it, and restore there",
        )
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return place


def _filled(place: Path) -> bool:
    return place.exists() and any(place.iterdir())


@contextmanager
def _opened(file: Path) -> Generator[BinaryIO]:
    try:
        handle = os.open(file, _READ)
    except FileNotFoundError:
        raise NotFound(f"There is no file {file}.", way_out="openfang backup makes one") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise HomeError(f"{file} is no file.", way_out="name a file made with: openfang backup")
    with os.fdopen(handle, "rb") as archive:
        yield archive


@contextmanager
def to_ourselves(place: Path) -> Generator[None]:
    """Keep out whoever would make the home, restore it or start a daemon on it meanwhile."""
    if not _filled(place):
        yield
        return
    with ExitStack() as held:
        folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        held.callback(os.close, folder)
        if not _locked(folder):
            raise _in_use(place, "another command that makes or restores it")
        Home(place).processes.mkdir(mode=0o700, exist_ok=True)
        daemon = os.open(Home(place).processes / _DAEMON, _LOCK, 0o600)
        held.callback(os.close, daemon)
        if not _locked(daemon):
            raise _in_use(place, f"a daemon, process {claimed(place).pid or 'unknown'}")
        os.ftruncate(daemon, 0)
        os.pwrite(daemon, str(os.getpid()).encode(), 0)
        _refuse_if_used(place)
        yield


def _locked(handle: int) -> bool:
    """Take a lock. Whoever only looks holds it for a moment: that is waited for."""
    for _ in range(_TRIES):
        with suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(_PAUSE)
    return False


def _refuse_if_used(place: Path) -> None:
    """Refuse while any other process uses the home: it would go on writing into the old one."""
    for file in living(Home(place).processes):
        if file.name != _DAEMON:
            raise _in_use(
                place, str(lock_holder(file) or "a process that cannot be seen from here")
            )
    for holder in holders_below(place):
        raise _in_use(place, str(holder))


def _in_use(place: Path, by: str) -> Conflict:
    return Conflict(
        f"{place} is in use by {by}.", way_out="openfang stop; other processes have to end as well"
    )


def _unpacked(archive: BinaryIO, new: Path) -> Manifest:
    """Unpack it, and check that everything is there as the backup says."""
    digests = unpack(archive, new, most_bytes=int(free_bytes(new) * _USABLE))
    manifest = _manifest(new / MANIFEST)
    del digests[MANIFEST]
    for name in sorted(digests.keys() ^ manifest.members.keys()):
        what = "is missing" if name in manifest.members else "was added"
        raise ArchiveRefused(f"The member {name!a} {what}.")
    for name, found in digests.items():
        if found != manifest.members[name]:
            raise ArchiveRefused(f"The member {name!a} was changed.")
    if not digests.get(manifest.database):
        raise ArchiveRefused("The archive has no database.")
    _check_database(new / manifest.database, manifest)
    return manifest


def _manifest(file: Path) -> Manifest:
    """Take what the backup says about itself out of the new home."""
    if file.is_symlink() or not file.is_file() or file.stat().st_size > _MOST_MANIFEST:
        raise ArchiveRefused(f"The archive has no {MANIFEST}.")
    manifest = Manifest.read(file.read_bytes())
    file.unlink()
    return manifest


def _check_database(file: Path, manifest: Manifest) -> None:
    known = migrations()[-1][0]
    with closing(Database(file)) as database:
        schema = schema_version(database)
        if schema > known:
            raise HomeError(
                f"The backup was made by a newer version (schema {schema}, this one knows "
                f"{known}).",
                way_out="upgrade openfang",
            )
        head = chain_head(database, manifest.node)
        found = (schema, at_once(Settings(database).get("node")), head.seq, head.hash.hex())
        told = (manifest.schema, manifest.node, manifest.seq, manifest.hash)
        if found != told or damage(database):
            raise ArchiveRefused(f"The database is not the one that {MANIFEST} tells of.")


def _recorded(file: Path, manifest: Manifest, archive: Path, now: int) -> int:
    """Say in the log itself, as its next record, that it goes on from here."""
    payload = {
        "file": str(archive.absolute()),
        "head": manifest.seq,
        "hash": manifest.hash,
        "made_at": manifest.created_at,
        "version": manifest.version,
    }
    line = Line(HOME_RESTORED, "warning", "", "", orjson.dumps(payload).decode(), "{}")
    with closing(open_home(file)) as database:
        # What the runs of that moment did later is not in the backup: none of them may go on.
        left = at_once(AgentRunStore(database).under_way())
        used = {run.id: at_once(LedgerStore(database).of_run(run.id)).usage for run in left}
    given_up = tuple(line for run in left for line in give_up(run, now, used[run.id]))
    writer = Writer(path=file, node=manifest.node, digest=digest, now=lambda: now)
    try:
        (record,) = writer.write_blocking(Unit((line,), given_up)).numbers
    finally:
        writer.close()
    return record


def _put(new: Path, place: Path, now: int) -> Path | None:
    """Move it in. From here on the old home may lie under the name of the new one: never delete."""
    aside = _aside(place, now)
    try:
        moved = replace_folder(new, place, aside)
    except OSError as error:
        raise HomeError(
            f"{place} cannot be replaced: {error.strerror}. The other home lies in {new}.",
            way_out="openfang doctor, and put in place by hand the one that you want",
        ) from error
    return aside if moved else None


def _aside(place: Path, now: int) -> Path:
    moment = datetime.fromtimestamp(now / 1e9, UTC)
    first = place.with_name(f"{place.name}.before-{moment:%Y%m%dT%H%M%SZ}")
    names = (first, *(first.with_name(f"{first.name}-{number}") for number in range(2, 100)))
    return next(name for name in names if not name.exists())
