"""Run inside a mount namespace: a backup to, and a restore on, a tmpfs of 3 MB. Prints JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from openfang.app.home.backup import back_up
from openfang.app.home.new import init_home
from openfang.app.home.restore import restore
from openfang.core.errors import HomeError

if TYPE_CHECKING:
    from collections.abc import Callable


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def refused(work: Callable[[], object]) -> dict[str, str]:
    try:
        work()
    except HomeError as error:
        return {"message": error.message, "way_out": error.way_out}
    return {}


def main(folder: Path, disk: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)], check=True)
    home, _ = init_home(folder / "home", {})
    noise = home.workspace("key-admin") / "noise"
    noise.parent.mkdir(parents=True)
    noise.write_bytes(os.urandom(4_000_000))
    seen: dict[str, object] = {
        "backup": refused(lambda: anyio.run(partial(back_up, home, {}, str(disk))))
    }
    seen["left"] = names(disk)
    made = anyio.run(partial(back_up, home, {}, str(folder)))
    init_home(disk / "home", {})
    (disk / "home/mine").write_text("kept")
    seen["restore"] = refused(lambda: restore(made.file, disk / "home", time.time_ns()))
    seen["kept"] = [names(disk), (disk / "home/mine").read_text()]
    print(json.dumps(seen))  # noqa: T201 - the test reads it


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
