"""Agents on a node: whatever they do takes the one path, with their own grants."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from openfang.core.agents import Ended, Made, Wanted, Words
from openfang.core.calls import Grants, Role
from openfang.core.errors import CallRefused, UnknownTool
from openfang.core.ids import Kind
from openfang.core.tools import Risk
from openfang.testing import OpenApp, TableSource, open_test_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

    from openfang.app.agents.running import Agents
    from openfang.core.progress import Told

pytestmark = pytest.mark.requirement("C6.1")

ASSISTANT = """
[capabilities]
tools = ["builtin:file_read", "builtin:file_list", "builtin:memory_*", "builtin:system_time"]
memory_read = ["*"]
memory_write = ["*"]
[policy]
project = "default"
"""


def put(folder: Path, name: str, text: str = "", program: str = "") -> None:
    place = folder / "agents" / name
    place.mkdir(parents=True, exist_ok=True)
    module = 'module = "python:agent.py:run"\n' if program else ""
    (place / "agent.toml").write_text(f'name = "{name}"\n{module}{text}')
    if program:
        (place / "agent.py").write_text(program)


@asynccontextmanager
async def node(folder: Path) -> AsyncGenerator[tuple[OpenApp, Agents]]:
    async with open_test_app(folder) as app:
        assert app.parts.agents
        with anyio.fail_after(60):
            yield app, await app.parts.agents.opened()


async def say(app: OpenApp, agent: str, message: str, **more: Any) -> str:
    return (await app.call(f"agent:{agent}", message=message, **more)).text


async def test_an_agent_uses_its_tools_through_the_path(tmp_path: Path) -> None:
    put(tmp_path, "assistant", ASSISTANT)
    async with node(tmp_path) as (app, _):
        await say(app, "assistant", "Remember that my favourite colour is green")
        assert "green" in await say(app, "assistant", "What is my favourite colour?")
        events = await app.events()

    calls = [
        (event.context["caller"], event.context["tool"])
        for event in events
        if event.event_type == "tool_invocation_start"
    ]
    assert ("agent:assistant", "builtin:memory_store") in calls
    assert ("agent:assistant", "builtin:memory_recall") in calls


async def test_what_is_not_granted_is_not_there_for_it(tmp_path: Path) -> None:
    put(tmp_path, "idle")
    async with node(tmp_path) as (app, _):
        answer = await say(app, "idle", "what time is it?")

    assert "no language model" in answer


async def test_every_step_is_told_as_it_happens(tmp_path: Path) -> None:
    put(tmp_path, "assistant", ASSISTANT)
    heard: list[Told] = []
    async with node(tmp_path) as (app, _):
        call = app.make("agent:assistant", {"message": "what time is it?"}, progress=heard.append)
        await app.invoke(call)

    kinds = [type(one) for one in heard]
    assert kinds[:2] == [Wanted, Made]
    assert kinds[2:-1] == [Words] * (len(kinds) - 3)
    assert kinds[-1] is Ended


async def test_a_session_remembers_and_another_does_not(tmp_path: Path) -> None:
    program = """
async def run(message, context):
    return str(len(context.history))
"""
    put(tmp_path, "counter", program=program)
    async with node(tmp_path) as (app, _):
        counts = [await say(app, "counter", "hi") for _ in range(3)]
        other = await say(app, "counter", "hi", session="other")

    assert counts == ["0", "2", "4"]
    assert other == "0"


async def test_a_ring_of_three_agents_is_refused_where_it_closes(tmp_path: Path) -> None:
    program = """
async def run(message, context):
    return (await context.call("agent_send", {"agent_id": "NEXT", "message": message})).text
"""
    ring = {"a": "b", "b": "c", "c": "a"}
    for name, following in ring.items():
        grants = (
            f'[capabilities]\ntools = ["builtin:agent_send"]\nagent_message = ["{following}"]\n'
        )
        put(tmp_path, name, grants, program.replace("NEXT", following))
    async with node(tmp_path) as (app, _):
        answer = await say(app, "a", "go round")

    assert "agent:a is already waiting further up in this chain" in answer


async def test_an_agent_may_call_only_the_agents_it_is_granted(tmp_path: Path) -> None:
    program = """
async def run(message, context):
    return (await context.call("agent_send", {"agent_id": message, "message": "hi"})).text
"""
    put(tmp_path, "a", '[capabilities]\ntools = ["*"]\nagent_message = ["b*"]\n', program)
    for name in ("b1", "c"):
        put(tmp_path, name, program="async def run(message, context):\n    return 'hello'\n")
    async with node(tmp_path) as (app, _):
        assert await say(app, "a", "b1") == "hello"
        assert await say(app, "a", "c") == "Error: Unknown tool: agent:c (openfang agents list)"


@pytest.mark.requirement("C6.6")
async def test_a_spawned_agent_has_at_most_what_its_parent_has(tmp_path: Path) -> None:
    program = """
async def run(message, context):
    return (await context.call("agent_spawn", {"manifest_toml": message})).text
"""
    grants = (
        '[capabilities]\ntools = ["builtin:agent_spawn", "builtin:file_*"]\nagent_spawn = true\n'
        '[policy]\nproject = "default"\n'
    )
    put(tmp_path, "parent", grants, program)
    async with node(tmp_path) as (app, agents):
        less = 'name = "less"\n[capabilities]\ntools = ["builtin:file_r*"]\n'
        assert await say(app, "parent", less) == "Started less."
        child = agents.find("less").spec
        assert child.parent == "parent"
        assert child.workspace == agents.find("parent").spec.workspace

        more = 'name = "more"\n[capabilities]\ntools = ["builtin:shell_exec"]\nnetwork = ["*"]\n'
        answer = await say(app, "parent", more)
        assert "tools builtin:shell_exec, network *" in answer
        assert "more" not in agents.running

        wrong = await say(app, "parent", 'name = "wrong"\nodd = 1\n')
        assert "agent.toml:2: odd" in wrong


async def test_a_manifest_that_changes_is_live_and_one_that_is_wrong_leaves_others_alone(
    tmp_path: Path,
) -> None:
    put(tmp_path, "first", program="async def run(message, context):\n    return 'one'\n")
    async with node(tmp_path) as (app, agents):
        assert await say(app, "first", "hi") == "one"
        put(tmp_path, "second", 'description = "new"\n')
        put(tmp_path, "third", "odd = 1\n")
        while "second" not in agents.running or not agents.problems:  # noqa: ASYNC110 - files
            await anyio.sleep(0.05)
        assert "third" not in agents.running
        assert "agents/third/agent.toml" in str(agents.problems[0])
        assert await say(app, "first", "hi") == "one"

        (tmp_path / "agents" / "second" / "agent.toml").unlink()
        (tmp_path / "agents" / "second").rmdir()
        while "second" in agents.running:  # noqa: ASYNC110 - files
            await anyio.sleep(0.05)
        with pytest.raises(UnknownTool):
            await say(app, "second", "hi")


async def test_who_may_not_see_an_agent_cannot_call_it(tmp_path: Path) -> None:
    put(tmp_path, "assistant", ASSISTANT)
    async with node(tmp_path) as (app, _):
        grants = Grants(tools=("builtin:*",))
        stranger = replace(app.caller, id="key:stranger", role=Role.USER, grants=grants)
        with pytest.raises(CallRefused):
            await app.invoke(app.make("agent:assistant", {"message": "hi"}, caller=stranger))


async def test_an_agent_hands_foreign_tools_only_addresses_that_it_is_granted(
    tmp_path: Path,
) -> None:
    program = """
async def run(message, context):
    try:
        return (await context.call("mcp:far:get_page", {"url": message})).text
    except context.Refused as refused:
        return f"refused: {refused}"
"""
    grants = '[capabilities]\ntools = ["mcp:*"]\nnetwork = ["*.example.org"]\n'
    put(tmp_path, "reader", grants, program)

    async def page(arguments: Mapping[str, Any]) -> str:
        return f"page {arguments['url']}"

    facts = {"risk": Risk.LOW, "tags": frozenset[str]()}
    source = TableSource(Kind.MCP, "far", {"get_page": (facts, page)})
    async with node(tmp_path) as (app, _):
        app.add(source)
        near = await say(app, "reader", "https://docs.example.org/a")
        far = await say(app, "reader", "https://example.net/a")
        person = await app.call("mcp:far:get_page", url="https://example.net/a")

    assert near == "page https://docs.example.org/a"
    assert "Host example.net is not covered by the network grants of agent:reader" in far
    assert person.text == "page https://example.net/a"
