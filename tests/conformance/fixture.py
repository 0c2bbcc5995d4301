"""The MCP server that the conformance suite wants to find: `--http PORT` or `--stdio`.

Made with the official SDK, it has every tool, prompt and resource that a scenario names, and speaks
both eras at once. With `--legacy` it has never heard of the newer one. Over HTTP it listens on the
loopback only, and its first line is the port.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias, get_args

import mcp_types as types
import uvicorn
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http import EventMessage, EventStore
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from starlette.responses import JSONResponse
from tests.conformance.served.prompts import completed, prompts
from tests.conformance.served.resources import RESOURCES, TEMPLATES, read
from tests.conformance.served.tools import tools
from tests.conformance.served.turn import InputRequired, Turn
from tests.conformance.served.world import World

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from mcp.server.models import InitializationOptions
    from mcp.server.streamable_http import EventCallback
    from starlette.types import ASGIApp, Receive, Scope, Send
    from tests.conformance.served.world import Context, Json

Method: TypeAlias = "Callable[[Context, Any], Awaitable[Json]]"

NAME: Final = "fixture"
FRESH: Final = CacheHint(ttl_ms=1000, scope="public")
RETRY_MS: Final = 100
ALL_CHANGES: Final = NotificationOptions(
    prompts_changed=True, resources_changed=True, tools_changed=True
)


# Methods


async def list_tools(ctx: Context, params: types.PaginatedRequestParams) -> Json:
    del params
    return {"tools": [one.listed(name) for name, one in tools(ctx.lifespan_context).items()]}


async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> Json:
    tool = tools(ctx.lifespan_context).get(params.name)
    if tool is None:
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
    return await _unless_asked(tool.call, ctx)


async def list_prompts(ctx: Context, params: types.PaginatedRequestParams) -> Json:
    del params
    return {"prompts": [one.listed(name) for name, one in prompts(ctx.lifespan_context).items()]}


async def get_prompt(ctx: Context, params: types.GetPromptRequestParams) -> Json:
    prompt = prompts(ctx.lifespan_context).get(params.name)
    if prompt is None:
        raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}")
    lacking = [one for one in prompt.arguments if one not in (params.arguments or {})]
    if lacking:
        raise MCPError(types.INVALID_PARAMS, f"Missing arguments: {', '.join(lacking)}")
    return await _unless_asked(prompt.get, ctx)


async def _unless_asked(work: Callable[[Turn], Awaitable[Json]], ctx: Context) -> Json:
    try:
        return await work(Turn.of(ctx))
    except InputRequired as asked:
        return asked.result


async def list_resources(ctx: Context, params: types.PaginatedRequestParams) -> Json:
    del ctx, params
    return {"resources": RESOURCES}


async def list_templates(ctx: Context, params: types.PaginatedRequestParams) -> Json:
    del ctx, params
    return {"resourceTemplates": TEMPLATES}


async def read_resource(ctx: Context, params: types.ReadResourceRequestParams) -> Json:
    return read(Turn.of(ctx), str(params.uri))


async def subscribe(ctx: Context, params: types.SubscribeRequestParams) -> Json:
    ctx.lifespan_context.peer(ctx).watched.add(str(params.uri))
    return {}


async def unsubscribe(ctx: Context, params: types.UnsubscribeRequestParams) -> Json:
    ctx.lifespan_context.peer(ctx).watched.discard(str(params.uri))
    return {}


async def set_level(ctx: Context, params: types.SetLevelRequestParams) -> Json:
    ctx.lifespan_context.peer(ctx).level = params.level
    return {}


async def complete(ctx: Context, params: types.CompleteRequestParams) -> Json:
    del ctx
    return completed(params.argument.value)


async def initialized(ctx: Context, params: types.NotificationParams) -> None:
    """Know the session, so that it can be told of changes."""
    del params
    ctx.lifespan_context.peer(ctx)


def whole(method: Method) -> Method:
    """Mark results as the newer era has them."""

    async def served(ctx: Context, params: Any) -> Json:
        result = await method(ctx, params)
        modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        return {"resultType": "complete", **result} if modern else result

    return served


METHODS: Final[dict[str, tuple[type[types.RequestParams], Method]]] = {
    "tools/list": (types.PaginatedRequestParams, list_tools),
    "tools/call": (types.CallToolRequestParams, call_tool),
    "prompts/list": (types.PaginatedRequestParams, list_prompts),
    "prompts/get": (types.GetPromptRequestParams, get_prompt),
    "resources/list": (types.PaginatedRequestParams, list_resources),
    "resources/templates/list": (types.PaginatedRequestParams, list_templates),
    "resources/read": (types.ReadResourceRequestParams, read_resource),
    "resources/subscribe": (types.SubscribeRequestParams, subscribe),
    "resources/unsubscribe": (types.UnsubscribeRequestParams, unsubscribe),
    "logging/setLevel": (types.SetLevelRequestParams, set_level),
    "completion/complete": (types.CompleteRequestParams, complete),
}


# The server


class Fixture(Server[World]):
    """A server that tells of every kind of change in both eras."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        return super().create_initialization_options(
            notification_options or ALL_CHANGES, experimental_capabilities, extensions
        )


def build(world: World) -> Fixture:
    @asynccontextmanager
    async def lifespan(server: Server[World]) -> AsyncGenerator[World]:
        del server
        yield world

    def schema(name: str) -> Json | None:
        tool = tools(world).get(name)
        return tool.input_schema if tool else None

    server = Fixture(
        NAME,
        version="1.0.0",
        instructions="What a conformance suite looks for.",
        cache_hints=dict.fromkeys(get_args(CacheableMethod), FRESH),
        lifespan=lifespan,
        get_tool_input_schema=schema,
        on_subscriptions_listen=ListenHandler(world.bus),
    )
    for name, (params, method) in METHODS.items():
        server.add_request_handler(name, params, whole(method))
    server.add_notification_handler(
        "notifications/initialized", types.NotificationParams, initialized
    )
    seals = RequestStateSecurity.ephemeral()
    server.middleware.append(RequestStateBoundary(seals, default_audience=NAME))
    return server


# Transports


class Events(EventStore):
    """What was sent on each stream, for clients that come back to one."""

    def __init__(self) -> None:
        self._sent: list[tuple[str, types.JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: str, message: types.JSONRPCMessage | None) -> str:
        self._sent.append((stream_id, message))
        return str(len(self._sent) - 1)

    async def replay_events_after(
        self, last_event_id: str, send_callback: EventCallback
    ) -> str | None:
        last = int(last_event_id)
        stream, _ = self._sent[last]
        for number, (name, message) in enumerate(list(self._sent[last + 1 :]), last + 1):
            if name == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


def only_older(app: ASGIApp) -> ASGIApp:
    """Refuse revisions as servers do that were written before them."""

    async def served(scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope.get("headers", ()))
        version = headers.get(b"mcp-protocol-version", b"").decode("latin-1")
        if not version or version in HANDSHAKE_PROTOCOL_VERSIONS:
            await app(scope, receive, send)
            return
        error = {"code": -32600, "message": f"Bad Request: Unsupported version {version}"}
        answer = JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, 400)
        await answer(scope, receive, send)

    return served


async def over_http(port: int, *, legacy: bool) -> None:
    app = build(World()).streamable_http_app(event_store=Events(), retry_interval=RETRY_MS)
    config = uvicorn.Config(
        only_older(app) if legacy else app,
        http="h11",  # the other one leaves blanks around the values of headers
        log_level="warning",
        timeout_graceful_shutdown=1,
    )
    with socket.create_server(("127.0.0.1", port)) as listener:
        sys.stdout.write(f"{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        await uvicorn.Server(config).serve(sockets=[listener])


async def over_stdio(*, legacy: bool) -> None:
    world = World()
    server = build(world)
    async with stdio_server() as (received, sent):
        if legacy:
            await serve_loop(server, received, sent, lifespan_state=world)
        else:
            await server.run(received, sent, server.create_initialization_options())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--http", type=int, metavar="PORT", help="0 for any that is free")
    how.add_argument("--stdio", action="store_true")
    parser.add_argument("--legacy", action="store_true", help="speak the older era only")
    chosen = parser.parse_args()
    if chosen.stdio:
        asyncio.run(over_stdio(legacy=chosen.legacy))
    else:
        asyncio.run(over_http(chosen.http, legacy=chosen.legacy))


if __name__ == "__main__":
    main()
