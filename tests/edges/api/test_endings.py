"""A client that hangs up, and a node that stops: nothing goes on for nobody, nothing is lost."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import anyio
import orjson
import pytest
from anyio import to_thread

if TYPE_CHECKING:
    from pathlib import Path

    from tests.edges.demo import Demo
    from tests.edges.live import Live

pytestmark = pytest.mark.requirement("C7.13", "C12.2")

WAIT = "/api/tools/mcp:demo:wait/call"


async def endings(node: Live, count: int = 1) -> list[dict[str, Any]]:
    """Wait for so many endings in the log."""
    with anyio.fail_after(30):
        while True:
            found = [e for e in await node.events() if e.event_type == "tool_invocation_end"]
            if len(found) >= count:
                return [dict(event.payload) for event in found]
            await anyio.lowlevel.checkpoint()


@pytest.mark.requirement("C7.11")
async def test_who_hangs_up_in_the_middle_of_a_call_cancels_it(node: Live, demo: Demo) -> None:
    client = await node.client()
    await client.send(node.request("POST", WAIT, body=b"{}"))
    await demo.begun.wait()
    client.hang_up()
    with anyio.fail_after(30):
        await demo.cancelled.wait()
    assert [ending["outcome"] for ending in await endings(node)] == ["cancelled"]
    assert demo.waiting == 0
    assert (await node.call("mcp:demo:echo")).status == 200


async def test_fifty_who_hang_up_are_all_cancelled_and_the_node_goes_on(
    node: Live, demo: Demo
) -> None:
    clients = [await node.client() for _ in range(50)]
    for client in clients:
        await client.send(node.request("POST", WAIT, body=b"{}"))
    with anyio.fail_after(30):
        while demo.waiting < 50:
            await anyio.lowlevel.checkpoint()
    for client in clients:
        client.hang_up()
    assert {ending["outcome"] for ending in await endings(node, 50)} == {"cancelled"}
    assert demo.waiting == 0
    assert (await node.get("/api/audit/verify")).json["intact"]


@pytest.mark.requirement("C15.3")
async def test_who_hangs_up_while_a_person_thinks_leaves_the_question(
    node: Live, demo: Demo
) -> None:
    client = await node.client()
    path = "/api/tools/mcp:demo:deploy/call"
    await client.send(node.request("POST", path, "Prefer: wait=60", body=b"{}"))
    with anyio.fail_after(30):
        while not (asked := (await node.get("/api/approvals")).json["approvals"]):
            await anyio.lowlevel.checkpoint()
    client.hang_up()
    with anyio.fail_after(30):
        while node.app.parts.approvals.waits:
            await anyio.lowlevel.checkpoint()
    await node.post(f"/api/approvals/{asked[0]['id']}", {"answer": "approve"})
    assert (await node.call("mcp:demo:deploy")).status == 200
    assert demo.source.reached == 1


async def test_half_a_body_is_no_call(node: Live, demo: Demo) -> None:
    client = await node.client()
    whole = node.request("POST", "/api/tools/mcp:demo:echo/call", body=b'{"arguments":{}}')
    await client.send(whole[:-1])
    client.hang_up()
    for _ in range(3):
        assert (await node.get("/api/health")).status == 200
    assert demo.source.reached == 0
    assert await node.events() == []


async def test_a_call_that_goes_on_is_answered_although_the_client_sends_more(
    node: Live, demo: Demo
) -> None:
    client = await node.client()
    await client.send(node.request("POST", WAIT, body=b"{}"))
    await demo.begun.wait()
    await client.send(node.request("GET", "/api/version"))
    # Longer than a request goes unwatched.
    await anyio.sleep(0.1)
    demo.released.set()
    first, second = await client.answer(), await client.answer()
    assert orjson.loads(first.body)["content"][0]["text"] == "released"
    assert orjson.loads(second.body)["name"] == "openfang"


async def test_a_node_that_stops_answers_what_it_was_asked_and_is_not_ready(
    node: Live, demo: Demo
) -> None:
    client = await node.client()
    await client.send(node.request("POST", WAIT, body=b"{}"))
    await demo.begun.wait()
    await client.send(node.request("GET", "/api/ready") + node.request("GET", "/api/health"))
    with anyio.fail_after(30):
        while len(node.crowd.present()[0].pipeline) < 2:
            await anyio.lowlevel.checkpoint()
    node.stop.set()
    demo.released.set()
    replies = [await client.answer() for _ in range(3)]
    assert [reply.status for reply in replies] == [200, 503, 200]
    assert orjson.loads(replies[1].body) == {"status": "stopping"}
    assert await client.rest() == b""
    await node.ended.wait()
    assert [ending["outcome"] for ending in await endings(node)] == ["ok"]


@pytest.mark.requirement("C15.3")
async def test_who_waits_for_a_person_is_parked_when_the_node_stops(node: Live) -> None:
    client = await node.client()
    path = "/api/tools/mcp:demo:deploy/call"
    await client.send(node.request("POST", path, "Prefer: wait=60", body=b"{}"))
    with anyio.fail_after(30):
        while not (asked := (await node.get("/api/approvals")).json["approvals"]):
            await anyio.lowlevel.checkpoint()
    with anyio.fail_after(node.crowd.drain_seconds / 2):
        node.stop.set()
        reply = await client.answer()
        await node.ended.wait()
    assert (reply.status, orjson.loads(reply.body)["approval"]) == (202, asked[0]["id"])


async def test_a_node_that_cannot_write_its_log_is_not_ready_until_it_can(node: Live) -> None:
    path = node.app.file.path
    assert (await node.get("/api/ready", key=None)).status == 200
    await to_thread.run_sync(change, path, *BREAK)
    assert (await node.call("mcp:demo:echo")).status == 503
    told = await node.get("/api/ready", key=None)
    assert (told.status, told.json) == (503, {"status": "audit unavailable"})
    assert (await node.get("/api/status")).json["status"] == "audit unavailable"
    await to_thread.run_sync(change, path, *MEND)
    with anyio.fail_after(30):
        while node.app.parts.broker.failing:
            await anyio.lowlevel.checkpoint()
    assert (await node.get("/api/ready", key=None)).status == 200


INSTEAD = "BEGIN INSERT INTO missing VALUES (1); END"
BREAK = (
    f"CREATE TRIGGER no_records BEFORE INSERT ON audit {INSTEAD}",
    f"CREATE TRIGGER no_settings BEFORE UPDATE ON settings {INSTEAD}",
)
MEND = ("DROP TRIGGER no_records", "DROP TRIGGER no_settings")


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


async def test_a_call_that_outlasts_the_drain_is_cancelled_on_record(
    node: Live, demo: Demo
) -> None:
    node.crowd.drain_seconds = 0.2
    client = await node.client()
    await client.send(node.request("POST", WAIT, body=b"{}"))
    await demo.begun.wait()
    node.stop.set()
    reply = await client.answer()
    await node.ended.wait()
    assert demo.cancelled.is_set()
    assert [ending["outcome"] for ending in await endings(node)] == ["cancelled"]
    # It ran: nobody may be told that it was not done, and do it again.
    assert (reply.status, reply.headers["openfang-failure"]) == (200, "cancelled")
