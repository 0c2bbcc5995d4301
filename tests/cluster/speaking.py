"""A client of the handshake era, by hand: it says which node gets each of its requests."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx

from openfang.protocols.mcp.sse import EventReader

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from tests.cluster.house import Cluster

BOTH = "application/json, text/event-stream"
VERSION = "2025-11-25"


@dataclass(slots=True)
class Heard:
    """What comes on a stream; `last` is the id of the event that came last."""

    answer: httpx.Response
    last: str = ""
    messages: AsyncIterator[dict[str, Any]] = field(init=False)

    def __post_init__(self) -> None:
        self.messages = self._messages()

    async def _messages(self) -> AsyncIterator[dict[str, Any]]:
        reader = EventReader()
        async for piece in self.answer.aiter_bytes():
            for event in reader.feed(piece):
                self.last = event.id or self.last
                if event.data:
                    yield json.loads(event.data)

    async def until(self, method: str = "") -> dict[str, Any]:
        """Wait for this notification or question, or for the answer."""
        heard = list[Any]()
        async for message in self.messages:
            if message.get("method", "") == method:
                return message
            heard.append(message)
        raise AssertionError(f"The stream ended before {method or 'its answer'}: {heard}")


@dataclass(slots=True)
class Talking:
    """One session."""

    cluster: Cluster
    client: httpx.AsyncClient
    place: str = "/mcp/tools"
    session: str = ""
    number: int = 0
    more: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def headers(self) -> dict[str, str]:
        known = {"Mcp-Session-Id": self.session, "MCP-Protocol-Version": VERSION}
        return {"Accept": BOTH, **(known if self.session else {}), **self.more}

    def url(self, node: str) -> str:
        return self.cluster[node].address + self.place

    def request(self, method: str, params: Any = None) -> dict[str, Any]:
        self.number += 1
        return {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params or {}}

    async def post(self, node: str, message: Any) -> httpx.Response:
        return await self.client.post(self.url(node), json=message, headers=self.headers)

    async def begin(self, node: str, **capabilities: Any) -> dict[str, Any]:
        """Begin it at this node."""
        params = {
            "protocolVersion": VERSION,
            "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        }
        answer = await self.post(node, self.request("initialize", params))
        assert answer.status_code == 200, answer.text
        self.session = answer.headers["mcp-session-id"]
        noted = await self.tell(node, "notifications/initialized")
        assert noted.status_code == 202, noted.text
        return _message(answer)

    async def tell(self, node: str, method: str, params: Any = None) -> httpx.Response:
        return await self.post(node, {"jsonrpc": "2.0", "method": method, "params": params or {}})

    async def ask(self, node: str, method: str, params: Any = None) -> Any:
        """Ask this node, and give the result."""
        answer = await self.post(node, self.request(method, params))
        assert answer.status_code == 200, (answer.status_code, answer.text)
        message = _message(answer)
        assert "result" in message, message
        return message["result"]

    async def settle(self, node: str, question: dict[str, Any], result: Any) -> None:
        """Answer what we were asked."""
        answer = await self.post(node, {"jsonrpc": "2.0", "id": question["id"], "result": result})
        assert answer.status_code == 202, answer.text

    @asynccontextmanager
    async def calling(self, node: str, tool: str, **arguments: Any) -> AsyncGenerator[Heard]:
        """Call a tool, and hear what is told meanwhile."""
        params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": "p"}}
        message = self.request("tools/call", params)
        async with self.client.stream(
            "POST", self.url(node), json=message, headers=self.headers
        ) as answer:
            assert answer.status_code == 200, await answer.aread()
            yield Heard(answer)

    @asynccontextmanager
    async def listening(self, node: str, last: str = "") -> AsyncGenerator[Heard]:
        """Hear what belongs to no request, or go on with a stream."""
        resumed = {"Last-Event-ID": last} if last else {}
        async with self.client.stream(
            "GET", self.url(node), headers={**self.headers, **resumed}
        ) as answer:
            assert answer.status_code == 200, await answer.aread()
            yield Heard(answer)


def _message(answer: httpx.Response) -> dict[str, Any]:
    if answer.headers["content-type"].startswith("application/json"):
        return answer.json()
    events = EventReader().feed(answer.content)
    return [json.loads(event.data) for event in events if event.data][-1]


@asynccontextmanager
async def talking(cluster: Cluster, **more: Any) -> AsyncGenerator[Talking]:
    """Have a client that nobody has heard of yet."""
    headers = dict(cluster.nodes[0].headers)
    async with httpx.AsyncClient(headers=headers, timeout=40) as client:
        yield Talking(cluster, client, **more)
