"""Is the home in order? Each check stands alone, so that one that fails hides no other."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from openfang.app.home import Home
from openfang.config.load import check, load
from openfang.core.errors import OpenFangError
from openfang.host import machine
from openfang.storage.database import Database, migrations
from openfang.storage.health import damage, last_record, schema_version
from openfang.storage.processes import vanished

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from openfang.config.models import Config

_LOW_DISK = 100_000_000
_OTHERS = 0o077


class Health(Enum):
    """How a check ended."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at, and what would mend it."""

    name: str
    health: Health
    text: str
    fix: str = ""


def examine(path: Path, environ: Mapping[str, str], now: int) -> list[Check]:
    """Look at everything; `now` is the wall clock in nanoseconds. Blocks."""
    home = Home(path)
    if not home.exists:
        return [_fail("home", f"there is none at {path}", "openfang init"), *_of_machine(path)]
    found = [_ok("home", str(path)), *_permissions(home), *_configuration(path, environ)]
    config = _config(path, environ)
    if config is None:
        return [*found, *_of_machine(path)]
    found += _of_database(home, config, now)
    return [*found, _port(config), *_of_machine(path)]


def _permissions(home: Home) -> list[Check]:
    wanted = ((home.path, "700"), (home.key_file, "600"), (home.master_key, "600"))
    if not home.master_key.exists():
        text = f"{home.master_key} is missing"
        return [_fail("permissions", text, "restore it from a backup of the home")]
    open_to_others = [
        _fail(
            "permissions",
            f"{path} can be used by others (mode {stat.S_IMODE(path.stat().st_mode):o})",
            f"chmod {mode} {path}",
        )
        for path, mode in wanted
        if path.exists() and path.stat().st_mode & _OTHERS
    ]
    return open_to_others or [_ok("permissions", "home and keys are their owner's alone")]


def _configuration(path: Path, environ: Mapping[str, str]) -> list[Check]:
    problems = check(path, environ)
    if not problems:
        return [_ok("configuration", "no problems")]
    return [_fail("configuration", str(problem), "openfang config check") for problem in problems]


def _config(path: Path, environ: Mapping[str, str]) -> Config | None:
    try:
        return load(path, environ)
    except OpenFangError:
        return None


def _of_database(home: Home, config: Config, now: int) -> list[Check]:
    try:
        file = home.database(config)
        if not file.exists():
            return [_fail("database", f"{file} is missing", "restore a backup of the home")]
        database = Database(file)
    except OpenFangError as error:
        return [_fail("database", error.message, error.way_out)]
    looks: tuple[Callable[[], Check], ...] = (
        lambda: _intact(database),
        lambda: _schema(database),
        lambda: _clock(database, now),
        lambda: _leftovers(database, home),
    )
    try:
        return [_tried(look) for look in looks]
    finally:
        database.close()


def _tried(look: Callable[[], Check]) -> Check:
    try:
        return look()
    except OpenFangError as error:
        return _fail("database", error.message, error.way_out)


def _intact(database: Database) -> Check:
    wrong = damage(database)
    if wrong:
        return _fail("database", f"{database.path}: {wrong}", "restore a backup of the home")
    return _ok("database", f"{database.path} is sound")


def _schema(database: Database) -> Check:
    found, known = schema_version(database), migrations()[-1][0]
    if found > known:
        return _fail("schema", f"{found}, newer than this version's {known}", "upgrade openfang")
    if found < known:
        return _warn("schema", f"{found}, this version brings it to {known}", "openfang tools list")
    return _ok("schema", str(found))


def _clock(database: Database, now: int) -> Check:
    last = last_record(database)
    if last > now:
        behind = (last - now) / 1e9
        return _fail(
            "clock", f"{behind:.0f} s behind the last audit record", "set the system's clock"
        )
    return _ok("clock", "not before the last audit record")


def _leftovers(database: Database, home: Home) -> Check:
    gone = sum(1 for _ in vanished(database, home.processes, me=""))
    orphans = machine.abandoned(home.workspace(""))
    if orphans:
        pids = " ".join(map(str, orphans))
        return _warn("processes", f"tools left these running: {pids}", f"kill {pids}")
    if gone:
        return _warn(
            "processes",
            f"{gone} ended without a word; the next command ends their calls",
            "openfang audit verify",
        )
    return _ok("processes", "none left over")


def _port(config: Config) -> Check:
    problem = machine.port_problem(*config.listen)
    if not problem:
        return _ok("api_listen", f"{config.api_listen} is free")
    return _warn(
        "api_listen", f"{config.api_listen}: {problem}", "change api_listen, or OPENFANG_LISTEN"
    )


def _of_machine(path: Path) -> list[Check]:
    return [_disk(path), _sandbox()]


def _disk(path: Path) -> Check:
    folder = next(place for place in (path, *path.absolute().parents) if place.exists())
    free = machine.free_bytes(folder)
    text = f"{free / 1e6:,.0f} MB free"
    return _warn("disk", text, "free some space") if free < _LOW_DISK else _ok("disk", text)


def _sandbox() -> Check:
    layers = machine.layers()
    words = [_layer(layer) for layer in layers]
    present = {layer.name for layer in layers if layer.present}
    if "bwrap" in present or {"landlock", "seccomp"} <= present:
        return _ok("sandbox layers", "; ".join(words))
    return _warn("sandbox layers", "; ".join(words), "install bubblewrap")


def _layer(layer: machine.Layer) -> str:
    state = "yes" if layer.present else "no"
    return f"{layer.name}: {state} ({layer.detail})" if layer.detail else f"{layer.name}: {state}"


def _ok(name: str, text: str) -> Check:
    return Check(name=name, health=Health.OK, text=text)


def _warn(name: str, text: str, fix: str) -> Check:
    return Check(name=name, health=Health.WARN, text=text, fix=fix)


def _fail(name: str, text: str, fix: str) -> Check:
    return Check(name=name, health=Health.FAIL, text=text, fix=fix)
