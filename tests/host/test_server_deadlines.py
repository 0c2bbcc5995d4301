"""Who takes too long is cut off, who is held up by us is not, and nobody keeps others out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.host.wire import (
    GET,
    HALF_A_BODY,
    HALF_A_HEAD,
    START,
    Client,
    Echo,
    Serving,
    answer,
    post,
    read_body,
    serving,
    stream,
)

from openfang.host.server import ServerLimits, raise_file_limit

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

pytestmark = pytest.mark.requirement("C12.2")

QUICK = ServerLimits(head_seconds=0.2, body_seconds=0.2, idle_seconds=0.2, drain_seconds=1.0)
HALF_A_CHUNK = b"POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nhalf"


async def test_who_connects_and_says_nothing_is_not_idle_but_slow() -> None:
    async with serving(Echo(), replace(QUICK, idle_seconds=3600.0)) as server:
        client = await server.client()
        assert await client.rest() == b""
        await server.nobody()


@pytest.mark.parametrize("half", [b"G", HALF_A_HEAD, b"\r\n"])
async def test_half_a_head_gets_408_and_is_closed(half: bytes) -> None:
    app = Echo()
    async with serving(app, QUICK) as server:
        client = await server.client()
        reply = await client.ask(half)
        assert (reply.status, reply.problem["rule"]) == (408, "request_timeout")
        assert await client.rest() == b""
        assert app.scopes == []


@pytest.mark.parametrize("half", [HALF_A_BODY, HALF_A_CHUNK])
async def test_half_a_body_gets_408_and_the_app_is_told(half: bytes) -> None:
    app = Echo()
    async with serving(app, QUICK) as server:
        client = await server.client()
        reply = await client.ask(half)
        assert (reply.status, reply.problem["rule"]) == (408, "request_timeout")
        assert await client.rest() == b""
        await app.disconnected.wait()


@pytest.mark.parametrize("beginning", [HALF_A_HEAD, HALF_A_BODY])
async def test_a_byte_now_and_then_buys_no_time(beginning: bytes) -> None:
    async with serving(Echo(), QUICK) as server, anyio.create_task_group() as group:
        client = await server.client()
        await client.send(beginning)
        group.start_soon(_dribble, client, server, b"x")
        assert (await client.answer()).status == 408
        await client.rest()
        group.cancel_scope.cancel()


async def _dribble(client: Client, server: Serving, what: bytes) -> None:
    while True:
        await client.send(what)
        await server.beats(1)


async def test_half_a_body_after_the_answer_began_ends_the_answer() -> None:
    gone = anyio.Event()

    async def app(_: Scope, receive: Receive, send: Send) -> None:
        await send(START)
        await stream(send, b"begun")
        assert await read_body(receive) is None
        await send({"type": "http.response.body", "body": b"nobody reads this"})
        gone.set()

    async with serving(app, QUICK) as server:
        client = await server.client()
        await client.send(HALF_A_BODY)
        whole = await client.rest()
        assert whole.endswith(b"5\r\nbegun\r\n")
        await gone.wait()
        assert len(server.crowd.leaving) == 1


async def test_a_large_upload_that_makes_progress_is_not_cut() -> None:
    parts = 16
    async with serving(Echo(), QUICK) as server:
        client = await server.client()
        await client.send(post(b"")[:-5] + b"%d\r\n\r\n" % (parts * 16_384))
        for _ in range(parts):
            await client.send(b"x" * 16_384)
            await server.beats(1)
        assert server.crowd.beat > 2 * server.crowd.body
        assert len((await client.answer()).body) == parts * 16_384


async def test_an_app_that_takes_its_time_is_not_the_clients_fault() -> None:
    read_on = anyio.Event()

    async def app(_: Scope, receive: Receive, send: Send) -> None:
        await read_on.wait()
        body = await read_body(receive)
        await answer(send, b"%d" % len(body or b""))

    async with serving(app, QUICK) as server, anyio.create_task_group() as group:
        plain, asking = await server.client(), await server.client()
        group.start_soon(plain.send, post(b"x" * 20_000_000))
        await asking.send(post(b"hello", b"Expect: 100-continue").removesuffix(b"hello"))
        await server.beats(3 * server.crowd.body)
        read_on.set()
        assert (await asking.answer(head_only=True)).status == 100
        assert (await asking.ask(b"hello")).body == b"5"
        assert (await plain.answer()).body == b"20000000"


async def test_who_asks_before_sending_gets_no_second_request_on_the_connection() -> None:
    async def app(_: Scope, __: Receive, send: Send) -> None:
        await answer(send, b"too large", 413)

    async with serving(app, QUICK) as server:
        client = await server.client()
        reply = await client.ask(post(b"hello", b"Expect: 100-continue").removesuffix(b"hello"))
        assert (reply.status, reply.headers["connection"]) == (413, "close")
        assert await client.rest() == b""


async def test_an_idle_connection_is_closed_and_its_next_request_has_all_its_time() -> None:
    limits = ServerLimits(head_seconds=0.2, body_seconds=0.2, idle_seconds=0.6, drain_seconds=1.0)
    async with serving(Echo(), limits) as server:
        client = await server.client()
        assert (await client.ask()).status == 200
        await server.beats(server.crowd.head + 2)
        await client.send(HALF_A_HEAD)
        await server.beats(server.crowd.head - 3)
        assert (await client.ask(GET.removeprefix(HALF_A_HEAD))).status == 200
        assert await client.rest() == b""
        await server.nobody()


async def test_the_rest_of_a_body_is_read_past_if_it_comes_and_not_waited_for_long() -> None:
    async def app(_: Scope, __: Receive, send: Send) -> None:
        await answer(send, b"enough", 413)

    async with serving(app, QUICK) as server:
        sends, stops = await server.client(), await server.client()
        assert (await stops.ask(HALF_A_BODY)).status == 413
        assert (await sends.ask(HALF_A_BODY)).status == 413
        assert (await sends.ask(b"x" * 996 + GET)).status == 413
        assert await stops.rest() == b""


async def test_an_upload_that_goes_on_after_its_answer_is_not_read_for_ever() -> None:
    async def app(_: Scope, __: Receive, send: Send) -> None:
        await answer(send, b"enough", 413)

    async with serving(app, QUICK) as server:
        client = await server.client()
        assert (await client.ask(post(b"")[:-5] + b"9" * 15 + b"\r\n\r\n")).status == 413
        with pytest.raises(ConnectionError):
            await _dribble(client, server, b"x" * 16_384)


async def test_who_waits_for_a_second_answer_has_waited_for_us() -> None:
    async def app(_: Scope, receive: Receive, send: Send) -> None:
        body = await read_body(receive)
        if body == b"slow":
            await server.beats(3 * server.crowd.idle)
        await answer(send, body or b"")

    async with serving(app, QUICK) as server:
        client = await server.client()
        await client.send(post(b"fast") + post(b"slow") + post(b"last"))
        assert [(await client.answer()).body for _ in range(3)] == [b"fast", b"slow", b"last"]


async def test_who_stops_reading_a_long_answer_is_cut_off() -> None:
    gone = anyio.Event()

    async def app(_: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send(START)
        for __ in range(1000):
            await stream(send, b"x" * 65_536)
        assert (await receive())["type"] == "http.disconnect"
        gone.set()

    async with serving(app, QUICK) as server:
        client = await server.client()
        await client.send(GET)
        await gone.wait()
        await server.nobody()


async def test_who_reads_a_long_answer_slowly_is_not_cut_off() -> None:
    parts = 400

    async def app(_: Scope, __: Receive, send: Send) -> None:
        await send(START)
        for ___ in range(parts):
            await stream(send, b"x" * 65_536)
        await send({"type": "http.response.body"})

    async with serving(app, replace(QUICK, drain_seconds=20.0)) as server:
        client = await server.client()
        await client.send(GET)
        reply = await client.answer(head_only=True)
        assert reply.headers["transfer-encoding"] == "chunked"
        early = bytearray()
        for _ in range(4 * server.crowd.body):
            early += await client.reader.readexactly(655_360)
            await server.beats(1)
        server.stop.set()
        assert (early + await client.rest()).count(b"x") == parts * 65_536


async def test_a_thousand_half_sent_requests_keep_nobody_out() -> None:
    raise_file_limit(3000)
    limits = ServerLimits(head_seconds=2.0, body_seconds=2.0, idle_seconds=2.0, drain_seconds=1.0)
    async with serving(Echo(), limits) as server:
        slow = [await server.client() for _ in range(1000)]
        for number, client in enumerate(slow):
            await client.send(HALF_A_HEAD if number % 2 else HALF_A_BODY)
        for number in range(50):
            polite = await server.client()
            assert (await polite.ask(post(b"%d" % number))).body == b"%d" % number
            assert len(server.crowd.connections) - len(server.crowd.leaving) <= 1000
        for client in slow:
            assert (await client.rest())[:12] in {b"HTTP/1.1 408", b"HTTP/1.1 503"}


async def test_the_one_who_waits_longest_makes_room() -> None:
    limits = ServerLimits(connections=2, drain_seconds=1.0)
    async with serving(Echo(), limits) as server:
        half, idle = await server.client(), await server.client()
        await half.send(HALF_A_HEAD)
        assert (await idle.ask()).status == 200
        third = await server.client()
        assert (await third.ask()).status == 200
        refused = await half.answer()
        assert (refused.status, refused.problem["rule"]) == (503, "overloaded")
        assert (await idle.ask()).status == 200
        fourth = await server.client()
        assert (await fourth.ask()).status == 200
        assert await third.rest() == b""
        assert (await idle.ask()).status == 200


async def test_the_app_of_one_who_made_room_finds_nobody() -> None:
    begun, go_on, told = anyio.Event(), anyio.Event(), anyio.Event()

    async def app(_: Scope, receive: Receive, __: Send) -> None:
        begun.set()
        await go_on.wait()
        assert (await receive())["type"] == "http.disconnect"
        told.set()

    async with serving(app, ServerLimits(connections=1, drain_seconds=1.0)) as server:
        asking = await server.client()
        await asking.send(post(b"hello", b"Expect: 100-continue").removesuffix(b"hello"))
        await begun.wait()
        await server.client()
        assert (await asking.answer()).status == 503
        go_on.set()
        await told.wait()
        assert await asking.rest() == b""


async def test_when_all_are_busy_a_newcomer_is_told_to_come_back() -> None:
    go_on, all_busy = anyio.Event(), anyio.Event()

    async def app(_: Scope, __: Receive, send: Send) -> None:
        if len(server.crowd.tasks) == 2:
            all_busy.set()
        await go_on.wait()
        await answer(send)

    async with serving(app, ServerLimits(connections=2, drain_seconds=1.0)) as server:
        busy = [await server.client() for _ in range(2)]
        for client in busy:
            await client.send(GET)
        await all_busy.wait()
        for _ in range(3):
            newcomer = await server.client()
            refused = await newcomer.ask()
            assert (refused.status, refused.headers["retry-after"]) == (503, "1")
            assert refused.problem["rule"] == "overloaded"
            assert await newcomer.rest() == b""
        go_on.set()
        assert [(await client.answer()).status for client in busy] == [200, 200]
        newcomer = await server.client()
        assert (await newcomer.ask()).status == 200


async def test_a_flood_of_newcomers_leaves_few_behind() -> None:
    raise_file_limit(1500)
    async with serving(Echo(), ServerLimits(connections=1, drain_seconds=1.0)) as server:
        for _ in range(500):
            client = await server.client()
            await client.send(HALF_A_HEAD)
            assert len(server.crowd.connections) <= 130
        assert (await (await server.client()).ask()).status == 200
