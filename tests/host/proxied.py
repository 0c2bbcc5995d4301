"""Talks to an egress as a child does: through the socket that was handed over, or the unix one."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from openfang.host.egress import EgressLimits, EgressRules, Visit, open_egress

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
    from pathlib import Path

    from openfang.host.egress import Egress

    Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Names:
    """A resolver that says what it was told to: each answer once, the last one for ever."""

    answers: dict[str, list[Sequence[str]]]
    asked: Counter[str] = field(default_factory=Counter[str])

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        assert port
        self.asked[host] += 1
        left = self.answers.get(host)
        if left is None:
            raise OSError(f"no such name: {host}")
        return left.pop(0) if len(left) > 1 else left[0]


@dataclass
class Way:
    """An open egress, what it has told, and a client of it."""

    egress: Egress
    path: Path
    visits: list[Visit]

    @asynccontextmanager
    async def connected(
        self,
    ) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader, writer = await asyncio.open_unix_connection(self.path)
        try:
            yield reader, writer
        finally:
            writer.close()

    async def say(self, text: str | bytes) -> bytes:
        """Send a request, and read until the proxy hangs up."""
        async with self.connected() as (reader, writer):
            writer.write(text if isinstance(text, bytes) else text.encode())
            return await reader.read()

    async def status(self, text: str | bytes) -> int:
        """Give the status of the answer to a request."""
        return int((await self.say(text)).split()[1])

    async def tunnel(self, host: str, port: int) -> int:
        """Ask for a tunnel, and give the status; an open one is let go of."""
        async with self.connected() as (reader, writer):
            writer.write(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
            return int((await reader.readline()).split()[1])


@asynccontextmanager
async def opened(
    path: Path,
    names: Names | None = None,
    *,
    limits: EgressLimits | None = None,
    rules: EgressRules | None = None,
) -> AsyncGenerator[Way]:
    """Open an egress with a resolver of ours."""
    visits: list[Visit] = []
    async with open_egress(
        rules or EgressRules(),
        noted=visits.append,
        limits=limits or EgressLimits(),
        unix_socket=path,
        resolve=names or Names({}),
    ) as egress:
        yield Way(egress, path, visits)


@dataclass
class Server:
    """A real server on one address; it counts who comes."""

    address: str
    port: int
    visitors: int = 0

    def url(self, host: str = "", path: str = "/") -> str:
        return f"http://{host or self.address}:{self.port}{path}"


@asynccontextmanager
async def serving(talk: Talk, address: str = "127.0.0.1") -> AsyncGenerator[Server]:
    server = Server(address, 0)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.visitors += 1
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                await talk(reader, writer)
        finally:
            writer.close()

    listening = await asyncio.start_server(connected, address, 0)
    async with listening:
        server.port = listening.sockets[0].getsockname()[1]
        yield server


async def hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")


def get(url: str, *headers: str) -> str:
    """A request to a proxy."""
    host = url.split("/")[2]
    return "\r\n".join([f"GET {url} HTTP/1.1", f"Host: {host}", *headers, "", ""])
