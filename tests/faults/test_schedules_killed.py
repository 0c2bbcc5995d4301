"""`kill -9` around the moments at which schedules are due: no run is lost, and none is doubled."""

from __future__ import annotations

import os
import signal
import time
from random import Random
from threading import Event
from typing import TYPE_CHECKING

import pytest
from tests.faults.daemon import NO_LIMITS, SECONDS, make_home, serving

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.faults.daemon import Daemon, Home

KILLS = int(os.environ.get("SOAK_KILLS", "3"))
SEED = int(os.environ.get("SOAK_SEED", "1"))
AT_ONCE = 12
CONFIG = f"""{NO_LIMITS}
[schedules]
min_interval_secs = 1
max_per_caller = 10_000
max_total = 10_000

[[triggers]]
name = "clock"
event = "clock.*"
agent = "clerk"
message = "what time is it?"
max_per_hour = 10_000
"""
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

pytestmark = [pytest.mark.requirement("C6.2"), pytest.mark.timeout(240 + KILLS * 30)]


def home_with_clerk(folder: Path) -> Home:
    home = make_home(folder / "home", CONFIG)
    (home.path / "agents" / "clerk").mkdir(parents=True)
    (home.path / "agents" / "clerk" / "agent.toml").write_text(CLERK)
    return home


def kill(daemon: Daemon, moment: float) -> None:
    """End the daemon at a moment, with no time for anything."""
    Event().wait(max(0.0, moment - time.monotonic()))
    daemon.tell(signal.SIGKILL)
    daemon.process.wait(SECONDS)


def until(seen: Callable[[], object]) -> None:
    """Look until it is so: what a killed process had taken is free again after a minute."""
    ends = time.monotonic() + 3 * SECONDS
    while not seen():
        assert time.monotonic() < ends
        time.sleep(0.05)


def publish(daemon: Daemon) -> str:
    path = "/api/tools/event_publish/call"
    told = daemon.ask("POST", path, {"arguments": {"event_type": "clock.struck"}})
    assert told.json["structured"]["triggered"] == ["clock"], told.body
    return told.json["structured"]["id"]


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
    home, random, made = home_with_clerk(tmp_path), Random(SEED), list[str]()  # noqa: S311 - a test
    for _ in range(KILLS):
        with serving(home) as daemon:
            first = time.monotonic()
            made += [create(daemon, len(made) + number) for number in range(AT_ONCE)]
            # The jobs are due one second after they were made, one by one.
            kill(daemon, first + random.uniform(0.95, 1.3))
    with serving(home):
        until(lambda: not unfinished(home))
    # Of those that have ended the newest stay; what each did is a task.
    assert {runs for (runs,) in home.rows("SELECT runs FROM schedules")} == {1}
    tasks = home.rows("SELECT message, state FROM tasks")
    assert sorted(message.partition("@")[0] for message, _ in tasks) == sorted(made)
    assert {state for _, state in tasks} == {"completed"}
    assert home.verified()["intact"]


def test_a_job_that_was_made_without_a_daemon_runs_when_there_is_one(tmp_path: Path) -> None:
    home = home_with_clerk(tmp_path)
    done = home.run("schedules", "create", "clerk", "in 1 seconds", "what time is it?", "--json")
    assert done.returncode == 0, done.stderr
    assert home.rows("SELECT runs FROM schedules") == [(0,)]
    with serving(home):
        until(lambda: not unfinished(home))
    assert home.rows("SELECT state, runs, last_outcome FROM schedules") == [
        ("ended", 1, "completed")
    ]


def test_each_event_that_was_acknowledged_starts_its_agent_once(tmp_path: Path) -> None:
    home, random, told = home_with_clerk(tmp_path), Random(SEED), list[str]()  # noqa: S311 - a test
    for _ in range(KILLS):
        with serving(home) as daemon:
            told += [publish(daemon) for _ in range(AT_ONCE)]
            kill(daemon, time.monotonic() + random.uniform(0, 0.1))
    waiting = "SELECT 1 FROM timers WHERE kind = 'trigger' UNION ALL "
    with serving(home):
        until(lambda: not home.rows(f"{waiting} SELECT 1 FROM tasks WHERE final = 0"))  # noqa: S608 - constants
    tasks = home.rows("SELECT message, state FROM tasks")
    assert sorted(message.split("/")[1] for message, _ in tasks) == sorted(told)
    assert {state for _, state in tasks} == {"completed"}
    assert home.verified()["intact"]
