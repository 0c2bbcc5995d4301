"""The server as an app sees it: order, flow and failure."""

from __future__ import annotations

import asyncio
import logging
import signal
from contextvars import ContextVar
from functools import partial
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
    from starlette.types import ASGIApp, Receive, Scope, Send

pytestmark = pytest.mark.requirement("C12.2")


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
async def test_it_serves_until_it_is_told_to_stop(host: str) -> None:
    listener = listen(host, 0)
    port = listener.address[1]
    stop, ready = anyio.Event(), anyio.Event()
    run = partial(serve, Echo(), listener, Crowd(ServerLimits()), stop=stop, ready=ready.set)
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await ready.wait()
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(GET)
            assert (await reader.readline()) == b"HTTP/1.1 200 OK\r\n"
            assert handlers == [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
            stop.set()
            await reader.read()
            writer.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(host, port)


async def test_a_connection_is_used_again_and_dates_its_answers() -> None:
    async with serving(Echo()) as server:
        client = await server.client()
        answers = [await client.ask(post(b"x" * size)) for size in (0, 10, 100_000)]
        assert [len(reply.body) for reply in answers] == [0, 10, 100_000]
        assert all(reply.headers["date"].endswith("GMT") for reply in answers)
        assert "server" not in answers[0].headers


async def test_requests_sent_without_waiting_are_answered_in_order() -> None:
    async with serving(Echo()) as server:
        client = await server.client()
        await client.send(b"".join(post(b"%d" % number) for number in range(10)))
        assert [(await client.answer()).body for _ in range(10)] == [b"%d" % n for n in range(10)]


async def test_of_too_many_sent_without_waiting_the_first_are_answered() -> None:
    app = Echo()
    async with serving(app) as server:
        client = await server.client()
        await client.send(b"".join(post(b"%d" % number) for number in range(5000)))
        answers = [await client.answer() for _ in range(17)]
        assert [reply.body for reply in answers] == [b"%d" % number for number in range(17)]
        assert answers[-1].headers["connection"] == "close"
        assert await client.rest() == b""
        assert len(app.scopes) == 17


@pytest.mark.parametrize(
    "behind",
    [
        b"nonsense\r\n\r\n",
        HALF_A_HEAD + b"\0",
        b"\xff" * 100_000,
        b"POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\nnonsense",
    ],
)
async def test_nonsense_behind_a_request_never_gets_into_its_answer(behind: bytes) -> None:
    go_on, asked = anyio.Event(), anyio.Event()

    async def app(_: Scope, __: Receive, send: Send) -> None:
        await send(START)
        await stream(send, b"first ")
        asked.set()
        await go_on.wait()
        await send({"type": "http.response.body", "body": b"second"})

    async with serving(app) as server:
        client = await server.client()
        await client.send(GET)
        await asked.wait()
        await client.send(behind)
        while not server.crowd.present()[0].surplus:
            await anyio.lowlevel.checkpoint()
        go_on.set()
        assert (await client.answer()).body == b"first second"
        assert await client.rest() == b""


@pytest.mark.parametrize(
    "last",
    [
        post(b"last", b"Connection: close"),
        post(b"last", b"Connection: keep-alive").replace(b"/1.1", b"/1.0"),
    ],
)
@pytest.mark.parametrize("behind", [post(b"never"), HALF_A_HEAD, b"nonsense"])
async def test_what_comes_behind_the_last_request_is_dropped(last: bytes, behind: bytes) -> None:
    app = Echo()
    async with serving(app) as server:
        client = await server.client()
        assert (await client.ask(last + behind)).body == b"last"
        assert await client.rest() == b""
        assert len(app.scopes) == 1


async def test_a_request_sees_nothing_that_the_one_before_it_left_behind() -> None:
    mark: ContextVar[str] = ContextVar("mark", default="clean")
    seen: list[str] = []

    async def app(_: Scope, __: Receive, send: Send) -> None:
        seen.append(mark.get())
        mark.set("dirty")
        await answer(send)

    async with serving(app) as server:
        client = await server.client()
        await client.send(GET * 3)
        for _ in range(3):
            await client.answer()
        assert seen == ["clean"] * 3


async def test_an_upload_that_nobody_reads_waits_in_the_network_and_not_with_us() -> None:
    asked, go_on = anyio.Event(), anyio.Event()

    async def app(_: Scope, receive: Receive, send: Send) -> None:
        asked.set()
        await go_on.wait()
        body = await read_body(receive)
        await answer(send, b"%d" % len(body or b""))

    async with serving(app) as server, anyio.create_task_group() as group:
        client = await server.client()
        group.start_soon(client.send, post(b"x" * 50_000_000))
        await asked.wait()
        connection = server.crowd.present()[0]
        while not connection.flow.read_paused:
            await anyio.lowlevel.checkpoint()
        assert len(connection.cycle.body) < 400_000
        go_on.set()
        assert (await client.answer()).body == b"50000000"


async def test_a_slow_reader_holds_up_the_app_and_gets_everything() -> None:
    sent = 0
    parts = 400

    async def app(_: Scope, __: Receive, send: Send) -> None:
        nonlocal sent
        await send(START)
        for number in range(parts):
            body = bytes([number % 256]) * 65_536
            await stream(send, body)
            sent += 1
        await send({"type": "http.response.body"})

    async with serving(app) as server:
        client = await server.client()
        await client.send(GET)
        while not server.crowd.present() or not server.crowd.present()[0].flow.write_paused:
            await anyio.lowlevel.checkpoint()
        assert sent < parts
        assert server.crowd.present()[0].transport.get_write_buffer_size() < 200_000
        whole = (await client.answer()).body
        assert whole == b"".join(bytes([number % 256]) * 65_536 for number in range(parts))


async def test_a_client_that_hangs_up_is_told_of_and_is_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    begun, told = anyio.Event(), anyio.Event()

    async def app(_: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send(START)
        await stream(send, b"begun")
        begun.set()
        assert (await receive())["type"] == "http.disconnect"
        await send({"type": "http.response.body", "body": b"into the void"})
        told.set()
        raise ConnectionError("as a stream does")

    async with serving(app) as server:
        for behind in (b"", GET, HALF_A_HEAD):
            begun, told = anyio.Event(), anyio.Event()
            client = await server.client()
            await client.send(GET + behind)
            await begun.wait()
            client.hang_up()
            await told.wait()
            await server.nobody()
        assert server.crowd.waiting == {}
        assert server.crowd.leaving == {}
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


async def test_a_client_that_hangs_up_within_a_body_is_told_of() -> None:
    app = Echo()
    async with serving(app) as server:
        client = await server.client()
        await client.send(HALF_A_BODY)
        client.hang_up()
        await app.disconnected.wait()
        await server.nobody()


async def fails(_: Scope, __: Receive, ___: Send) -> None:
    raise LookupError("the password is secret")


async def is_cancelled_by_its_own_doing(_: Scope, __: Receive, ___: Send) -> None:
    raise asyncio.CancelledError


async def says_nothing(_: Scope, __: Receive, ___: Send) -> None:
    """Return without an answer."""


async def says_too_much(_: Scope, __: Receive, send: Send) -> None:
    headers = [(b"x", b"a\r\nset-cookie: b")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})


@pytest.mark.parametrize("app", [fails, is_cancelled_by_its_own_doing, says_nothing])
async def test_an_app_that_fails_gets_a_500_that_tells_nothing_of_it(
    app: ASGIApp, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(app) as server:
        for method in (b"GET", b"HEAD"):
            client = await server.client()
            await client.send(GET.replace(b"GET", method))
            reply = await client.answer(head_only=method == b"HEAD")
            assert (reply.status, reply.headers["connection"]) == (500, "close")
            if method == b"GET":
                assert reply.problem["rule"] == "internal"
                assert b"secret" not in reply.body
            assert await client.rest() == b""
    records = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [(record.name, record.levelname) for record in records] == [
        ("openfang.server", "ERROR")
    ] * 2
    assert [bool(record.exc_info) for record in records] == [app is not says_nothing] * 2


async def test_an_app_that_fails_within_its_answer_cuts_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def app(_: Scope, __: Receive, send: Send) -> None:
        await send(START)
        await stream(send, b"begun")
        raise LookupError

    async with serving(app) as server:
        client = await server.client()
        await client.send(GET)
        assert (await client.rest()).endswith(b"5\r\nbegun\r\n")
        await server.nobody()
    assert [record.name for record in caplog.records] == ["openfang.server"]


async def test_an_app_cannot_split_its_answer() -> None:
    async with serving(says_too_much) as server:
        client = await server.client()
        await client.send(GET)
        assert b"set-cookie" not in await client.rest()


async def test_an_app_that_fails_after_its_answer_leaves_the_connection_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def app(_: Scope, __: Receive, send: Send) -> None:
        await answer(send, b"whole")
        raise LookupError

    async with serving(app) as server:
        client = await server.client()
        assert [(await client.ask()).body for _ in range(3)] == [b"whole"] * 3
    assert len(caplog.records) == 3
