"""Who waits for an answer of A2A at one node while another works on it: either of them may die."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from tests.cluster.stove import SECONDS, ask, kitchen, wait_for
from tests.cluster.test_durable import answer, resting
from tests.faults.dialects import RPC1, Sending, state_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.cli.conftest import Cli
    from tests.cluster.house import Node
    from tests.cluster.stove import Kitchen
    from tests.faults.dialects import Asked

pytestmark = [pytest.mark.requirement("C13.3", "C5.6"), pytest.mark.timeout(600)]
WORKS, WAITS, THIRD = "abc"
SIX = [(node, number) for number in range(2) for node in "abc"]


@pytest.fixture(scope="module")
def kettle(make_home: Callable[[], Cli], empty_postgres_of_module: str) -> Iterator[Kitchen]:
    with kitchen(make_home, empty_postgres_of_module, config="runs_per_key = 2\n") as made:
        yield made


def test_no_more_tasks_of_a_key_than_is_said_are_worked_on_by_all_nodes(kettle: Kitchen) -> None:
    with kettle.cluster[WORKS].client as client:
        made = client.post("/api/keys", json={"name": "other", "tools": ["agent:*", "mcp:*"]})
    other = {"Authorization": f"Bearer {made.json()['secret']}"}
    asks = Sending(agent="cook", text="watch the kettle", waits=False)
    ours = [asked_by({}, kettle, node, replace(asks, id=f"o-{node}{i}")) for node, i in SIX]
    theirs = [asked_by(other, kettle, node, replace(asks, id=f"t-{node}{i}")) for node, i in SIX]

    def begun(tasks: list[str]) -> int:
        return [status for status, _ in kettle.flows(*tasks).values()].count("PENDING")

    wait_for(lambda: (begun(ours), begun(theirs)) == (2, 2))
    for task in ours:
        kettle.cancel(THIRD, task, "cook")
        assert (begun(ours) <= 2, begun(theirs)) == (True, 2)
    with kettle.cluster[THIRD].client as client:
        client.headers.update(other)
        for task in theirs:
            assert ask(client, RPC1.of_task["cancel"]("cook", task)).status == 200
    wait_for(lambda: begun(ours + theirs) == 0)


def asked_by(key: Mapping[str, str], kettle: Kitchen, node: str, sending: Sending) -> str:
    """Have a task of this caller; returns its id."""
    with kettle.cluster[node].client as client:
        client.headers.update(key)
        return RPC1.task(ask(client, RPC1.send(sending)))["id"]


@dataclass(slots=True)
class Listener:
    """Hears what is told of a task, at one node after the other."""

    states: list[str] = field(default_factory=list[str])
    task: str = ""
    answer: str = ""

    def hear(self, node: Node, asked: Asked) -> None:
        """Take in a stream until it ends, or breaks."""
        with (
            closing(node.client) as client,
            client.stream(
                asked.method, asked.path, json=asked.body, headers=asked.headers
            ) as stream,
        ):
            for line in stream.iter_lines():
                if line.startswith("data: "):
                    self._take(json.loads(line[6:])["result"])

    def _take(self, told: dict[str, Any]) -> None:
        if found := told.get("task") or told.get("statusUpdate"):
            self.task = found.get("taskId") or found.get("id") or self.task
            self.states.append(state_of(found))
        for made in [told.get("artifactUpdate", {}), *told.get("task", {}).get("artifacts", [])]:
            parts = made.get("artifact", made).get("parts", [])
            self.answer += "".join(part.get("text", "") for part in parts)


def test_who_waits_at_a_node_that_dies_is_answered_at_another_also_when_the_work_moves(
    kettle: Kitchen,
) -> None:
    sent, listener = Sending(agent="watcher", text="watch the kettle", waits=False), Listener()
    with resting(kettle, WAITS, THIRD):
        task = waited(kettle.cluster[WORKS], sent)["id"]
        assert kettle.where(task) == WORKS
        wait_for(lambda: kettle.heard == 1)
    # Who sends the same message again has the same task.
    sent = replace(sent, waits=True)
    with ThreadPoolExecutor(2) as clients:
        waiting = clients.submit(waited, kettle.cluster[WAITS], sent)
        assert RPC1.stream
        hearing = clients.submit(listener.hear, kettle.cluster[WAITS], RPC1.stream(sent))
        wait_for(lambda: (listener.task, listener.states) == (task, ["working"]))
        kettle.cluster.kill(WAITS)
        assert isinstance(waiting.exception(SECONDS), httpx.TransportError)
        assert isinstance(hearing.exception(SECONDS), httpx.TransportError)
        again = clients.submit(waited, kettle.cluster[THIRD], sent)
        subscribed = RPC1.of_task["subscribe"]("watcher", task)
        hearing = clients.submit(listener.hear, kettle.cluster[THIRD], subscribed)
        wait_for(lambda: listener.states == ["working", "working"])
        kettle.cluster.kill(WORKS)
        found = again.result(SECONDS)
        hearing.result(SECONDS)
    assert (state_of(found), listener.states[-1]) == ("completed", "completed")
    assert "was interrupted" in answer(found)
    assert "was interrupted" in listener.answer
    assert kettle.heard == 1, "no effect is repeated"
    assert kettle.read("SELECT id FROM tasks WHERE agent = 'watcher'") == [(task,)]


def waited(node: Node, sending: Sending) -> dict[str, Any]:
    """Send a message, and wait for what comes of it."""
    with node.client as client:
        return RPC1.task(ask(client, RPC1.send(sending)))
