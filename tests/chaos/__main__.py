"""`python -m tests.chaos --minutes 10 --seed 1`: a storm over a live node, which ends by itself.

It runs in a mount namespace of its own, on a disk that nobody else sees.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos.processes import adopt_orphans
from tests.chaos.report import report
from tests.chaos.storm import Storm
from tests.chaos.to_disk import mount, unmount

_INSIDE = "OPENFANG_CHAOS"


def main() -> int:
    arguments = argparse.ArgumentParser(prog="python -m tests.chaos")
    arguments.add_argument("--minutes", type=float, default=10)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    if _INSIDE not in os.environ:
        _enter()
    adopt_orphans()
    began = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {line}", flush=True)  # noqa: T201 - its output

    with tempfile.TemporaryDirectory() as folder:
        disk = Path(folder) / "disk"
        disk.mkdir()
        mount(disk)
        (disk / "home.log").symlink_to(Path(folder) / "daemon.log")
        try:
            storm = Storm(disk, given.seed, say)
            storm.run(given.minutes)
        finally:
            unmount(disk)
    for line in ("", *report(storm.ledger), *(f"WRONG: {wrong}" for wrong in storm.wrong)):
        say(line)
    say("something is wrong" if storm.wrong else "all is well")
    return bool(storm.wrong)


def _enter() -> None:
    """Start again where a disk can be mounted that nobody else sees."""
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "-m"]
    command = [*unshare, sys.executable, "-m", "tests.chaos", *sys.argv[1:]]
    os.execvpe(command[0], command, {**os.environ, _INSIDE: "1"})  # noqa: S606 - nobody's words


if __name__ == "__main__":
    sys.exit(main())
