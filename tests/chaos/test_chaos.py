"""The storm in short: every fault once, over a live node under load. `make chaos` lasts longer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

pytestmark = [
    pytest.mark.requirement("C7.10", "C7.13", "C13.1", "C3.7", "C3.8", "C5.6", "C12.2", "C12.3"),
    pytest.mark.needs("unshare", "mount", "bwrap"),
    pytest.mark.timeout(240),
]
SEED = 2
SECONDS = 200
ROOT = Path(__file__).parents[2]


@contextmanager
def alone(command: list[str], output: Path) -> Generator[subprocess.Popen[bytes]]:
    """Run a program in a process group of its own, of which nothing is left."""
    with (
        output.open("wb") as file,
        subprocess.Popen(
            command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        ) as process,
    ):
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def test_a_node_weathers_every_fault_and_loses_nothing(tmp_path: Path) -> None:
    output = tmp_path / "output"
    command = [sys.executable, "-m", "tests.chaos", "--minutes", "0", "--seed", str(SEED)]
    with alone(command, output) as process:
        with suppress(subprocess.TimeoutExpired):
            process.wait(SECONDS)
        assert process.returncode == 0, output.read_text()
    assert output.read_text().rstrip().endswith("all is well")
