"""A run that waits for a person goes on in the process that follows, and makes its call once."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.faults.daemon import SECONDS, serving
from tests.faults.dialects import RPC1, Sending, state_of
from tests.faults.tasks import ENABLED, Peer, home_with_agents
from tests.faults.test_tasks_resumed import KETTLE, WATCHER, calls, heard, met, watched

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.daemon import Daemon, Home

pytestmark = [pytest.mark.requirement("C15.3", "C7.9"), pytest.mark.needs("bwrap")]
TOOL = "mcp:kitchen:watch_kettle"


def kitchen(folder: Path) -> Home:
    """Make a home with a kettle that nobody may watch without a yes, and an agent that does."""
    place = folder / "kitchen"
    place.mkdir()
    os.mkfifo(place / "pipe")
    args = json.dumps(["-I", "-S", str(KETTLE), str(place)])
    home = home_with_agents(
        folder / "home",
        f'{ENABLED}[[mcp_servers]]\nname = "kitchen"\ntrust = "high"\nrisk = "HIGH"\n'
        f'transport = {{ type = "stdio", command = "{sys.executable}", args = {args} }}\n',
    )
    agent = home.path / "agents" / "watcher"
    agent.mkdir()
    (agent / "agent.toml").write_text(WATCHER)
    return home


def until(daemon: Daemon, task: str, *states: str) -> dict[str, Any]:
    """Wait until the task is in one of these states."""
    peer, ends = Peer(daemon), time.monotonic() + SECONDS
    while True:
        found = RPC1.task(peer.of_task("get", task, "watcher"))
        if state_of(found) in states:
            return found
        assert time.monotonic() < ends, found
        time.sleep(0.05)


def asked(daemon: Daemon) -> list[str]:
    return [one["id"] for one in daemon.ask("GET", "/api/approvals").json["approvals"]]


@pytest.mark.parametrize("when", ["while it serves", "before it serves again"])
def test_a_run_that_waits_for_a_person_survives_kill_9_and_makes_its_call_once(
    tmp_path: Path, when: str
) -> None:
    home = kitchen(tmp_path)
    with serving(home) as daemon:
        peer = met(daemon)
        task = peer.send(Sending(agent="watcher", text="watch the kettle", waits=False))["id"]
        waiting = until(daemon, task, "input-required")
        (question,) = asked(daemon)
        assert question in str(waiting["status"]["message"])
        daemon.tell(signal.SIGKILL)
        assert daemon.ended() == -signal.SIGKILL
    if when == "before it serves again":
        assert home.run("approvals", "approve", question).returncode == 0
    with serving(home) as daemon:
        if when == "while it serves":
            until(daemon, task, "input-required")
            assert asked(daemon) == [question]
            path = f"/api/approvals/{question}"
            assert daemon.ask("POST", path, {"answer": "approve"}).status == 200
        with watched(tmp_path):
            pass
        found = until(daemon, task, "completed", "failed", "rejected")
        made = calls(daemon, TOOL)
    assert state_of(found) == "completed", found
    assert "The kettle boils." in found["artifacts"][0]["parts"][0]["text"]
    assert (made, heard(tmp_path)) == (1, 1)
    spent = "SELECT count(*) FROM audit WHERE event = 'approval_spent'"
    assert home.rows(spent) == [(1,)]


def test_a_run_that_waits_may_see_any_number_of_processes_end(tmp_path: Path) -> None:
    home = kitchen(tmp_path)
    with serving(home) as daemon:
        task = met(daemon).send(Sending(agent="watcher", text="watch the kettle", waits=False))[
            "id"
        ]
        until(daemon, task, "input-required")
        (question,) = asked(daemon)
        daemon.tell(signal.SIGKILL)
        daemon.ended()
    for _ in range(4):
        with serving(home) as daemon:
            until(daemon, task, "input-required")
            assert asked(daemon) == [question]
            daemon.tell(signal.SIGKILL)
            daemon.ended()
    with serving(home) as daemon:
        until(daemon, task, "input-required")
        daemon.ask("POST", f"/api/approvals/{question}", {"answer": "deny"})
        until(daemon, task, "completed", "failed", "rejected")
    assert not (tmp_path / "kitchen" / "heard").exists()
