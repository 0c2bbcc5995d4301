"""The tools of the node for LangChain and LangGraph: python langchain_mcp.py URL KEY."""

import asyncio
import sys

from langchain_mcp_adapters.client import MultiServerMCPClient


async def main(url, key):
    headers = {"Authorization": f"Bearer {key}"}
    there = {"transport": "streamable_http", "url": f"{url}/mcp", "headers": headers}
    client = MultiServerMCPClient({"openfang": there})
    tools = {tool.name: tool for tool in await client.get_tools()}
    answer = await tools["system_time"].ainvoke({})  # or: create_agent(model, [*tools.values()])
    sys.stdout.write(f"{answer[0]['text']}\n")


asyncio.run(main(*sys.argv[1:]))
