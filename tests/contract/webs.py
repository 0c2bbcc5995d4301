"""Servers over HTTP, one of each kind, in a process of their own; prints where they are."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from tests.sources.mcp.peers.web import Modern, Plain, Session, Sse, answer, json_response, serving

if TYPE_CHECKING:
    from aiohttp import web

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}
LIST = {"tools": [{"name": "echo", "inputSchema": SCHEMA}]}


class WithSessions(Session):
    """2025-11-25, with a tool."""

    async def respond(
        self, request: web.Request, method: str, body: dict[str, Any]
    ) -> web.StreamResponse:
        if method == "tools/list":
            return json_response(answer(body["id"], LIST))
        return await super().respond(request, method, body)


class Older(Sse):
    """2024-11-05, with a tool."""

    async def respond(self, number: object, method: str, params: dict[str, Any]) -> None:
        if method == "tools/list":
            await self.out.put(answer(number, LIST))
        else:
            await super().respond(number, method, params)


class Posted(Plain):
    """A POST and an answer, with a tool."""

    async def serve(
        self, request: web.Request, method: str, body: dict[str, Any]
    ) -> web.StreamResponse:
        found = await super().serve(request, method, body)
        taken = found.status == 200 and method == "tools/list"
        return json_response(answer(body["id"], LIST)) if taken else found


PEERS = {"modern": Modern, "session": WithSessions, "older": Older, "plain": Posted}


async def main() -> None:
    async with AsyncExitStack() as stack:
        urls = {
            name: await stack.enter_async_context(serving(kind())) for name, kind in PEERS.items()
        }
        sys.stdout.write(json.dumps(urls) + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


asyncio.run(main())
