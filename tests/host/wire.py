"""A server on loopback for a test, and a client that can be as rude as a test needs."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from openfang.host.crowd import Crowd
from openfang.host.server import Listener, ServerLimits, listen, serve

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

START: Message = {"type": "http.response.start", "status": 200, "headers": []}
GET = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
HALF_A_HEAD = b"GET / HTTP/1.1\r\nHost: he"
HALF_A_BODY = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 1000\r\n\r\nhalf"


@dataclass(frozen=True, slots=True)
class Serving:
    """A server that runs."""

    listener: Listener
    crowd: Crowd
    stop: anyio.Event
    ended: anyio.Event
    address: tuple[str, int]
    clients: list[Client] = field(default_factory=list["Client"])

    async def client(self) -> Client:
        client = Client(*await asyncio.open_connection(*self.address))
        self.clients.append(client)
        return client

    async def beats(self, number: int) -> None:
        """Let time pass as the server counts it."""
        until = self.crowd.beat + number
        while self.crowd.beat < until:  # noqa: ASYNC110 - time is what is waited for
            await anyio.sleep(self.crowd.period)

    async def nobody(self) -> None:
        await self.crowd.nobody.wait()


@asynccontextmanager
async def serving(
    app: ASGIApp, limits: ServerLimits | None = None, *, host: str = "127.0.0.1"
) -> AsyncGenerator[Serving]:
    """Run a server until the test is through with it."""
    limits = limits or ServerLimits(drain_seconds=1.0)
    ready, listener = anyio.Event(), listen(host, 0)
    running = Serving(listener, Crowd(limits), anyio.Event(), anyio.Event(), listener.address)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(partial(_run, app, running, ready))
            await ready.wait()
            try:
                yield running
            finally:
                for client in running.clients:
                    client.hang_up()
                running.stop.set()


async def _run(app: ASGIApp, running: Serving, ready: anyio.Event) -> None:
    await serve(app, running.listener, running.crowd, stop=running.stop, ready=ready.set)
    running.ended.set()


@dataclass(frozen=True, slots=True)
class Answer:
    """A response as it came over the wire."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def problem(self) -> Any:
        assert self.headers["content-type"] == "application/problem+json"
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Client:
    """One connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def ask(self, data: bytes = GET) -> Answer:
        await self.send(data)
        return await self.answer()

    async def answer(self, *, head_only: bool = False) -> Answer:
        head = await self.reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode().strip().split("\r\n")
        headers = {name.lower(): value for name, _, value in (x.partition(": ") for x in lines)}
        body = b"" if head_only else await self._body(headers)
        return Answer(int(first.split()[1]), headers, body)

    async def _body(self, headers: dict[str, str]) -> bytes:
        if "content-length" in headers:
            return await self.reader.readexactly(int(headers["content-length"]))
        body = bytearray()
        while size := int(await self.reader.readline(), 16):
            body += (await self.reader.readexactly(size + 2))[:size]
        await self.reader.readline()
        return bytes(body)

    async def rest(self) -> bytes:
        """Read until the server hangs up."""
        with suppress(ConnectionError):
            return await self.reader.read()
        return b""

    def hang_up(self) -> None:
        self.writer.transport.abort()


@dataclass(slots=True)
class Echo:
    """An app that gives back the body of each request, and remembers what it saw."""

    scopes: list[Scope] = field(default_factory=list[Any])
    disconnected: anyio.Event = field(default_factory=anyio.Event)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        body = await read_body(receive)
        if body is None:
            self.disconnected.set()
        else:
            await answer(send, body)


async def read_body(receive: Receive) -> bytes | None:
    """Read a body to its end; None when the client has gone before."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message["body"]
        if not message["more_body"]:
            return bytes(body)


async def answer(send: Send, body: bytes = b"", status: int = 200) -> None:
    """Answer at once."""
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def stream(send: Send, body: bytes) -> None:
    """Send a part of an answer that goes on."""
    await send({"type": "http.response.body", "body": body, "more_body": True})


def post(body: bytes, *headers: bytes) -> bytes:
    """A request with a body."""
    lines = [b"POST / HTTP/1.1", b"Host: here", b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join([*lines, b"", body])
