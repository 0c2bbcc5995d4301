"""An agent of somebody else's: the library's own server, with an agent that does as it is told.

It is told by the first word of a message; whatever else it says, it streams in two pieces.
"""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route, Router

os.environ.setdefault("OTEL_INSTRUMENTATION_A2A_SDK_ENABLED", "false")

from a2a.helpers import new_raw_part, new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface
from google.protobuf.json_format import MessageToDict

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from a2a.server.events import EventQueue
    from starlette.requests import Request

SKILLS = [{"id": "echo", "name": "Echo", "description": "Says it again", "tags": ["x"]}]


@dataclass
class Agent(AgentExecutor):
    """Does as it is told, and notes what it was told and what was ended."""

    heard: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    cancelled: list[str] = field(default_factory=list[str])
    working: anyio.Event = field(default_factory=anyio.Event)
    ended: anyio.Event = field(default_factory=anyio.Event)

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        message = context.message
        assert message
        self.heard.append(MessageToDict(message))
        words = context.get_user_input()
        if words == "plainly":
            await event_queue.enqueue_event(new_text_message("just words"))
            return
        task = context.current_task
        if task is None:
            task = new_task_from_user_message(message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await self._work(updater, words, answering=context.current_task is not None)

    async def _work(self, updater: TaskUpdater, words: str, *, answering: bool) -> None:
        said = new_text_message
        await updater.start_work(said("thinking"))
        if answering:
            await updater.complete(said(f"so it is {words}"))
        elif words == "ask":
            await updater.requires_input(said("Which colour?"))
        elif words.startswith("speak and "):
            await updater.add_artifact([new_text_part("Let me see. ")], "a-1", "response")
            await self._work(updater, words.removeprefix("speak and "), answering=False)
        elif words == "reject":
            await updater.reject(said("not mine"))
        elif words == "fail":
            await updater.failed(said("it broke"))
        elif words == "wait":
            self.working.set()
            await asyncio.sleep(60)
        else:
            await self._answer(updater, words)

    async def _answer(self, updater: TaskUpdater, words: str) -> None:
        parts = ("You said ", words)
        for number, part in enumerate(parts):
            last = number + 1 == len(parts)
            await updater.add_artifact(
                [new_text_part(part)], "a-1", "response", append=bool(number), last_chunk=last
            )
        if words == "file":
            await updater.add_artifact(
                [new_raw_part(b"\x00\x01", "image/x", "dot.x")], "a-2", "dot"
            )
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.current_task
        self.cancelled.append(context.current_task.id)
        updater = TaskUpdater(event_queue, context.current_task.id, context.current_task.context_id)
        await updater.cancel()
        self.ended.set()


@dataclass
class Served:
    """An agent behind a socket. `card` may be changed; `hits` counts who asked for it."""

    agent: Agent
    url: str
    card: dict[str, Any]
    etag: str = '"1"'
    hits: list[dict[str, str]] = field(default_factory=list[dict[str, str]])


def card_of(url: str, kind: str, *, streaming: bool) -> dict[str, Any]:
    """Write the card of an agent that is spoken to in one way only."""
    common: dict[str, Any] = {
        "name": "Echo agent",
        "description": "Repeats what it hears",
        "version": "1.0",
        "capabilities": {"streaming": streaming},
        "skills": SKILLS,
        "defaultInputModes": ["text"],
        "defaultOutputModes": ["text"],
    }
    binding, version = kind.split()
    where = f"{url}/rpc" if binding == "JSONRPC" else f"{url}/rest"
    if version == "0.3":
        return {**common, "url": where, "preferredTransport": binding, "protocolVersion": "0.3.0"}
    interface = {"url": where, "protocolBinding": binding, "protocolVersion": "1.0"}
    return {**common, "supportedInterfaces": [interface]}


@asynccontextmanager
async def sdk_peer(kind: str = "JSONRPC 1.0", *, streaming: bool = True) -> AsyncGenerator[Served]:
    """Serve an agent on loopback, spoken to as `kind` says."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        served = Served(Agent(), url, card_of(url, kind, streaming=streaming))
        config = uvicorn.Config(_app(served, streaming=streaming), log_config=None, lifespan="off")
        config.timeout_graceful_shutdown = 1
        server = uvicorn.Server(config)

        async def run() -> None:
            with anyio.CancelScope(shield=True):  # a test that fails must not leave it half open
                await server.serve([listener])

        async with anyio.create_task_group() as group:
            group.start_soon(run)
            try:
                yield served
            finally:
                server.should_exit = server.force_exit = True


def _app(served: Served, *, streaming: bool) -> Starlette:
    known = AgentCard(
        name="x",
        capabilities=AgentCapabilities(streaming=streaming),
        supported_interfaces=[
            AgentInterface(url="http://x", protocol_binding="JSONRPC", protocol_version="1.0"),
            AgentInterface(url="http://x", protocol_binding="JSONRPC", protocol_version="0.3"),
        ],
    )
    handler = DefaultRequestHandler(served.agent, InMemoryTaskStore(), known)

    async def card(request: Request) -> Response:
        served.hits.append(dict(request.headers))
        if request.headers.get("if-none-match") == served.etag:
            return Response(status_code=304, headers={"ETag": served.etag})
        return JSONResponse(served.card, headers={"ETag": served.etag})

    async def noted(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            names = {k.decode(): v.decode() for k, v in scope["headers"]}
            served.agent.headers.append(names)
        await inner(scope, receive, send)

    inner = Router(
        [
            *create_jsonrpc_routes(handler, "/rpc", enable_v0_3_compat=True),
            Mount("/rest", routes=create_rest_routes(handler, enable_v0_3_compat=True)),
        ]
    )
    where = "/.well-known/agent-card.json"
    return Starlette(routes=[Route(where, card), Mount("/", app=noted)])
