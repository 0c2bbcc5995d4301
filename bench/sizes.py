"""How much of a node and of its database each thing takes: what `tools/sizing.py` computes with."""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from bench.a2a import agent, send_many
from bench.daemon import serving
from bench.figures import Figure
from bench.nodes import SIZE, children_of, cpu_of, homes, postgres, sent_by, value_of
from bench.wire import exchange

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from bench.daemon import Target

_INLINE = 'engine = "inline"\n'
SESSIONS = 900
CONNECTIONS = 500
MESSAGES = 500
CALLERS = 10
MORE = "[a2a]\nenabled = true\nmax_tasks = 10_000\n[server]\nconnections = 4_000\n"
_ECHO = "async def run(message, context):\n    return message\n"
_HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "sizes", "version": "1"},
}


@dataclass(frozen=True, slots=True)
class Taken:
    """What each of many took: of the node, of the server, and of both memories."""

    cpu: float
    server: float
    statements: float
    kilobytes: float
    stored: float

    def __str__(self) -> str:
        return (
            f"{self.cpu:,.0f} us, {self.server:,.0f} us of Postgres, {self.statements:.2f} "
            f"statements, {self.kilobytes:.1f} kB of memory, {self.stored:,.0f} bytes kept"
        )


@dataclass(slots=True)
class Scales:
    """Weighs a node before and after."""

    node: Target
    url: str
    postmaster: int

    async def weigh(self, count: int, work: Callable[[], Awaitable[object]]) -> Taken:
        """Do it; say what each of so many took."""
        before = await self._now()
        await work()
        cpu, server, sent, megabytes, stored = (
            (after - one) / count for after, one in zip(await self._now(), before, strict=True)
        )
        return Taken(cpu * 1e6, server * 1e6, sent, megabytes * 1e3, stored)

    async def _now(self) -> tuple[float, ...]:
        server = sum(map(cpu_of, (self.postmaster, *children_of(self.postmaster))))
        stored = await value_of(self.url, SIZE)
        return self.node.cpu, server, sent_by(self.node), self.node.megabytes, stored


async def _sessions(node: Target) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _HELLO})
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {node.key}\r\n"
        "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    for _ in range(SESSIONS):
        _, answer = await exchange(reader, writer, (head + body).encode())
        assert b"serverInfo" in answer, answer[:300]
    writer.close()


async def _messages(node: Target) -> None:
    async with anyio.create_task_group() as group:
        for _ in range(CALLERS):
            group.start_soon(send_many, node, "/a2a/agents/echoes", MESSAGES // CALLERS)


async def _weighed(scales: Scales) -> list[Figure]:
    node, opened = scales.node, list[asyncio.StreamWriter]()
    await send_many(node, "/a2a/agents/echoes", 20)

    async def connect() -> None:
        for _ in range(CONNECTIONS):
            reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
            await exchange(reader, writer, node.request("/api/health", "GET"))
            opened.append(writer)

    found = {
        "a message to an agent": await scales.weigh(MESSAGES, lambda: _messages(node)),
        "an MCP session": await scales.weigh(SESSIONS, lambda: _sessions(node)),
        "an open connection": await scales.weigh(CONNECTIONS, connect),
    }
    for writer in opened:
        writer.close()
    return [Figure(name, one.kilobytes, "kB", 100, beside=str(one)) for name, one in found.items()]


def figures(folder: Path) -> list[Figure]:
    """Weigh what a node on Postgres holds."""
    folder.mkdir()
    with ExitStack() as held:
        url, pid = held.enter_context(postgres(folder / "postgres"))
        home = homes(folder, url, MORE, _INLINE)[0]
        agent(home, "echoes", _ECHO)
        node = held.enter_context(serving(home))
        return asyncio.run(_weighed(Scales(node, url, pid)))
