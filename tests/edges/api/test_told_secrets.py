"""A server that tells what it was given tells nobody: not in its words, its answers or its log."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.edges.live import live

if TYPE_CHECKING:
    from pathlib import Path

    from tests.edges.live import Live

pytestmark = pytest.mark.requirement("C18.3", "C13.4")

CANARY = "canary-of-the-config-1"
TELLER = """
import json, os, sys
print("I was given", os.environ["SERVICE_TOKEN"], file=sys.stderr, flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    hello = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
             "serverInfo": {"name": "teller", "version": "1"}}
    tools = {"tools": [{"name": "get_it", "inputSchema": {"type": "object"}}]}
    said = {"content": [{"type": "text", "text": "it is " + os.environ["SERVICE_TOKEN"]}]}
    results = {"initialize": hello, "tools/list": tools, "tools/call": said, "ping": {}}
    answer = {"jsonrpc": "2.0", "id": asked["id"]}
    if asked["method"] in results:
        answer["result"] = results[asked["method"]]
    else:
        answer["error"] = {"code": -32601, "message": "not " + os.environ["SERVICE_TOKEN"]}
    print(json.dumps(answer), flush=True)
"""


def config(program: Path) -> str:
    return f"""
[[mcp_servers]]
name = "teller"
env = {{ SERVICE_TOKEN = "{CANARY}" }}
transport = {{ type = "stdio", command = "{sys.executable}", args = ["{program}"] }}
"""


async def test_a_secret_of_the_configuration_is_told_by_nobody(tmp_path: Path) -> None:
    program = tmp_path / "teller.py"
    program.write_text(TELLER)
    async with live(tmp_path / "home", config=config(program)) as node:
        await connected(node)
        called = await node.call("mcp:teller:get_it")
        assert called.json["outcome"] == "ok"
        told = called.body
        for path in ("/api/mcp/servers", "/api/mcp/servers/teller", "/api/mcp/servers/teller/logs"):
            told += (await node.get(path)).body
        told += (await node.post("/api/mcp/servers/teller/test")).body
        told += (await node.get("/api/audit/export")).body
    assert b"I was given" in told
    assert CANARY.encode() not in told


async def connected(node: Live) -> None:
    with anyio.fail_after(30):
        while not (await node.get("/api/mcp/servers")).json["connected"]:
            await node.post("/api/mcp/servers/refresh")
