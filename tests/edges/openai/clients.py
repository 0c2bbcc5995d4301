"""A node with agents of every kind, and OpenAI's own client in front of it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from openai import AsyncOpenAI
from tests.edges.live import live

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from tests.edges.demo import Demo
    from tests.edges.live import Live

CODE = 'name = "{name}"\nmodule = "python:agent.py"\n[capabilities]\ntools = ["mcp:demo:*"]\n'
PROGRAMS = {
    "waiter": """
async def run(message, context):
    context.stream("I wait ")
    await context.call("mcp:demo:wait")
    return "I waited"
""",
    "told": """
import json

def short(part):
    return {**part, "data": part["data"] if len(part["data"]) < 1000 else len(part["data"])}

async def run(message, context):
    return json.dumps({
        "message": message,
        "history": [dict(turn) for turn in context.history],
        "parts": [short(part) for part in context.parts],
        "metadata": dict(context.metadata),
        "session": context.session,
    })
""",
    "broken": """
def run(message, context):
    if message != "at once":
        context.stream("I begin ")
    raise RuntimeError("and fall")
""",
    "no": """
def run(message, context):
    context.reject("that is not mine to do")
""",
}


def write_programs(home: Path) -> None:
    for name, text in PROGRAMS.items():
        folder = home / "agents" / name
        folder.mkdir(parents=True)
        (folder / "agent.py").write_text(text)
        (folder / "agent.toml").write_text(CODE.format(name=name))


@asynccontextmanager
async def served(home: Path, demo: Demo, config: str = "") -> AsyncGenerator[Live]:
    """A node with the agents of a new home, and some programs."""
    await to_thread.run_sync(write_programs, home)
    async with live(home, sources=[demo.source], config=config) as node:
        yield node


@asynccontextmanager
async def client_of(node: Live, key: str = "", **more: Any) -> AsyncGenerator[AsyncOpenAI]:
    """The client, as its documentation has it; it does not try again by itself."""
    options: dict[str, Any] = {"max_retries": 0, "timeout": 60.0, **more}
    url = f"{node.url}/v1"
    async with AsyncOpenAI(api_key=key or node.admin, base_url=url, **options) as client:
        yield client


def user(text: Any) -> Any:
    return {"role": "user", "content": text}


def assistant(text: str) -> Any:
    return {"role": "assistant", "content": text}
