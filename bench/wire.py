"""A client for the figures: keep-alive connections, requests as bytes, answers read to the end."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any

import anyio

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bench.daemon import Target

META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
NUMBER = "%number%"
# No two calls are alike: in a session they would be a loop.
TEXT = {"text": NUMBER + "x" * 90}
GREETING: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """An MCP server at an address, and how a call of it looks."""

    target: Target
    path: str = "/mcp"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    tool: str = "get_echo"
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    modern: bool = False
    session: bool = False

    def request(
        self, method: str, params: Mapping[str, Any] | None = None, number: int = 1
    ) -> bytes:
        headers, params = dict(self.headers), dict(params or {})
        if self.modern:
            params["_meta"] = META
            headers |= {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
            if "name" in params:
                headers["Mcp-Name"] = params["name"]
        body: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if not method.startswith("notifications/"):
            body["id"] = number
        return self._written("POST", headers, json.dumps(body).replace(NUMBER, f"{number:010d}"))

    def call(self, number: int) -> bytes:
        params = {"name": self.tool, "arguments": self.arguments}
        return self.request("tools/call", params, number)

    def goodbye(self) -> bytes:
        """End the session that the headers name."""
        return self._written("DELETE", self.headers, "")

    def _written(self, verb: str, headers: Mapping[str, str], body: str) -> bytes:
        data = body.encode()
        head = [
            f"{verb} {self.path} HTTP/1.1",
            f"Host: 127.0.0.1:{self.target.port}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            f"Content-Length: {len(data)}",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        if self.target.key:
            head.append(f"Authorization: Bearer {self.target.key}")
        return "\r\n".join(head).encode() + b"\r\n\r\n" + data


async def exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes
) -> tuple[bytes, bytes]:
    """Send a request, and read its answer: head and body."""
    writer.write(request)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    assert head.startswith((b"http/1.1 200", b"http/1.1 202")), head
    if b"transfer-encoding: chunked" in head:
        return head, await _chunks(reader)
    if b"content-length: " not in head:
        return head, b""
    start = head.index(b"content-length: ") + 16
    return head, await reader.readexactly(int(head[start : head.index(b"\r", start)]))


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int(await reader.readline(), 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readline()
    return body


async def greeted(served: Served) -> dict[str, str]:
    """Begin a session, and give the headers that belong to it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.target.port)
    head, _ = await exchange(reader, writer, served.request("initialize", GREETING))
    headers = {"MCP-Protocol-Version": "2025-11-25"}
    if b"mcp-session-id: " in head:
        start = head.index(b"mcp-session-id: ") + 16
        headers["Mcp-Session-Id"] = head[start : head.index(b"\r", start)].decode()
    writer.close()
    return headers


async def answer(served: Served, method: str, params: Mapping[str, Any] | None = None) -> bytes:
    """Make one request of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.target.port)
    _, body = await exchange(reader, writer, served.request(method, params))
    writer.close()
    return body


async def cpu_of_calls(served: Served, callers: int, calls: int) -> float:
    """Microseconds of the server's CPU for each call."""
    numbers = count(1)

    async def several() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.target.port)
        # A session is one run, which may make no more than 500 calls without a rest.
        there = replace(served, headers=await greeted(served)) if served.session else served
        for _ in range(calls // callers):
            _, body = await exchange(reader, writer, there.call(next(numbers)))
            assert b'"isError":true' not in body, body[:500]
            assert b'"error"' not in body[:60], body[:500]
        if served.session:
            await exchange(reader, writer, there.goodbye())
        writer.close()

    before = served.target.cpu
    async with anyio.create_task_group() as tasks:
        for _ in range(callers):
            tasks.start_soon(several)
    return (served.target.cpu - before) / calls * 1e6


def until_listening(port: int, seconds: float = 60) -> None:
    """Wait for a program that says nothing when it is ready."""
    import socket  # noqa: PLC0415 - only here

    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError(port)
