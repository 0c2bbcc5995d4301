"""When the streams of a session are opened, and what an answer may come on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sources.mcp.peers.web import Fields, Session, Stream, answer, serving, text
from tests.sources.mcp.test_http import call, connected, found

from openfang.protocols.mcp.sse import EventReader
from openfang.sources.mcp.http import _pause  # pyright: ignore[reportPrivateUsage] - no stream fails a thousand times here

if TYPE_CHECKING:
    from aiohttp import web

pytestmark = pytest.mark.requirement("C3.1", "C3.3")


async def test_the_servers_own_stream_is_open_before_anything_is_asked() -> None:
    peer = Session()
    async with connected(peer):
        assert peer.listening.is_set()


class Mute(Session):
    """Never answers the request for a stream of its own."""

    async def listen(self, request: web.Request) -> web.StreamResponse:
        await self.hang()
        return await super().listen(request)


async def test_a_stream_that_never_opens_keeps_nobody_waiting_for_long() -> None:
    async with serving(Mute()) as url:
        with anyio.fail_after(20):
            async with found(url) as connection:
                assert await call(connection, "echo", text="x") == "x"


class Elsewhere(Session):
    """Ends the stream of a call, and answers it on its own, long before it is to be asked again."""

    async def call(
        self, request: web.Request, number: object, params: Fields
    ) -> web.StreamResponse:
        del params
        async with Stream(request) as stream:
            await stream.raw(b"id: place\nretry: 600000\ndata: \n\n")
            await self.news.put(answer(number, text("elsewhere")))
        return stream.response()


async def test_an_answer_on_the_servers_own_stream_ends_the_wait_for_another() -> None:
    peer = Elsewhere()
    async with connected(peer) as connection:
        assert await call(connection, "echo") == "elsewhere"
    assert peer.methods.count("GET") == 1


@given(st.integers(0, 10**6), st.none() | st.floats(0, 10**6))
def test_the_wait_for_a_stream_that_never_comes_has_an_end(
    barren: int, asked: float | None
) -> None:
    reader = EventReader()
    reader.retry = asked
    assert 0 <= _pause(reader, barren) <= 600
    assert barren < 6 or _pause(reader, barren) >= 60
