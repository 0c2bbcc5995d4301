"""The OpenAI Agents SDK, with the tools and an agent of the node: python agents_sdk.py URL KEY."""

import asyncio
import sys

from agents.mcp import MCPServerStreamableHttp
from openai import AsyncOpenAI

from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled


async def main(url, key):
    set_tracing_disabled(disabled=True)  # else it tells OpenAI of each run
    there = {"url": f"{url}/mcp", "headers": {"Authorization": f"Bearer {key}"}}
    client = AsyncOpenAI(base_url=f"{url}/v1", api_key=key)
    model = OpenAIChatCompletionsModel(model="assistant", openai_client=client)
    async with MCPServerStreamableHttp(params=there) as server:
        agent = Agent(name="clerk", model=model, mcp_servers=[server])
        answer = await Runner.run(agent, "what time is it?")
        sys.stdout.write(f"{answer.final_output}\n")


asyncio.run(main(*sys.argv[1:]))
