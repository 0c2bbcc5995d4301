"""Tasks on the queues of several nodes: any node works on them, and the next one goes on."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from tests.cluster.stove import SECONDS, each, kitchen, wait_for
from tests.faults.dialects import RPC1, state_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from tests.cli.conftest import Cli
    from tests.cluster.house import Node
    from tests.cluster.stove import Kitchen

pytestmark = [pytest.mark.requirement("C13.3"), pytest.mark.timeout(600)]
NODES = "abc"
TRIGGER = """
[[triggers]]
name = "boil"
event = "water.cold"
agent = "watcher"
message = "watch the kettle"
"""
TASKS = int(os.environ.get("CLUSTER_TASKS", "12"))


@pytest.fixture(scope="module")
def kettle(make_home: Callable[[], Cli], empty_postgres_of_module: str) -> Iterator[Kitchen]:
    """Three nodes with a kettle, for the tests of this module."""
    with kitchen(make_home, empty_postgres_of_module, NODES, TRIGGER) as made:
        yield made


def others(*names: str) -> str:
    return "".join(name for name in NODES if name not in names)


def answer(task: dict[str, Any]) -> str:
    return task["artifacts"][0]["parts"][0]["text"]


def test_any_node_works_on_a_task_and_every_node_tells_its_end(kettle: Kitchen) -> None:
    tasks = [kettle.send(node, "clock") for node in islice(each(NODES), 9)]
    for node in NODES:
        found = [kettle.until(node, task, agent="clock") for task in tasks]
        assert {state_of(one) for one in found} == {"completed"}, found
    wait_for(lambda: {status for status, _ in kettle.flows(*tasks).values()} == {"SUCCESS"})


def test_a_task_is_cancelled_at_any_node(kettle: Kitchen) -> None:
    task = kettle.send("a", "cook")
    worker = kettle.where(task)
    kettle.until(worker, task, "input-required", agent="cook")
    kettle.cancel(others(worker)[0], task, "cook")
    assert state_of(kettle.get(worker, task, "cook")) == "canceled"
    wait_for(lambda: kettle.flows(task)[task][0] == "SUCCESS")


def test_no_more_tasks_of_an_agent_than_its_manifest_says_are_worked_on_by_all_nodes(
    kettle: Kitchen,
) -> None:
    tasks = [kettle.send(node, "narrow") for node in islice(each(NODES), 6)]

    def how_many(status: str) -> int:
        return [one for one, _ in kettle.flows(*tasks).values()].count(status)

    wait_for(lambda: how_many("PENDING") == 2)
    assert how_many("ENQUEUED") == 4
    for task in tasks:
        kettle.cancel("b", task, "narrow")
        assert how_many("PENDING") <= 2
    wait_for(lambda: how_many("SUCCESS") == len(tasks))


def test_a_schedule_begins_one_run_for_a_due_moment_whichever_nodes_look_at_it(
    kettle: Kitchen,
) -> None:
    made = kettle.cluster["a"].call(
        "schedule_create", agent="clock", schedule="in 2 hours", description="what time is it?"
    )
    assert "schedule_" in str(made), made
    kettle.read("UPDATE timers SET due = 1 WHERE kind = 'schedule' RETURNING id")
    kettle.read("SELECT pg_notify('openfang', 'timers ')")  # all nodes look at once
    ran = (
        "SELECT tasks.state, flow.status FROM tasks JOIN dbos.workflow_status AS flow "
        "ON flow.workflow_uuid = tasks.id WHERE tasks.message LIKE 'schedule%'"
    )
    wait_for(lambda: kettle.read(ran) == [("completed", "SUCCESS")])
    assert kettle.read("SELECT runs FROM schedules") == [(1,)]


def test_what_a_killed_node_worked_on_is_ended_by_another_and_no_effect_is_repeated(
    kettle: Kitchen,
) -> None:
    before = kettle.heard
    task = kettle.send("a")
    worker = kettle.where(task)
    watcher, third = others(worker)
    with ThreadPoolExecutor(1) as one:
        with kettle.watched():
            told = one.submit(streamed, kettle, watcher, task)
            wait_for(lambda: kettle.heard == before + 1)
            kettle.cluster.kill(worker)
        found = kettle.until(third, task)
        states = told.result(SECONDS)
    assert state_of(found) == "completed", found
    assert "was interrupted" in answer(found)
    assert kettle.heard == before + 1
    assert states[-1] == "completed", states
    kettle.back(worker)


def test_a_run_of_each_kind_is_gone_on_with_by_one_other_node_and_no_effect_is_repeated(
    kettle: Kitchen,
) -> None:
    before, kinds = kettle.heard, len(WAITING) + len(OWN_TIME) + 1
    with ThreadPoolExecutor(len(WAITING)) as clients:
        with resting(kettle, "b", "c"):
            waiting = [clients.submit(way, kettle.cluster["a"]) for way in WAITING]
            for begin in OWN_TIME:
                begin(kettle.cluster["a"])
            kettle.send("a")
            wait_for(lambda: kettle.heard == before + kinds)
        timed = taken_by(kettle, "a")
        left = [run for (run,) in kettle.read(UNDER_WAY)]
        kettle.cluster.kill("a")
    wait_for(lambda: not kettle.read(UNDER_WAY))
    assert all(isinstance(one.exception(), httpx.TransportError) for one in waiting)
    ran = f"SELECT runs FROM schedules WHERE id = '{timed}'"  # noqa: S608
    wait_for(lambda: kettle.read(ran) == [(1,)])
    assert (len(left), kettle.heard) == (kinds, before + kinds)
    ended = f"SELECT taken, ending FROM agent_runs WHERE id IN ({', '.join(map(repr, left))})"  # noqa: S608
    assert sorted(kettle.read(ended)) == [(1, "answered")] * (kinds - 1) + [(1, "failed")]
    flows = "SELECT name, COUNT(*) FROM dbos.workflow_status WHERE status = 'SUCCESS' GROUP BY name"
    wait_for(lambda: dict(kettle.read(flows)).get("run") == len(WAITING))
    outcomes = "SELECT last_outcome FROM schedules WHERE agent = 'watcher'"
    wait_for(lambda: kettle.read(outcomes) == [("completed",)])
    assert kettle.read("SELECT id FROM timers WHERE kind = 'errand'") == []
    kettle.back("a")


def test_a_question_outlives_the_node_that_asked_it_and_is_answered_at_any_other(
    kettle: Kitchen,
) -> None:
    before, task = kettle.heard, kettle.send("a", "cook")
    worker = kettle.where(task)
    asked = kettle.until(worker, task, "input-required", agent="cook")
    kettle.cluster.kill(worker)
    one, other = others(worker)
    (question,) = [
        line
        for line in asked["status"]["message"]["parts"][0]["text"].splitlines()
        if line.startswith("Question: ")
    ]
    approval = question.removeprefix("Question: ")
    with kettle.cluster[one].client as client:
        said = client.post(f"/api/approvals/{approval}", json={"answer": "approve"})
        assert said.status_code == 200, said.text
    with kettle.watched():
        pass
    found = kettle.until(other, task, agent="cook")
    assert (state_of(found), answer(found)) == ("completed", "The kettle boils."), found
    assert kettle.heard == before + 1
    kettle.back(worker)


def test_a_node_that_drains_takes_nothing_and_ends_what_it_has_taken(kettle: Kitchen) -> None:
    task = kettle.send("a", "cook")
    worker = kettle.where(task)
    kettle.until(worker, task, "input-required", agent="cook")
    drained = kettle.cluster[worker].cli("nodes", "drain", worker)
    assert drained.code == 0, drained.err
    one = others(worker)[0]
    wait_for(lambda: ready(kettle, worker) == 503)
    tasks = [kettle.send(one, "clock") for _ in range(6)]
    for sent in tasks:
        assert state_of(kettle.until(one, sent, agent="clock")) == "completed"
    assert worker not in {node for _, node in kettle.flows(*tasks).values()}
    kettle.cancel(one, task, "cook")
    wait_for(lambda: kettle.flows(task)[task] == ("SUCCESS", worker))
    assert kettle.cluster[worker].cli("nodes", "resume", worker).code == 0
    wait_for(lambda: ready(kettle, worker) == 200)


def test_no_task_is_lost_while_one_node_after_the_other_is_killed(kettle: Kitchen) -> None:
    tasks = list[str]()
    for victim in NODES:
        alive = others(victim)
        tasks += [kettle.send(node, "clock") for node in islice(each(NODES), TASKS)]
        kettle.cluster.kill(victim)
        tasks.append(kettle.send(alive[0], "clock"))
        kettle.back(victim)
    found = [kettle.until("a", task, agent="clock") for task in tasks]
    assert {state_of(one) for one in found} == {"completed"}, found
    wait_for(lambda: {status for status, _ in kettle.flows(*tasks).values()} == {"SUCCESS"})


UNDER_WAY = "SELECT id FROM agent_runs WHERE state = 'running'"


def by_api(node: Node) -> None:
    said = {"message": "watch the kettle", "session": "by the API"}
    _posted(node, "/api/agents/watcher/message", said)


def by_mcp(node: Node) -> None:
    said = {"message": "watch the kettle", "session": "by MCP"}
    call = {"name": "openfang_agent_watcher", "arguments": said}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    _posted(node, "/mcp", body)


def by_openai(node: Node, **metadata: str) -> None:
    said = [{"role": "user", "content": "watch the kettle"}]
    body = {"model": "watcher", "messages": said, "metadata": metadata}
    _posted(node, "/v1/chat/completions", body)


by_openai_in_a_session = partial(by_openai, session="by OpenAI")
# One that brings its own history is ended: it is the client's to bring again.
WAITING = (by_api, by_mcp, by_openai_in_a_session, by_openai)


def _posted(node: Node, path: str, body: dict[str, Any]) -> None:
    with node.client as client:
        said = client.post(path, json=body)
    raise AssertionError(said.text)


def scheduled(node: Node) -> None:
    wanted = {"agent": "watcher", "schedule": "in 2 hours", "description": "watch the kettle"}
    with node.client as client:
        made = client.post("/api/schedules", json=wanted)
        run = client.post(f"/api/schedules/{made.json()['id']}/run", json={})
    assert run.status_code == 200, run.text


def triggered(node: Node) -> None:
    assert node.call("event_publish", event_type="water.cold")["outcome"] == "ok"


OWN_TIME = (scheduled, triggered)


def taken_by(kettle: Kitchen, node: str) -> str:
    """Make a schedule that a node has begun to see to; returns its id."""
    wanted = {"agent": "clock", "schedule": "in 2 hours", "description": "what time is it?"}
    with kettle.cluster[node].client as client:
        made: str = client.post("/api/schedules", json=wanted).json()["id"]
    process = f"SELECT process FROM members WHERE node = '{node}'"  # noqa: S608
    taken = f"UPDATE timers SET taken_by = ({process}) WHERE subject = '{made}' RETURNING id"  # noqa: S608
    assert kettle.read(taken)
    return made


@contextmanager
def resting(kettle: Kitchen, *nodes: str) -> Generator[None]:
    """Have these take nothing for as long as this takes."""
    for act, code in (("drain", 503), ("resume", 200)):
        for node in nodes:
            with kettle.cluster[node].client as client:
                assert client.post(f"/api/nodes/{node}/{act}", json={}).status_code == 200
        for node in nodes:
            wait_for(partial(has_code, kettle, node, code))
        if act == "drain":
            yield


def has_code(kettle: Kitchen, node: str, code: int) -> bool:
    return ready(kettle, node) == code


def ready(kettle: Kitchen, node: str) -> int:
    with kettle.cluster[node].client as client:
        return client.get("/api/ready").status_code


def streamed(kettle: Kitchen, node: str, task: str) -> list[str]:
    """Hear of a task on a node until its stream ends; returns the states that were told."""
    asked = RPC1.of_task["subscribe"]("watcher", task)
    method, path, headers = asked.method, asked.path, asked.headers
    with (
        closing(kettle.cluster[node].client) as client,
        client.stream(method, path, json=asked.body, headers=headers) as told,
    ):
        lines = [json.loads(one[6:]) for one in told.iter_lines() if one.startswith("data: ")]
    told_of = [line["result"].get("task", line["result"].get("statusUpdate")) for line in lines]
    return [state_of(one) for one in told_of if one]
