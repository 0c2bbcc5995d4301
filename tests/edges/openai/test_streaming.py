"""Streams that are silent, unread or cut off."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import anyio
import openai
import pytest
from tests.edges.openai.clients import user
from tests.edges.openai.test_completions import complete

from openfang.core.agents import Words
from openfang.core.results import text_result
from openfang.edges.openai.streaming import Chunks, streamed
from openfang.edges.openai.written import Writer

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from tests.edges.demo import Demo
    from tests.edges.live import Live

    from openfang.core.progress import Listener
    from openfang.core.results import Result

pytestmark = pytest.mark.requirement("C12.4")


def chunks() -> Chunks:
    return Chunks(Writer(id="chatcmpl-1", model="a", created=1))


def events(piece: bytes) -> list[Any]:
    lines = [line for line in piece.split(b"\n\n") if line.startswith(b"data: {")]
    return [json.loads(line[6:]) for line in lines]


async def test_while_nothing_is_said_a_comment_says_that_the_stream_is_alive() -> None:
    answered = anyio.Event()

    async def late(told: Listener) -> Result:
        del told
        await answered.wait()
        return text_result("at last")

    found = b""
    with anyio.fail_after(30):
        stream = await streamed(late, chunks(), 0.01)
        async for piece in stream.pieces:
            found += piece
            if piece.startswith(b":"):
                answered.set()
    assert b": still at it\n\n" in found
    assert found.endswith(b"data: [DONE]\n\n")
    assert [one["choices"][0]["delta"].get("content") for one in events(found)] == [
        *("", "at last", None),
    ]


async def test_who_does_not_read_is_cut_off_with_a_reason_and_the_run_ends() -> None:
    ended = anyio.Event()

    async def endless(told: Listener) -> Result:
        try:
            told(Words("x"))
            await asyncio.sleep(0)
            for _ in range(50):
                told(Words("y" * 100_000))
            await anyio.sleep_forever()
        finally:
            ended.set()
        raise AssertionError

    with anyio.fail_after(30):
        stream = await streamed(endless, chunks(), 10)
        async with aclosing(stream.pieces) as pieces:
            found = [piece async for piece in pieces]
        await ended.wait()
    assert max(map(len, found)) < 4_200_000
    assert events(found[-1])[-1]["error"]["code"] == "cancelled"


async def test_a_node_that_ends_says_so_in_what_it_has_begun(
    node: Live, client: AsyncOpenAI, demo: Demo
) -> None:
    stream = await complete(client, "waiter", user("hello"), stream=True)
    await demo.begun.wait()
    node.stop.set()
    with pytest.raises(openai.APIError, match="was ended"):
        async for _ in stream:
            pass


async def test_a_node_that_ends_says_so_instead_of_an_answer(
    node: Live, client: AsyncOpenAI, demo: Demo
) -> None:
    caught: list[openai.InternalServerError] = []

    async def ask() -> None:
        with pytest.raises(openai.InternalServerError) as failing:
            await complete(client, "waiter", user("hello"))
        caught.append(failing.value)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await demo.begun.wait()
        node.stop.set()
    assert [one.code for one in caught] == ["cancelled"]
