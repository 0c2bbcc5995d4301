"""What is a request: RFC 9112, as strictly as it takes for two servers to read it alike."""

from __future__ import annotations

from itertools import pairwise

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.host.wire import GET, Echo, post, serving

pytestmark = pytest.mark.requirement("C12.2")

POST = b"POST / HTTP/1.1\r\nHost: here\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"

BAD_HEADS = {
    "both lengths": POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "both lengths turned": POST
    + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "two lengths": POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    "a list of lengths": POST + b"Content-Length: 5, 5\r\n\r\nhello",
    "a plus": POST + b"Content-Length: +5\r\n\r\nhello",
    "a minus": POST + b"Content-Length: -5\r\n\r\nhello",
    "an underscore": POST + b"Content-Length: 1_0\r\n\r\nhellohello",
    "a hexadecimal length": POST + b"Content-Length: 0x5\r\n\r\nhello",
    "an empty length": POST + b"Content-Length:\r\n\r\nhello",
    "an endless length": POST + b"Content-Length: 99999999999999999999999\r\n\r\n",
    "gzip, chunked": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunked, gzip": POST + b"Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    "chunked twice": POST + b"Transfer-Encoding: chunked\r\n" * 2 + b"\r\n0\r\n\r\n",
    "identity": POST + b"Transfer-Encoding: identity\r\n\r\nhello",
    "xchunked": POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunked in 1.0": b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a folded line": b"GET / HTTP/1.1\r\nHost: here\r\nX: a\r\n b\r\n\r\n",
    "NUL": b"GET / HTTP/1.1\r\nHost: here\r\nX: a\0b\r\n\r\n",
    "a bare CR": b"GET / HTTP/1.1\r\nHost: here\r\nX: a\rb\r\n\r\n",
    "a bare LF": b"GET / HTTP/1.1\r\nHost: here\r\nX: a\nb: c\r\n\r\n",
    "only LF": b"GET / HTTP/1.1\nHost: here\n\n",
    "a space before the colon": b"GET / HTTP/1.1\r\nHost : here\r\n\r\n",
    "no name": b"GET / HTTP/1.1\r\nHost: here\r\n: x\r\n\r\n",
    "no Host": b"GET / HTTP/1.1\r\n\r\n",
    "two Hosts": b"GET / HTTP/1.1\r\nHost: here\r\nHost: there\r\n\r\n",
    "two Hosts in 1.0": b"GET / HTTP/1.0\r\nHost: here\r\nHost: there\r\n\r\n",
    "another host": b"GET http://there/ HTTP/1.1\r\nHost: here\r\n\r\n",
    "a target without a path": b"GET http://here HTTP/1.1\r\nHost: here\r\n\r\n",
    "bytes in the target": b"GET /\xe9 HTTP/1.1\r\nHost: here\r\n\r\n",
    "another version": b"GET / HTTP/2.0\r\nHost: here\r\n\r\n",
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no method": b"nonsense\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
}


@pytest.mark.parametrize("request_bytes", BAD_HEADS.values(), ids=list(BAD_HEADS))
async def test_what_two_servers_could_read_in_two_ways_is_refused(request_bytes: bytes) -> None:
    app = Echo()
    async with serving(app) as server:
        client = await server.client()
        answer = await client.ask(request_bytes)
        assert answer.status == 400
        assert answer.problem["rule"] == "bad_request"
        assert answer.headers["connection"] == "close"
        assert await client.rest() == b""
        assert app.scopes == []


@pytest.mark.parametrize("request_bytes", BAD_HEADS.values(), ids=list(BAD_HEADS))
async def test_it_is_refused_also_when_it_comes_byte_by_byte(request_bytes: bytes) -> None:
    app = Echo()
    async with serving(app) as server:
        client = await server.client()
        for position in range(len(request_bytes)):
            client.writer.write(request_bytes[position : position + 1])
            await anyio.lowlevel.checkpoint()
        assert (await client.answer()).status == 400
        assert app.scopes == []


@pytest.mark.parametrize(
    "chunks",
    [
        b"0x5\r\nhello\r\n0\r\n\r\n",
        b"+5\r\nhello\r\n0\r\n\r\n",
        b"-5\r\nhello\r\n0\r\n\r\n",
        b"0_5\r\nhello\r\n0\r\n\r\n",
        b"5 \r\nhello\r\n0\r\n\r\n",
        b"5\nhello\r\n0\r\n\r\n",
        b"5\r\nhello\n0\r\n\r\n",
        b"5\r\nhelloXX0\r\n\r\n",
        b"\r\nhello\r\n0\r\n\r\n",
        b"fffffffffffffffff\r\nhello\r\n0\r\n\r\n",
        b"5\r\nhello\r\n0\r\nContent-Length: 7\r\n\r\n",
    ],
)
async def test_a_wrong_chunk_is_refused_and_the_app_told(chunks: bytes) -> None:
    app = Echo()
    async with serving(app) as server:
        client = await server.client()
        answer = await client.ask(CHUNKED + chunks)
        assert (answer.status, answer.problem["rule"]) == (400, "bad_request")
        assert await client.rest() == b""
        await app.disconnected.wait()


@pytest.mark.parametrize(
    ("request_bytes", "status", "rule"),
    [
        (b"GET / HTTP/1.1\r\nHost: here\r\nX: " + b"x" * 66_000, 431, "head_too_large"),
        (
            b"GET / HTTP/1.1\r\nHost: here\r\nX: " + b"x" * 66_000 + b"\r\n\r\n",
            431,
            "head_too_large",
        ),
        (GET[:-2] + b"X: y\r\n" * 100 + b"\r\n", 431, "head_too_large"),
        (b"\r\n" * 40_000, 431, "head_too_large"),
        (GET + GET[:-2] + b"X: " + b"x" * 66_000 + b"\r\n\r\n", 200, ""),
        (b"GET /" + b"x" * 8192 + b" HTTP/1.1\r\nHost: here\r\n\r\n", 414, "uri_too_long"),
        (b"GET /" + b"x" * 9000, 414, "uri_too_long"),
    ],
)
async def test_a_head_has_its_limits(request_bytes: bytes, status: int, rule: str) -> None:
    async with serving(Echo()) as server:
        client = await server.client()
        answer = await client.ask(request_bytes)
        assert answer.status == status
        assert not rule or answer.problem["rule"] == rule
        assert await client.rest() == b""


async def test_a_head_within_its_limits_passes() -> None:
    app = Echo()
    async with serving(app) as server:
        client = await server.client()
        long = b"GET /" + b"x" * 8191 + b" HTTP/1.1\r\nHost: here\r\nX: " + b"y" * 56_000
        assert (await client.ask(long + b"\r\n\r\n")).status == 200
        assert (await client.ask(GET[:-2] + b"X: y\r\n" * 99 + b"\r\n")).status == 200
        assert len(app.scopes[1]["headers"]) == 100


@pytest.mark.parametrize(
    "request_bytes",
    [
        GET[:-2] + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        POST + b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 5\r\n\r\nhello",
        b"CONNECT there:443 HTTP/1.1\r\nHost: there:443\r\n\r\n",
    ],
)
async def test_no_other_protocol_is_changed_to(request_bytes: bytes) -> None:
    app = Echo()
    async with serving(app) as server:
        client = await server.client()
        answer = await client.ask(request_bytes)
        assert (answer.status, answer.problem["rule"]) == (400, "no_upgrade")
        assert await client.rest() == b""
        assert app.scopes == []


async def test_the_scope_tells_who_asks_for_what() -> None:
    app = Echo()
    async with serving(app) as server:
        client = await server.client()
        await client.ask(b"GET /a%20b/c?d=%31 HTTP/1.1\r\nHOST: \t here\t \r\nX-Y:  z  \r\n\r\n")
        scope = app.scopes[0]
        assert scope["client"] == client.writer.get_extra_info("sockname")
        assert scope["server"] == server.address
        assert (scope["type"], scope["scheme"], scope["method"]) == ("http", "http", "GET")
        assert (scope["path"], scope["raw_path"]) == ("/a b/c", b"/a%20b/c")
        assert (scope["query_string"], scope["http_version"]) == (b"d=%31", "1.1")
        assert scope["headers"] == [(b"host", b"here"), (b"x-y", b"z")]
        assert scope["state"] == {"stopping": server.stop}


async def test_a_target_may_be_absolute_if_it_is_ours() -> None:
    app = Echo()
    async with serving(app) as server:
        client = await server.client()
        await client.ask(b"GET http://Here:80/x?y HTTP/1.1\r\nHost: here:80\r\n\r\n")
        await client.ask(b"OPTIONS * HTTP/1.1\r\nHost: here\r\n\r\n")
        assert [scope["path"] for scope in app.scopes] == ["/x", "*"]


async def test_a_header_after_the_body_never_joins_those_before_it() -> None:
    app = Echo()
    async with serving(app) as server:
        client = await server.client()
        trailed = CHUNKED + b"5;a=b\r\nhello\r\n0\r\nAuthorization: Bearer x\r\n\r\n"
        assert (await client.ask(trailed)).body == b"hello"
        assert (await client.ask(post(b"again"))).body == b"again"
        names = [name for name, _ in app.scopes[0]["headers"]]
        assert names == [b"host", b"transfer-encoding"]


@pytest.mark.parametrize(
    "endless",
    [b"5;" + b"x" * 300_000, b"0\r\nX: " + b"x" * 300_000, b"0\r\n" + b"X: y\r\n" * 50_000],
)
async def test_what_is_neither_head_nor_body_has_a_limit(endless: bytes) -> None:
    async with serving(Echo()) as server:
        client = await server.client()
        await client.send(CHUNKED + b"5\r\nhello\r\n")
        answer = await client.ask(endless)
        assert (answer.status, answer.problem["rule"]) == (400, "bad_request")


async def test_http_1_0_is_answered_and_closed() -> None:
    async with serving(Echo()) as server:
        client = await server.client()
        answer = await client.ask(b"GET / HTTP/1.0\r\n\r\n")
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert await client.rest() == b""


@settings(max_examples=40, deadline=None)
@given(cuts=st.lists(st.integers(0, 400), max_size=8), body=st.binary(max_size=200))
async def test_however_it_is_cut_a_stream_of_requests_means_the_same(
    cuts: list[int], body: bytes
) -> None:
    stream = GET + post(body) + CHUNKED + b"5\r\nhello\r\n0\r\n\r\n" + GET
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    async with serving(Echo()) as server:
        client = await server.client()
        for start, end in pairwise(places):
            client.writer.write(stream[start:end])
            await anyio.lowlevel.checkpoint()
        answers = [await client.answer() for _ in range(4)]
        assert [(answer.status, answer.body) for answer in answers] == [
            (200, b""),
            (200, body),
            (200, b"hello"),
            (200, b""),
        ]


@settings(max_examples=60, deadline=None)
@given(noise=st.binary(min_size=1, max_size=300), where=st.integers(0, len(GET)))
async def test_noise_is_answered_with_a_problem_or_waited_for_and_harms_nobody(
    noise: bytes, where: int
) -> None:
    async with serving(Echo()) as server:
        rude, polite = await server.client(), await server.client()
        rude.writer.write(GET[:where] + noise + GET[where:])
        rude.writer.write_eof()
        data = await rude.rest()
        assert data == b"" or data.startswith((b"HTTP/1.1 4", b"HTTP/1.1 200"))
        assert (await polite.ask()).status == 200
