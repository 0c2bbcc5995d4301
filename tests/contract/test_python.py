"""The seed's Python names in a program of its own, on a home that a daemon serves."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.contract.house import House

PROGRAM = """
import asyncio
import json

from openfang import open_local
from openfang.compat import (
    CapabilityRegistry, InvocationContext, MCPAdapter, RiskLevel, ToolPolicyEngine, ToolRouter,
    extract_mcp_server, find_daemon, format_mcp_tool_name, is_mcp_tool, use,
)


async def main():
    async with open_local() as local, use(local.parts, local.caller):
        router, registry = ToolRouter(), CapabilityRegistry()
        done = await router.invoke_tool("builtin:system_time", {}, InvocationContext())
        return {
            "daemon": find_daemon(),
            "formatted": format_mcp_tool_name("My-Server", "do.it"),
            "servers": [extract_mcp_server(name) for name in ("NAME", "mcp_nobody_x")],
            "mcp": [is_mcp_tool(name) for name in ("NAME", "file_read")],
            "listed": "system_time" in [tool.name for tool in registry.list_tools()],
            "success": done.success,
            "risk": MCPAdapter.infer_risk_level("delete_all", "") >= RiskLevel.HIGH,
        }


print(json.dumps(asyncio.run(main()), default=str))
"""


@pytest.mark.requirement("C20", "C1.4")
def test_the_seeds_names_work_beside_a_daemon(node: House) -> None:
    tool = node.tools()["mcp:a-b:c"]["name"]
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("NAME", tool)],
        env=node.daemon.home.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    seen = json.loads(ran.stdout)
    assert str(node.daemon.address[1]) in json.dumps(seen.pop("daemon"))
    assert seen == {
        "formatted": "mcp_my_server_do_it",
        "servers": ["a-b", None],
        "mcp": [True, False],
        "listed": True,
        "success": True,
        "risk": True,
    }
