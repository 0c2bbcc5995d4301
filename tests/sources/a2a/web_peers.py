"""Agents written by hand, on loopback: of the first dialect in both spellings, and evil ones."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

Handler: TypeAlias = "Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]"
NEVER = 60


@asynccontextmanager
async def serving(handler: Handler, address: str = "127.0.0.1") -> AsyncGenerator[str]:
    """Answer every request by this."""
    runner = web.ServerRunner(web.Server(handler), shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, address, 0)
        await site.start()
        yield f"http://{address}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def answering(**more: Any) -> Handler:
    """Answer everything alike."""

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        del request
        return web.Response(**more)

    return handler


def own_url(request: web.BaseRequest) -> str:
    return f"http://{request.host}"


def text_of(message: dict[str, Any]) -> str:
    return "".join(part.get("text", "") for part in message["parts"])


@dataclass
class SeedPeer:
    """An agent of the first days; `enveloped` says whether it has JSON-RPC at the card's address.

    It is told by the first word of a message what to do; its words are in capitals.
    """

    enveloped: bool = True
    asked: list[str] = field(default_factory=list[str])
    params: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    working: anyio.Event = field(default_factory=anyio.Event)

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked.append(f"{request.method} {request.path}")
        path = request.path
        if path == "/.well-known/agent.json":
            return web.json_response(self.card(own_url(request)))
        if path == "/a2a" and self.enveloped:
            body = await request.json()
            return self._enveloped(body["id"], await self._done(body["method"], body["params"]))
        if path == "/a2a/tasks/send" and not self.enveloped:
            task = await self._sent((await request.json())["params"])
            return web.json_response(task, status=500 if task["status"] == "failed" else 200)
        if path.startswith("/a2a/tasks/") and not self.enveloped:
            name, _, cancel = path.removeprefix("/a2a/tasks/").partition("/")
            task = await self._done("tasks/cancel" if cancel else "tasks/get", {"id": name})
            return web.json_response(task or {"error": "no such task"}, status=200 if task else 404)
        return web.json_response({"detail": "Not Found"}, status=404)

    def card(self, url: str) -> dict[str, Any]:
        return {
            "name": "old-timer",
            "description": "Speaks loudly",
            "url": f"{url}/a2a",
            "version": "0.1.0",
            "capabilities": {"streaming": True, "pushNotifications": False},
            "skills": [{"id": "shout", "name": "shout", "description": "Can shout", "tags": []}],
            "defaultInputModes": ["text"],
            "defaultOutputModes": ["text"],
        }

    def _enveloped(self, number: object, task: dict[str, Any] | None) -> web.Response:
        if task is None:
            error = {"code": -32001, "message": "no such task"}
            return web.json_response({"jsonrpc": "2.0", "id": number, "error": error})
        return web.json_response({"jsonrpc": "2.0", "id": number, "result": task})

    async def _done(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        if method == "tasks/send":
            return await self._sent(params)
        task = self.tasks.get(params["id"])
        if task is not None and method == "tasks/cancel":
            task["status"] = "cancelled"
        elif task is not None and task["status"] == "working":
            task["status"] = {"state": "Completed"}
            task["messages"].append(said("agent", "LATER"))
        return task

    async def _sent(self, params: dict[str, Any]) -> dict[str, Any]:
        self.params.append(params)
        words = text_of(params["message"])
        task = self.tasks.get(params.get("id", "")) or {
            "id": f"task-{len(self.tasks) + 1}",
            "sessionId": params.get("sessionId", "session-new"),
            "status": "submitted",
            "messages": [],
            "artifacts": [],
        }
        self.tasks[task["id"]] = task
        task["messages"].append(params["message"])
        status, answer = {
            "ask": ("inputRequired", "WHICH?"),
            "fail": ("failed", "IT BROKE"),
            "later": ("working", ""),
        }.get(words, ("completed", words.upper()))
        task["status"] = status
        if answer:
            task["messages"].append(said("agent", answer))
        if words == "file":
            part = {"type": "file", "name": "a.bin", "mime_type": "x/y", "data": "AAE="}
            task["artifacts"].append({"name": "a", "parts": [part]})
        if words == "wait":
            self.working.set()
            await asyncio.sleep(NEVER)
        return task


def said(role: str, words: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "text": words}]}


def modern_card(url: str, *, streaming: bool = False, where: str = "") -> dict[str, Any]:
    """Write a card of 1.0 whose agent is at `where`, else at the same place."""
    interface = {
        "url": where or f"{url}/rpc",
        "protocolBinding": "JSONRPC",
        "protocolVersion": "1.0",
    }
    return {
        "name": "modern",
        "description": "",
        "version": "1",
        "capabilities": {"streaming": streaming},
        "skills": [],
        "supportedInterfaces": [interface],
    }


def scripted(rpc: Handler, *, streaming: bool = False, where: str = "") -> Handler:
    """Give a good card, and answer everything else by this."""

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/.well-known/agent-card.json":
            card = modern_card(own_url(request), streaming=streaming, where=where)
            return web.json_response(card)
        return await rpc(request)

    return handler


def task_json(state: str, **more: Any) -> dict[str, Any]:
    status = {"state": f"TASK_STATE_{state}"}
    return {"id": "t-1", "contextId": "c-1", "status": status, **more}


async def event(response: web.StreamResponse, result: dict[str, Any]) -> None:
    """Write one event of a stream as JSON-RPC has it."""
    body = json.dumps({"jsonrpc": "2.0", "id": "1", "result": result})
    await response.write(f"data: {body}\n\n".encode())


async def streaming(request: web.BaseRequest) -> web.StreamResponse:
    """Begin a stream of events."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    return response
