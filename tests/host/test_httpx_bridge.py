"""httpx over our own client: what goes along, what does not, and how much comes back."""

from __future__ import annotations

import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import httpx
import pytest
from aiohttp import web
from anyio.abc import SocketAttribute
from anyio.lowlevel import checkpoint
from tests.host.alone import SOURCES
from tests.sources.a2a.web_peers import serving, streaming

from openfang.core.errors import SourceFailed
from openfang.host.http import FetchFailed, HttpClient, Request, Streaming
from openfang.host.httpx_bridge import bridged

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from anyio.abc import SocketStream

    from openfang.host.httpx_bridge import Opens

pytestmark = pytest.mark.requirement("C5.8")
WANTED = {"Accept": "text/event-stream"}


@asynccontextmanager
async def opening() -> AsyncGenerator[Opens]:
    async with HttpClient() as http:

        @asynccontextmanager
        async def opens(
            method: str, url: str, headers: Mapping[str, str], body: bytes | None
        ) -> AsyncGenerator[Streaming]:
            hosts = ("127.0.0.1",)
            request = Request(
                url=url,
                allow_hosts=hosts,
                method=method,
                headers=headers,
                body=body,
                allow_private=True,
            )
            async with http.stream(request) as answer:
                yield answer

        yield opens


async def echo(request: web.BaseRequest) -> web.StreamResponse:
    headers = {"Set-Cookie": "a=1", "X-Secret": "1", "ETag": '"e"', "Content-Encoding": "identity"}
    body = {"said": await request.text(), "sent": dict(request.headers)}
    return web.json_response(body, headers=headers)


async def test_a_request_goes_along_with_its_headers_and_no_others() -> None:
    async with serving(echo) as url, opening() as opens, bridged(opens) as client:
        answer = await client.post(url, content=b"hello", headers={"X-Mine": "1"})
        again = await client.get(url)
    sent = answer.json()["sent"]
    assert (answer.status_code, answer.json()["said"], sent["x-mine"]) == (200, "hello", "1")
    assert "httpx" not in sent["User-Agent"]
    assert answer.headers["etag"] == '"e"'
    assert {"set-cookie", "x-secret", "content-encoding"}.isdisjoint(answer.headers)
    assert "Cookie" not in again.json()["sent"]


async def test_what_came_before_a_body_broke_off_is_given_first() -> None:
    async def breaks(stream: SocketStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwords\r\n"
            )

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    url = f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"  # noqa: S610 - a port
    async with listener, anyio.create_task_group() as tasks, opening() as opens:
        tasks.start_soon(listener.serve, breaks)
        async with opens("GET", url, {}, None) as answer:
            with anyio.fail_after(30):
                while answer._answer.content.exception() is None:  # pyright: ignore[reportPrivateUsage]
                    await checkpoint()
            assert await answer.some() == b"words"
            with pytest.raises(FetchFailed, match="broke off"):
                await answer.some()
        tasks.cancel_scope.cancel()


async def test_a_body_over_the_limit_fails() -> None:
    async def large(request: web.BaseRequest) -> web.StreamResponse:
        del request
        return web.Response(body=b"x" * 1_000)

    async with serving(large) as url, opening() as opens, bridged(opens, limit=999) as client:
        with pytest.raises(SourceFailed, match="more than 999 bytes"):
            await client.get(url)


async def test_a_plain_body_has_its_time_and_a_stream_that_was_asked_for_has_all() -> None:
    async def slow(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/events":
            response = await streaming(request)
        else:
            response = web.StreamResponse()
            await response.prepare(request)
        await response.write(b"data: 1\n\n")
        await anyio.sleep_forever()
        return response

    async with serving(slow) as url, opening() as opens, bridged(opens, seconds=0.1) as client:
        for path in ("", "/events"):
            with pytest.raises(SourceFailed, match="took too long"):
                await client.get(f"{url}{path}")
        with anyio.move_on_after(0.3) as scope:
            async with client.stream("GET", f"{url}/events", headers=WANTED) as answer:
                lines = answer.aiter_lines()
                assert await anext(lines) == "data: 1"
                assert await anext(lines) == ""
                await anext(lines)
        assert scope.cancelled_caught


async def test_what_is_left_open_ends_with_the_client() -> None:
    gone = anyio.Event()

    async def endless(request: web.BaseRequest) -> web.StreamResponse:
        response = await streaming(request)
        try:
            while True:
                await response.write(b": still here\n\n")
                await anyio.sleep(0.01)
        finally:
            gone.set()

    with anyio.fail_after(30):
        async with serving(endless) as url, opening() as opens:
            async with bridged(opens) as client:
                request = client.build_request("GET", url)
                answer = await client.send(request, stream=True)
                assert isinstance(answer, httpx.Response)
            await gone.wait()


async def test_a_stream_has_its_most() -> None:
    async def flood(request: web.BaseRequest) -> web.StreamResponse:
        response = await streaming(request)
        while True:
            await response.write(b"data: " + b"x" * 10_000)

    async with serving(flood) as url, opening() as opens, bridged(opens, most=100_000) as client:
        answer = await client.send(client.build_request("GET", url, headers=WANTED), stream=True)
        with pytest.raises(SourceFailed, match="more than 100000 bytes"):
            await answer.aread()


async def test_an_event_has_the_limit_of_a_body() -> None:
    async def flood(request: web.BaseRequest) -> web.StreamResponse:
        response = await streaming(request)
        await response.write(b"data: " + b"x" * 400 + b"\r\n\r\ndata: " + b"x" * 800)
        return response

    async with (
        serving(flood) as url,
        opening() as opens,
        bridged(opens, limit=500) as client,
        client.stream("GET", url, headers=WANTED) as answer,
    ):
        lines = answer.aiter_lines()
        assert len(await anext(lines)) == 406
        assert await anext(lines) == ""
        with pytest.raises(SourceFailed, match="more than 500 bytes"):
            await anext(lines)


MANY = b'{"parts":[' + b'{"text":"x"},' * 20_000 + b"{}]}"
HEAVY = {
    "a body": (MANY, "application/json"),
    "an event": (b"data: " + MANY + b"\n\n", "text/event-stream; charset=utf-8"),
    "an event behind a quote": (b': "\ndata: ' + MANY + b"\n\n", "text/event-stream"),
    "another encoding": (MANY.decode().encode("utf-16"), "application/json"),
}


@pytest.mark.parametrize("kind", HEAVY)
async def test_json_of_many_small_values_reaches_nobody(kind: str) -> None:
    body, named = HEAVY[kind]

    async def heavy(request: web.BaseRequest) -> web.StreamResponse:
        del request
        return web.Response(body=body, headers={"Content-Type": named})

    async with serving(heavy) as url, opening() as opens, bridged(opens) as client:
        with pytest.raises(SourceFailed, match=r"more than 50000 tokens|no JSON in UTF-8"):
            await client.get(url, headers=WANTED)


async def test_a_long_text_is_no_burden_and_events_are_in_utf_8() -> None:
    text = '{"text":"' + "one, two, {three} é " * 20_000 + '"}'

    async def long(request: web.BaseRequest) -> web.StreamResponse:
        kind = "text/event-stream; charset=cp037" if request.path == "/events" else "x/json"
        return web.Response(body=f"data: {text}\n\n".encode(), headers={"Content-Type": kind})

    async with serving(long) as url, opening() as opens, bridged(opens) as client:
        answer = await client.get(f"{url}/events", headers=WANTED)
        assert answer.text == f"data: {text}\n\n"
        assert answer.headers["content-type"] == "text/event-stream"
        assert (await client.get(url)).content == answer.content


def test_nothing_of_it_is_imported_before_a_peer_is_spoken_to() -> None:
    script = (
        "import sys, openfang.app.a2a.peers, openfang.sources.builtin.a2a;"
        "found = {'a2a', 'httpx', 'google.protobuf', 'aiohttp'} & set(sys.modules);"
        "assert not found, found"
    )
    environment = {"PYTHONPATH": SOURCES}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=30)
