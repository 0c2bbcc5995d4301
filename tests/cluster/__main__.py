"""`python -m tests.cluster --rounds 3`: a storm over three nodes, which ends by itself."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from itertools import count
from pathlib import Path

from tests.cli.conftest import Cli
from tests.cluster.storm import FAULTS, brewing

from openfang.app.home.new import init_home


def main() -> int:
    arguments = argparse.ArgumentParser(prog="python -m tests.cluster")
    arguments.add_argument("--rounds", type=int, default=2, choices=range(1, 21))
    arguments.add_argument("--faults", default="".join(FAULTS))
    given = arguments.parse_args()
    began, numbers = time.monotonic(), count(1)

    def say(line: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {line}", flush=True)  # noqa: T201 - its output

    mistakes = list[str]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def make_home() -> Cli:
            home = folder / str(next(numbers)) / "home"
            init_home(home, {"HOME": str(home.parent)})
            return Cli(home, folder / "pycache")

        with brewing(make_home, folder, say) as storm:
            told = storm.run(given.faults * given.rounds)
            mistakes = storm.mistakes()
    for kind, times in sorted(told.answers.items(), key=lambda found: -found[1]):
        say(f"{times:6,} x {kind}")
    say(f"the slowest answer took {told.slowest:.1f} s")
    for line in mistakes:
        say(line)
    for wrong in storm.wrong:
        say(f"WRONG: {wrong}")
    say("something is wrong" if storm.wrong else "all is well")
    return bool(storm.wrong)


if __name__ == "__main__":
    sys.exit(main())
