# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportCallIssue=false
# It runs on two versions of the SDK, of which one is not where the type checker looks.
"""A server made with the official SDK: `sdk_server.py stdio`, or `http` on the loopback.

On the SDK's second version it speaks all revisions, on the first all but the newest. Over HTTP it
says on which port it listens, and offers both transports: `/mcp` and `/sse`.
"""

from __future__ import annotations

import asyncio
import socket
import sys

import uvicorn
from mcp.types import CallToolResult, TextContent
from pydantic import BaseModel

try:
    from mcp.server.mcpserver import Context
    from mcp.server.mcpserver import MCPServer as Server
except ModuleNotFoundError:
    from mcp.server.fastmcp import Context
    from mcp.server.fastmcp import FastMCP as Server

server = Server("sdk")
cancelled: list[str] = []


class Weather(BaseModel):
    city: str
    degrees: float


class Answer(BaseModel):
    colour: str


@server.tool(title="Weather of a city")
def weather(city: str) -> Weather:
    """Look out of the window."""
    return Weather(city=city, degrees=21.5)


@server.tool()
async def count(steps: int, ctx: Context) -> str:
    """Count, and tell how far it is."""
    for step in range(steps):
        await ctx.report_progress(step + 1, steps, f"step {step + 1}")
    return f"counted to {steps}"


@server.tool()
async def hang(word: str, ctx: Context) -> str:
    """Wait until nobody wants the answer any more."""
    await ctx.report_progress(1, 2, "hanging")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        cancelled.append(word)
        raise
    return "never"


@server.tool(structured_output=False)
def given_up() -> str:
    """Say which calls were cancelled."""
    return " ".join(cancelled)


@server.tool()
async def grow(name: str, ctx: Context) -> str:
    """Offer one more tool."""
    server.add_tool(lambda: "here I am", name=name, description="New.", structured_output=False)
    if hasattr(ctx, "notify_tools_changed"):
        await ctx.notify_tools_changed()
    await ctx.session.send_tool_list_changed()
    return "grown"


@server.tool()
async def ask(ctx: Context) -> str:
    """Ask a person."""
    answer = await ctx.elicit("Which colour?", Answer)
    return f"{answer.action}"


@server.tool()
def fail() -> CallToolResult:
    """Answer that it could not be done."""
    return CallToolResult(content=[TextContent(type="text", text="out of figs")], isError=True)


@server.tool()
def labelled() -> CallToolResult:
    """Answer with everything that a result can carry."""
    part = TextContent(type="text", text="both")
    return CallToolResult(
        content=[part], structuredContent={"n": [1, None]}, _meta={"x/y": {"z": 1}}
    )


def listen() -> socket.socket:
    listener = socket.create_server(("127.0.0.1", 0))
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    return listener


def main(how: str) -> None:
    if how == "stdio":
        server.run("stdio")
        return
    app = server.streamable_http_app()
    app.routes.extend(server.sse_app().routes)
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
    asyncio.run(uvicorn.Server(config).serve(sockets=[listen()]))


if __name__ == "__main__":
    main(sys.argv[1])
