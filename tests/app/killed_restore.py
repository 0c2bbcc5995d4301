"""Restores a home again and again, each time killed at another step, and prints what is left.

A step is whatever Python tells its audit hooks of: a file opened, a folder made, a name changed.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

import anyio

from openfang.app.auth.identify import identify
from openfang.app.environment import credential
from openfang.app.home.paths import Home
from openfang.app.home.restore import restore
from openfang.app.lifespan import open_app
from openfang.app.verify import verify

STEPS = ("open", "os.", "shutil.", "sqlite3.", "fcntl.", "ctypes.dl")
NOW = 2_000_000_000_000_000_000
NEVER = 0


def restored(archive: Path, home: Path, killed_at: int) -> int:
    """Restore in a child that kills itself at a step; else its exit code is how many there are."""
    child = os.fork()
    if child == 0:
        _restore(archive, home, killed_at)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _restore(archive: Path, home: Path, killed_at: int) -> NoReturn:
    step = 0

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal step
        # How often /proc is read depends on what else runs.
        if event.startswith(STEPS) and not str(arguments[0]).startswith("/proc"):
            step += 1
            if step == killed_at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    restore(archive, home, NOW)
    os._exit(step)


async def seen(home: Path) -> dict[str, Any]:
    """Use the home: which one is it, does its key open it, is its log intact?"""
    async with open_app(Home(home), {}) as parts:
        caller = await identify(parts, credential(Home(home), {}), "cli")
        found = await verify(parts)
        note = await anyio.Path(home / "workspaces/key-admin/note").read_text()
        return {"note": note, "caller": caller.id, "intact": found.intact}


def main(archive: Path, old: Path, around: Path) -> None:
    """Try steps all along the way, and each of the last ones, where the homes change places."""
    found: list[dict[str, Any]] = []
    shutil.copytree(old, around / "whole/home")
    count = restored(archive, around / "whole/home", NEVER)
    for step in (*range(1, count - 8, 5), *range(count - 8, count + 1)):
        place = around / str(step)
        shutil.copytree(old, place / "home")
        code = restored(archive, place / "home", step)
        beside = sorted(path.name for path in place.iterdir())
        found.append({"code": code, "beside": beside, **anyio.run(seen, place / "home")})
    print(json.dumps(found))  # noqa: T201 - the test reads it


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
