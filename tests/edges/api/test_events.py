"""`/api/events`: what happens, live; nothing twice, nothing lost, and nothing of other callers."""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.edges.live import live
from tests.edges.sse import listening
from tests.host.wire import Client

from openfang.core.events import CONFIG_RELOADED, Record
from openfang.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from tests.edges.demo import Demo
    from tests.edges.live import Live
    from tests.edges.sse import Event

pytestmark = pytest.mark.requirement("C12.1", "C12.2")


def head(node: Live) -> int:
    return node.app.parts.writer.head.seq


async def listeners(node: Live, count: int) -> None:
    """Wait until so many listen."""
    with anyio.fail_after(30):
        while (await node.get("/api/status")).json["listeners"] != count:
            await anyio.lowlevel.checkpoint()


async def fill(node: Live, count: int, size: int = 10, caller: str = "key:other") -> None:
    """Put so many records into the log, each with so much text in it."""
    record = Record(
        event=CONFIG_RELOADED, payload={"reason": "x" * size}, context={"caller": caller}
    )
    await node.app.parts.broker.append([record] * count)


async def test_a_call_is_told_as_it_happens(node: Live) -> None:
    async with listening(node) as stream:
        reply = await node.call("mcp:demo:echo", {"text": "a secret of mine"})
        events = await stream.until(reply.json["audit"]["end"])
        refused = await node.call("mcp:demo:off")
        assert refused.status == 403
        events += await stream.until(head(node))
    assert [(event.kind, event.data["event_type"]) for event in events] == [
        ("decision", "policy_decision"),
        ("call", "tool_invocation_start"),
        ("call", "tool_invocation_end"),
        ("decision", "policy_decision"),
        ("decision", "policy_violation"),
    ]
    assert events[1].data == {
        "audit_id": events[1].number,
        "node": node.app.parts.writer.node,
        "event_type": "tool_invocation_start",
        "level": "info",
        "created_at": events[1].data["created_at"],
        "call_id": reply.json["call_id"],
        "task_id": "",
        "caller": "key:admin",
        "tool": "mcp:demo:echo",
        "edge": "api",
        "trace": events[1].data["trace"],
        "depth": 1,
        "labels": ["user_input"],
    }
    assert events[2].data["outcome"] == "ok"
    assert events[4].data["rule"] == "tool_disabled"
    assert "a secret of mine" not in str(events)


@pytest.mark.requirement("C18.1")
async def test_a_user_sees_its_own_calls_and_an_auditor_everybodys(node: Live) -> None:
    keys = {name: await node.key(name) for name in ("one", "two")}
    keys["auditor"] = await node.key("auditor", role="auditor")
    keys["approver"] = await node.key("approver", role="approver")
    begin = head(node)
    for name in ("one", "two", "one"):
        await node.call("mcp:demo:echo", key=keys[name])
    await node.call("mcp:demo:off", key=keys["two"])
    seen: dict[str, list[str]] = {}
    for name, secret in keys.items():
        async with listening(node, key=secret, after=begin) as stream:
            seen[name] = [event.data["caller"] for event in await stream.until(head(node))]
    everything = ["key:one"] * 3 + ["key:two"] * 3 + ["key:one"] * 3 + ["key:two"] * 2
    assert seen == {
        "one": ["key:one"] * 6,
        "two": ["key:two"] * 5,
        "auditor": everything,
        "approver": [],
    }


async def test_who_answers_hears_of_everybodys_questions_and_of_nothing_else(node: Live) -> None:
    asks, other = await node.key("one"), await node.key("two")
    answers = await node.key("approver", role="approver")
    begin = head(node)
    async with listening(node, key=answers) as stream:
        await node.call("mcp:demo:echo", key=asks)
        parked = await node.call("mcp:demo:deploy", key=asks)
        assert parked.status == 202
        id_ = parked.problem["approval"]
        path = f"/api/approvals/{id_}"
        assert (await node.post(path, {"answer": "approve"}, key=answers)).status == 200
        told = [event.data for event in await stream.until(head(node))]
    assert [(one["event_type"], one["question"], one["state"]) for one in told] == [
        ("approval_requested", id_, "pending"),
        ("approval_answered", id_, "approved"),
    ]
    assert (told[1]["answered_by"], told[1]["via"]) == ("key:approver", "api")
    async with listening(node, key=answers, after=begin) as stream:
        assert [event.data for event in await stream.until(head(node))] == told
    async with listening(node, key=other, after=begin) as stream:
        assert await stream.until(head(node)) == []


async def test_who_reconnects_misses_nothing_and_sees_nothing_twice(node: Live) -> None:
    user = await node.key("busy", cells_per_minute=1_000_000)
    begin, calls, at_once = head(node), 120, 6
    own: list[Event] = []
    everybodys: list[Event] = []

    async def work() -> None:
        for number in range(calls // at_once):
            key = user if number % 2 else ""
            assert (await node.call("mcp:demo:echo", key=key)).status == 200

    async def follow(key: str, seen: list[Event]) -> None:
        """Read a few, hang up, come back with the last number, until everything is there."""
        last = begin
        while last < begin + calls * 3:
            async with listening(node, key=key, after=last) as stream:
                for _ in range(7):
                    if stream.last >= begin + calls * 3:
                        break
                    event = await stream.next()
                    assert event is not None
                    if event.kind != "health":
                        seen.append(event)
                last = stream.last

    async with anyio.create_task_group() as group:
        for _ in range(at_once):
            group.start_soon(work)
        group.start_soon(follow, "", everybodys)
        async with listening(node, key=user, after=begin) as stream:
            own += await stream.until(begin + calls * 3 - 3)
    numbers = [event.number for event in everybodys]
    assert numbers == list(range(begin + 1, begin + calls * 3 + 1))
    mine = [event.number for event in everybodys if event.data["caller"] == "key:busy"]
    assert [event.number for event in own] == mine[: len(own)]
    assert len(own) >= calls * 3 // 2 - 3 * at_once


async def test_who_comes_between_two_looks_at_the_log_sees_nothing_twice(node: Live) -> None:
    begin = head(node)
    async with listening(node) as first:
        await node.call("mcp:demo:echo")
        async with listening(node, after=begin) as second:
            await node.call("mcp:demo:echo")
            for stream in (first, second):
                numbers = [event.number for event in await stream.until(head(node))]
                assert numbers == list(range(begin + 1, begin + 7))


async def test_who_was_told_nothing_yet_misses_nothing_either(node: Live) -> None:
    async with listening(node) as stream:
        last = stream.last
    await node.call("mcp:demo:echo")
    async with listening(node, after=last) as stream:
        assert len(await stream.until(head(node))) == 3


async def test_a_number_from_the_future_or_none_at_all_means_from_now_on(node: Live) -> None:
    for odd in (10**17, 99, "", "x", "-1", "1.5", "9" * 30, "\u00b2"):
        async with listening(node, after=odd) as first, listening(node) as second:
            assert first.last == second.last == head(node)
            await node.call("mcp:demo:echo")
            for stream in (first, second):
                assert len(await stream.until(head(node))) == 3


async def test_one_who_never_reads_is_cut_off_and_the_others_go_on(node: Live) -> None:
    deaf = await unread(node)
    await deaf.send(node.request("GET", "/api/events"))
    async with listening(node) as stream:
        await listeners(node, 2)
        with anyio.fail_after(30):
            while (await node.get("/api/status")).json["listeners"] == 2:
                await fill(node, 20, 50_000)
                assert len(await stream.until(head(node))) == 20
        await listeners(node, 1)
        await node.call("mcp:demo:echo")
        assert len(await stream.until(head(node))) == 3
    heard = await deaf.rest()
    assert heard.count(b"\nid: ") > 0
    assert not heard.endswith(b"\r\n0\r\n\r\n")


async def unread(node: Live) -> Client:
    """A connection whose other end takes hardly anything."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.setblocking(False)  # noqa: FBT003 - the library's signature
    await asyncio.get_running_loop().sock_connect(made, node.address)
    client = Client(*await asyncio.open_connection(sock=made, limit=1024))
    node.clients.append(client)
    return client


async def test_who_hangs_up_is_forgotten(node: Live) -> None:
    clients = [await node.client() for _ in range(5)]
    for client in clients:
        await client.send(node.request("GET", "/api/events"))
    await listeners(node, 5)
    for client in clients[:3]:
        client.hang_up()
    await listeners(node, 2)
    async with listening(node):
        await listeners(node, 3)
    for client in clients[3:]:
        client.hang_up()
    await listeners(node, 0)


async def test_streams_end_when_the_node_stops(node: Live) -> None:
    user = await node.key("someone")
    async with listening(node) as first, listening(node, key=user) as second:
        await node.call("mcp:demo:echo")
        with anyio.fail_after(30):
            node.stop.set()
            for stream in (first, second):
                await stream.rest()
                assert stream.response.content.at_eof()
            await node.ended.wait()


@pytest.mark.requirement("C18.1")
async def test_the_stream_of_a_key_ends_with_the_key(node: Live) -> None:
    secret = await node.key("auditor", role="auditor")
    async with listening(node, key=secret) as stream, listening(node) as other:
        await node.call("mcp:demo:echo")
        await stream.until(head(node))
        await node.ask("DELETE", "/api/keys/auditor")
        revoked = head(node)
        await node.call("mcp:demo:echo")
        rest = await stream.rest()
        assert [event for event in rest if event.number >= revoked] == []
        assert len(await other.until(head(node))) == 3 + 1 + 3
    assert (await node.get("/api/events", key=secret)).status == 401


@pytest.mark.requirement("C18.1")
async def test_the_stream_of_a_key_ends_when_the_key_expires(tmp_path: Path) -> None:
    clock = ManualClock()
    async with live(tmp_path / "home", clock=clock) as node:
        secret = await node.key("guest", ttl_secs=60)
        async with listening(node, key=secret) as stream, listening(node) as other:
            clock.advance(60)
            with anyio.fail_after(30):
                assert [event.kind for event in await stream.rest()] == []
            await node.call("system_time")
            assert len(await other.until(head(node))) == 3


@pytest.mark.requirement("C12.1")
async def test_without_require_key_everybody_here_sees_what_everybody_here_did(
    tmp_path: Path, demo: Demo
) -> None:
    config = "[auth]\nrequire_key = false\n"
    async with live(tmp_path / "home", config=config, sources=[demo.source]) as node:
        async with listening(node, key=None) as stream:
            await node.call("mcp:demo:echo")
            await node.call("mcp:demo:echo", key=None)
            events = await stream.until(head(node))
        assert [event.data["caller"] for event in events] == ["local-mcp"] * 3


@pytest.mark.requirement("C12.3")
async def test_a_long_look_back_is_paid_for_and_can_be_gone_on_with(tmp_path: Path) -> None:
    clock = ManualClock()
    async with live(tmp_path / "home", clock=clock) as node:
        user = await node.key("curious", cells_per_minute=5)
        begin = head(node)
        await fill(node, 3_200)
        await fill(node, 1, caller="key:curious")
        async with listening(node, key=user, after=begin) as stream:
            assert await stream.rest() == []
            assert stream.last == begin + 2_500
        clock.advance(60)
        async with listening(node, key=user, after=stream.last) as stream:
            events = await stream.until(head(node))
        assert [event.data["caller"] for event in events] == ["key:curious"]


@contextmanager
def read_in_the_loop(node: Live) -> Generator[list[str]]:
    """Collect what of the log is read on the connection of the loop meanwhile."""
    found: list[str] = []
    connection = node.app.file.connection
    connection.set_trace_callback(lambda sql: found.append(sql) if "payload" in sql else None)
    try:
        yield found
    finally:
        connection.set_trace_callback(None)


async def test_the_log_is_read_beside_the_loop_however_long_it_is(node: Live) -> None:
    user, begin = await node.key("curious"), head(node)
    await fill(node, 600, 20_000)
    await fill(node, 3, caller="key:curious")
    with read_in_the_loop(node) as found:
        async with listening(node, key=user, after=begin) as stream:
            events = await stream.until(head(node))
            await fill(node, 2, caller="key:curious")
            events += await stream.until(head(node))
    assert [event.number for event in events] == [*range(begin + 601, begin + 606)]
    assert found == []


@pytest.mark.requirement("C12.3")
async def test_one_key_has_only_so_many_streams(node: Live) -> None:
    user, other = await node.key("greedy"), await node.key("other")
    async with AsyncExitStack() as streams:
        for _ in range(19):
            await streams.enter_async_context(listening(node, key=user))
        async with listening(node, key=user):
            refused = await node.get("/api/events", key=user)
            assert refused.told == (429, "too_many_streams")
            async with listening(node, key=other):
                await listeners(node, 21)
        await listeners(node, 19)
        async with listening(node, key=user):
            pass


@pytest.mark.requirement("C12.3")
async def test_streams_leave_room_for_others_and_an_administrator_finds_a_place(
    tmp_path: Path,
) -> None:
    config = "[server]\nconnections = 8\n"
    async with live(tmp_path / "home", config=config) as node:
        keys = [await node.key(name) for name in ("one", "two", "three")]
        async with listening(node, key=keys[0]), listening(node, key=keys[1]):
            refused = await node.get("/api/events", key=keys[2])
            assert refused.told == (429, "too_many_streams")
            async with listening(node):
                await listeners(node, 3)


async def test_many_records_at_once_reach_everybody(node: Live) -> None:
    async with listening(node) as first, listening(node) as second:
        begin = head(node)
        await fill(node, 2_600)
        for stream in (first, second):
            numbers = [event.number for event in await stream.until(head(node))]
            assert numbers == list(range(begin + 1, begin + 2_601))


async def test_a_client_is_told_when_to_come_back(node: Live) -> None:
    client = await node.client()
    await client.send(node.request("GET", "/api/events"))
    reply = await client.answer(head_only=True)
    assert reply.headers["cache-control"] == "no-store"
    size = int(await client.reader.readline(), 16)
    first = await client.reader.readexactly(size)
    assert first.startswith(b"retry: 1000\nid: %d\nevent: health\n" % head(node))
