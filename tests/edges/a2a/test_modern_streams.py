"""Streams and long answers: who ends one, and what goes on without it."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.edges.a2a.front import code_of, serving

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from pathlib import Path

    from tests.edges.a2a.front import Served

pytestmark = pytest.mark.requirement("C5.3")


@pytest.fixture
async def served(tmp_path: Path) -> AsyncGenerator[Served]:
    async with serving(tmp_path / "home", most_streams=4, beat=1.0) as running:
        yield running


async def until(what: Callable[[], Awaitable[bool]]) -> None:
    """Ask until it is so: of what is over on the other side nothing tells."""
    with anyio.fail_after(30):
        while not await what():  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0)


async def state(served: Served, task: str) -> str:
    found = await served.rpc("waiter", "GetTask", {"id": task})
    return found["result"]["status"]["state"]


@pytest.mark.requirement("C5.7")
async def test_who_leaves_a_stream_leaves_the_task_at_work(served: Served) -> None:
    params = {"message": served.message("go")}
    async with served.stream("waiter", "SendStreamingMessage", params) as stream:
        first = await stream.next()
        assert first is not None
        await served.demo.begun.wait()

    async def left() -> bool:
        return len(served.front.staying) == 0

    await until(left)
    task = first.data["result"]["task"]["id"]
    assert await state(served, task) == "TASK_STATE_WORKING"
    assert not served.demo.cancelled.is_set()


@pytest.mark.requirement("C5.7")
async def test_who_hangs_up_while_it_waits_leaves_the_task_at_work(served: Served) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m",'
    body += b'"role":"ROLE_USER","parts":[{"text":"go"}]}}}'
    peer = await served.node.client()
    kind = ("Content-Type: application/json", "A2A-Version: 1.0")
    peer.writer.write(served.node.request("POST", "/a2a/agents/waiter", *kind, body=body))
    await served.demo.begun.wait()
    peer.hang_up()
    listed = (await served.rpc("waiter", "ListTasks"))["result"]["tasks"]
    assert [task["status"]["state"] for task in listed] == ["TASK_STATE_WORKING"]
    served.demo.released.set()

    async def completed() -> bool:
        return await state(served, listed[0]["id"]) == "TASK_STATE_COMPLETED"

    await until(completed)


async def test_a_stream_ends_with_its_key(served: Served) -> None:
    other = await served.node.key("other", tools=["*"])
    task = await served.rpc(
        "waiter",
        "SendMessage",
        {"message": served.message("go"), "configuration": {"returnImmediately": True}},
        key=other,
    )
    wanted = {"id": task["result"]["task"]["id"]}
    async with served.stream("waiter", "SubscribeToTask", wanted, key=other) as stream:
        await stream.next()
        await served.node.ask("DELETE", "/api/keys/other")
        with anyio.fail_after(30):
            await stream.rest()
    assert not served.demo.cancelled.is_set()


async def test_streams_and_waiting_end_with_the_node(served: Served) -> None:
    params = {"message": served.message("go")}
    async with AsyncExitStack() as stack:
        stream = await stack.enter_async_context(
            served.stream("waiter", "SendStreamingMessage", params)
        )
        await stream.next()
        other = {"message": served.message("go")}
        waiting = asyncio.ensure_future(served.rpc("waiter", "SendMessage", other))

        async def both() -> bool:
            return served.demo.waiting == 2

        await until(both)
        served.node.stop.set()
        served.front.staying.end()
        with anyio.fail_after(30):
            await stream.rest()
            answer = await waiting
    assert answer["result"]["task"]["status"]["state"] in {
        "TASK_STATE_SUBMITTED",
        "TASK_STATE_WORKING",
    }


async def test_a_stream_that_is_silent_says_that_it_is_there(served: Served) -> None:
    params = {"message": served.message("go")}
    async with served.stream("waiter", "SendStreamingMessage", params) as stream:
        lines = stream.response.content
        with anyio.fail_after(30):
            while await lines.readline() != b": still here\n":
                pass
        served.demo.released.set()
        assert (await stream.rest())[-1].data["result"]["statusUpdate"]


async def test_of_streams_one_caller_has_a_half_and_a_message_too_many_is_no_task(
    served: Served,
) -> None:
    task = await served.begun()
    async with AsyncExitStack() as stack:
        for _ in range(2):
            wanted = {"id": task["id"]}
            stream = served.stream("waiter", "SubscribeToTask", wanted)
            await (await stack.enter_async_context(stream)).next()
        params = {"message": served.message("more")}
        reply = await served.ask("echo", "SendStreamingMessage", params)
        assert reply.told == (429, "too_many_streams")
        assert (await served.rpc("echo", "ListTasks"))["result"]["totalSize"] == 0
        assert "result" in await served.rpc("echo", "SendMessage", params)


async def test_what_is_wrong_with_a_stream_is_said_before_it_begins(served: Served) -> None:
    answer = await served.rpc("echo", "SubscribeToTask", {"id": "task_x"})
    assert code_of(answer) == -32001
    reply = await served.rest("GET", "echo/rest/tasks/task_x:subscribe")
    assert reply.status == 404
    older = await served.node.get("/a2a/agents/echo/rest/v1/tasks/task_x:subscribe")
    assert older.status == 404
    [error] = await served.told("echo", "tasks/resubscribe", {"id": "task_x"}, headers={})
    assert code_of(error) == -32001
    assert len(served.front.staying) == 0
