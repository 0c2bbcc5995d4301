"""What ends a connection over HTTP, what does not, and what becomes of the calls under way."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.sources.mcp.hostility import QUICK, scene, until
from tests.sources.mcp.peers.web import Modern, Peer, Plain, Session, Sse, serving
from tests.sources.mcp.test_http import found

from openfang.core.errors import SourceFailed
from openfang.sources.mcp.transport import Lost

if TYPE_CHECKING:
    from pathlib import Path

    from aiohttp import web
    from tests.sources.mcp.peers.web import Fields

    from openfang.sources.mcp.connection import Connection

pytestmark = pytest.mark.requirement("C3.7")


class Holding(Plain):
    """Takes a call, and never answers it."""

    async def serve(self, request: web.Request, method: str, body: Fields) -> web.StreamResponse:
        if method == "tools/call" and request.method == "POST":
            await self.hang()
        return await super().serve(request, method, body)


class Unreceipted(Sse):
    """Takes a call, and does not even say so."""

    async def respond(self, number: object, method: str, params: Fields) -> None:
        if method == "tools/call":
            await self.hang()
        await super().respond(number, method, params)


@pytest.mark.parametrize(
    ("peer", "tool"),
    [
        (Modern, "wait"),
        (Modern, "hold"),
        (Session, "wait"),
        (Sse, "wait"),
        (Unreceipted, "wait"),
        (Holding, "wait"),
    ],
)
async def test_a_call_under_way_ends_with_its_connection(peer: type[Peer], tool: str) -> None:
    server = peer()
    ended = list[str]()

    async def call(connection: Connection) -> None:
        with pytest.raises(Lost) as lost:
            await connection.call(tool, {})
        ended.append(lost.value.reason)

    async with serving(server) as url:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as group, found(url) as connection:
                group.start_soon(call, connection)
                await server.called.wait()
    assert ended == ["The connection was closed"]


async def test_a_session_that_one_call_finds_forgotten_ends_the_others_at_once() -> None:
    server = Session()
    ended = list[str]()

    async def call(connection: Connection, tool: str) -> None:
        with pytest.raises(Lost) as lost:
            await connection.call(tool, {})
        ended.append(lost.value.reason)

    async with serving(server) as url, found(url) as connection:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                group.start_soon(call, connection, "wait")
                await server.called.wait()
                server.forgotten = 404
                await call(connection, "echo")
        assert connection.lost.is_set()
    assert len(ended) == 2
    assert all("forgotten the session" in one for one in ended)


# One failure, and the connection


def at(url: str) -> str:
    lines = ('name = "web"', 'trust = "high"', 'risk = "LOW"', "allow_private = true")
    return "\n".join(
        ("[[mcp_servers]]", *lines, f'transport = {{ type = "http", url = "{url}" }}', "")
    )


async def test_a_restart_ends_the_calls_under_way(tmp_path: Path) -> None:
    peer = Modern()
    peer.tools.append({"name": "hold", "inputSchema": {"type": "object"}})

    async with serving(peer) as url, scene(tmp_path, at(url)) as node:

        async def call() -> None:
            with pytest.raises(SourceFailed, match="The connection was closed"):
                await node.app.call("mcp:web:hold")

        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                group.start_soon(call)
                await peer.called.wait()
                node.servers.find("web").restart()


@pytest.mark.requirement("C3.6")
async def test_a_refresh_that_fails_does_not_end_the_connection_and_three_do(
    tmp_path: Path,
) -> None:
    peer = Modern()
    async with serving(peer) as url, scene(tmp_path, at(url)) as node:
        source = node.servers.find("web")
        connection = source._connection
        assert connection
        peer.status["tools/list"] = (503, {})
        assert "503" in await source.renew()
        assert node.servers.health()["web"] == "degraded"
        del peer.status["tools/list"]
        assert await source.renew() == ""
        assert node.servers.health()["web"] == "healthy"
        peer.status["tools/list"] = (503, {})
        for _ in range(2):
            assert "503" in await source.renew()
        assert source._connection is connection
        assert "503" in await source.renew()
        await until(lambda: source._connection is None)
        del peer.status["tools/list"]
        await until(lambda: source._connection)


async def test_a_probe_that_fails_does_not_end_the_connection(tmp_path: Path) -> None:
    peer = Modern()
    pace = replace(QUICK, probe=0.5)
    async with serving(peer) as url, scene(tmp_path, at(url), pace=pace) as node:
        source = node.servers.find("web")
        connection = source._connection
        peer.status["server/discover"] = (503, {})
        await until(lambda: source.health.failures)
        assert "503" in source.health.error
        del peer.status["server/discover"]
        await until(lambda: not source.health.failures)
        assert source._connection is connection


class Slow(Modern):
    """Takes its time over its tools, once it was told to."""

    slow = False

    async def serve(self, request: web.Request, method: str, body: Fields) -> web.StreamResponse:
        if method == "tools/list" and self.slow:
            await self.hang()
        return await super().serve(request, method, body)


@pytest.mark.requirement("C14.1")
async def test_who_asks_for_a_refresh_does_not_wait_for_the_slowest(tmp_path: Path) -> None:
    peer = Slow()
    pace = replace(QUICK, awaited=0.2)
    async with serving(peer) as url, scene(tmp_path, at(url), pace=pace) as node:
        peer.slow = True
        with anyio.fail_after(30):
            found = await node.servers.refresh()
        assert found == {"good": "", "web": "its tools: no answer in 0.2 s"}
