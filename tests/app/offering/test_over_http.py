"""The places behind their addresses, by plain requests of the first revision."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.app.offering.shop import entry, table
from tests.app.offering.test_agents import from_the_seed, opened_by, put
from tests.edges.live import live
from tests.edges.mcp.talking import modern

from openfang.core.results import RECEIPT

if TYPE_CHECKING:
    from tests.edges.live import Live, Reply

pytestmark = pytest.mark.requirement("C4.7", "C4.10")
SEEDS = Path(__file__).parents[2] / "data/seeds"
CONFIG = """
[toolsets.small]
servers = ["fs"]
prefix = false
[toolsets.search]
servers = ["fs"]
mode = "search"
"""


async def ask(
    node: Live, path: str, method: str, key: str = "", number: int = 1, **params: Any
) -> Reply:
    body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return await node.post(path, body, key=key)


async def listed(node: Live, path: str, key: str = "") -> list[str]:
    answer = (await ask(node, path, "tools/list", key)).json
    return [tool["name"] for tool in answer["result"]["tools"]]


@pytest.mark.requirement("C1.5")
async def test_the_seeds_agent_answers_the_seeds_request(tmp_path: Path) -> None:
    put(tmp_path, from_the_seed(), "agent.json")
    sources = [table("fs", "read_file", "write"), table("git", "status"), table("admin", "reset")]
    asked = json.loads((SEEDS / "004-03-message.json").read_text())
    shown = json.loads((SEEDS / "004-04-message.json").read_text())
    async with live(tmp_path, sources=sources) as node:
        await opened_by(node.app)
        place = "/mcp/agents/coder"
        greeting = (await ask(node, place, "initialize", protocolVersion="2024-11-05")).json
        names = await listed(node, place)
        answer = (await node.post(place, asked)).json
        refused = (await ask(node, place, "tools/call", name="admin:reset")).json
        nobody = await ask(node, "/mcp/agents/none", "tools/list")
        stranger = await node.key("stranger", tools=["mcp:*"])
        unseen = await ask(node, place, "tools/list", stranger)

    assert greeting["result"]["serverInfo"] == {"name": "coder", "version": "1.0.0"}
    assert names == ["mcp_fs_read_file", "mcp_git_status"]
    text = answer["result"]["content"][0].pop("text")
    assert set(answer["result"].pop("_meta")) == {RECEIPT}
    del shown["result"]["content"][0]["text"]
    assert (text, answer) == ("read_file {'path': 'README.md'}", shown)
    assert refused["error"] == {"code": -32602, "message": "Unknown tool: admin:reset"}
    assert (nobody.status, unseen.status) == (404, 404)
    assert nobody.body.replace(b"none", b"coder") == unseen.body


@pytest.mark.requirement("C4.5")
async def test_an_agents_place_announces_neither_prompts_nor_completions(tmp_path: Path) -> None:
    put(tmp_path, from_the_seed(), "agent.json")
    async with live(tmp_path) as node:
        await opened_by(node.app)
        greeting: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": {}}
        told = {
            path: (await ask(node, path, "initialize", **greeting)).json["result"]["capabilities"]
            for path in ("/mcp", "/mcp/agents/coder")
        }
        found = (await modern(node, "server/discover", path="/mcp/agents/coder")).json["result"]

    lists = {"listChanged": True}
    least = {"tools": lists, "resources": lists, "logging": {}}
    assert told["/mcp/agents/coder"] == found["capabilities"] == least
    assert told["/mcp"] == {
        **least,
        "resources": {**lists, "subscribe": True},
        "prompts": lists,
        "completions": {},
    }


@pytest.mark.requirement("C17.1", "C4.4")
async def test_a_toolset_has_an_address_and_a_key_sees_its_share_of_it(tmp_path: Path) -> None:
    sources = [table("fs", read="Reads.", write="Writes."), table("git", "status")]
    async with live(tmp_path, config=CONFIG + entry("fs"), sources=sources) as node:
        some = await node.key("some", tools=["mcp:fs:read", "mcp:git:*"])
        whole = (await ask(node, "/mcp/small", "tools/list")).json["result"]["tools"]
        seen = [await listed(node, path, some) for path in ("/mcp", "/mcp/small")]
        called = (await ask(node, "/mcp/small", "tools/call", some, name="read")).json
        hidden = await ask(node, "/mcp/small", "tools/call", some, 7, name="write")
        unknown = await ask(node, "/mcp/small", "tools/call", some, 8, name="wrote")
        nowhere = await ask(node, "/mcp/none", "tools/list")

    assert [(tool["name"], tool["description"]) for tool in whole] == [
        ("read", "Reads."),
        ("write", "Writes."),
    ]
    assert seen == [["mcp_fs_read", "mcp_git_status"], ["read"]]
    assert called["result"]["content"] == [{"type": "text", "text": "read {}"}]
    assert hidden.status == unknown.status
    assert hidden.body.replace(b"write", b"wrote").replace(b"7", b"8") == unknown.body
    assert nowhere.status == 404


@pytest.mark.requirement("C17.1")
async def test_a_toolset_offers_tools_by_the_names_and_words_of_the_operator(
    tmp_path: Path,
) -> None:
    config = """
        [toolsets.named]
        tools = ["mcp:*:re*"]
        rename = { "mcp:fs:read" = "open-it" }
        descriptions = { "mcp:fs:read" = "Opens it." }
    """
    sources = [table("fs", read="Reads.", write="Writes."), table("git", "reset")]
    async with live(tmp_path, config=config, sources=sources) as node:
        shown = (await ask(node, "/mcp/named", "tools/list")).json["result"]["tools"]
        called = (await ask(node, "/mcp/named", "tools/call", name="open-it")).json
        events = await node.app.events()

    assert [(tool["name"], tool["description"]) for tool in shown] == [
        ("mcp_git_reset", "[MCP:git]"),
        ("open-it", "Opens it."),
    ]
    assert called["result"]["content"] == [{"type": "text", "text": "read {}"}]
    assert {event.context["tool"] for event in events if "tool" in event.context} == {"mcp:fs:read"}


@pytest.mark.requirement("C17.2")
async def test_a_toolset_in_search_mode_is_found_and_called_by_its_two_tools(
    tmp_path: Path,
) -> None:
    sources = [table("fs", read="Reads a file.", write="Writes one.")]
    async with live(tmp_path, config=CONFIG + entry("fs"), sources=sources) as node:
        names = await listed(node, "/mcp/search")
        query = {"query": "read a file", "limit": 1}
        found = (
            await ask(node, "/mcp/search", "tools/call", name="search_tools", arguments=query)
        ).json
        [tool] = json.loads(found["result"]["content"][0]["text"])
        wanted = {"name": tool["name"], "arguments": {"path": "x"}}
        called = (
            await ask(node, "/mcp/search", "tools/call", name="call_tool", arguments=wanted)
        ).json

    assert names == ["call_tool", "search_tools"]
    assert called["result"]["content"][0]["text"] == "read {'path': 'x'}"


@pytest.mark.requirement("C12.1")
async def test_without_a_key_this_machine_sees_what_its_grants_allow(tmp_path: Path) -> None:
    open_door = "[auth]\nrequire_key = false\n"
    async with live(tmp_path, config=open_door, sources=[table("fs", "read")]) as node:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        answer = (await node.post("/mcp", body, key=None)).json
        found = {tool["name"] for tool in answer["result"]["tools"]}
        called: dict[str, Any] = {"name": "mcp_fs_read", "arguments": {}}
        await node.post("/mcp", {**body, "method": "tools/call", "params": called}, key=None)
        callers = {event.context["caller"] for event in await node.events()}

    assert {"file_read", "mcp_fs_read", "openfang_agent_echo"} <= found
    assert callers == {"local-mcp"}
