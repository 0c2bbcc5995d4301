"""Pydantic AI with the tools of the node: python pydantic_ai_mcp.py URL KEY."""

import asyncio
import sys

from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.test import TestModel  # needs no key; take any model of yours


async def main(url, key):
    tools = MCPToolset(f"{url}/mcp", headers={"Authorization": f"Bearer {key}"})
    agent = Agent(TestModel(call_tools=["system_time"]), toolsets=[tools])
    sys.stdout.write(f"{(await agent.run('what time is it?')).output}\n")


asyncio.run(main(*sys.argv[1:]))
