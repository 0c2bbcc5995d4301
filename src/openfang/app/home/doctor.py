"""Is the home in order? Each check stands alone, so that one that fails hides no other."""

from __future__ import annotations

import stat
from contextlib import aclosing, suppress
from functools import partial
from typing import TYPE_CHECKING

from openfang.app.anchor import anchoring
from openfang.app.home.checks import Check, Health, fail, ok, warn
from openfang.app.home.installs import installs
from openfang.app.home.naming import known_as
from openfang.app.home.new import init_home
from openfang.app.home.on_server import of_server
from openfang.app.home.paths import Home
from openfang.app.home.resting import at_rest
from openfang.app.home.surroundings import of_daemon, of_machine
from openfang.app.home.thinking import of_models
from openfang.app.home.trusting import held, peers
from openfang.config.load import check, load
from openfang.core.errors import OpenFangError
from openfang.host import machine
from openfang.host.holders import writer
from openfang.storage.database import Database, at_once, migrations, open_home
from openfang.storage.health import (
    damage,
    is_locked,
    last_record,
    schema_version,
    times_set_back,
    wal_bytes,
)
from openfang.storage.processes import Locks, Process
from openfang.storage.upgrade import kept_copies

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from openfang.config.models import Config
    from openfang.storage.processes import Roll

__all__ = ["Check", "Health", "examine"]

_RESTORE = "restore a backup of the home: openfang restore FILE"
_OTHERS = 0o077
_LARGE_WAL = 256_000_000
_LONG_ANCHORING = 120_000_000_000


def examine(path: Path, environ: Mapping[str, str], now: int) -> list[Check]:
    """Look at everything; `now` is the wall clock in nanoseconds. Blocks."""
    home = Home(path)
    try:
        if not home.exists:
            return [fail("home", f"there is none at {path}", "openfang init"), *of_machine(path)]
        found = [ok("home", str(path)), *_permissions(home), *_key(home, environ)]
        found += _unfinished(path)
        found += _configuration(path, environ)
        config = _config(path, environ)
        if config is not None:
            found += of_models(home, config, environ)
            found += _of_database(home, config, now)
        return [*found, *of_daemon(path, config), *of_machine(path)]
    except PermissionError as error:
        return [_not_ours(path, error), *of_machine(path)]


def _not_ours(path: Path, error: PermissionError) -> Check:
    fix = f"chown -R {machine.user()} {path}, or set OPENFANG_HOME to a folder of your own"
    return fail("home", f"{error.filename or path} cannot be used: {error.strerror}", fix)


def _permissions(home: Home) -> list[Check]:
    wanted = ((home.path, 0o700), (home.key_file, 0o600), (home.master_key, 0o600))
    if not home.master_key.exists():
        text = f"{home.master_key} is missing"
        return [fail("permissions", text, _RESTORE)]
    open_to_others = [
        fail(
            "permissions",
            f"{path} can be used by others (mode {stat.S_IMODE(path.stat().st_mode):o})",
            f"chmod {mode:o} {path}",
            partial(path.chmod, mode),
        )
        for path, mode in wanted
        if path.exists() and path.stat().st_mode & _OTHERS
    ]
    return open_to_others or [ok("permissions", "home and keys are their owner's alone")]


def _key(home: Home, environ: Mapping[str, str]) -> list[Check]:
    """Without its key file a home has no administrator whom commands could be."""
    if home.key_file.exists() or not home.master_key.exists():
        return []
    text = f"{home.key_file} is missing: commands have no key to come with"
    mend = partial(init_home, home.path, environ)
    return [fail("key", text, "openfang init, which makes a new administrator's key", mend)]


def _unfinished(path: Path) -> list[Check]:
    """A restore that was killed leaves what it unpacked, or the home that it had just replaced."""
    real = path.resolve()
    fix = "see whether it is the old home or half a new one, then remove it"
    with suppress(OSError):
        return [
            warn("restore", f"one that was interrupted left {folder}", fix)
            for folder in sorted(real.parent.iterdir())
            if folder.name.startswith(f".{real.name}.restore-")
        ]
    return []


def _configuration(path: Path, environ: Mapping[str, str]) -> list[Check]:
    problems = check(path, environ)
    if not problems:
        return [ok("configuration", "no problems")]
    return [fail("configuration", str(problem), "openfang config check") for problem in problems]


def _config(path: Path, environ: Mapping[str, str]) -> Config | None:
    try:
        return load(path, environ)
    except OpenFangError:
        return None


def _of_database(home: Home, config: Config, now: int) -> list[Check]:
    try:
        file = config.storage.file(home.path)
        if file and not file.exists():
            return [fail("database", f"{file} is missing", _RESTORE)]
        waiting = wal_bytes(file) if file else 0
        database = at_rest(home, config)
    except OpenFangError as error:
        return [fail("database", error.message, error.way_out)]
    looks: tuple[Callable[[], Check], ...] = (
        *(_of_file(database, file, waiting, now) if file else of_server(database, home, config)),
        lambda: _leftovers(database, home),
        lambda: held(database),
        lambda: peers(database, config),
        lambda: installs(database, home),
        *((lambda: _anchored(database, home, config, now),) if config.audit.anchor else ()),
    )
    try:
        first = _tried(looks[0])
        if file is None and first.health is Health.FAIL:  # nor would it answer what else is asked
            return [first]
        return [first, *map(_tried, looks[1:])]
    finally:
        database.close()


def _tried(look: Callable[[], Check]) -> Check:
    try:
        return look()
    except OpenFangError as error:
        return fail("database", error.message, error.way_out)


def _of_file(
    database: Database, file: Path, waiting: int, now: int
) -> tuple[Callable[[], Check], ...]:
    return (
        lambda: _intact(database),
        lambda: _writing(file),
        lambda: _wal(waiting),
        lambda: _schema(database),
        lambda: _clock(database, now),
    )


def _intact(database: Database) -> Check:
    wrong = damage(database)
    if wrong:
        return fail("database", f"{database.path}: {wrong}", _RESTORE)
    return ok("database", f"{database.path} is sound")


def _writing(file: Path) -> Check:
    if not is_locked(file):
        return ok("writing", "nobody is in the way")
    by = writer(file) or "a process that cannot be seen from here"
    return fail("writing", f"{file} is locked by {by}", "end it, or wait until it is done")


def _wal(size: int) -> Check:
    text = f"{size / 1e6:,.0f} MB in front of the database"
    if size > _LARGE_WAL:
        fix = "end long reads (audit export, audit sql, backup); it shrinks with the last process"
        return warn("wal", text, fix)
    return ok("wal", text)


def _schema(database: Database) -> Check:
    found, known = schema_version(database), migrations()[-1][0]
    if found > known:
        return fail("schema", f"{found}, newer than this version's {known}", "upgrade openfang")
    if found < known:
        text = f"{found}, this version brings it to {known}"
        return warn("schema", text, "openfang tools list", partial(_upgrade, database.path))
    copies = ", ".join(map(str, kept_copies(database.path)))
    return ok("schema", f"{found}{f'; from before an upgrade: {copies}' if copies else ''}")


def _upgrade(file: Path) -> None:
    open_home(file).close()


def _clock(database: Database, now: int) -> Check:
    last = last_record(database)
    if last > now:
        behind = (last - now) / 1e9
        return fail(
            "clock", f"{behind:.0f} s behind the last audit record", "set the system's clock"
        )
    fallen = times_set_back(database)
    if fallen:
        text = f"it was set back {fallen} times while the newest records were written"
        return warn("clock", text, "let a time service (NTP) keep the clock")
    return ok("clock", "not before the last audit record")


def _anchored(database: Database, home: Home, config: Config, now: int) -> Check:
    node = at_once(known_as(home, config, database))
    found = at_once(anchoring(database, node, config.audit.anchor))
    if found is None or found.since is None or now - found.since < _LONG_ANCHORING:
        return ok("anchor", "signed checkpoints are kept outside")
    hours = (now - found.since) / 3.6e12
    text = f"{found.waiting} checkpoints did not reach {found.host}, the oldest for {hours:.1f} h"
    fix = "see to the address in [audit.anchor]; they are sent when it answers while a node runs"
    return warn("anchor", text, fix)


def _roll(database: Database, home: Home) -> Roll:
    if database.dialect == "sqlite":
        return Locks(home.processes)
    from openfang.storage.postgres.roll import Beats  # noqa: PLC0415 - start-up time

    return Beats(database, Process(home.processes))


async def _count(database: Database, home: Home) -> int:
    async with aclosing(_roll(database, home).vanished(database, me="")) as gone:
        return len([one async for one in gone])


def _leftovers(database: Database, home: Home) -> Check:
    gone = at_once(_count(database, home))
    orphans = machine.abandoned(home.workspace(""))
    if orphans:
        pids = " ".join(map(str, orphans))
        return warn("processes", f"tools left these running: {pids}", f"kill {pids}")
    if gone:
        return warn(
            "processes",
            f"{gone} ended without a word; the next command ends their calls",
            "openfang audit verify",
        )
    return ok("processes", "none left over")
