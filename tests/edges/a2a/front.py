"""A node whose agents are served in the current dialects, and short ways to ask them."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar

from anyio import to_thread
from tests.edges.demo import Demo
from tests.edges.live import live
from tests.edges.sse import Stream

from openfang.app.a2a.house import NodeHouse
from openfang.edges.a2a.bodies import read_body
from openfang.edges.a2a.modern import Modern
from openfang.edges.a2a.sdk import pb
from openfang.edges.a2a.staying import Staying
from openfang.edges.api.exchange import problem

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping
    from pathlib import Path

    from tests.edges.live import Live, Reply

    from openfang.core.calls import Caller
    from openfang.core.errors import OpenFangError, Rejected
    from openfang.edges.api.exchange import Answer, Headers
    from openfang.edges.api.mount import Came

V1 = {"A2A-Version": "1.0"}
CODE = 'name = "{name}"\nmodule = "python:agent.py"\n[capabilities]\ntools = ["mcp:demo:*"]\n'
PROGRAMS = {
    "echo": """
async def run(message, context):
    return "you said " + message
""",
    "teller": """
async def run(message, context):
    context.stream("I ")
    context.stream("talk")
    context.artifact("note.md", "# " + message)
    context.artifact("table", {"parts": context.parts, "metadata": context.metadata})
    return "I talk a lot"
""",
    "asker": """
async def run(message, context):
    answer = await context.ask("Which one?")
    return "so: " + str(answer)
""",
    "waiter": """
async def run(message, context):
    context.stream("I wait ")
    await context.call("mcp:demo:wait")
    return "I wait no more"
""",
    "weigher": """
import hashlib

async def run(message, context):
    held = [str(part["data"]) for part in context.parts if "data" in part]
    return " ".join(hashlib.sha256(one.encode()).hexdigest() for one in held)
""",
    "broken": """
async def run(message, context):
    raise RuntimeError("and fall")
""",
}


class Front:
    """The paths that the whole edge has, and nothing else of it."""

    edge: ClassVar[str] = "a2a"

    def __init__(
        self, node: Live, *, most_streams: int = 2000, beat: float = 15.0, **more: Any
    ) -> None:
        self._node = node
        self.staying = Staying(most_streams, beat)
        house = NodeHouse(node.app.parts, None)  # pyright: ignore[reportArgumentType] - no card is signed here
        self.modern = Modern(house, self.card, self.staying, **more)

    async def card(self, agent: str, caller: Caller) -> pb.AgentCard | None:
        assert caller.id
        return card_of(self._node, agent) if agent in PROGRAMS else None

    def route(self, path: str) -> str:
        return "/a2a/agents/{name}" if path.startswith("/a2a/agents/") else ""

    def public(self, route: str, *, signed: bool) -> bool:
        return not (route or signed)

    async def refuse(self, route: str, error: Rejected, headers: Headers, query: bytes) -> Answer:
        assert route
        return self.modern.refuse(error, headers, query)

    def fault(self, error: OpenFangError) -> Answer:
        return problem(error)

    async def serve(self, came: Came) -> None:
        _, _, _, agent, *rest = came.path.split("/", 4)
        if rest:
            await self.modern.rest(came, agent, rest[0].removeprefix("rest"))
        else:
            await self.modern.rpc(came, agent, await read_body(came))


def card_of(node: Live, agent: str) -> pb.AgentCard:
    """A card that names all four ways in; the first one is what a client takes."""
    base = f"{node.url}/a2a/agents/{agent}"
    ways = [
        pb.AgentInterface(url=base + end, protocol_binding=binding, protocol_version=version)
        for version in ("1.0", "0.3")
        for end, binding in (("", "JSONRPC"), ("/rest", "HTTP+JSON"))
    ]
    can = pb.AgentCapabilities(streaming=True, push_notifications=True, extended_agent_card=True)
    return pb.AgentCard(name=agent, version="1", supported_interfaces=ways, capabilities=can)


@dataclass(frozen=True, slots=True)
class Served:
    """It, and who asks it as its administrator."""

    node: Live
    front: Front
    demo: Demo
    _numbers: count[int] = field(default_factory=count)

    def message(self, *parts: Any, **more: Any) -> dict[str, Any]:
        """A message of 1.0; a text stands for a part of text."""
        written = [{"text": part} if isinstance(part, str) else part for part in parts]
        number = f"message-{next(self._numbers)}"
        return {"messageId": number, "role": "ROLE_USER", "parts": written, **more}

    async def rpc(
        self,
        agent: str,
        method: str,
        params: Any = None,
        *,
        headers: Mapping[str, str] = V1,
        **more: Any,
    ) -> Any:
        """Call a method, and read the answer."""
        return (await self.ask(agent, method, params, headers=headers, **more)).json

    async def ask(
        self,
        agent: str,
        method: str,
        params: Any = None,
        *,
        headers: Mapping[str, str] = V1,
        **more: Any,
    ) -> Reply:
        """Call a method; without parameters it has empty ones."""
        params = {} if params is None else params
        body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
        return await self.node.post(f"/a2a/agents/{agent}", body, headers=headers, **more)

    async def send(self, agent: str, *parts: Any, **more: Any) -> Any:
        """Send a message, and read the task that it becomes."""
        answer = await self.rpc(agent, "SendMessage", {"message": self.message(*parts), **more})
        return answer["result"]["task"]

    async def begun(self, agent: str = "waiter") -> Any:
        """Begin a task that waits."""
        task = await self.send(agent, "go", configuration={"returnImmediately": True})
        await self.demo.begun.wait()
        return task

    async def rest(self, method: str, path: str, body: Any = None, **more: Any) -> Reply:
        """Ask at an address of an agent's."""
        sent = {} if body is None else {"json": body}
        headers = {**V1, **more.pop("headers", {})}
        return await self.node.ask(method, f"/a2a/agents/{path}", headers=headers, **sent, **more)

    @asynccontextmanager
    async def stream(
        self,
        agent: str,
        method: str,
        params: Any,
        headers: Mapping[str, str] = V1,
        key: str | None = "",
    ) -> AsyncGenerator[Stream]:
        """Listen to a stream."""
        body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
        sent = self.node.headers(key, headers)
        where = self.node.at(f"/a2a/agents/{agent}")
        async with self.node.web.post(where, headers=sent, json=body) as response:
            assert response.content_type == "text/event-stream", await response.read()
            yield Stream(response)

    async def told(self, agent: str, method: str, params: Any, **more: Any) -> list[Any]:
        """Listen to a stream to its end."""
        async with self.stream(agent, method, params, **more) as stream:
            return [event.data.get("result", event.data) for event in await stream.rest()]


def code_of(answer: Any) -> int:
    """The code of the error that an answer must be."""
    assert answer["jsonrpc"] == "2.0"
    assert "result" not in answer
    return answer["error"]["code"]


def reason_of(answer: Any) -> str:
    """The reason that a problem over HTTP and JSON names."""
    return answer["error"]["details"][0]["reason"]


def text_of(task: Any) -> str:
    """What came out of a task in words."""
    first = task["artifacts"][0]
    assert first["artifactId"] == "response", json.dumps(task)
    return first["parts"][0]["text"]


def write_agents(home: Path, names: Iterable[str] = tuple(PROGRAMS)) -> None:
    """Put some of the programs into a new home."""
    for name in names:
        folder = home / "agents" / name
        folder.mkdir(parents=True)
        (folder / "agent.py").write_text(PROGRAMS[name])
        (folder / "agent.toml").write_text(CODE.format(name=name))


@asynccontextmanager
async def serving(folder: Path, config: str = "", **more: Any) -> AsyncGenerator[Served]:
    """Serve the agents of a new home."""
    await to_thread.run_sync(write_agents, folder)
    demo = Demo()
    async with live(folder, sources=[demo.source], config=config) as node:
        assert node.app.parts.agents is not None
        await node.app.parts.agents.opened()
        front = Front(node, **more)
        node.served.app.mounts = (front, *node.served.app.mounts)
        yield Served(node, front, demo)
