"""Agents that somebody started: bounded by their parent, now and later, and by number and name."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from tests.agents.test_directory import call, stranger
from tests.agents.test_node import node, put
from tests.agents.test_turns import Gate

from openfang.app.admin import Admin
from openfang.app.agents.guests import MOST_OF_ONE
from openfang.core.calls import Grants, Mode
from openfang.core.errors import InvalidArguments, SourceFailed
from openfang.core.ids import Kind
from openfang.core.keys import Key
from openfang.core.tools import Risk
from openfang.policy.context import Wish
from openfang.testing import TableSource

if TYPE_CHECKING:
    from pathlib import Path

    from openfang.app.agents.running import Agents
    from openfang.core.calls import Caller
    from openfang.testing import OpenApp

pytestmark = pytest.mark.requirement("C6.6")

PARENT = """
[capabilities]
tools = ["builtin:*", "mcp:t:*"]
memory_read = ["*"]
memory_write = ["*"]
agent_spawn = true
agent_kill = ["*"]
agent_message = ["*"]
[policy]
project = "default"
"""
TIME = '[capabilities]\ntools = ["builtin:system_time"]\n'


def parent(agents: Agents, name: str = "parent") -> Caller:
    return agents.find(name).spec.caller


async def spawn(app: OpenApp, who: Caller, name: str, text: str = TIME) -> str:
    manifest = f'name = "{name}"\n{text}'
    return (await call(app, who, "agent_spawn", manifest_toml=manifest)).text


@pytest.mark.requirement("C2.2")
async def test_a_manifest_that_takes_long_to_read_stops_nobody(tmp_path: Path) -> None:
    async with node(tmp_path) as (app, _):
        who = stranger(app, agent_spawn=True)
        began = time.perf_counter()
        deep = await call(app, who, "agent_spawn", manifest_toml="a." * 15_000 + "a = 1")
        took = time.perf_counter() - began
        with pytest.raises(InvalidArguments):
            await call(app, who, "agent_spawn", manifest_toml="#" * 90_000)

    assert "expected a key of at most 100 parts" in deep.text
    assert took < 10


async def test_what_a_parent_loses_its_children_lose(tmp_path: Path) -> None:
    put(tmp_path, "parent", PARENT)
    async with node(tmp_path) as (app, agents):
        who = parent(agents)
        await spawn(app, who, "clock")
        reads = '[capabilities]\ntools = ["builtin:file_read"]\n'
        await spawn(app, who, "reader", reads)
        put(tmp_path, "parent", PARENT.replace('"builtin:*"', '"builtin:system_time"'))
        await agents.load()
        assert "reader" not in agents.running
        assert "clock" in agents.running

        put(tmp_path, "parent", f'{PARENT}blacklist = ["payments"]\nmode = "planning"\n')
        await agents.load()
        child = agents.find("clock").spec
        assert (child.mode, child.blacklist) == (Mode.PLANNING, {"payments"})

        (tmp_path / "agents" / "parent" / "agent.toml").unlink()
        await agents.load()
        assert "clock" not in agents.running


async def test_who_was_started_with_a_key_ends_with_it(tmp_path: Path) -> None:
    async with node(tmp_path) as (app, agents):
        admin = Admin(app.parts, app.caller)
        key, _ = await admin.create_key(Key(id="", name="boss", projects=("default",)))
        who = replace(key.caller(), grants=replace(key.grants, agent_spawn=True))
        assert await spawn(app, who, "clock") == "Started clock."
        agents.apply()
        assert "clock" in agents.running
        await admin.revoke_key("boss")
        while "clock" in agents.running:  # noqa: ASYNC110 - it is looked at now and then
            await anyio.sleep(0.05)


async def test_a_child_chooses_neither_its_spec_nor_its_mode(tmp_path: Path) -> None:
    put(tmp_path, "parent", f'{PARENT}mode = "planning"\n')
    async with node(tmp_path) as (app, agents):
        wanted = f'{TIME}[policy]\nspec = "{"a" * 64}"\nproject = "other"\n'
        person = replace(
            stranger(app, agent_spawn=True),
            spec="b" * 64,
            projects=("default",),
            blacklist=frozenset({"payments"}),
        )
        tightened = Wish(blacklist=frozenset({"fs.delete"}))
        arguments = {"manifest_toml": f'name = "two"\n{wanted}'}
        await app.invoke(app.make("agent_spawn", arguments, caller=person, wish=tightened))
        # While planning nobody is started, so that the parent asks before it does.
        who = replace(parent(agents), mode=Mode.EXECUTION)
        await spawn(app, who, "one", wanted)
        agents.apply()
        one, two = agents.find("one").spec, agents.find("two").spec

    assert (one.spec, one.mode, one.projects) == (None, Mode.PLANNING, ())
    assert (two.spec, two.projects) == ("b" * 64, ())
    assert two.blacklist == {"payments", "fs.delete"}
    assert two.workspace == app.parts.home.workspace("key-stranger")


async def test_a_name_that_has_a_folder_is_nobody_elses(tmp_path: Path) -> None:
    put(tmp_path, "lasting", "odd = 1\n")
    async with node(tmp_path) as (app, agents):
        who = stranger(app, agent_spawn=True, agent_kill=("*",))
        for name in ("lasting", "assistant"):
            assert "There is an agent" in await spawn(app, who, name)
        await spawn(app, who, "my-clock")
        assert "There is an agent" in await spawn(app, who, "my_clock")
        kill = await call(app, who, "agent_kill", agent_id="lasting")
        assert "has a manifest of its own" in kill.text

        put(tmp_path, "my_clock")
        await agents.load()
        assert "my-clock" not in agents.running


async def test_one_that_comes_later_finds_nothing_of_its_namesake(tmp_path: Path) -> None:
    put(tmp_path, "parent", PARENT)
    memory = '[capabilities]\ntools = ["builtin:memory_*"]\nmemory_read = ["*"]\n'
    memory += 'memory_write = ["*"]\n[policy]\nproject = "default"\n'
    async with node(tmp_path) as (app, agents):
        who = parent(agents)
        await spawn(app, who, "temp", memory)
        first = await app.call("agent:temp", message="Remember that my favourite colour is green")
        stored = app.file.read_now("SELECT space FROM memory")
        await call(app, who, "agent_kill", agent_id="temp")
        assert (len(stored), app.file.read_now("SELECT space FROM memory")) == (1, [])
        await spawn(app, who, "temp", memory)
        second = await app.call("agent:temp", message="What is my favourite colour?")

    assert "green" not in second.text
    assert first.structured["session"] != second.structured["session"]


async def test_who_is_killed_takes_everybody_along_that_it_started(tmp_path: Path) -> None:
    put(tmp_path, "parent", PARENT)
    path = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    facts = {
        "risk": Risk.LOW,
        "tags": frozenset({"fs.read"}),
        "description": "Read a file.",
        "input_schema": path,
    }
    gate, family = Gate(), ("parent", "one", "two", "three")
    grants = PARENT.replace('"builtin:*", "mcp:t:*"', '"mcp:t:*"')
    async with node(tmp_path) as (app, agents):
        app.add(TableSource(Kind.MCP, "t", {"read_file": (facts, gate.wait)}))
        who = parent(agents)
        for above, name in pairwise(family):
            caller = replace(who, id=f"agent:{above}")
            await spawn(app, caller, name, grants)

        async def talk() -> None:
            with pytest.raises(SourceFailed, match="ended before it had answered"):
                await app.call("agent:three", message="read notes/a.txt")

        async with anyio.create_task_group() as group:
            group.start_soon(talk)
            await gate.reached.wait()
            await call(app, who, "agent_kill", agent_id="one")

        assert set(family) & set(agents.running) == {"parent"}
        assert not agents.guests.known


async def test_there_are_only_so_many(tmp_path: Path) -> None:
    async with node(tmp_path) as (app, agents):
        who = stranger(app, agent_spawn=True)
        for number in range(MOST_OF_ONE):
            assert await spawn(app, who, f"n{number}") == f"Started n{number}."
        refused = await spawn(app, who, "more")
        assert f"key:stranger has {MOST_OF_ONE} agents" in refused
        assert "more" not in agents.running


async def test_a_grant_of_nothing_is_refused_for_a_spawned_one_too(tmp_path: Path) -> None:
    async with node(tmp_path) as (app, agents):
        who = replace(app.caller, id="key:wide", grants=Grants(tools=("*",), agent_spawn=True))
        answer = await spawn(app, who, "odd", '[capabilities]\ntools = ["builtin:no_such"]\n')
        assert "capabilities.tools" in answer
        assert "odd" not in agents.running


async def test_a_list_of_agents_does_not_say_what_they_may_reach(tmp_path: Path) -> None:
    put(tmp_path, "parent", PARENT)
    async with node(tmp_path) as (app, _):
        who = stranger(app, agents=("parent",))
        listed = await call(app, who, "agent_list")
        found: Any = await call(app, who, "agent_find", query="mcp:t")

    (card,) = listed.structured["agents"]
    assert set(card) == {"name", "title", "description", "version", "tags", "model"}
    assert found.structured["agents"] == []
