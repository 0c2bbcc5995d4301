"""The command line: CPU from start to end of a command."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from typing import TYPE_CHECKING

from bench.figures import Figure

if TYPE_CHECKING:
    from pathlib import Path


def cpu_of(arguments: list[str], home: Path) -> float:
    """Seconds of CPU of one command, the best of five."""
    environ = {**os.environ, "OPENFANG_HOME": str(home)}
    rounds: list[float] = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-m", "openfang", *arguments],
            env=environ,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        rounds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(rounds)


def figures(folder: Path) -> list[Figure]:
    home = folder / "cli"
    python = cpu_of_python()
    cpu_of(["init"], home)
    beside = f"python itself {python:.3f} s"
    return [
        Figure("openfang --version", cpu_of(["--version"], home), "s", 0.1, beside=beside),
        Figure("openfang tools list", cpu_of(["tools", "list"], home), "s", 0.6),
    ]


def cpu_of_python() -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
