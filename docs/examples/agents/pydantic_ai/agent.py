from pydantic_ai import Agent, RunContext
from pydantic_ai.models.test import TestModel  # needs no key; take any model of yours

agent = Agent(TestModel())


@agent.tool
async def clock(ctx: RunContext) -> str:
    """Tell the time."""
    return (await ctx.deps.call("system_time")).text


async def run(message, context):
    return (await agent.run(message, deps=context)).output
