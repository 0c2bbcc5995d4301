"""An offer made of functions, and a client that writes and reads bytes itself."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio

from openfang.app.clock import SystemClock
from openfang.core.calls import Caller
from openfang.core.errors import NotFound, UnknownTool
from openfang.core.ids import Kind
from openfang.core.results import Result
from openfang.core.tools import Tool
from openfang.edges.mcp.handler import Handler
from openfang.edges.mcp.lines import LineLimits, serve_lines
from openfang.edges.mcp.ports import Offered, Place

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence

    from openfang.core.labels import Labels
    from openfang.core.news import Hearer, News
    from openfang.core.session import Options
    from openfang.core.trace import Claim
    from openfang.edges.mcp.lines import Leaving

Function: TypeAlias = "Callable[[Mapping[str, Any], Options], Awaitable[Result]]"
LENGTH = re.compile(rb"\AContent-Length: ([0-9]+)\r\n\Z")
VERSION = "io.modelcontextprotocol/protocolVersion"
MODERN: dict[str, Any] = {
    VERSION: "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass
class Shelf:
    """Offers the same tools to everybody; tells whoever watches what it is told to."""

    functions: Mapping[str, Function]
    caller: Caller = field(default_factory=lambda: Caller(id="local-mcp"))
    place: Place = field(default_factory=Place)
    by: str = "node-shelf"
    info: Mapping[str, Any] = field(default_factory=lambda: {"name": "shelf", "version": "1"})
    instructions: str = ""
    features: frozenset[str] = frozenset()
    hearers: list[Hearer] = field(default_factory=list["Hearer"])

    def tools(self) -> Sequence[Offered]:
        return [self._offered(name) for name in sorted(self.functions)]

    def find(self, name: str) -> Offered | None:
        return self._offered(name) if name in self.functions else None

    def _offered(self, name: str) -> Offered:
        tool = Tool(id=f"builtin:{name}", kind=Kind.BUILTIN, source="shelf", name=name)
        return Offered(name=name, tool=tool, description=name)

    def resources(self) -> Sequence[Mapping[str, Any]]:
        return []

    def templates(self) -> Sequence[Mapping[str, Any]]:
        return []

    def prompts(self) -> Sequence[Mapping[str, Any]]:
        return []

    async def settled(self) -> None:
        """Nothing is on its way."""

    async def call(self, name: str, arguments: Mapping[str, Any], options: Options) -> Result:
        if name not in self.functions:
            raise UnknownTool(name)
        return await self.functions[name](arguments, options)

    async def read(self, uri: str, options: Options) -> Result:
        del options
        raise NotFound(f"No resource {uri}.")

    async def prompt(self, name: str, arguments: Mapping[str, Any], options: Options) -> Result:
        del arguments, options
        raise NotFound(f"No prompt {name}.")

    async def complete(self, params: Mapping[str, Any], options: Options) -> Result:
        del params, options
        return Result(structured={"values": []})

    async def subscribe(self, uri: str, options: Options) -> None:
        """Everything is watched already."""

    async def unsubscribe(self, uri: str, options: Options) -> None:
        """As above."""

    def vouch(self, claims: Sequence[Claim], labels: Labels) -> str:  # noqa: ARG002 - of nothing
        """Sign nothing: nobody here is a node."""
        return ""

    def watch(self, heard: Hearer) -> Callable[[], None]:
        self.hearers.append(heard)
        return lambda: self.hearers.remove(heard)

    def publish(self, news: News) -> None:
        for heard in self.hearers:
            heard(news)


@dataclass
class Talker:
    """The other end of a line."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def raw(self, data: bytes) -> None:
        self.writer.write(data)

    def send(self, message: Any, *, counted: bool = False) -> None:
        body = json.dumps(message).encode()
        head = b"Content-Length: %d\r\n\r\n" % len(body)
        self.raw(head + body if counted else body + b"\n")

    def ask(
        self,
        number: int | str,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        counted: bool = False,
    ) -> None:
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}
        self.send(message, counted=counted)

    def tell(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params or {}})

    def call(self, number: int | str, name: str, **arguments: Any) -> None:
        self.ask(number, "tools/call", {"name": name, "arguments": arguments})

    async def heard(self) -> Any:
        """The next message, and nothing of how it was framed."""
        return (await self.framed())[0]

    async def framed(self) -> tuple[Any, bool]:
        """The next message, and whether its length stood before it."""
        line = await self.reader.readline()
        assert line, "the other side has hung up"
        if found := LENGTH.match(line):
            assert await self.reader.readline() == b"\r\n"
            return json.loads(await self.reader.readexactly(int(found[1]))), True
        return json.loads(line), False

    async def answer(self, number: int | str) -> Any:
        """The next message, which answers that request."""
        message = await self.heard()
        assert message.get("id") == number, message
        return message

    async def greet(self, version: str = "2025-11-25", **capabilities: Any) -> Any:
        self.ask(
            "hello",
            "initialize",
            {
                "protocolVersion": version,
                "capabilities": capabilities,
                "clientInfo": {"name": "test", "version": "1"},
            },
        )
        answer = await self.answer("hello")
        self.tell("notifications/initialized")
        return answer["result"]

    async def served(self) -> None:
        """See that the next request is answered as if nothing had been."""
        self.ask("still", "ping")
        assert await self.answer("still") == {"jsonrpc": "2.0", "id": "still", "result": {}}

    def hang_up(self) -> None:
        self.writer.write_eof()

    async def over(self) -> bytes:
        """What comes before the other side hangs up."""
        return await self.reader.read()


@asynccontextmanager
async def line(
    shelf: Shelf, limits: LineLimits | None = None, leaving: Leaving | None = None
) -> AsyncGenerator[Talker]:
    """Serve one client, which is handed out; nothing may be left running afterwards."""
    ours, theirs = socket.socketpair()
    most = 1 << 25
    reader, writer = await asyncio.open_unix_connection(sock=ours, limit=most)
    talker = Talker(*await asyncio.open_unix_connection(sock=theirs, limit=most))
    handler = Handler(secret=b"secret", clock=SystemClock())
    before = asyncio.all_tasks()

    async def serve() -> None:
        await serve_lines(
            reader, writer, handler, lambda: shelf, limits=limits or LineLimits(), leaving=leaving
        )

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(serve)
            try:
                yield talker
            finally:
                talker.writer.close()
    handler.close()
    assert not shelf.hearers
    assert not [task for task in asyncio.all_tasks() - before if not task.done()]
