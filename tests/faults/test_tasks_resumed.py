"""A task whose agent has a model goes on in the process that follows, also in the middle of a call.

What has ended before is not done again.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.faults.daemon import SECONDS, Home, nobody_reads, serving
from tests.faults.dialects import RPC1, Sending, state_of
from tests.faults.tasks import ENABLED, Peer, home_with_agents, opened

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.faults.daemon import Daemon

pytestmark = [pytest.mark.requirement("C5.6", "C6.4"), pytest.mark.needs("bwrap")]

KETTLE = Path(__file__).with_name("kettle.py")
WATCHER = """
name = "watcher"
description = "Watches a kettle."
[model]
provider = "default"
[capabilities]
tools = ["mcp:kitchen:*"]
[policy]
project = "default"
"""
RUNS = "SELECT task, count(*) FROM agent_runs WHERE task != '' GROUP BY task"
CALLS = """
SELECT count(*) FROM audit
WHERE event = 'tool_invocation_start' AND json_extract(context, '$.tool') = ?
"""


def kitchen(folder: Path, *, reads: bool) -> Home:
    """Make a home with a kettle, and with an agent that watches it."""
    place = folder / "kitchen"
    place.mkdir()
    os.mkfifo(place / "pipe")
    args = json.dumps(["-I", "-S", str(KETTLE), str(place), *(("reads",) if reads else ())])
    home = home_with_agents(
        folder / "home",
        f'{ENABLED}[[mcp_servers]]\nname = "kitchen"\ntrust = "high"\nrisk = "LOW"\n'
        f'transport = {{ type = "stdio", command = "{sys.executable}", args = {args} }}\n',
    )
    agent = home.path / "agents" / "watcher"
    agent.mkdir()
    (agent / "agent.toml").write_text(WATCHER)
    return home


@contextmanager
def watched(folder: Path) -> Generator[int]:
    """Hold the kettle off boiling for as long as this takes, from when somebody watches it."""
    pipe = opened(folder / "kitchen" / "pipe")
    try:
        yield pipe
    finally:
        os.close(pipe)


def calls(daemon: Daemon, tool: str) -> int:
    return daemon.home.rows(CALLS, [tool])[0][0]


def heard(folder: Path) -> int:
    """How often the kettle was watched; a call that is made again has the key that it had."""
    lines = (folder / "kitchen" / "heard").read_text().splitlines()
    assert len({*lines}) == 1
    assert len(lines[0].split()) == 2
    return len(lines)


def settled(peer: Peer, task: str) -> dict[str, Any]:
    """Wait until it has ended."""
    ends = time.monotonic() + SECONDS
    while True:
        found = RPC1.task(peer.of_task("get", task, "watcher"))
        if state_of(found) not in {"submitted", "working"}:
            return found
        assert time.monotonic() < ends, found
        time.sleep(0.05)


def met(daemon: Daemon) -> Peer:
    """Wait until the kettle is known: nobody announces that."""
    ends = time.monotonic() + SECONDS
    while daemon.ask("GET", "/api/tools/mcp:kitchen:watch_kettle").status != 200:
        assert time.monotonic() < ends
        time.sleep(0.05)
    return Peer(daemon)


@pytest.mark.parametrize(("end", "reads"), [(signal.SIGTERM, True), (signal.SIGKILL, False)])
def test_a_task_goes_on_after_its_process_and_what_has_ended_is_not_repeated(
    tmp_path: Path, end: signal.Signals, *, reads: bool
) -> None:
    home = kitchen(tmp_path, reads=reads)
    with serving(home) as daemon:
        peer = met(daemon)
        ended = peer.send(Sending(agent="planner", text="what time is it?"))
        assert state_of(ended) == "completed"
        task = peer.send(Sending(agent="watcher", text="watch the kettle", waits=False))["id"]
        with watched(tmp_path) as pipe:
            daemon.tell(end)
            assert daemon.ended() == (0 if end is signal.SIGTERM else -end)
            assert nobody_reads(pipe)
    before = dict(home.rows(RUNS))
    with serving(home) as daemon:
        peer = Peer(daemon)
        if reads:  # what only looks may be done again, and nothing else
            with watched(tmp_path):
                pass
        found = settled(peer, task)
        again = RPC1.task(peer.of_task("get", ended["id"], "planner"))
        times = calls(daemon, "builtin:system_time")
    assert state_of(found) == "completed", found
    answer = found["artifacts"][0]["parts"][0]["text"]
    assert ("The kettle boils." if reads else "was interrupted") in answer
    assert heard(tmp_path) == (2 if reads else 1)
    assert again == ended
    assert times == 1
    assert before == dict(home.rows(RUNS)) == {task: 1, ended["id"]: 1}
