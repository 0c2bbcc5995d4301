"""Clients of our MCP server over HTTP, of each era."""

from __future__ import annotations

import json
import os
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from openfang.edges.mcp.http import McpEdge
from openfang.edges.mcp.sessions import Sessions
from openfang.protocols.mcp.sse import EventReader

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    import aiohttp
    from tests.edges.live import Live, Reply

    from openfang.protocols.mcp.sse import Event

BOTH = "application/json, text/event-stream"
VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
META: dict[str, Any] = {VERSION: "2026-07-28", CAPABILITIES: {}}
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def edge_of(node: Live) -> McpEdge:
    """The edge itself, to look at what is left in it."""
    return next(one for one in node.served.app.mounts if isinstance(one, McpEdge))


def new_edge(node: Live, *, sessions: Sessions | None = None, beat: float = 15.0) -> McpEdge:
    """Put another edge in the place of the node's."""
    served = node.served
    kept = Sessions(node.app.parts.clock) if sessions is None else sessions
    edge = McpEdge(served.handler, served.offers, kept, beat=beat)
    served.app.mounts = (edge,)
    return edge


async def until(true: Callable[[], object]) -> None:
    """Wait for what nobody tells."""
    with anyio.fail_after(30):
        while not true():  # noqa: ASYNC110 - see above
            await anyio.sleep(0.005)


def memory() -> int:
    """Bytes that this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def request(method: str, params: Any = None, number: Any = 1) -> dict[str, Any]:
    """A request as the wire has it."""
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": number, "method": method}
    return body if params is None else {**body, "params": params}


def note(method: str, params: Any = None) -> dict[str, Any]:
    body = request(method, params)
    del body["id"]
    return body


def modern_headers(method: str, params: Mapping[str, Any]) -> dict[str, str]:
    """What a modern request says of its body."""
    headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Accept": BOTH}
    named = NAMED.get(method)
    return headers | ({"Mcp-Name": params[named]} if named else {})


async def modern(
    node: Live,
    method: str,
    params: Mapping[str, Any] | None = None,
    *,
    headers: Mapping[str, str | None] | None = None,
    path: str = "/mcp",
    **more: Any,
) -> Reply:
    """Send a modern request; `headers` replace what it says of itself, None leaves one out."""
    given = {"_meta": META, **(params or {})}
    said: dict[str, str | None] = {**modern_headers(method, given), **(headers or {})}
    sent = {name: value for name, value in said.items() if value is not None}
    return await node.post(path, request(method, given), headers=sent, **more)


async def call(node: Live, tool: str, arguments: Any = None, **more: Any) -> Reply:
    """Call a tool in the modern era."""
    params: dict[str, Any] = {"name": tool, "arguments": arguments or {}}
    return await modern(node, "tools/call", params, **more)


@dataclass(slots=True)
class Stream:
    """Events that come one after the other."""

    response: aiohttp.ClientResponse
    reader: EventReader = field(default_factory=EventReader)
    read: list[Event] = field(default_factory=list["Event"])
    raw: bytes = b""

    async def next(self) -> Event | None:
        """Wait for the next event; none when the stream has ended."""
        while not self.read:
            piece = await self.response.content.readany()
            if not piece:
                return None
            self.raw += piece
            self.read += self.reader.feed(piece)
        return self.read.pop(0)

    async def message(self) -> Any:
        """Wait for the next event that says something."""
        while (event := await self.next()) is not None:
            if event.data:
                return json.loads(event.data)
        return None

    async def rest(self) -> list[Any]:
        """Read on until it ends."""
        found: list[Any] = []
        while (message := await self.message()) is not None:
            found.append(message)
        return found


@dataclass(slots=True)
class Session:
    """A client that has a session."""

    node: Live
    id: str
    version: str
    key: str | None = ""
    path: str = "/mcp"
    numbers: count[int] = field(default_factory=lambda: count(2))

    @property
    def headers(self) -> dict[str, str]:
        named = {"Mcp-Session-Id": self.id, "MCP-Protocol-Version": self.version}
        return {**named, "Accept": BOTH}

    async def post(self, body: Any, **headers: str) -> Reply:
        sent = {**self.headers, **headers}
        return await self.node.post(self.path, body, headers=sent, key=self.key)

    async def ask(self, method: str, params: Any = None) -> Any:
        """Ask, and give the whole answer, which must be JSON."""
        reply = await self.post(request(method, params, next(self.numbers)))
        assert reply.headers["Content-Type"] == "application/json", reply.body
        return reply.json

    async def call(self, tool: str, arguments: Any = None) -> Any:
        return await self.ask("tools/call", {"name": tool, "arguments": arguments or {}})

    async def tell(self, method: str, params: Any = None) -> None:
        reply = await self.post(note(method, params))
        assert (reply.status, reply.body) == (202, b"")

    async def answer(self, number: Any, result: Any) -> None:
        """Answer a question of the server's."""
        reply = await self.post({"jsonrpc": "2.0", "id": number, "result": result})
        assert (reply.status, reply.body) == (202, b"")

    async def end(self) -> Reply:
        return await self.node.ask("DELETE", self.path, headers=self.headers, key=self.key)

    @asynccontextmanager
    async def asking(
        self, method: str, params: Any = None, number: Any = 1
    ) -> AsyncGenerator[Stream]:
        """Ask for something that is answered by a stream."""
        headers = self.node.headers(self.key, self.headers)
        body = request(method, params, number)
        web, url = self.node.web, self.node.at(self.path)
        async with web.post(url, json=body, headers=headers) as response:
            assert response.status == 200, await response.read()
            assert response.content_type == "text/event-stream", await response.read()
            yield Stream(response)

    @asynccontextmanager
    async def listening(self, last: str | None = None) -> AsyncGenerator[Stream]:
        """Listen, from now on or after an event."""
        resumed = {"Last-Event-ID": last} if last else {}
        headers = self.node.headers(self.key, {**self.headers, **resumed})
        async with self.node.web.get(self.node.at(self.path), headers=headers) as response:
            assert response.status == 200, await response.read()
            assert response.content_type == "text/event-stream"
            yield Stream(response)


async def greet(
    node: Live,
    version: str = "2025-11-25",
    *,
    capabilities: Any = None,
    key: str | None = "",
    path: str = "/mcp",
) -> Session:
    """Begin a session."""
    client = {"name": "test", "version": "1"}
    params = {
        "protocolVersion": version,
        "capabilities": capabilities or {},
        "clientInfo": client,
    }
    body = request("initialize", params)
    reply = await node.post(path, body, headers={"Accept": BOTH}, key=key)
    assert reply.status == 200, reply.body
    session = Session(
        node, reply.headers["Mcp-Session-Id"], reply.json["result"]["protocolVersion"], key, path
    )
    await session.tell("notifications/initialized")
    return session
