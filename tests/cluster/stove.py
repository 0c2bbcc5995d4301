"""Nodes with agents whose work takes as long as a test wants, and somebody who sends them tasks."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.cluster.balancer import balancing
from tests.cluster.house import Cluster, homes
from tests.faults.daemon import Answered
from tests.faults.dialects import RPC1, Sending, state_of
from tests.faults.tasks import opened
from tests.postgres import run

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    import httpx
    from tests.cli.conftest import Cli
    from tests.cluster.house import Node

SECONDS = 150.0
"""Ten times what a takeover may take: how long one takes is measured by `make bench-nodes`."""
FINAL = frozenset({"completed", "failed", "canceled", "rejected"})
_KETTLE = Path(__file__).parents[1] / "faults" / "kettle.py"
_AGENT = """
name = "{name}"
description = "The agent {name}."
[model]
provider = "default"
[capabilities]
tools = ["system_time", "mcp:{server}:*"]
[policy]
project = "default"
[resources]
max_tool_calls_per_minute = 1_000_000
[limits]
{limits}
"""
AGENTS = {
    "watcher": ("kitchen", ""),
    "cook": ("stove", ""),
    "clock": ("kitchen", ""),
    "narrow": ("stove", "runs_at_once = 2"),
}
_SERVERS = {"kitchen": "LOW", "stove": "HIGH"}


@dataclass(slots=True)
class Kitchen:
    """A cluster with a kettle that all nodes share: one folder says who watched it."""

    cluster: Cluster
    folder: Path

    @property
    def heard(self) -> int:
        """How often somebody began to watch the kettle."""
        file = self.folder / "heard"
        return len(file.read_text().splitlines()) if file.exists() else 0

    @contextmanager
    def watched(self) -> Generator[int]:
        """Hold the kettle off boiling for as long as this takes, from when somebody watches it."""
        pipe = opened(self.folder / "pipe")
        try:
            yield pipe
        finally:
            os.close(pipe)

    def send(self, node: str, agent: str = "watcher", task: str = "", text: str = "") -> str:
        """Send a message that nobody waits for; returns its task."""
        text = text or ("what time is it?" if agent == "clock" else "watch the kettle")
        sending = Sending(agent=agent, text=text, waits=False, task=task)
        with self.cluster[node].client as client:
            sent = RPC1.task(ask(client, RPC1.send(sending)))
        return sent["id"]

    def get(self, node: str, task: str, agent: str = "watcher") -> dict[str, Any]:
        """Read a task on any node."""
        with self.cluster[node].client as client:
            return RPC1.task(ask(client, RPC1.of_task["get"](agent, task)))

    def until(
        self, node: str, task: str, *states: str, agent: str = "watcher", seconds: float = SECONDS
    ) -> dict[str, Any]:
        """Wait until a task is in one of these states, as one node sees it."""
        ends = time.monotonic() + seconds
        while True:
            found = self.get(node, task, agent)
            if state_of(found) in (states or FINAL):
                return found
            assert time.monotonic() < ends, found
            time.sleep(0.05)

    def cancel(self, node: str, task: str, agent: str = "watcher") -> None:
        """Cancel a task on any node."""
        with self.cluster[node].client as client:
            assert (
                state_of(RPC1.task(ask(client, RPC1.of_task["cancel"](agent, task)))) == "canceled"
            )

    def back(self, name: str) -> None:
        """Have a node that was killed serve again."""
        met(self.cluster.start(name))

    def read(self, sql: str) -> list[Any]:
        """Ask the database itself."""
        return [tuple(row) for row in asyncio.run(run(self.cluster.database, sql))[0]]

    def flows(self, *tasks: str) -> dict[str, tuple[str, str]]:
        """Tell of tasks how their workflows are, and who has taken them."""
        sql = "SELECT workflow_uuid, status, coalesce(executor_id, '') FROM dbos.workflow_status"
        found = {task: (status, who.partition("/")[0]) for task, status, who in self.read(sql)}
        return {task: found[task] for task in tasks}

    def where(self, task: str) -> str:
        """Wait until somebody works on a task, and name that node."""
        wait_for(lambda: self.flows(task)[task][0] == "PENDING")
        return self.flows(task)[task][1]


def wait_for(look: Callable[[], bool]) -> None:
    """Look until it is so."""
    ends = time.monotonic() + SECONDS
    while not look():
        assert time.monotonic() < ends
        time.sleep(0.05)


def ask(client: httpx.Client, asked: Any) -> Answered:
    """Ask as a dialect says."""
    answer = client.request(asked.method, asked.path, json=asked.body, headers=asked.headers)
    return Answered(answer.status_code, answer.headers, answer.content)


@contextmanager
def kitchen(
    make_home: Callable[[], Cli], url: str, names: str = "abc", config: str = ""
) -> Generator[Kitchen]:
    """Run nodes with a kettle until the test is over; on the stove nobody may watch it unasked."""
    with ExitStack() as held:
        nodes = homes(make_home, url, names)
        folder = nodes[0].cli.home.parent / "kitchen"
        folder.mkdir()
        os.mkfifo(folder / "pipe")
        for node in nodes:
            _furnish(node, folder, config)
            held.callback(node.end)
            node.start()
        balancer = held.enter_context(balancing([node.address for node in nodes]))
        made = Kitchen(Cluster(nodes, url, balancer), folder)
        for node in nodes:
            met(node)
        yield made


def _furnish(node: Node, folder: Path, config: str) -> None:
    args = json.dumps(["-I", "-S", str(_KETTLE), str(folder)])
    node.cli.configure(config)
    for name, risk in _SERVERS.items():
        node.cli.configure(
            f'[[mcp_servers]]\nname = "{name}"\ntrust = "high"\nrisk = "{risk}"\n'
            f'transport = {{ type = "stdio", command = "{sys.executable}", args = {args} }}\n'
        )
    for name, (server, limits) in AGENTS.items():
        place = node.cli.home / "agents" / name
        place.mkdir(parents=True, exist_ok=True)
        said = _AGENT.format(name=name, server=server, limits=limits)
        (place / "agent.toml").write_text(said)


def met(node: Node) -> None:
    """Wait until the kettle is known: nobody announces that."""
    ends = time.monotonic() + SECONDS
    with node.client as client:
        for name in _SERVERS:
            while client.get(f"/api/tools/mcp:{name}:watch_kettle").status_code != 200:
                assert time.monotonic() < ends
                time.sleep(0.05)


def each(names: str) -> Iterator[str]:
    """Name the nodes one after the other, again and again."""
    while True:
        yield from names
