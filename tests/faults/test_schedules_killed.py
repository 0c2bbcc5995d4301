"""`kill -9` around the moments at which schedules are due: no run is lost, and none is doubled."""

from __future__ import annotations

import os
import signal
import time
from random import Random
from typing import TYPE_CHECKING

import pytest
from tests.faults.daemon import NO_LIMITS, make_home, serving

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.daemon import Daemon, Home

KILLS = int(os.environ.get("SOAK_KILLS", "5"))
SEED = int(os.environ.get("SOAK_SEED", "1"))
AT_ONCE = 12
CONFIG = (
    f"{NO_LIMITS}[schedules]\nmin_interval_secs = 1\nmax_per_caller = 10_000\nmax_total = 10_000\n"
)
CLERK = """
name = "clerk"
description = "Tells the time."
[capabilities]
tools = ["system_time"]
[policy]
project = "default"
[resources]
max_tool_calls_per_minute = 1_000_000
"""

pytestmark = [pytest.mark.requirement("C6.2"), pytest.mark.timeout(60 + KILLS * 30)]


def create(daemon: Daemon, number: int) -> str:
    body = {
        "agent": "clerk",
        "schedule": "in 1 seconds",
        "description": f"job {number}",
        "message": "what time is it?",
    }
    made = daemon.ask("POST", "/api/schedules", body)
    assert made.status == 201, made.body
    return made.json["id"]


def unfinished(home: Home) -> list[tuple[str, ...]]:
    return home.rows(
        "SELECT id FROM schedules WHERE state <> 'ended' UNION ALL "
        "SELECT id FROM tasks WHERE final = 0"
    )


def test_around_the_due_moment_each_run_is_begun_once_and_comes_to_its_end(tmp_path: Path) -> None:
    home, random, made = make_home(tmp_path / "home", CONFIG), Random(SEED), list[str]()  # noqa: S311 - a test
    (home.path / "agents" / "clerk").mkdir(parents=True)
    (home.path / "agents" / "clerk" / "agent.toml").write_text(CLERK)
    for _ in range(KILLS):
        with serving(home) as daemon:
            first = time.monotonic()
            made += [create(daemon, len(made) + number) for number in range(AT_ONCE)]
            # The jobs are due one second after they were made, one by one.
            wait = first + random.uniform(0.95, 1.3) - time.monotonic()
            time.sleep(max(0.0, wait))
            daemon.tell(signal.SIGKILL)
            daemon.process.wait(30)
    with serving(home):
        ends = time.monotonic() + 60
        while unfinished(home):
            assert time.monotonic() < ends, unfinished(home)
            time.sleep(0.05)
    # Of those that have ended the newest stay; what each did is a task.
    assert {runs for (runs,) in home.rows("SELECT runs FROM schedules")} == {1}
    tasks = home.rows("SELECT message, state FROM tasks")
    assert sorted(message.partition("@")[0] for message, _ in tasks) == sorted(made)
    assert {state for _, state in tasks} == {"completed"}
    assert home.verified()["intact"]


def test_a_job_that_was_made_without_a_daemon_runs_when_there_is_one(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", CONFIG)
    (home.path / "agents" / "clerk").mkdir(parents=True)
    (home.path / "agents" / "clerk" / "agent.toml").write_text(CLERK)
    done = home.run("schedules", "create", "clerk", "in 1 seconds", "what time is it?", "--json")
    assert done.returncode == 0, done.stderr
    assert home.rows("SELECT runs FROM schedules") == [(0,)]
    with serving(home):
        ends = time.monotonic() + 60
        while unfinished(home):
            assert time.monotonic() < ends
            time.sleep(0.05)
    assert home.rows("SELECT state, runs, last_outcome FROM schedules") == [
        ("ended", 1, "completed")
    ]
