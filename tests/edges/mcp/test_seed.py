"""The seeds' own requests, as they stand, and the answers that the seeds show.

What differs from one node to another is left aside: the version, and what an agent says.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from anyio import to_thread
from tests.edges.live import live

from openfang.core.results import RECEIPT

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from tests.edges.live import Live

pytestmark = pytest.mark.requirement("C4.4", "C4.5", "C4.6", "C4.10", "C1.5")

SEEDS = Path(__file__).parents[2] / "data/seeds"
GREETINGS = (("000-04", "000-05"), ("001-03", "001-04"), ("002-10", "002-11"))
CALLS = (("000-06", "000-07"), ("001-05", "001-06"), ("002-12", "002-13"))
REVIEWER = """\
name = "code-reviewer"
description = "Reviews code."
module = "python:agent.py"
"""
PROGRAM = "async def run(message, context):\n    return 'I found 3 potential security issues...'\n"
CODER = """\
{
  "id": "openstarry-coder",
  "version": "1.0.0",
  "capabilities": {"tools": ["fs:read_file", "git:status"]},
  MCP
}
"""


def seed(name: str) -> Any:
    return json.loads((SEEDS / f"{name}-message.json").read_text())


def write_agents(home: Path) -> None:
    folder = home / "agents" / "code-reviewer"
    folder.mkdir(parents=True)
    (folder / "agent.toml").write_text(REVIEWER)
    (folder / "agent.py").write_text(PROGRAM)


@pytest.fixture
async def node(tmp_path: Path) -> AsyncGenerator[Live]:
    home = tmp_path / "home"
    await to_thread.run_sync(write_agents, home)
    async with live(home) as running:
        yield running


def without_version(answer: Any) -> Any:
    """The answer without what each node has of its own."""
    copy = cast("dict[str, Any]", json.loads(json.dumps(answer)))
    info = copy.get("result", {}).get("serverInfo")
    if info:
        del info["version"]
    return copy


@pytest.mark.parametrize(("asked", "answered"), GREETINGS)
async def test_the_handshake_is_answered_as_the_seeds_show(
    node: Live, asked: str, answered: str
) -> None:
    reply = await node.post("/mcp", seed(asked))
    assert reply.status == 200
    assert reply.headers["Content-Type"] == "application/json"
    assert "Mcp-Session-Id" not in reply.headers
    assert without_version(reply.json) == without_version(seed(answered))


@pytest.mark.parametrize(("asked", "answered"), CALLS)
async def test_an_agent_is_called_and_answers_as_the_seeds_show(
    node: Live, asked: str, answered: str
) -> None:
    reply = await node.post("/mcp", seed(asked))
    assert reply.status == 200
    answer = reply.json
    beside = answer["result"].pop("_meta")  # which the seeds do not show, and every result may have
    assert answer == seed(answered)
    assert set(beside) == {RECEIPT}


async def test_a_notification_is_never_answered(node: Live) -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    reply = await node.post("/mcp", note)
    assert (reply.status, reply.body) == (202, b"")


async def test_the_list_names_every_kind_of_tool_with_its_schema(node: Live) -> None:
    asked = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    tools = (await node.post("/mcp", asked)).json["result"]["tools"]
    by_name = {tool["name"]: tool for tool in tools}
    assert {"file_read", "web_fetch", "openfang_agent_code_reviewer"} <= by_name.keys()
    agent = by_name["openfang_agent_code_reviewer"]
    assert agent["description"] == "Reviews code."
    assert agent["inputSchema"]["required"] == ["message"]
    assert agent["inputSchema"]["properties"]["message"]["type"] == "string"


async def test_an_unknown_method_is_not_found(node: Live) -> None:
    asked = {"jsonrpc": "2.0", "id": "x", "method": "tools/teleport"}
    answer = (await node.post("/mcp", asked)).json
    assert answer["id"] == "x"
    assert answer["error"]["code"] == -32601
