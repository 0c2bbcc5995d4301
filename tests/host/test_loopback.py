"""The client of our own daemon, against servers that say what a test wants, byte by byte."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.core.errors import HomeError
from openfang.host import loopback
from openfang.host.answer import Answer
from openfang.host.loopback import DaemonUnreachable, Loopback, Reply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    Script = Callable[["Peer"], Awaitable[None]]

pytestmark = pytest.mark.requirement("C20")

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
SECONDS = 30.0


class Peer:
    """The server's end of one connection, and which one it is."""

    def __init__(
        self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.number = number
        self.reader = reader
        self.writer = writer

    async def request(self) -> bytes:
        """Read one request: its head, and the body that it announces."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        return head + await self.reader.readexactly(int(length or 0))

    def say(self, data: bytes) -> None:
        self.writer.write(data)

    async def gone(self) -> None:
        """Wait until the client has closed."""
        while await self.reader.read(65_536):
            pass


@asynccontextmanager
async def served(script: Script, host: str = "127.0.0.1") -> AsyncGenerator[str]:
    """Run the script for each connection; what it raises fails the test."""
    failures: list[Exception] = []
    count = 0

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        count += 1
        try:
            await script(Peer(count, reader, writer))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        except Exception as error:  # noqa: BLE001 - the test reads it
            failures.append(error)
        finally:
            writer.close()

    server = await asyncio.start_server(connected, host, 0)
    port = server.sockets[0].getsockname()[1]
    try:
        with anyio.fail_after(SECONDS * 2):
            yield f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    finally:
        server.close()
    assert not failures


def saying(data: bytes) -> Script:
    """A server that answers every connection with these bytes, and closes it."""

    async def script(peer: Peer) -> None:
        await peer.request()
        peer.say(data)

    return script


async def get(url: str, path: str = "/") -> Reply:
    async with Loopback(url) as client:
        return await client.request("GET", path, timeout=SECONDS)


async def test_a_request_arrives_as_it_was_meant() -> None:
    seen: list[bytes] = []

    async def script(peer: Peer) -> None:
        seen.append(await peer.request())
        peer.say(b"HTTP/1.1 201 Created\r\nX-One: 1\r\nx-one: 2\r\nContent-Length: 3\r\n\r\nyes")

    async with served(script) as url, Loopback(url, headers=[("Authorization", "Bearer k")]) as one:
        reply = await one.request(
            "POST", "/api/a?b=c", body=b"{}", headers=[("X-Two", "2")], timeout=SECONDS
        )
    assert reply == Reply(status=201, headers={"x-one": "1, 2", "content-length": "3"}, body=b"yes")
    assert seen == [
        b"POST /api/a?b=c HTTP/1.1\r\nHost: " + url.removeprefix("http://").encode() + b"\r\n"
        b"Authorization: Bearer k\r\nX-Two: 2\r\nContent-Length: 2\r\n\r\n{}"
    ]


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6")
async def test_an_ipv6_address_is_reached_and_named_in_brackets() -> None:
    seen: list[bytes] = []

    async def script(peer: Peer) -> None:
        seen.append(await peer.request())
        peer.say(OK)

    async with served(script, "::1") as url:
        assert (await get(url)).body == b"ok"
    assert f"Host: {url.removeprefix('http://')}\r\n".encode() in seen[0]


async def test_a_connection_is_kept_and_used_again() -> None:
    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            peer.say(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%d" % peer.number)

    async with served(script) as url, Loopback(url) as client:
        replies = [await client.request("POST", "/", timeout=SECONDS) for _ in range(3)]
    assert [reply.body for reply in replies] == [b"1", b"1", b"1"]


async def test_requests_side_by_side_take_a_connection_each_and_wait_for_nobody() -> None:
    together = asyncio.Barrier(5)

    async def script(peer: Peer) -> None:
        await peer.request()
        await together.wait()
        peer.say(OK)

    async with served(script) as url, Loopback(url) as client, anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(lambda: client.request("GET", "/", timeout=SECONDS))


async def test_a_connection_that_was_closed_meanwhile_is_replaced_before_anything_is_sent() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        peer.say(OK)
        if peer.number == 1:
            peer.writer.close()
            closed.set()
        else:
            await peer.gone()

    closed = asyncio.Event()
    async with served(script) as url, Loopback(url) as client:
        await client.request("POST", "/", timeout=SECONDS)
        await closed.wait()
        await client._idle[0].reader.read()
        assert (await client.request("POST", "/", timeout=SECONDS)).body == b"ok"


def closing_under_the_second(received: list[bytes]) -> Script:
    """A server whose first connection ends when the second request on it has arrived."""

    async def script(peer: Peer) -> None:
        while True:
            received.append(await peer.request())
            if len(received) == 2:
                return
            peer.say(OK)

    return script


async def test_a_get_on_a_kept_connection_that_ends_is_sent_once_more() -> None:
    received: list[bytes] = []
    async with served(closing_under_the_second(received)) as url, Loopback(url) as client:
        for _ in range(2):
            assert (await client.request("GET", "/", timeout=SECONDS)).body == b"ok"
    assert len(received) == 3


async def test_a_post_on_a_kept_connection_that_ends_is_never_sent_again() -> None:
    received: list[bytes] = []
    async with served(closing_under_the_second(received)) as url, Loopback(url) as client:
        await client.request("POST", "/", timeout=SECONDS)
        with pytest.raises(DaemonUnreachable, match="without an answer") as raised:
            await client.request("POST", "/", timeout=SECONDS)
    assert raised.value.sent
    assert "openfang audit tail" in raised.value.way_out
    assert len(received) == 2


async def test_a_get_is_not_sent_a_third_time() -> None:
    received: list[bytes] = []

    async def script(peer: Peer) -> None:
        received.append(await peer.request())
        if len(received) == 1:
            peer.say(OK)
            received.append(await peer.request())

    async with served(script) as url, Loopback(url) as client:
        await client.request("GET", "/", timeout=SECONDS)
        with pytest.raises(DaemonUnreachable, match="without an answer"):
            await client.request("GET", "/", timeout=SECONDS)
    assert len(received) == 3


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
WHOLE = {
    "a length": (OK, b"ok"),
    "chunks": (CHUNKED + b"1\r\no\r\n1;x=y\r\nk\r\n0\r\n\r\n", b"ok"),
    "trailers": (CHUNKED + b"2\r\nok\r\n0\r\nX-Late: 1\r\n\r\n", b"ok"),
    "the end of the connection": (b"HTTP/1.1 200 OK\r\n\r\nok", b"ok"),
    "an old version": (b"HTTP/1.0 200 OK\r\n\r\nok", b"ok"),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    "an interim answer": (b"HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n" + OK, b"ok"),
    "more than its length": (OK + b"and more", b"ok"),
    "a second answer": (OK + OK, b"ok"),
}


@pytest.mark.parametrize(("said", "body"), WHOLE.values(), ids=WHOLE.keys())
async def test_an_answer_is_read_however_its_end_is_told(said: bytes, body: bytes) -> None:
    async with served(saying(said)) as url:
        reply = await get(url)
    assert reply.body == body
    assert not {"x", "x-late"} & reply.headers.keys()


@pytest.mark.parametrize("said", [OK + b"surplus", OK + OK, b"HTTP/1.0 200 OK\r\n\r\nok"])
async def test_a_connection_that_said_too_much_is_not_used_again(said: bytes) -> None:
    async with served(saying(said)) as url, Loopback(url) as client:
        for _ in range(2):
            assert (await client.request("POST", "/", timeout=SECONDS)).body == b"ok"
            assert not client._idle


BROKEN = {
    "a length that lies": b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nok",
    "a chunk that is cut": CHUNKED + b"a\r\nok",
    "chunks without an end": CHUNKED + b"2\r\nok\r\n",
    "a chunk size that is none": CHUNKED + b"zz\r\nok\r\n0\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
    "a negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nok",
    "an endless length": b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n",
    "more than we read": b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "an endless head": b"HTTP/1.1 200 OK\r\n" + b"X-Filler: 0123456789\r\n" * 5_000,
    "endless interim answers": b"HTTP/1.1 103 Early Hints\r\n\r\n" * 5_000,
    "another protocol": b"SSH-2.0-OpenSSH_9.6\r\n",
    "an upgrade": b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
}


@pytest.mark.parametrize("said", BROKEN.values(), ids=BROKEN.keys())
async def test_an_answer_that_is_not_one_is_told_and_names_the_address(said: bytes) -> None:
    async with served(saying(said)) as url:
        with pytest.raises(DaemonUnreachable, match=url) as raised:
            await get(url)
    assert raised.value.way_out == "openfang status"


async def test_a_connection_reset_in_the_middle_is_not_taken_for_the_end() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        peer.say(b"HTTP/1.1 200 OK\r\n\r\nhalf")
        await peer.writer.drain()
        await seen.wait()
        peer.writer.transport.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0"
        )
        peer.writer.transport.abort()

    async def read(client: Loopback) -> None:
        async with client.stream("GET", "/") as answer:
            async for chunk in answer.chunks:
                assert chunk == b"half"
                seen.set()

    seen = asyncio.Event()
    async with served(script) as url, Loopback(url) as client:
        with pytest.raises(DaemonUnreachable, match="in the middle"):
            await read(client)


async def test_a_body_that_grows_beyond_the_bound_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loopback, "MOST_BYTES", 100_000)

    async def script(peer: Peer) -> None:
        await peer.request()
        peer.say(CHUNKED)
        while not peer.writer.is_closing():
            peer.say(b"8000\r\n" + b"x" * 0x8000 + b"\r\n")
            await peer.writer.drain()

    async with served(script) as url:
        with pytest.raises(DaemonUnreachable, match="more than 100000 bytes"):
            await get(url)


@pytest.mark.parametrize("begin", [b"", b"HTTP/1.1 200 OK\r\n", OK[:-1]])
async def test_a_slow_daemon_is_waited_for_until_the_deadline_and_then_left(begin: bytes) -> None:
    left = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        peer.say(begin)
        await peer.gone()
        left.set()

    async with served(script) as url, Loopback(url) as client:
        with pytest.raises(DaemonUnreachable, match=r"within 0\.05 s") as raised:
            await client.request("GET", "/", timeout=0.05)
        await left.wait()
        assert not client._idle
    assert raised.value.sent


async def test_a_cancelled_request_closes_its_connection() -> None:
    left, asked = asyncio.Event(), asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        asked.set()
        await peer.gone()
        left.set()

    async with served(script) as url, Loopback(url) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: client.request("GET", "/", timeout=None))
            await asked.wait()
            group.cancel_scope.cancel()
        await left.wait()


async def test_where_nobody_listens_the_sentence_names_address_and_command() -> None:
    with socket.socket() as taken:  # bound, and not listening: nobody else can take it meanwhile
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(DaemonUnreachable) as raised:
            await get(url)
    assert raised.value.message == f"The daemon at {url} does not answer: connection refused."
    assert (raised.value.way_out, raised.value.sent) == ("openfang status", False)


async def test_a_connection_that_nobody_accepts_is_given_up() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.settimeout(0)
            filler.connect_ex(full.getsockname())
        client = Loopback(f"http://127.0.0.1:{full.getsockname()[1]}", connect_seconds=0.05)
        with anyio.fail_after(SECONDS), pytest.raises(DaemonUnreachable) as raised:
            await client.request("GET", "/", timeout=0.2)
        for filler in fillers:
            filler.close()
    assert "within" in raised.value.message


async def test_a_stream_hands_over_each_piece_as_it_comes() -> None:
    wanted = asyncio.Queue[bytes]()

    async def script(peer: Peer) -> None:
        await peer.request()
        peer.say(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + CHUNKED[17:])
        while piece := await wanted.get():
            peer.say(b"%x\r\n%s\r\n" % (len(piece), piece))
        peer.say(b"0\r\n\r\n")

    async with (
        served(script) as url,
        Loopback(url) as client,
        client.stream("GET", "/api/events", headers=[("Last-Event-ID", "7")]) as answer,
    ):
        assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream")
        pieces: list[bytes] = []
        wanted.put_nowait(b"data: 1\n\n")
        async for piece in answer.chunks:
            pieces.append(piece)
            wanted.put_nowait(b"data: 2\n\n" if len(pieces) == 1 else b"")
    assert pieces == [b"data: 1\n\n", b"data: 2\n\n"]


async def test_a_stream_that_is_left_closes_its_connection() -> None:
    left = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        peer.say(CHUNKED + b"1\r\nx\r\n")
        await peer.gone()
        left.set()

    async with served(script) as url, Loopback(url) as client:
        async with client.stream("GET", "/") as answer:
            async for _ in answer.chunks:
                break
        await left.wait()


async def test_a_refused_stream_can_be_read_as_a_whole() -> None:
    said = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 11\r\n\r\n" + b'{"rule":""}'
    async with (
        served(saying(said)) as url,
        Loopback(url) as client,
        client.stream("GET", "/") as answer,
    ):
        assert (answer.status, await answer.read()) == (403, b'{"rule":""}')


@pytest.mark.parametrize(("said", "told"), [(b"", "without an answer"), (b"HT", "in the middle")])
async def test_a_stream_without_an_answer_is_told(said: bytes, told: str) -> None:
    async with served(saying(said)) as url, Loopback(url) as client:
        with pytest.raises(DaemonUnreachable, match=told):
            async with client.stream("GET", "/"):
                pass


async def test_a_stream_whose_head_is_late_is_given_up() -> None:
    async def script(peer: Peer) -> None:
        await peer.gone()

    async with served(script) as url, Loopback(url) as client:
        with pytest.raises(DaemonUnreachable, match=r"within 0\.05 s"):
            async with client.stream("GET", "/", timeout=0.05):
                pass


@pytest.mark.parametrize("value", ["a\r\nX-Admin: 1", "a\nb", "\0", "\udcff", "schlüssel"])
async def test_a_header_cannot_smuggle_another(value: str) -> None:
    client = Loopback("http://127.0.0.1:9", headers=[("Authorization", f"Bearer {value}")])
    with pytest.raises(HomeError, match="Authorization") as raised:
        await client.request("GET", "/", timeout=1)
    assert value not in raised.value.message


@pytest.mark.parametrize(
    ("method", "path"), [("get", "/"), ("HEAD", "/"), ("GET", "api"), ("GET", "/a b"), ("GET", "")]
)
async def test_what_is_no_request_is_not_sent(method: str, path: str) -> None:
    with pytest.raises(ValueError, match="no request"):
        await Loopback("http://127.0.0.1:9").request(method, path, timeout=1)


@pytest.mark.parametrize(
    "url", ["https://127.0.0.1:1", "http://127.0.0.1", "127.0.0.1:1", "http://h:1/x", ""]
)
def test_only_a_plain_address_is_a_daemons(url: str) -> None:
    with pytest.raises(ValueError, match="http://host:port"):
        Loopback(url)


@settings(max_examples=60, deadline=None)
@given(body=st.binary(max_size=300), cuts=st.lists(st.integers(1, 40), max_size=30))
def test_an_answer_reads_the_same_however_it_is_cut(body: bytes, cuts: list[int]) -> None:
    said = CHUNKED + b"".join(
        b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:100], body[100:]) if part
    )
    said += b"0\r\n\r\n"
    answer = Answer()
    for cut in cuts:
        if said[:cut]:
            answer.feed(said[:cut])
        said = said[cut:]
    if said:
        answer.feed(said)
    assert (answer.status, answer.complete, answer.keep, answer.take()) == (200, True, True, body)


@settings(max_examples=100, deadline=None)
@given(said=st.binary(max_size=200))
def test_any_bytes_are_an_answer_or_a_value_error(said: bytes) -> None:
    answer = Answer()
    try:
        answer.feed(b"HTTP/1.1 200 OK\r\n" + said)
    except ValueError:
        return
    assert answer.size >= len(answer.take())


def test_the_client_costs_no_http_library() -> None:
    heavy = {"aiohttp", "starlette", "uvicorn", "pydantic", "cyclopts", "http.client"}
    program = f"import sys, openfang.host.loopback; print(*({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.split() == []
