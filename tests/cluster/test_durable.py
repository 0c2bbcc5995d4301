"""Tasks on the queues of several nodes: any node works on them, and the next one goes on."""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest
from tests.cluster.stove import SECONDS, each, kitchen, wait_for
from tests.faults.dialects import RPC1, state_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cli.conftest import Cli
    from tests.cluster.stove import Kitchen

pytestmark = [pytest.mark.requirement("C13.3"), pytest.mark.timeout(240)]
NODES = "abc"
TAKEOVER = 15.0
TASKS = int(os.environ.get("CLUSTER_TASKS", "12"))


@pytest.fixture(scope="module")
def kettle(make_home: Callable[[], Cli], empty_postgres_of_module: str) -> Iterator[Kitchen]:
    """Three nodes with a kettle, for the tests of this module."""
    with kitchen(make_home, empty_postgres_of_module, NODES) as made:
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
            killed = time.monotonic()
        found = kettle.until(third, task)
        took = time.monotonic() - killed
        states = told.result(SECONDS)
    assert state_of(found) == "completed", found
    assert "was interrupted" in answer(found)
    assert kettle.heard == before + 1
    assert states[-1] == "completed", states
    assert took < TAKEOVER, took
    kettle.back(worker)


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
