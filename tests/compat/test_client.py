"""The seed's client, adapter and health check, on a real server behind the one path."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.compat.blocks import block

from openfang import compat
from openfang.compat import (
    CapabilityRegistry,
    HealthStatus,
    InvocationContext,
    MCPAdapter,
    MCPClient,
    MCPResult,
    MCPServerConfig,
    MCPTool,
    RiskLevel,
    ToolDescriptor,
    ToolResult,
    ToolRouter,
    ToolSource,
    mcp_health_check,
)
from openfang.core.errors import NotFound
from openfang.testing import open_test_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from openfang.testing import OpenApp

pytestmark = pytest.mark.requirement("C20", "C14.1")

PEER = Path(__file__).parents[1] / "sources/mcp/peers/echo.py"
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}
CONFIG = f"""\
[[mcp_servers]]
name = "echo-math"
[mcp_servers.transport]
type = "stdio"
command = "{sys.executable}"
args = ["{PEER}", "tools=echo,delete_all"]
[[mcp_servers]]
name = "filesystem"
transport = {{ type = "stdio", command = "no-such-program" }}
"""


@pytest.fixture
async def app(tmp_path: Path) -> AsyncGenerator[OpenApp]:
    async with (
        open_test_app(tmp_path, config=CONFIG) as opened,
        compat.use(opened.parts, opened.caller),
    ):
        yield opened


@pytest.mark.usefixtures("app")
async def test_the_client_connects_lists_calls_and_lets_go() -> None:
    client = MCPClient("echo-math")
    assert await client.connect()
    tools = await client.list_tools()
    assert tools[-1] == MCPTool(name="echo", description="Does echo.", input_schema=SCHEMA)
    result = await client.call_tool("echo", {"text": "hello"})
    assert (result.text, result.is_error) == ("hello", False)
    assert await client.health_check() is HealthStatus.HEALTHY
    await client.disconnect()
    assert await MCPClient("echo-math").health_check() == "healthy"


async def test_a_call_of_the_client_takes_the_one_path(app: OpenApp) -> None:
    client = MCPClient("echo-math")
    await client.connect()
    await client.call_tool("echo", {"text": "hello"})
    refused = await client.call_tool("delete_all", {})
    assert (refused.is_error, "Policy violation" in refused.text) == (True, True)
    events = [event.event_type for event in await app.events()]
    assert events.count("tool_invocation_end") == 1
    assert events.count("policy_decision") == 2


@pytest.mark.usefixtures("app")
async def test_a_server_that_cannot_be_reached_is_told_as_such() -> None:
    client = MCPClient("filesystem")
    assert not await client.connect()
    assert await client.health_check() is HealthStatus.UNHEALTHY
    assert await client.list_tools() == []
    assert (await client.call_tool("read", {})).is_error
    with pytest.raises(NotFound, match="nobody"):
        await MCPClient("nobody").connect()


async def test_a_server_of_no_file_is_there_while_its_client_is(app: OpenApp) -> None:
    config = MCPServerConfig(
        id="guest", command=[sys.executable, str(PEER), "tools=echo,other"], allow_tools=["echo"]
    )
    client = MCPClient(config, context=InvocationContext(project_id="default"))
    assert await client.connect()
    assert [tool.name for tool in await client.list_tools()] == ["echo"]
    assert (await client.call_tool("echo", {"text": "hi"})).text == "hi"
    await client.disconnect()
    assert app.parts.registry.find("mcp:guest:echo") is None
    assert (await client.call_tool("echo", {"text": "hi"})).is_error


@pytest.mark.usefixtures("app")
async def test_the_seeds_health_check_runs_as_written() -> None:
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    space: dict[str, Any] = {"mcp_health_check": mcp_health_check}
    await eval(compile(block(13), "seed", "exec", flags=flags), space)  # noqa: S307 - the seed's own text
    assert space["health"] == {"echo-math": "healthy", "filesystem": "unhealthy"}


@pytest.mark.usefixtures("app")
async def test_the_seeds_call_of_echo_math_answers() -> None:
    await mcp_health_check.check_all()
    assert await CapabilityRegistry().refresh_mcp_servers() == 1
    ctx = InvocationContext()
    result = await ToolRouter().invoke_tool("mcp:echo-math:echo", {"text": "hello"}, ctx)
    assert (result.success, result.payload) == (True, "hello")


def test_the_adapter_describes_a_tool_by_its_words() -> None:
    listed = {"name": "write_file", "description": "Write a file.", "inputSchema": SCHEMA}
    expected = ToolDescriptor(
        tool_id="mcp:files:write_file",
        name="write_file",
        description="Write a file.",
        input_schema=SCHEMA,
        risk_level=RiskLevel.HIGH,
        side_effect_tags=["fs.write"],
        source_type=ToolSource.MCP,
        source_id="files",
    )
    adapter = MCPAdapter()
    assert adapter.mcp_tool_to_descriptor("files", listed) == expected
    server = MCPServerConfig(id="files", command=["x"], allow_tools=["read"], timeout_ms=9)
    limited = adapter.mcp_tool_to_descriptor("files", listed, server)
    assert (limited.enabled, limited.timeout_ms) == (False, 9)


def test_the_adapter_says_an_answer_as_a_result() -> None:
    told = MCPAdapter.mcp_result_to_tool_result
    text = {"content": [{"type": "text", "text": "hi"}]}
    assert told(text, "call-1", duration_ms=3) == ToolResult(
        success=True, payload="hi", invocation_id="call-1", duration_ms=3
    )
    failed = told({**text, "isError": True})
    assert (failed.success, failed.error) == (False, "hi")
    assert told({**text, "structuredContent": {"a": 1}}).payload == {"a": 1}
    parts = [{"type": "image", "data": "", "mimeType": "image/png"}]
    assert told(MCPResult(content=parts)).payload == parts
