"""The seed's A2A names: its client on the one path, its store, its card."""

from __future__ import annotations

from contextlib import asynccontextmanager
from threading import Thread
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.app.a2a.test_peers import config
from tests.sources.a2a.sdk_peer import sdk_peer
from tests.sources.a2a.web_peers import SeedPeer, serving

from openfang import compat
from openfang.compat import (
    A2aArtifact,
    A2aClient,
    A2aMessage,
    A2aTask,
    A2aTaskStatus,
    A2aTaskStore,
    House,
    build_agent_card,
)
from openfang.config.manifests import parse_manifest
from openfang.core.errors import ConfigError, Conflict, HomeError, PolicyViolation, Rejected
from openfang.testing import open_test_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from openfang.testing import OpenApp

pytestmark = pytest.mark.requirement("C20", "C5.6", "C5.8")

PRIVATE = "[tools.web_fetch]\nallow_private = true\n"
ENDED = ("completed", "failed", "cancelled")
REVIEWER = """
name = "code-reviewer"
description = "Reviews code for bugs, security issues, and style"
[capabilities]
tools = ["file_read"]
"""


@asynccontextmanager
async def housed(folder: Path) -> AsyncGenerator[OpenApp]:
    with anyio.fail_after(30):
        async with (
            open_test_app(folder, config=PRIVATE + config()) as app,
            compat.use(app.parts, app.caller),
        ):
            yield app


async def test_the_client_discovers_sends_and_comes_back(tmp_path: Path) -> None:
    async with serving(SeedPeer()) as old, housed(tmp_path):
        client = A2aClient()
        card = await client.discover(old)
        assert (card["name"], card["url"]) == ("old-timer", f"{old}/a2a")
        for url in (card["url"], old):
            task = await client.send_task(url, "hello", "session-123")
            assert (task.status, task.messages[-1].text) == (A2aTaskStatus.COMPLETED, "HELLO")
            assert [one.role for one in task.messages] == ["user", "agent"]
        again = await A2aClient().get_task(f"{old}/a2a", task.id)
    assert (again.id, again.status, again.messages[-1].text) == (task.id, "completed", "HELLO")


async def test_a_task_of_the_current_dialect_reads_in_the_seeds_words(tmp_path: Path) -> None:
    async with sdk_peer() as peer, housed(tmp_path):
        client = A2aClient()
        assert (await client.discover(peer.url))["skills"][0]["id"] == "echo"
        asked = await client.send_task(peer.url, "ask")
    assert asked.status is A2aTaskStatus.INPUT_REQUIRED
    assert asked.session_id
    assert not asked.ended


async def test_what_it_does_is_on_record_and_can_be_refused(tmp_path: Path) -> None:
    async with serving(SeedPeer()) as old, open_test_app(tmp_path / "off", config=PRIVATE) as app:
        client = A2aClient(House(app.parts, app.caller))
        with pytest.raises(PolicyViolation, match="Tool is disabled"):
            await client.discover(old)
        assert (await app.events())[-1].event_type == "policy_violation"
    with pytest.raises(HomeError, match="No house is in use"):
        await A2aClient().send_task(old, "hello")


def stored(*states: str, most: int = 3) -> A2aTaskStore:
    store = A2aTaskStore(max_tasks=most)
    for n, state in enumerate(states):
        store.insert(A2aTask(id=f"t{n}", status=A2aTaskStatus(state)))
    return store


def test_a_task_lives_in_the_store_as_the_seed_says() -> None:
    store = stored("Working", "submitted", "working")
    assert store.update_status("t1", "input-required")
    assert store.complete("t0", "done", [A2aArtifact("note", ())])
    assert store.fail("t1", A2aMessage("agent", ({"type": "text", "text": "no"},)))
    assert store.cancel("t2")
    found = [store.get(f"t{n}") for n in range(3)]
    assert [one and one.status.value for one in found] == ["completed", "failed", "cancelled"]
    assert [one and [said.text for said in one.messages] for one in found] == [["done"], ["no"], []]
    assert found[0]
    assert [one.name for one in found[0].artifacts] == ["note"]
    assert store.get("nobody") is None


def test_what_has_ended_is_not_changed_any_more() -> None:
    for state in ENDED:
        store = stored(state)
        before = store.get("t0")
        changes = (
            store.complete("t0", "late"),
            store.fail("t0", "late"),
            store.cancel("t0"),
            store.update_status("t0", "working"),
            store.cancel("nobody"),
        )
        assert not any(changes)
        assert store.get("t0") == before


def test_the_oldest_finished_one_makes_room_and_a_store_of_running_ones_refuses() -> None:
    store = stored("working", "completed", "failed")
    store.insert(A2aTask(id="new"))
    assert [store.get(one) is None for one in ("t0", "t1", "t2", "new")] == [
        *(False, True, False, False),
    ]
    store.insert(A2aTask(id="newer"))
    with pytest.raises(Rejected) as full:
        store.insert(A2aTask(id="one too many"))
    assert (full.value.status, full.value.rule, len(store)) == (503, "tasks_full", 3)
    with pytest.raises(Conflict):
        stored("working").insert(A2aTask(id="t0"))
    with pytest.raises(ValueError, match="none of"):
        store.update_status("new", "dreaming")


@given(st.lists(st.tuples(st.sampled_from(["insert", *ENDED]), st.integers(0, 20)), max_size=60))
def test_the_store_keeps_to_its_bound_and_never_drops_a_running_task(acts: list[Any]) -> None:
    store, running = A2aTaskStore(max_tasks=5), set[str]()
    for act, number in acts:
        task = f"t{number}"
        if act != "insert":
            store.update_status(task, act)
            running.discard(task)
        elif store.get(task) is None and len(running) < 5:
            store.insert(A2aTask(id=task))
            running.add(task)
        assert len(store) <= 5
        assert all(store.get(one) is not None for one in running)


def test_the_store_can_be_used_from_several_threads() -> None:
    store = A2aTaskStore()

    def work(name: str) -> None:
        for n in range(500):
            store.insert(A2aTask(id=f"{name}{n}"))
            store.complete(f"{name}{n}", "done")

    threads = [Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store) == 1000


@pytest.mark.requirement("C5.1")
def test_the_card_of_a_manifest_is_the_seeds_example(tmp_path: Path) -> None:
    card = build_agent_card(REVIEWER, "http://127.0.0.1:50051")
    assert card == {
        "name": "code-reviewer",
        "description": "Reviews code for bugs, security issues, and style",
        "url": "http://127.0.0.1:50051/a2a",
        "version": "0.1.0",
        "capabilities": {
            "streaming": True,
            "pushNotifications": False,
            "stateTransitionHistory": True,
        },
        "skills": [
            {
                "id": "file_read",
                "name": "file read",
                "description": "Can use the file_read tool",
                "tags": ["tool"],
                "examples": [],
            }
        ],
        "defaultInputModes": ["text"],
        "defaultOutputModes": ["text"],
    }
    assert build_agent_card(parse_manifest(REVIEWER, tmp_path), "http://127.0.0.1:50051/") == card
    assert build_agent_card(REVIEWER.replace("file_read", "*"), "http://a.example")["skills"] == []
    with pytest.raises(ConfigError):
        build_agent_card("name = 1", "http://a.example")
