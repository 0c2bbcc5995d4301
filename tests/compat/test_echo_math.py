"""The seed's own example: its file, its server in Node, its client, its calls and its log."""

from __future__ import annotations

import ast
import logging
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from anyio import to_thread
from tests.compat.blocks import block, run
from tests.node import NODE

from openfang import compat
from openfang.compat import (
    CapabilityRegistry,
    HealthStatus,
    InvocationContext,
    MCPAdapter,
    MCPClient,
    MCPConfigManager,
    MCPTool,
    RiskLevel,
    ToolRouter,
    ToolSource,
    mcp_health_check,
)
from openfang.testing import open_test_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from openfang.testing import OpenApp

pytestmark = pytest.mark.requirement("C20", "C2.2")

TESTS = Path(__file__).parents[1]
SEED = TESTS / "data/seeds/003-07-config.yaml"
EXAMPLES = TESTS.parent / "docs/examples/servers"
MUTE = TESTS / "sources/mcp/peers/stdio.py"
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
ECHO = MCPTool(name="echo", description="Say the same text again", input_schema=TEXT)


@pytest.fixture
def agentos(tmp_path: Path) -> Path:
    """A user's folder as the seed has it: the file, and the server that it names beside it."""
    folder = tmp_path / ".agentos"
    shutil.copytree(EXAMPLES, folder / "servers")
    return Path(shutil.copy(SEED, folder / "mcp_servers.yaml"))


def environ(folder: Path) -> dict[str, str]:
    path = os.pathsep.join((str(Path(NODE).parent), os.environ["PATH"]))
    return {"HOME": str(folder), "PATH": path}


@pytest.fixture
async def app(tmp_path: Path) -> AsyncGenerator[OpenApp]:
    """A house whose configuration knows none of it."""
    async with (
        open_test_app(tmp_path / "home", environ=environ(tmp_path)) as opened,
        compat.use(opened.parts, opened.caller),
    ):
        yield opened


@pytest.fixture
async def included(tmp_path: Path, agentos: Path) -> AsyncGenerator[OpenApp]:
    """A house that reads the seed's file in place, and has two servers that are not well."""
    config = (
        f'include = ["{agentos}"]\n'
        '[[mcp_servers]]\nname = "filesystem"\n'
        'transport = { type = "stdio", command = "no-such-program" }\n'
        '[[mcp_servers]]\nname = "mute"\ntimeout_secs = 0.2\nrisk = "LOW"\n'
        f'[mcp_servers.transport]\ntype = "stdio"\ncommand = "{sys.executable}"\n'
        f'args = ["{MUTE}", "handshake", "mute=tools/call"]\n'
    )
    async with (
        open_test_app(tmp_path / "home", config=config, environ=environ(tmp_path)) as opened,
        compat.use(opened.parts, opened.caller),
    ):
        yield opened


async def executed(text: str, **names: Any) -> dict[str, Any]:
    """Execute a block that awaits."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    await eval(compile(text, "seed", "exec", flags=flags), names)  # noqa: S307 - the seed's own text
    return names


@pytest.mark.usefixtures("app")
async def test_the_clients_five_methods_do_their_work_on_the_seeds_server(agentos: Path) -> None:
    manager = MCPConfigManager(agentos)
    (server,) = await to_thread.run_sync(manager.get_enabled_servers)
    client = MCPClient(server)
    methods = [node.name for node in ast.walk(_outline()) if isinstance(node, ast.AsyncFunctionDef)]
    assert methods == ["connect", "list_tools", "call_tool", "health_check", "disconnect"]
    assert await client.connect()
    tools = {tool.name: tool for tool in await client.list_tools()}
    assert (set(tools), tools["echo"]) == ({"echo", "add", "multiply"}, ECHO)
    assert all(manager.is_tool_allowed("echo-math", name) for name in tools)
    assert not manager.is_side_effect_denied("echo-math", "fs.write")
    assert (await client.call_tool("echo", {"text": "hello"})).text == "hello"
    assert (await client.call_tool("multiply", {"a": 6, "b": 7})).text == "42"
    assert await client.health_check() is HealthStatus.HEALTHY
    await client.disconnect()
    assert await client.health_check() is HealthStatus.UNHEALTHY


def _outline() -> ast.Module:
    lines = block(1).splitlines()
    return ast.parse("\n".join(f"{line}: ..." if "def " in line else line for line in lines))


@pytest.mark.usefixtures("included")
async def test_the_two_flows_of_the_seed_go_through() -> None:
    await mcp_health_check.check_all()
    registry = CapabilityRegistry()
    found = {tool.tool_id: tool for tool in registry.list_tools(source_types=["mcp"])}
    assert set(found) == {
        *(f"mcp:echo-math:{name}" for name in ("echo", "add", "multiply")),
        "mcp:mute:tool0",
    }
    echo = found["mcp:echo-math:echo"]
    assert (echo.source_type, echo.risk_level) == (ToolSource.MCP, RiskLevel.LOW)
    assert echo.risk_level is MCPAdapter.infer_risk_level("echo", ECHO.description)
    assert registry.get_tool("mcp:echo-math:echo") == echo
    invoke_tool, ctx = ToolRouter().invoke_tool, InvocationContext()
    result = await invoke_tool("mcp:echo-math:echo", {"text": "hello"}, ctx)
    assert (result.success, result.payload) == (True, "hello")
    assert await registry.refresh_mcp_servers() == 2


@pytest.mark.requirement("C14.1")
@pytest.mark.usefixtures("included")
async def test_the_seeds_health_check_tells_the_well_from_the_unwell() -> None:
    told = (await executed(block(13), mcp_health_check=mcp_health_check))["health"]
    assert told == {"echo-math": "healthy", "filesystem": "unhealthy", "mute": "healthy"}


@pytest.mark.requirement("C14.2")
@pytest.mark.usefixtures("included")
async def test_the_log_has_the_clients_lines_in_the_seeds_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "openfang.mcp")
    await mcp_health_check.check_all()
    ctx = InvocationContext(project_id="default")
    timed_out = await ToolRouter().invoke_tool("mcp:mute:tool0", {}, ctx)
    assert (timed_out.success, "did not answer" in (timed_out.error or "")) == (False, True)
    theirs = logging.getLogger("tests.seed")
    names: dict[str, Any] = {
        "logger": theirs,
        "server_id": "echo-math",
        "method": "tools/call",
        "request_id": timed_out.invocation_id,
        "tool_id": "",
        "result": timed_out,
        "decision": compat.PolicyDecision(allowed=True),
    }
    with caplog.at_level(logging.INFO, theirs.name):
        run(block(14), **names)
    said = {one.getMessage() for one in caplog.records if one.name == "openfang.mcp"}
    connected, request = [one.getMessage() for one in caplog.records if one.name == theirs.name][:2]
    assert {connected, request} <= said
