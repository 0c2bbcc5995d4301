"""What a look at the installed extensions and skills finds: which wait for a person, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from openfang.app.home.checks import ok, warn
from openfang.core.errors import OpenFangError
from openfang.core.installs import COMMANDS, FOLDERS, WAITING
from openfang.host.folders import all_files_of, digest_of
from openfang.storage.database import at_once
from openfang.storage.health import schema_version
from openfang.storage.installs import InstallStore

if TYPE_CHECKING:
    from openfang.app.home.checks import Check
    from openfang.app.home.paths import Home
    from openfang.storage.database import Database
    from openfang.storage.installs import Install

_SINCE: Final = 14
_SHOWN: Final = 5


def installs(database: Database, home: Home) -> Check:
    """Say what is installed, and what of it is held back or waits to be accepted."""
    found = at_once(InstallStore(database).all()) if schema_version(database) >= _SINCE else []
    told = {one.id: why for one in found if (why := _why_not(one, home))}
    if not told:
        return ok("installs", f"{len(found)} installed, none is held back or waits")
    words = [f"{id_} {why}" for id_, why in list(told.items())[:_SHOWN]]
    more = " and more" if len(told) > _SHOWN else ""
    first = next(one for one in found if one.id in told)
    fix = f"openfang {COMMANDS[first.kind]} show {first.id}, then enable or remove it"
    return warn("installs", ", ".join(words) + more, fix)


def _why_not(install: Install, home: Home) -> str:
    root = home.path / FOLDERS[install.kind]
    if (root / WAITING / install.id).is_dir():
        return "has another version that waits"
    if not install.enabled:
        return ""
    try:
        digest = digest_of(all_files_of(root / install.id))
    except (OpenFangError, OSError) as error:
        return f"cannot be read: {error}"
    return "" if digest == install.accepted else "is held back when it starts: its files changed"
