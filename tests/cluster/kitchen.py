"""Nodes whose agent watches a kettle: a task that is under way for as long as a pipe is held."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.faults.dialects import RPC1, Sending, state_of
from tests.faults.tasks import opened
from tests.faults.test_tasks_resumed import KETTLE, WATCHER
from tests.postgres import run

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from tests.cli.conftest import Cli
    from tests.cluster.house import Node

SECONDS = 60.0
OPEN = (
    "SELECT call_id FROM audit AS a WHERE event = 'tool_invocation_start' AND NOT EXISTS "
    "(SELECT 1 FROM audit AS b WHERE b.event = 'tool_invocation_end' AND b.call_id = a.call_id)"
)
TWICE = (
    "SELECT call_id FROM audit WHERE event = 'tool_invocation_end' "
    "GROUP BY call_id HAVING COUNT(*) > 1"
)


class Kitchen:
    """Where the kettle is: whatever node asks for it, it is the same pipe."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        os.mkfifo(folder / "pipe")
        args = json.dumps(["-I", "-S", str(KETTLE), str(folder), "reads"])
        self.config = (
            'engine = "inline"\n[[mcp_servers]]\nname = "kitchen"\ntrust = "high"\nrisk = "LOW"\n'
            f'transport = {{ type = "stdio", command = "{sys.executable}", args = {args} }}\n'
        )

    def furnish(self, make_home: Callable[[], Cli]) -> Callable[[], Cli]:
        """Have homes with the agent that watches it."""

        def make() -> Cli:
            cli = make_home()
            agent = cli.home / "agents" / "watcher"
            agent.mkdir(parents=True)
            (agent / "agent.toml").write_text(WATCHER)
            return cli

        return make

    @contextmanager
    def watched(self) -> Generator[int]:
        """Hold the kettle off boiling for as long as this takes, from when somebody watches it."""
        pipe = opened(self.folder / "pipe")
        try:
            yield pipe
        finally:
            os.close(pipe)

    @property
    def heard(self) -> int:
        """How often it was watched."""
        return len((self.folder / "heard").read_text().splitlines())


def send(node: Node) -> str:
    """Have the kettle watched, without waiting for it."""
    until(lambda: knows(node))
    asked = RPC1.send(Sending(agent="watcher", text="watch the kettle", waits=False))
    with node.client as client:
        answer = client.request(asked.method, asked.path, json=asked.body, headers=asked.headers)
    return answer.json()["result"]["task"]["id"]


def knows(node: Node) -> bool:
    """Whether it has heard from the kitchen by now."""
    with node.client as client:
        return client.get("/api/tools/mcp:kitchen:watch_kettle").status_code == 200


def task(node: Node, task_id: str) -> dict[str, Any]:
    """Read one at a node."""
    asked = RPC1.of_task["get"]("watcher", task_id)
    with node.client as client:
        answer = client.request(asked.method, asked.path, json=asked.body, headers=asked.headers)
    return answer.json()["result"]


def state(node: Node, task_id: str) -> str:
    """Say in which state one is."""
    return state_of(task(node, task_id))


def until(found: Callable[[], object], seconds: float = SECONDS) -> float:
    """Wait until something is so; return how long that took."""
    began = time.monotonic()
    while not found():
        assert time.monotonic() - began < seconds, "it did not come to be"
        time.sleep(0.05)
    return time.monotonic() - began


def rows(url: str, query: str) -> list[tuple[Any, ...]]:
    """Ask the database itself."""
    return [tuple(row) for row in asyncio.run(run(url, query))[0]]
