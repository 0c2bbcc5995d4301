"""A node with agents for every way in which a task of the first dialect can go."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from tests.edges.live import live

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

    from tests.edges.demo import Demo
    from tests.edges.live import Live, Reply

MANIFEST = """
name = "{name}"
description = "The agent {name}"
module = "python:agent.py"
[capabilities]
tools = ["mcp:demo:wait", "file_read"]
"""
PROGRAMS = {
    "asker": """
async def run(message, context):
    answer = await context.ask("Which one?")
    return "so: " + str(answer)
""",
    "broken": """
def run(message, context):
    raise RuntimeError("and fall")
""",
    "code-reviewer": """
async def run(message, context):
    return "I found 2 potential issues..."
""",
    "maker": """
async def run(message, context):
    context.artifact("note.md", "# " + message)
    context.artifact("dot", bytes(3), "image/png")
    context.artifact("told", {"parts": context.parts, "metadata": context.metadata})
    return "made"
""",
    "picky": """
async def run(message, context):
    context.reject("not this one")
""",
    "waiter": """
async def run(message, context):
    await context.call("mcp:demo:wait")
    return "I waited"
""",
}
ENABLED = '[a2a]\nenabled = true\nprimary_agent = "code-reviewer"\n'


def write_agents(home: Path) -> None:
    for name, program in PROGRAMS.items():
        folder = home / "agents" / name
        folder.mkdir(parents=True)
        (folder / "agent.py").write_text(program)
        (folder / "agent.toml").write_text(MANIFEST.format(name=name))


@asynccontextmanager
async def served(folder: Path, demo: Demo, config: str = ENABLED) -> AsyncGenerator[Live]:
    """Serve them; the node knows under which address it is reached."""
    await to_thread.run_sync(write_agents, folder)
    async with live(folder, config=config, sources=[demo.source]) as node:
        node.app.parts.address = node.url
        yield node


def message(text: str, **params: Any) -> dict[str, Any]:
    """What sends one text, as the seed does."""
    said = {"role": "user", "parts": [{"type": "text", "text": text}]}
    return body("tasks/send", {"message": said, **params})


def to(agent: str, text: str, **params: Any) -> dict[str, Any]:
    return message(text, metadata={"agent": agent}, **params)


def body(method: str, params: Mapping[str, Any], number: int = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


async def send(node: Live, asked: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Send a message to the bare path, and read the task."""
    reply = await node.post("/a2a/tasks/send", asked, **more)
    assert reply.status == 200, reply.body
    return reply.json


async def rpc(node: Live, method: str, params: Mapping[str, Any], **more: Any) -> Reply:
    return await node.post("/a2a", body(method, params, 7), **more)


def refusal(reply: Reply) -> tuple[int, int, str]:
    """What is wrong, where the answer is an envelope: the status, the code and the rule."""
    error = reply.json["error"]
    return reply.status, error["code"], error["data"]["rule"]


def texts(task: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Who said what."""
    return [(said["role"], said["parts"][0]["text"]) for said in task["messages"]]
