"""How a server ends: what was asked is answered, and nothing is left running."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.host.wire import (
    GET,
    HALF_A_BODY,
    HALF_A_HEAD,
    START,
    Echo,
    answer,
    post,
    read_body,
    serving,
    stream,
)

from openfang.host.crowd import Crowd
from openfang.host.server import ServerLimits, listen, serve

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

pytestmark = pytest.mark.requirement("C12.2")


async def test_a_drain_ends_the_idle_at_once_and_answers_what_was_asked() -> None:
    begun, go_on = anyio.Event(), anyio.Event()

    async def app(_: Scope, receive: Receive, send: Send) -> None:
        body = await read_body(receive)
        if body == b"slow":
            begun.set()
            await go_on.wait()
        await answer(send, body or b"")

    async with serving(app, ServerLimits(drain_seconds=20.0)) as server:
        idle, silent, half, slow, upload = [await server.client() for _ in range(5)]
        assert (await idle.ask()).status == 200
        await half.send(HALF_A_HEAD)
        await upload.send(HALF_A_BODY)
        await slow.send(post(b"slow") + post(b"also asked") + HALF_A_HEAD)
        await begun.wait()
        server.stop.set()
        assert await idle.rest() == b""
        assert await silent.rest() == b""
        assert (await half.answer()).problem["rule"] == "stopping"
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*server.address)
        go_on.set()
        assert (await slow.answer()).body == b"slow"
        last = await slow.answer()
        assert (last.body, last.headers["connection"]) == (b"also asked", "close")
        assert await slow.rest() == b""
        whole = await upload.ask(b"x" * 996)
        assert (len(whole.body), whole.headers["connection"]) == (1000, "close")
        assert await upload.rest() == b""
        slow.hang_up()
        half.hang_up()
        await server.ended.wait()


async def test_what_outlasts_the_drain_is_cancelled_and_waited_for() -> None:
    begun = anyio.Event()
    cleaned: list[str] = []

    async def app(scope: Scope, _: Receive, send: Send) -> None:
        try:
            if scope["path"] == "/stream":
                await send(START)
                await stream(send, b"one")
            else:
                begun.set()
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
                cleaned.append(scope["path"])

    async with serving(app, ServerLimits(drain_seconds=0.1)) as server:
        streams, waits = await server.client(), await server.client()
        await streams.send(GET.replace(b"/ ", b"/stream "))
        await streams.reader.readuntil(b"one\r\n")
        await waits.send(GET)
        await begun.wait()
        server.stop.set()
        reply = await waits.answer()
        assert (reply.status, reply.problem["rule"]) == (503, "stopping")
        assert await streams.rest() == b""
        await server.ended.wait()
        assert sorted(cleaned) == ["/", "/stream"]
        assert server.crowd.tasks == set()
        assert server.crowd.connections == set()


@pytest.mark.parametrize("steps", range(6))
async def test_who_comes_just_before_the_end_does_not_hold_it_up(steps: int) -> None:
    async with serving(Echo(), ServerLimits(drain_seconds=60.0)) as server:
        with socket.create_connection(server.address) as late:
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            server.stop.set()
            with anyio.fail_after(30):
                await server.ended.wait()
            with suppress(ConnectionResetError):
                assert late.recv(100)[:12] in {b"", b"HTTP/1.1 503"}


async def test_a_stream_that_watches_for_the_end_holds_up_nobody() -> None:
    begun = anyio.Event()

    async def app(scope: Scope, _: Receive, send: Send) -> None:
        await send(START)
        await stream(send, b"live")
        begun.set()
        await scope["state"]["stopping"].wait()
        await send({"type": "http.response.body", "body": b" bye"})

    async with serving(app, ServerLimits(drain_seconds=20.0)) as server:
        client = await server.client()
        await client.send(GET)
        await begun.wait()
        server.stop.set()
        assert (await client.answer()).body == b"live bye"
        assert await client.rest() == b""
        await server.ended.wait()


async def test_a_cancelled_server_leaves_nothing_running() -> None:
    begun, cleaned = anyio.Event(), anyio.Event()

    async def app(_: Scope, __: Receive, ___: Send) -> None:
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            cleaned.set()

    listener = listen("127.0.0.1", 0)
    host, port = listener.address
    ready, ended = anyio.Event(), anyio.Event()
    scope = anyio.CancelScope()

    async def run() -> None:
        with scope:
            await serve(app, listener, Crowd(ServerLimits()), stop=anyio.Event(), ready=ready.set)
        ended.set()

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await ready.wait()
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(GET)
            await begun.wait()
            scope.cancel()
            assert (await reader.read()).startswith(b"HTTP/1.1 503")
            writer.close()
            await ended.wait()
            assert cleaned.is_set()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(host, port)
