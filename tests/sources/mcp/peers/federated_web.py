"""The federated server over HTTP, in either era: `async with serving(FederatedWeb(era)) as url`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aiohttp import web
from tests.sources.mcp.peers.federated import World
from tests.sources.mcp.peers.web import Peer, Stream

if TYPE_CHECKING:
    from tests.sources.mcp.peers.federated import Fields

SESSION = {"Mcp-Session-Id": "one"}


class FederatedWeb(Peer):
    """Answers each request on a stream of its own; what belongs to none goes to who listens."""

    def __init__(self, era: str, *options: str) -> None:
        super().__init__()
        self.world = World(era, list(options), self.tell)
        self.listeners: dict[Any, asyncio.Queue[Fields]] = {}

    def tell(self, message: Fields) -> None:
        for queue in self.listeners.values():
            queue.put_nowait(message)

    async def serve(self, request: web.Request, method: str, body: Fields) -> web.StreamResponse:
        if self.world.era == "modern" and request.method != "POST":
            return web.Response(status=405)
        if request.method == "GET":
            return await self.listen(request, "GET", asyncio.Queue())
        queue: asyncio.Queue[Fields] = asyncio.Queue()
        self.world.take(body, queue.put_nowait)
        if method == "subscriptions/listen":
            return await self.listen(request, body["id"], queue)
        if "method" not in body or "id" not in body:
            return web.Response(status=202)
        if method == "initialize":
            return web.json_response(await queue.get(), headers=SESSION)
        return await self.respond(request, body["id"], queue)

    async def respond(
        self, request: web.Request, number: object, queue: asyncio.Queue[Fields]
    ) -> web.StreamResponse:
        async with Stream(request) as stream:
            while True:
                message = await queue.get()
                await stream.send(message)
                if message.get("id") == number and "method" not in message:
                    return stream.response()

    async def listen(
        self, request: web.Request, name: Any, queue: asyncio.Queue[Fields]
    ) -> web.StreamResponse:
        self.listeners[name] = queue
        try:
            async with Stream(request) as stream:
                await stream.raw(b": open\n\n")
                while True:
                    await stream.send(await queue.get())
        finally:
            self.listeners.pop(name, None)
            self.world.listening.pop(name, None)
