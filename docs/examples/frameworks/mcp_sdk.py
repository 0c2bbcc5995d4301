"""Call a tool by the official SDK of MCP: python mcp_sdk.py URL KEY."""

import asyncio
import sys

import httpx2
from mcp.client.streamable_http import streamable_http_client

from mcp import Client


async def main(url, key):
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
    ):
        result = await client.call_tool("system_time", {})
        sys.stdout.write(f"{result.content[0].text}\n")


asyncio.run(main(*sys.argv[1:]))
