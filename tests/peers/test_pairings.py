"""Clients and servers of both eras understand each other through us, whatever they ask and tell."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio import to_thread
from mcp.server.subscriptions import ResourceUpdated, ToolsListChanged
from tests.cluster.housed import NODES
from tests.conformance.served.resources import WATCHED
from tests.conformance.served.tools import EXTRA_TOOL
from tests.conformance.starting import ROOT
from tests.peers.clients import Local, typescript
from tests.peers.inspector import inspect
from tests.peers.pairings import REQUESTS, SERVERS, between, served, task, verdicts
from tests.peers.sdk_client import python, reached
from tests.peers.servers import MODERN

from mcp import Client

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from mcp.client.session import IncomingMessage
    from tests.faults.daemon import Daemon
    from tests.peers.a2a.house import House
    from tests.peers.clients import Era

pytestmark = pytest.mark.requirement("C3.10", "C4.1", "C4.4", "C4.5", "C17.1", "C1.6")

ERAS: tuple[Era, ...] = ("legacy", "modern")
TOOLS_CHANGED = "notifications/tools/list_changed"
PROMPTS_CHANGED = "notifications/prompts/list_changed"
UPDATED = "notifications/resources/updated"
# Over a pipe each node has a server of its own, and who has no session changes that of any node.
HEARD = ["modern-http", "legacy-http", *([] if NODES else ["modern-stdio"])]
HEADINGS = {
    ("legacy", "legacy"): "old client, old server",
    ("legacy", "modern"): "old client, new server",
    ("modern", "legacy"): "new client, old server",
    ("modern", "modern"): "new client, new server",
}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, nodes_server: str) -> Generator[House]:
    with between(tmp_path_factory.mktemp("between"), nodes_server) as running:
        yield running


@pytest.fixture(scope="module")
def daemon(house: House) -> Daemon:
    """Whichever node answers."""
    return house.daemon


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("era", ERAS)
async def test_the_python_sdk_has_everything_over_http(
    daemon: Daemon, era: Era, server: str
) -> None:
    seen = await python(task(served(daemon, server), era))
    assert verdicts(seen) == dict.fromkeys(REQUESTS, True), seen.answers


@pytest.mark.parametrize("server", ["modern-http", "legacy-stdio"])
@pytest.mark.parametrize("era", ERAS)
async def test_the_typescript_sdk_has_everything_over_http(
    daemon: Daemon, era: Era, server: str
) -> None:
    seen = await to_thread.run_sync(typescript, task(served(daemon, server), era))
    assert verdicts(seen) == dict.fromkeys(REQUESTS, True), seen.answers


@pytest.mark.parametrize("server", ["modern-stdio", "legacy-http"])
@pytest.mark.parametrize("era", ERAS)
async def test_the_python_sdk_has_everything_over_stdio(
    daemon: Daemon, era: Era, server: str
) -> None:
    program, *words = daemon.home.command("mcp", "--toolset", server)
    local = Local(program, tuple(words), daemon.home.environment)
    seen = await python(task(local, era))
    assert verdicts(seen) == dict.fromkeys(REQUESTS, True), seen.answers


@pytest.mark.parametrize("server", ["modern-stdio", "legacy-http"])
@pytest.mark.parametrize("era", [*ERAS, "auto"])
def test_the_inspector_lists_and_calls(
    daemon: Daemon, era: Era, server: str, tmp_path: Path
) -> None:
    target = served(daemon, server)
    listed = inspect(tmp_path, target, era, "tools/list")["result"]
    assert "test_simple_text" in {tool["name"] for tool in listed["tools"]}
    called = inspect(tmp_path, target, era, "tools/call", "--tool-name", "test_simple_text")
    assert called["result"]["content"][0]["text"] == "A simple text."


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize("server", ["modern-http", "legacy-http", "legacy-stdio"])
async def test_who_is_older_is_told_of_changes(daemon: Daemon, server: str) -> None:
    told = {method: anyio.Event() for method in (TOOLS_CHANGED, PROMPTS_CHANGED, UPDATED)}

    async def heard(message: IncomingMessage) -> None:
        assert not isinstance(message, Exception), message
        if message.method in told:
            told[message.method].set()

    with anyio.fail_after(60):
        async with (
            reached(served(daemon, server)) as target,
            Client(target, mode="legacy", message_handler=heard) as client,
        ):
            await client.subscribe_resource(WATCHED)  # pyright: ignore[reportDeprecated] - an old client's way
            await client.call_tool("test_trigger_tool_change")
            await told[TOOLS_CHANGED].wait()
            names = {tool.name for tool in (await client.list_tools()).tools}
            await client.call_tool("test_trigger_prompt_change")
            await told[PROMPTS_CHANGED].wait()
            await client.call_tool("test_trigger_resource_change")
            await told[UPDATED].wait()
            await client.call_tool("test_trigger_prompt_change")
            await client.call_tool("test_trigger_tool_change")
    assert EXTRA_TOOL in names


@pytest.mark.parametrize("server", HEARD)
async def test_who_is_newer_is_told_of_what_it_listens_for(daemon: Daemon, server: str) -> None:
    with anyio.fail_after(60):
        async with (
            reached(served(daemon, server)) as target,
            Client(target, mode=MODERN) as client,
            client.listen(tools_list_changed=True, resource_subscriptions=[WATCHED]) as changes,
        ):
            await client.call_tool("test_trigger_tool_change")
            first = await anext(aiter(changes))
            await client.call_tool("test_trigger_resource_change")
            second = await anext(aiter(changes))
            await client.call_tool("test_trigger_tool_change")
    assert [first, second] == [ToolsListChanged(), ResourceUpdated(WATCHED)]


async def test_the_table_of_the_docs_is_what_is_seen(daemon: Daemon) -> None:
    table = {
        (era, kind): verdicts(await python(task(served(daemon, f"{kind}-http"), era)))
        for era in ERAS
        for kind in ERAS
    }
    lines = [f"| | {' | '.join(HEADINGS.values())} |", "|---|---|---|---|---|"]
    for name in REQUESTS:
        marks = ("yes" if table[pair][name] else "no" for pair in HEADINGS)
        lines.append(f"| {name} | {' | '.join(marks)} |")
    page = await to_thread.run_sync((ROOT / "docs" / "mcp.md").read_text)
    shown = re.search(r"<!-- pairings -->\n(.*?)\n<!-- end -->", page, re.DOTALL)
    assert shown, "docs/mcp.md shows no table"
    assert shown[1].splitlines() == lines


async def test_what_was_asked_of_clients_is_on_record(daemon: Daemon) -> None:
    for server in SERVERS[:2]:
        await python(task(served(daemon, server), "modern"))
    sql = "SELECT DISTINCT context FROM audit WHERE event = 'tool_invocation_start'"
    rows = [json.loads(row[0]) for row in await to_thread.run_sync(daemon.home.rows, sql)]
    found = {(row["tool"], row["caller"]) for row in rows}
    tools = {tool for tool, _ in found}
    assert any(str(tool).endswith(":elicitation/create") for tool in tools), tools
    asked = {(tool, caller) for tool, caller in found if str(tool).startswith("client:")}
    assert all(caller.startswith("mcp:") for _, caller in asked)
    assert {f"mcp:{name}:resources/read" for name in SERVERS[:2]} <= tools
