"""A node behind a real socket, inside the test's own loop, and two foreign ways to ask it."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import aiohttp
import anyio
from anyio import to_thread
from tests.host.wire import Client
from yarl import URL

from openfang.app.daemon.server import build_server
from openfang.app.environment import credential
from openfang.app.lifespan import beside
from openfang.core.wire import read_key
from openfang.host.crowd import Crowd
from openfang.host.server import ServerLimits, listen, serve
from openfang.testing import open_test_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping
    from pathlib import Path

    from openfang.app.auth.doors import Doors
    from openfang.app.daemon.node import ServedNode
    from openfang.app.daemon.server import Served
    from openfang.core.events import AuditEvent
    from openfang.core.keys import AdminToken, Key
    from openfang.core.ports import Clock
    from openfang.testing import OpenApp, TableSource

LIMITS = ServerLimits(drain_seconds=2.0)


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def problem(self) -> Any:
        """The problem that it must be, with what every problem has."""
        assert self.headers["Content-Type"] == "application/problem+json"
        body = self.json
        assert body["status"] == self.status
        assert body["type"].startswith("urn:openfang:problem:")
        assert {"title", "detail", "rule", "way_out"} <= set(body)
        return body

    @property
    def told(self) -> tuple[int, str]:
        """The status, and the rule that was in the way."""
        return self.status, self.problem["rule"]


@dataclass(frozen=True, slots=True)
class Live:
    """An open home that is served. Whoever asks without saying who is its administrator."""

    app: OpenApp
    served: Served
    crowd: Crowd
    address: tuple[str, int]
    stop: anyio.Event
    ended: anyio.Event
    admin: str
    web: aiohttp.ClientSession
    clients: list[Client] = field(default_factory=list[Client])

    @property
    def url(self) -> str:
        return f"http://{self.address[0]}:{self.address[1]}"

    @property
    def doors(self) -> Doors:
        """Where addresses are counted."""
        return cast("ServedNode", self.served.app.node).doors

    @property
    def config_file(self) -> Path:
        return self.app.parts.home.config_file

    def at(self, path: str) -> URL:
        """The address of a path, which is sent as it is written."""
        return URL(f"{self.url}{path}", encoded=True)

    def headers(
        self, key: str | None = "", more: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        """The headers of whoever holds this key; "" is the administrator, None is nobody."""
        signed = {} if key is None else {"Authorization": f"Bearer {key or self.admin}"}
        return {**signed, **(more or {})}

    async def ask(
        self,
        method: str,
        path: str,
        *,
        key: str | None = "",
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> Reply:
        """Ask by the foreign client."""
        sent = self.headers(key, headers)
        async with self.web.request(method, self.at(path), headers=sent, **more) as response:
            return Reply(response.status, response.headers, await response.read())

    async def get(self, path: str, **more: Any) -> Reply:
        return await self.ask("GET", path, **more)

    async def post(self, path: str, body: Any = None, **more: Any) -> Reply:
        return await self.ask("POST", path, json={} if body is None else body, **more)

    async def call(
        self, tool: str, arguments: Mapping[str, Any] | None = None, **more: Any
    ) -> Reply:
        """Call a tool; `context` is the body's."""
        context = more.pop("context", None)
        body = {"arguments": arguments or {}, **({"context": context} if context else {})}
        return await self.post(f"/api/tools/{tool}/call", body, **more)

    async def new(self, name: str, **fields: Any) -> tuple[Key | AdminToken, str]:
        """Make a key or a token by the API itself: its secret comes once."""
        reply = await self.post("/api/keys", {"name": name, **fields})
        assert reply.status == 201, reply.body
        return read_key(reply.json), reply.json["secret"]

    async def key(self, name: str, **fields: Any) -> str:
        """Make a key or a token, and give its secret."""
        return (await self.new(name, **fields))[1]

    async def client(self) -> Client:
        """Open a connection of one's own."""
        client = Client(*await asyncio.open_connection(*self.address))
        self.clients.append(client)
        return client

    def request(
        self, method: str, path: str, *headers: str, host: str = "localhost", body: bytes = b""
    ) -> bytes:
        """Write the administrator's request as it goes over the wire."""
        lines = [f"{method} {path} HTTP/1.1", *([f"Host: {host}"] if host else [])]
        lines += [f"Authorization: Bearer {self.admin}", *headers]
        lines += [f"Content-Length: {len(body)}"] if body else []
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + body

    async def events(self) -> list[AuditEvent]:
        return await self.app.events()


@asynccontextmanager
async def live(
    folder: Path,
    *,
    config: str = "",
    clock: Clock | None = None,
    sources: Iterable[TableSource] = (),
    host: str = "127.0.0.1",
    limits: ServerLimits = LIMITS,
    path: str = "",
    seconds: float = 100,
) -> AsyncGenerator[Live]:
    """Serve a home of the test's own until the test is through with it.

    `path` is where the node looks for programs, `seconds` how long a test may take at most.
    """
    environ = {"HOME": str(folder), **({"PATH": path} if path else {})}
    async with AsyncExitStack() as stack:
        stack.enter_context(anyio.fail_after(seconds))
        app = await stack.enter_async_context(
            open_test_app(folder, config=config, clock=clock, sources=sources, environ=environ)
        )
        yield await stack.enter_async_context(served_at(app, environ, host=host, limits=limits))


@asynccontextmanager
async def served_at(
    app: OpenApp,
    environ: Mapping[str, str],
    *,
    host: str = "127.0.0.1",
    limits: ServerLimits = LIMITS,
) -> AsyncGenerator[Live]:
    """Serve a home that is open."""
    async with AsyncExitStack() as stack:
        admin = await to_thread.run_sync(credential, app.parts.home, environ)
        stop, ended, ready, listener = anyio.Event(), anyio.Event(), anyio.Event(), listen(host, 0)
        app.parts.address = "http://{}:{}".format(*listener.address)
        served, crowd = build_server(app.parts, stop, environ), Crowd(limits)
        served.telemetry.reads(http_connections=lambda: len(crowd.connections))

        async def run() -> None:
            try:
                await serve(served.app, listener, crowd, stop=stop, ready=ready.set)
            finally:
                ended.set()  # also when it was cancelled: whoever waits would wait for ever

        await stack.enter_async_context(beside(run, *served.watches))
        await ready.wait()
        many = aiohttp.TCPConnector(limit=0)
        web = await stack.enter_async_context(aiohttp.ClientSession(connector=many))
        node = Live(app, served, crowd, listener.address, stop, ended, admin, web)
        try:
            yield node
        finally:
            await web.close()
            for client in node.clients:
                client.hang_up()
            stop.set()
            await ended.wait()
