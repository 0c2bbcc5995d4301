"""A server over HTTP that does everything wrong, on command: byte by byte, on loopback.

`async with Hostile() as url` serves; every misbehaviour is a tool. What is large or endless is
bounded, and ends when the client hangs up.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    import ssl

Fields = dict[str, Any]
MEGABYTE = 1_000_000
MOST = 64 * MEGABYTE
SESSION = "session-1"
EVENTS = {"Content-Type": "text/event-stream"}
JSON = {"Content-Type": "application/json"}


@dataclass
class Asked:
    """One request, and how to answer it."""

    method: str
    headers: dict[str, str]
    body: Fields
    writer: asyncio.StreamWriter

    @property
    def id(self) -> object:
        return self.body.get("id")

    @property
    def name(self) -> str:
        """The protocol's method, or that of HTTP."""
        return str(self.body.get("method", self.method))

    @property
    def arguments(self) -> Fields:
        return self.body["params"].get("arguments", {})

    async def write(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def head(self, status: str = "200 OK", **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        fields = (f"{name}: {value}" for name, value in named.items())
        lines = [f"HTTP/1.1 {status}", "Connection: close", *fields]
        await self.write("\r\n".join([*lines, "", ""]).encode("latin-1"))

    async def answer(self, status: str, headers: dict[str, str], body: bytes) -> None:
        await self.head(status, **headers, Content_Length=str(len(body)))
        await self.write(body)

    async def result(self, result: object, **headers: str) -> None:
        message = {"jsonrpc": "2.0", "id": self.id, "result": result}
        await self.answer("200 OK", {**JSON, **headers}, json.dumps(message).encode())

    def text(self, words: str) -> bytes:
        content = [{"type": "text", "text": words}]
        return json.dumps(
            {"jsonrpc": "2.0", "id": self.id, "result": {"content": content}}
        ).encode()

    async def gone(self) -> None:
        """Wait until the client hangs up."""
        await asyncio.sleep(60)


async def echo(asked: Asked) -> None:
    await asked.answer("200 OK", JSON, asked.text(str(asked.arguments.get("text", ""))))


async def hang(asked: Asked) -> None:
    await asked.gone()


async def hang_after_head(asked: Asked) -> None:
    await asked.head(**JSON, Content_Length="100")
    await asked.gone()


async def hang_in_stream(asked: Asked) -> None:
    await asked.head(**EVENTS)
    await asked.write(b": open\n\n")
    await asked.gone()


async def drip(asked: Asked) -> None:
    body = asked.text("drip")
    await asked.head(**JSON, Content_Length=str(len(body)))
    for byte in body:
        await asked.write(bytes([byte]))


async def endless(asked: Asked, piece: bytes, headers: dict[str, str]) -> None:
    await asked.head(**headers)
    block = piece * (MEGABYTE // len(piece))
    for _ in range(1000):
        await asked.write(block)
    await asked.gone()


async def comments(asked: Asked) -> None:
    await endless(asked, b": nothing\n", EVENTS)


async def newlines(asked: Asked) -> None:
    await endless(asked, b"\n", EVENTS)


async def foreign(asked: Asked) -> None:
    await endless(asked, b'data: {"jsonrpc":"2.0","id":99999,"result":{}}\n\n', EVENTS)


async def giant_event(asked: Asked) -> None:
    await endless(asked, b"data: " + b"x" * 1000, EVENTS)


async def giant_body(asked: Asked) -> None:
    await endless(asked, b" ", JSON)


async def cut_stream(asked: Asked) -> None:
    await asked.head(**EVENTS)
    await asked.write(b'data: {"jsonrpc":"2.0","id"')


async def cut_body(asked: Asked) -> None:
    await asked.head(**JSON, Content_Length="1000")
    await asked.write(asked.text("half")[:20])


async def cut_head(asked: Asked) -> None:
    await asked.write(b"HTTP/1.1 200 OK\r\nContent-Ty")


async def short_length(asked: Asked) -> None:
    await asked.head(**JSON, Content_Length="10")
    await asked.write(asked.text("more than ten"))


async def bad_chunks(asked: Asked) -> None:
    await asked.head(**JSON, Transfer_Encoding="chunked")
    await asked.write(b"zz\r\nwhat\r\n")


async def no_http(asked: Asked) -> None:
    await asked.write(b"SSH-2.0-OpenSSH_9.9\r\n")


async def many_headers(asked: Asked) -> None:
    body = asked.text("x")
    more = {f"X-{number}": "y" for number in range(5000)}
    await asked.head(**JSON, **more, Content_Length=str(len(body)))
    await asked.write(body)


async def long_header(asked: Asked) -> None:
    await asked.head(**JSON, X_Long="y" * 1_000_000)
    await asked.gone()


async def html(asked: Asked) -> None:
    await asked.answer("200 OK", {"Content-Type": "text/html"}, b"<html>Sign in</html>")


async def untyped(asked: Asked) -> None:
    await asked.answer("200 OK", {}, asked.text("untyped"))


async def empty(asked: Asked) -> None:
    await asked.answer("200 OK", JSON, b"")


async def accepted(asked: Asked) -> None:
    await asked.answer("202 Accepted", {}, b"")


async def not_json(asked: Asked) -> None:
    body = asked.text("@").replace(b'"@"', b"NaN")
    await asked.head(**EVENTS)
    await asked.write(b"data: " + body + b"\n\n")
    await asked.gone()


async def failing(asked: Asked) -> None:
    await asked.answer("500 Internal Server Error", {}, b"Traceback")


async def limited(asked: Asked) -> None:
    await asked.answer("429 Too Many Requests", {"Retry-After": "17"}, b"slow down")


async def odd_status(asked: Asked) -> None:
    await asked.answer("999 What", {}, b"?")


async def forgotten(asked: Asked) -> None:
    await asked.answer("404 Not Found", {}, b"")


async def redirect(asked: Asked) -> None:
    status, place = asked.arguments["status"], asked.arguments["to"]
    await asked.answer(f"{status} Moved", {"Location": place}, b"")


async def bomb(asked: Asked) -> None:
    """64 MB of blanks in 64 kB."""
    body = gzip.compress(b" " * MOST)
    await asked.answer("200 OK", {**JSON, "Content-Encoding": "gzip"}, body)


async def event_bomb(asked: Asked) -> None:
    body = gzip.compress(b"\n" * (8 * MEGABYTE) + b"data: " + asked.text("after all") + b"\n\n")
    await asked.answer("200 OK", {**EVENTS, "Content-Encoding": "gzip"}, body)


async def bad_gzip(asked: Asked) -> None:
    await asked.answer("200 OK", {**JSON, "Content-Encoding": "gzip"}, asked.text("no gzip"))


Act = Callable[[Asked], Awaitable[None]]
TOOLS: dict[str, Act] = {
    act.__name__: act
    for act in (
        *(echo, hang, hang_after_head, hang_in_stream, drip, comments, newlines, foreign),
        *(giant_event, giant_body, cut_stream, cut_body, cut_head, short_length, bad_chunks),
        *(no_http, many_headers, long_header, html, untyped, empty, accepted, not_json, failing),
        *(limited, odd_status, forgotten, redirect, bomb, event_bomb, bad_gzip),
    )
}


@dataclass
class Hostile:
    """The server. `session` is the id that it gives, `greets` answers `initialize` if it is set."""

    host: str = "127.0.0.1"
    tls: ssl.SSLContext | None = None
    session: str = SESSION
    greets: Act | None = None
    seen: list[Asked] = field(default_factory=list[Asked])
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    @property
    def methods(self) -> list[str]:
        return [asked.name for asked in self.seen]

    @property
    def url(self) -> str:
        assert self._server
        port = self._server.sockets[0].getsockname()[1]
        return f"http{'s' if self.tls else ''}://{self.host}:{port}/mcp"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, self.host, 0, ssl=self.tls)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await self._one(reader, writer)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one request, until it is answered or the client hangs up."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head)
        }
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        method = head[0].partition(" ")[0]
        message: Fields = json.loads(body) if body else {}
        asked = Asked(method=method, headers=headers, body=message, writer=writer)
        self.seen.append(asked)
        serving = asyncio.ensure_future(self._serve(asked))
        watching = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait((serving, watching), return_when=asyncio.FIRST_COMPLETED)
            if not serving.done() or serving.exception() is not None:
                self.hung_up.set()
        finally:
            serving.cancel()
            watching.cancel()
            await asyncio.gather(serving, watching, return_exceptions=True)

    async def _serve(self, asked: Asked) -> None:
        given: Fields = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
        match asked.name:
            case "initialize" if self.greets is not None:
                await self.greets(asked)
            case "initialize":
                await asked.result(given, Mcp_Session_Id=self.session)
            case "tools/list":
                tools = [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]
                await asked.result({"tools": tools})
            case "tools/call":
                await TOOLS[asked.body["params"]["name"]](asked)
            case "ping":
                await asked.result({})
            case name if name.startswith("notifications/"):
                await asked.answer("202 Accepted", {}, b"")
            case _:
                await asked.answer("405 Method Not Allowed", {}, b"")
