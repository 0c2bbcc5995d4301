"""The tools of the node for Anthropic's client: python anthropic_sdk.py URL KEY."""

import asyncio
import sys

import httpx2
from anthropic.lib.tools.mcp import async_mcp_tool
from mcp.client.streamable_http import streamable_http_client

from mcp import ClientSession


async def main(url, key):
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}) as http,
        streamable_http_client(f"{url}/mcp", http_client=http) as (read, write),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        listed = await session.list_tools()
        tools = {tool.name: async_mcp_tool(tool, session) for tool in listed.tools}
        # All of them are for the `tools` of client.beta.messages.tool_runner.
        answer = await tools["system_time"].call({})
        sys.stdout.write(f"{answer[0]['text']}\n")


asyncio.run(main(*sys.argv[1:]))
