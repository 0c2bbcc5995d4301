"""An extension that is an MCP server: its tools have the names of extensions, and no others."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.sources.extensions.stage import Stage, stage

from openfang.core.errors import UnknownTool
from openfang.core.extensions import Capability, Permissions
from openfang.core.ids import Kind
from openfang.core.tools import Risk, Trust
from openfang.host.cgroups import hierarchy

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.requirement("C6.3", "C1.1", "C16.1"), pytest.mark.needs("bwrap")]

SERVER = """
import json, os, resource, sys

def tool(name, description="Says something."):
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    return {"name": name, "description": description, "inputSchema": schema}

TOOLS = [tool("echo"), tool("secret")]
for line in sys.stdin:
    said = json.loads(line)
    method, id_ = said["method"], said.get("id")
    if id_ is None:
        continue
    result = {}
    if method == "initialize":
        version = said["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}},
                  "serverInfo": {"name": "mine", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": TOOLS}
    elif method == "tools/call":
        text = said["params"]["arguments"].get("text", "")
        if text == "bounds":
            text = str(resource.getrlimit(resource.RLIMIT_DATA)[0])
        if text == "die":
            os._exit(3)
        if text.startswith("read "):
            try:
                text = open(text[5:]).read()
            except OSError as error:
                text = type(error).__name__
        result = {"content": [{"type": "text", "text": text}]}
    elif method != "ping":
        answer = {"jsonrpc": "2.0", "id": id_, "error": {"code": -32601, "message": "no"}}
        print(json.dumps(answer), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": id_, "result": result}), flush=True)
"""


async def put(on: Stage, *capabilities: str | Capability, **facts: object) -> None:
    entry = (sys.executable, "server.py")
    await on.put(SERVER, *capabilities, kind="mcp", runtime={"entry": entry}, **facts)


async def offered(on: Stage, tool: str = "ext:tester:echo") -> None:
    """Wait until it has said what it offers."""
    with anyio.fail_after(30):
        while on.app.parts.registry.find(tool) is None:  # noqa: ASYNC110 - it is told to nobody
            await anyio.sleep(0.02)


async def test_the_tools_of_its_manifest_are_offered_and_the_others_held_back(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as on:
        await put(on, "echo")
        await offered(on)
        tool = on.tool("echo")
        assert (tool.kind, tool.wire_name, tool.lane) == (Kind.EXTENSION, "echo", "ext:tester")
        assert await on.text("echo", text="hello") == "hello"
        state = on.state()
        assert (state.how, state.held_back) == ("running", ("secret",))
        assert {"files", "processes", "network"} <= set(state.layers)
        with pytest.raises(UnknownTool):
            await on.call("secret", text="hello")
        events = await on.app.events()
    assert {event.context["source_type"] for event in events if "tool" in event.context} >= {
        "extension"
    }


async def test_it_is_confined_as_every_extension_and_connected_again(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        (tmp_path / "user" / "private.txt").write_text("private")
        await put(on, "echo")
        await offered(on)
        for path in (tmp_path / "user" / "private.txt", on.home / "config.toml"):
            assert await on.text("echo", text=f"read {path}") == "FileNotFoundError"
        with pytest.raises(Exception, match="The extension tester cannot be reached"):
            await on.call("echo", text="die")
        with anyio.fail_after(30):
            while on.state().restarts != 1:  # noqa: ASYNC110 - it is told to nobody
                await anyio.sleep(0.02)
        assert await on.text("echo", text="back") == "back"


async def test_its_manifest_can_raise_a_risk_and_not_lower_it(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        said = Capability(name="echo", risk=Risk.CRITICAL, tags=frozenset({"payments"}))
        await put(on, said, trust=Trust.MEDIUM, permissions=Permissions(network=True))
        await offered(on)
        tool = on.tool("echo")
        assert tool.risk is Risk.CRITICAL
        assert tool.tags >= {"payments", "network.http"}
        low = Capability(name="secret", risk=Risk.LOW, tags=frozenset())
        await put(on, low, name="lower", trust=Trust.MEDIUM)
        await offered(on, "ext:lower:secret")
        assert on.tool("secret", "lower").tags


async def test_it_is_bounded_as_any_server_is(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await put(on, "echo")
        await offered(on)
        assert int(await on.text("echo", text="bounds")) == (4096 << 20) * 7 // 8
        await on.text("echo", text="bounds")
        if hierarchy() is not None:
            assert "resources" in on.state().layers
