"""Starts that come at the same time: exactly one daemon serves a home."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.faults.daemon import SECONDS, Home, make_home

from openfang.app.daemon.background import end_daemon, start_apart
from openfang.app.daemon.discovery import Daemon
from openfang.core.errors import HomeError
from openfang.host.detach import running

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.requirement("C12.1"), pytest.mark.timeout(600)]

# `make soak` starts more often.
STORMS = int(os.environ.get("SOAK_STORMS", "4"))


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A home that nobody serves in the end."""
    made = make_home(tmp_path / "home")
    yield made
    with suppress(Exception):
        end_daemon(made.path, seconds=SECONDS, kill=True)


def start(home: Home) -> Daemon | str:
    """Start a daemon as `openfang start --detach` does; who cannot be it says why."""
    try:
        return start_apart(home.path, home.environment, listen="127.0.0.1:0", any_port=False)[0]
    except HomeError as error:
        return error.message


def test_of_two_that_start_at_once_exactly_one_serves(home: Home) -> None:
    with ThreadPoolExecutor(2) as both:
        for _ in range(STORMS):
            said = list(both.map(start, [home, home]))
            won = [one for one in said if isinstance(one, Daemon)]
            lost = [one for one in said if isinstance(one, str)]
            assert (len(won), len(lost)) == (1, 1), said
            assert f"A daemon serves {home.path} already" in lost[0]
            found = json.loads((home.path / "daemon.json").read_text())
            assert (found["pid"], found["listen_addr"]) == (won[0].pid, won[0].listen_addr)
            # Whoever lost has said so, and goes; whoever won stays.
            assert [pid for pid in living(home) if pid != won[0].pid and not ended(pid)] == []
            assert living(home) == [won[0].pid]
            assert end_daemon(home.path, seconds=SECONDS) == won[0].pid
            assert living(home) == []
    assert home.verified()["intact"]


def ended(pid: int) -> bool:
    """Wait for the end of a process that is not our child."""
    with running(pid) as process:
        return process is None or process.ended(SECONDS)


def living(home: Home) -> list[int]:
    """Processes that have this home's log open."""
    log = (home.path / "logs" / "daemon.log").stat()
    found = [process for process in Path("/proc").iterdir() if process.name.isdigit()]
    return [int(process.name) for process in found if _has_open(process, log)]


def _has_open(process: Path, log: os.stat_result) -> bool:
    with suppress(OSError):
        return any(os.path.samestat(file.stat(), log) for file in (process / "fd").iterdir())
    return False
