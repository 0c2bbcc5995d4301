"""Many agents at once, and an agent with a real server behind it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.agents.test_node import node, put, say
from tests.peers import servers

from openfang.testing import open_test_app

if TYPE_CHECKING:
    from pathlib import Path

AGENTS = 50
SESSIONS = 200


@pytest.mark.requirement("C6.4")
async def test_fifty_agents_answer_at_once_in_two_hundred_sessions(tmp_path: Path) -> None:
    for number in range(AGENTS):
        put(tmp_path, f"a{number}", '[capabilities]\ntools = ["builtin:system_time"]\n')
    answers: dict[int, list[str]] = {}
    async with node(tmp_path) as (app, agents):
        assert len(agents.running) >= AGENTS

        async def talk(number: int) -> None:
            agent, session = f"a{number % AGENTS}", f"s{number}"
            answers[number] = [
                await say(app, agent, "what time is it?", session=session) for _ in range(2)
            ]

        async with anyio.create_task_group() as group:
            for number in range(SESSIONS):
                group.start_soon(talk, number)
        events = await app.events()

    assert len(answers) == SESSIONS
    assert all(answer[:2] == "20" for pair in answers.values() for answer in pair)
    made = Counter(
        event.context["caller"]
        for event in events
        if event.event_type == "tool_invocation_start"
        and event.context["tool"] == "builtin:system_time"
    )
    assert set(made.values()) == {2 * SESSIONS // AGENTS}


@pytest.mark.requirement("C6.4")
async def test_messages_to_one_session_wait_for_each_other(tmp_path: Path) -> None:
    program = """
import asyncio

inside = 0

async def run(message, context):
    global inside
    inside += 1
    most = inside
    await context.call("system_time", {})
    most = max(most, inside)
    inside -= 1
    return str(most)
"""
    put(tmp_path, "one", '[capabilities]\ntools = ["builtin:system_time"]\n', program)
    found: list[str] = []
    async with node(tmp_path) as (app, _):

        async def talk() -> None:
            found.append(await say(app, "one", "hi"))

        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(talk)

    assert found == ["1"] * 10


@pytest.mark.requirement("C6.1", "C11.4")
async def test_an_agent_uses_a_real_filesystem_server_through_the_gates(tmp_path: Path) -> None:
    ground = tmp_path / "ground"
    ground.mkdir()
    (ground / "note.txt").write_text("from the real server")
    program = """
async def run(message, context):
    tool, _, path = message.partition(" ")
    arguments = {"path": path, "content": "x"} if "write" in tool else {"path": path}
    try:
        return (await context.call(f"mcp:files:{tool}", arguments)).text
    except context.Refused as refused:
        return f"refused: {refused}"
"""
    home = tmp_path / "home"
    home.mkdir()
    put(home, "clerk", 'mcp_servers = ["files"]\n[policy]\nmode = "planning"\n', program)
    put(home, "idle", "", program)
    server = servers.filesystem(ground)
    async with open_test_app(home, config=server.entry) as app:
        assert app.parts.agents
        assert app.parts.servers
        with anyio.fail_after(60):
            await app.parts.servers.settled()
            await app.parts.agents.opened()
            note = str(ground / "note.txt")
            assert await say(app, "clerk", f"read_text_file {note}") == "from the real server"
            denied = await say(app, "clerk", f"write_file {ground / 'new.txt'}")
            hidden = await say(app, "idle", f"read_text_file {note}")

    assert "Planning mode cannot use tools with side effects" in denied
    assert not (ground / "new.txt").exists()
    assert hidden.startswith("refused: Unknown tool")
