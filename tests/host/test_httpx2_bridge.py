"""httpx2 over our own client: what breaks is told in its words, and what was ours is the cause."""

from __future__ import annotations

import anyio
import httpx2
import pytest
from aiohttp import web
from tests.host.test_httpx_bridge import echo, opening
from tests.sources.a2a.web_peers import serving

from openfang.core.errors import SourceFailed
from openfang.host.bridged import Bounds
from openfang.host.http import FetchFailed
from openfang.host.httpx2_bridge import bridged2

pytestmark = pytest.mark.requirement("C6.5")


async def test_a_request_goes_along_with_its_headers_and_no_others() -> None:
    async with serving(echo) as url, opening() as opens, bridged2(opens, Bounds()) as client:
        answer = await client.post(url, content=b"hello", headers={"X-Mine": "1"})
    sent = answer.json()["sent"]
    assert (answer.status_code, answer.json()["said"], sent["x-mine"]) == (200, "hello", "1")
    assert "httpx" not in sent["User-Agent"]
    assert {"set-cookie", "x-secret", "content-encoding"}.isdisjoint(answer.headers)


async def test_how_long_to_wait_comes_along() -> None:
    async def busy(request: web.BaseRequest) -> web.StreamResponse:
        del request
        return web.Response(status=429, headers={"Retry-After": "7", "Retry-After-Ms": "6500"})

    async with serving(busy) as url, opening() as opens, bridged2(opens, Bounds()) as client:
        answer = await client.get(url)
    assert (answer.headers["Retry-After"], answer.headers["Retry-After-Ms"]) == ("7", "6500")


async def test_events_come_as_they_are_sent_whatever_was_asked_for() -> None:
    second = anyio.Event()

    async def slow(request: web.BaseRequest) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        await answer.write(b"data: 1\n\n")
        await second.wait()
        await answer.write(b"data: 2\n\n")
        return answer

    async with serving(slow) as url, opening() as opens, bridged2(opens, Bounds()) as client:
        with anyio.fail_after(30):
            async with client.stream("POST", url, json={}) as answer:
                pieces = answer.aiter_bytes()
                first = await anext(pieces)
                second.set()
                rest = [piece async for piece in pieces]
    assert (first, rest) == (b"data: 1\n\n", [b"data: 2\n\n"])


async def test_what_cannot_be_reached_is_an_error_of_connections_with_ours_as_its_cause() -> None:
    async with opening() as opens, bridged2(opens, Bounds()) as client:
        with pytest.raises(httpx2.ConnectError) as failed:
            await client.get("http://127.0.0.1:1/")
    assert isinstance(failed.value.__cause__, FetchFailed)


@pytest.mark.parametrize("bounds", [Bounds(limit=99), Bounds(seconds=0.2)])
async def test_what_is_too_long_or_too_late_is_an_error_of_reading(bounds: Bounds) -> None:
    async def trickle(request: web.BaseRequest) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        await answer.write(b"x" * 100)
        if bounds.limit > 100:
            await anyio.sleep_forever()
        return answer

    async with serving(trickle) as url, opening() as opens, bridged2(opens, bounds) as client:
        with pytest.raises(httpx2.ReadError) as failed, anyio.fail_after(30):
            await client.get(url)
    assert isinstance(failed.value.__cause__, SourceFailed)
