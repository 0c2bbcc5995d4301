"""Sessions over a real socket: who has one, what it asks and is told, how it goes on and ends."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from tests.edges.live import live
from tests.edges.mcp.talking import BOTH, Session, edge_of, greet, new_edge, note, request, until
from tests.edges.mcp.teller import Teller

from openfang.edges.mcp.ports import Place
from openfang.edges.mcp.sessions import Sessions
from openfang.host.server import ServerLimits
from openfang.protocols.mcp.versions import KNOWN
from openfang.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from tests.edges.demo import Demo
    from tests.edges.live import Live, Reply

pytestmark = pytest.mark.requirement("C4.4", "C4.5", "C4.6")

ASKABLE: dict[str, Any] = {"elicitation": {}}
TOKEN: dict[str, Any] = {"progressToken": "p"}
CHANGED = "notifications/tools/list_changed"


@pytest.fixture
def teller() -> Teller:
    return Teller()


@pytest.fixture
async def node(tmp_path: Path, demo: Demo, teller: Teller) -> AsyncGenerator[Live]:
    async with live(tmp_path / "home", sources=[demo.source, teller]) as running:
        yield running


def called(tool: str, arguments: Any = None) -> dict[str, Any]:
    return {"name": tool, "arguments": arguments or {}}


def telling(tool: str, times: int = 1) -> dict[str, Any]:
    return {**called(tool, {"times": times}), "_meta": TOKEN}


def told(reply: Reply) -> tuple[int, int]:
    """The status, and the code of the error."""
    return reply.status, reply.json["error"]["code"]


async def change(node: Live, teller: Teller) -> None:
    teller.put_another()
    node.app.add(teller)


# Who has one


async def test_a_greeting_begins_a_session_that_can_be_pushed_to(node: Live) -> None:
    for version in ("2025-03-26", "2025-06-18", "2025-11-25"):
        session = await greet(node, version)
        assert session.version == version
        assert re.fullmatch(r"[\x21-\x7e]{32,}", session.id)
        result = await session.ask("tools/list")
        assert "mcp_demo_echo" in {tool["name"] for tool in result["result"]["tools"]}
        answer = await session.call("mcp_demo_echo", {"text": version})
        assert answer["result"]["content"] == [{"type": "text", "text": version}]
    body = request("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}})
    capabilities = (await node.post("/mcp", body)).json["result"]["capabilities"]
    assert capabilities["tools"] == {"listChanged": True}
    assert capabilities["resources"]["listChanged"] is True


async def test_a_revision_that_nobody_knows_becomes_the_newest_with_a_session(node: Live) -> None:
    assert (await greet(node, "2099-01-01")).version == "2025-11-25"
    assert (await greet(node, "2026-07-28")).version == "2025-11-25"


async def test_the_first_revision_has_no_session(node: Live) -> None:
    for params in ({}, {"protocolVersion": "2024-11-05"}, None):
        reply = await node.post("/mcp", request("initialize", params))
        assert "Mcp-Session-Id" not in reply.headers
        assert reply.json["result"]["capabilities"] == {"tools": {}}
    assert len(edge_of(node).sessions) == 0
    named = {"MCP-Protocol-Version": "2024-11-05"}
    assert (await node.post("/mcp", request("ping"), headers=named)).json["result"] == {}


async def test_a_session_is_there_for_who_opened_it_and_where(node: Live) -> None:
    session = await greet(node)
    other = await node.key("other")
    for stolen in (
        Session(node, session.id, session.version, key=other),
        Session(node, "0" * 32, session.version),
        Session(node, "", session.version),
    ):
        assert told(await stolen.post(request("ping"))) == (404, -32600)
        assert (await stolen.end()).status == 404
        reply = await node.ask("GET", "/mcp", headers=stolen.headers, key=stolen.key)
        assert reply.status == 404
    assert (await session.ask("ping"))["result"] == {}


async def test_a_session_of_one_place_is_none_of_another(tmp_path: Path) -> None:
    config = '[toolsets.one]\ntools = ["*"]\n[toolsets.two]\ntools = ["*"]\n'
    async with live(tmp_path / "home", config=config) as node:
        session = await greet(node, path="/mcp/one")
        session.path = "/mcp/two"
        assert (await session.post(request("ping"))).status == 404
        session.path = "/mcp/one"
        assert (await session.ask("ping"))["result"] == {}


async def test_what_needs_a_session_says_so(node: Live) -> None:
    session = await greet(node)
    newer = {"MCP-Protocol-Version": "2025-11-25"}
    assert told(await node.post("/mcp", request("ping"), headers=newer)) == (400, -32600)
    assert (await node.ask("DELETE", "/mcp", headers=newer)).status == 400
    get = await node.ask("GET", "/mcp", headers=newer)
    assert (*get.told, get.headers["Allow"]) == (405, "method", "POST")
    for method in ("GET", "DELETE", "POST"):
        wrong = {**session.headers, "MCP-Protocol-Version": "1999-01-01"}
        reply = await node.ask(method, "/mcp", headers=wrong, json=request("ping"))
        assert reply.status == 400
    assert told(await session.post(request("initialize", {}))) == (400, -32600)
    doubled = [f"{k}: {v}" for k, v in session.headers.items()]
    client = await node.client()
    answer = await client.ask(node.request("DELETE", "/mcp", *doubled, doubled[0]))
    assert answer.status == 400
    assert (await session.ask("ping"))["result"] == {}


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_a_session_of_a_revision_that_nobody_knows_is_told_which_there_are(
    node: Live, method: str
) -> None:
    session = await greet(node)
    wrong = {**session.headers, "MCP-Protocol-Version": "1999-01-01"}
    body = request("ping", number=5) if method == "POST" else None
    reply = await node.ask(method, "/mcp", headers=wrong, json=body)
    assert told(reply) == (400, -32022)
    assert reply.json["id"] == (5 if method == "POST" else None)
    data = reply.json["error"]["data"]
    assert (data["requested"], data["supported"]) == ("1999-01-01", list(KNOWN))
    assert (await session.ask("ping"))["result"] == {}


# How one ends


async def test_a_session_ends_with_all_that_belongs_to_it(node: Live, teller: Teller) -> None:
    session = await greet(node)
    async with (
        session.listening() as standing,
        session.asking("tools/call", telling("mcp_teller_tell_and_wait")) as asked,
    ):
        await teller.begun.wait()
        reply = await session.end()
        assert (reply.status, reply.body) == (200, b"")
        assert await standing.rest() == []
        assert (await asked.rest())[-1]["error"]["code"] == -32800
    await teller.cancelled.wait()
    assert told(await session.post(request("ping"))) == (404, -32600)
    assert len(edge_of(node).sessions) == 0


# What is told and asked


async def test_what_is_told_makes_a_stream_of_numbered_events(node: Live) -> None:
    session = await greet(node)
    async with session.asking("tools/call", telling("mcp_teller_tell", 2)) as stream:
        first = await stream.next()
        assert first is not None
        assert first.data == b""
        assert stream.reader.retry == 1.0
        messages = await stream.rest()
    assert [message.get("method", "answer") for message in messages] == [
        "notifications/progress",
        "notifications/progress",
        "answer",
    ]
    ids = re.findall(rb"^id: (\S+)$", stream.raw, re.MULTILINE)
    assert len(set(ids)) == 4


async def test_older_clients_are_sent_no_event_that_says_nothing(node: Live) -> None:
    session = await greet(node, "2025-06-18")
    async with session.asking("tools/call", telling("mcp_teller_tell")) as stream:
        assert (await stream.rest())[-1]["result"]["content"][0]["text"] == "xxxx"
    assert b"data: \n" not in stream.raw
    assert b"\nid: " in b"\n" + stream.raw


async def test_a_question_is_put_on_the_stream_and_answered_by_a_post(
    node: Live, teller: Teller
) -> None:
    session = await greet(node, capabilities=ASKABLE)
    async with session.asking("tools/call", called("mcp_teller_ask")) as stream:
        question = await stream.message()
        assert question["method"] == "elicitation/create"
        assert question["params"]["message"] == "Who?"
        await session.answer("no such question", {})
        answer = {"action": "accept", "content": {"name": "me"}}
        await session.answer(question["id"], answer)
        await session.answer(question["id"], {"action": "decline"})
        text = (await stream.message())["result"]["content"][0]["text"]
    assert text == '{"action": "accept", "content": {"name": "me"}}'
    assert teller.reached == 1


async def test_an_error_answers_a_question_as_well(node: Live) -> None:
    session = await greet(node, capabilities=ASKABLE)
    async with session.asking("tools/call", called("mcp_teller_ask")) as stream:
        question = await stream.message()
        error = {"code": -1, "message": "not now"}
        reply = await session.post({"jsonrpc": "2.0", "id": question["id"], "error": error})
        assert reply.status == 202
        assert (await stream.message())["result"]["content"]


async def test_who_cannot_read_a_stream_is_asked_nothing(node: Live) -> None:
    session = await greet(node, capabilities=ASKABLE)
    reply = await session.post(
        request("tools/call", called("mcp_teller_ask")), Accept="application/json"
    )
    assert reply.json["result"]["content"][0]["text"] == "null"


async def test_a_question_is_taken_back_when_its_call_is_cancelled(
    node: Live, teller: Teller
) -> None:
    session = await greet(node, capabilities=ASKABLE)
    async with session.asking("tools/call", called("mcp_teller_ask"), "mine") as stream:
        question = await stream.message()
        await session.tell("notifications/cancelled", {"requestId": "mine"})
        await teller.cancelled.wait()
        taken_back, answer = await stream.rest()
    assert taken_back["method"] == "notifications/cancelled"
    assert taken_back["params"]["requestId"] == question["id"]
    assert (answer["id"], answer["error"]["code"]) == ("mine", -32800)


async def test_who_was_asked_and_hung_up_is_not_waited_for(node: Live, teller: Teller) -> None:
    clock = ManualClock()
    edge = new_edge(node, sessions=Sessions(clock))
    session = await greet(node, capabilities=ASKABLE)
    async with session.asking("tools/call", called("mcp_teller_ask")) as stream:
        primed = await stream.next()
        assert primed is not None
        question = await stream.message()
        for _ in range(2):
            clock.advance(60)
            await edge.sweep()
        stream.response.close()
    kept = edge.sessions.find(session.id, "key:admin", Place())
    assert kept is not None
    await until(lambda: kept.is_deserted)
    await edge.sweep()
    clock.advance(14)
    await edge.sweep()
    assert kept.is_deserted
    clock.advance(1)
    await edge.sweep()
    await until(lambda: not kept.is_deserted)
    async with session.listening(primed.id) as stream:
        asked, taken_back, answer = await stream.rest()
    assert asked == question
    assert taken_back["params"]["requestId"] == question["id"]
    assert "hung up" in answer["result"]["structuredContent"]["message"]
    assert teller.reached == 1


async def test_who_comes_back_in_time_is_waited_for(node: Live) -> None:
    clock = ManualClock()
    edge = new_edge(node, sessions=Sessions(clock))
    session = await greet(node, capabilities=ASKABLE)
    async with session.asking("tools/call", called("mcp_teller_ask")) as stream:
        primed = await stream.next()
        assert primed is not None
        stream.response.close()
    kept = edge.sessions.find(session.id, "key:admin", Place())
    assert kept is not None
    await until(lambda: kept.is_deserted)
    await edge.sweep()
    async with session.listening(primed.id) as stream:
        question = await stream.message()
        clock.advance(60)
        await edge.sweep()
        await session.answer(question["id"], {"action": "decline"})
        text = (await stream.message())["result"]["content"][0]["text"]
    assert text == '{"action": "decline"}'


async def test_a_request_is_cancelled_by_its_own_client_alone(node: Live, demo: Demo) -> None:
    mine, other = await greet(node), await greet(node)
    answers: list[Any] = []
    async with anyio.create_task_group() as group:

        async def wait() -> None:
            body = request("tools/call", called("mcp_demo_wait"), 7)
            answers.append((await mine.post(body)).json)

        group.start_soon(wait)
        await demo.begun.wait()
        twin = await mine.post(request("ping", number=7))
        assert told(twin) == (400, -32600)
        for wrong in ({"requestId": 8}, {"requestId": "7"}, {"requestId": None}, {}):
            await mine.tell("notifications/cancelled", wrong)
        await other.tell("notifications/cancelled", {"requestId": 7})
        assert demo.waiting == 1
        await mine.tell("notifications/cancelled", {"requestId": 7})
        await demo.cancelled.wait()
    assert answers[0]["error"]["code"] == -32800
    assert (await mine.ask("ping"))["result"] == {}
    outcomes = [e.payload.get("outcome") for e in await node.events() if "outcome" in e.payload]
    assert "cancelled" in outcomes


# What is lost is taken up again


async def test_a_call_goes_on_without_its_connection_and_its_answer_is_kept(
    node: Live, teller: Teller
) -> None:
    session = await greet(node)
    async with session.asking("tools/call", telling("mcp_teller_tell_and_wait"), 9) as stream:
        assert (await stream.message())["method"] == "notifications/progress"
        last = stream.reader.last_id
        stream.response.close()
    assert not teller.cancelled.is_set()
    async with session.listening(last) as resumed:
        teller.go_on.set()
        messages = await resumed.rest()
    assert [message["id"] for message in messages] == [9]
    assert messages[0]["result"]["content"][0]["text"] == "xxxx"
    async with session.listening(last) as again:
        assert await again.rest() == messages


async def test_an_answer_is_kept_for_who_comes_back_after_it(node: Live, teller: Teller) -> None:
    session = await greet(node)
    async with session.asking("tools/call", telling("mcp_teller_tell_and_wait"), 9) as stream:
        first = await stream.next()
        assert first is not None
        stream.response.close()
    teller.go_on.set()
    async with session.listening(first.id) as resumed:
        told_again = await resumed.rest()
    assert [message.get("method", "answer") for message in told_again] == [
        "notifications/progress",
        "answer",
    ]


async def test_a_silent_call_can_be_taken_up_as_well(node: Live, demo: Demo) -> None:
    new_edge(node, beat=0.02)
    session = await greet(node)
    async with session.asking("tools/call", called("mcp_demo_wait"), 3) as stream:
        first = await stream.next()
        assert first is not None
        stream.response.close()
    async with session.listening(first.id) as resumed:
        demo.released.set()
        assert (await resumed.rest())[0]["result"]["content"][0]["text"] == "released"


async def test_an_event_that_is_not_kept_cannot_be_gone_on_from(node: Live) -> None:
    session = await greet(node)
    for last in ("9-1", "x", "0-1", "1-" + "9" * 30):
        headers = {**session.headers, "Last-Event-ID": last}
        assert told(await node.ask("GET", "/mcp", headers=headers)) == (400, -32600)


async def test_streams_that_ended_are_forgotten_one_after_the_other(node: Live) -> None:
    session = await greet(node)
    firsts: list[str] = []
    for _ in range(3):
        params = {**telling("mcp_teller_tell"), "arguments": {"size": 45_000}}
        async with session.asking("tools/call", params) as stream:
            event = await stream.next()
            assert event is not None
            firsts.append(event.id)
            await stream.rest()
    for first in firsts:
        async with session.listening(first) as again:
            assert len(await again.rest()) == 2


# What belongs to no request


async def test_changes_are_pushed_within_a_second(node: Live, teller: Teller) -> None:
    session = await greet(node)
    async with session.listening() as stream:
        await change(node, teller)
        with anyio.fail_after(30):
            assert (await stream.message())["method"] == CHANGED


async def test_changes_while_nobody_listened_are_told_to_who_comes_back(
    node: Live, teller: Teller
) -> None:
    session = await greet(node)
    async with session.listening() as stream:
        await change(node, teller)
        assert (await stream.message())["method"] == CHANGED
        last = stream.reader.last_id
    await until(lambda: not len(edge_of(node).staying))
    teller.put("third", {}, teller.execute)  # pyright: ignore[reportArgumentType] - never called
    node.app.add(teller)
    async with session.listening(last) as stream:
        assert (await stream.message())["method"] == CHANGED


async def test_who_listens_again_is_the_one_who_listens(node: Live, teller: Teller) -> None:
    session = await greet(node)
    async with session.listening() as first, session.listening() as second:
        assert await first.rest() == []
        await change(node, teller)
        assert (await second.message())["method"] == CHANGED
    await until(lambda: not len(edge_of(node).staying))


async def test_who_listens_is_told_when_the_node_ends(node: Live) -> None:
    session = await greet(node)
    async with session.listening() as stream:
        node.stop.set()
        assert await stream.rest() == []
    await node.ended.wait()


# Many at once


async def test_a_batch_is_answered_in_the_one_revision_that_has_them(node: Live) -> None:
    session = await greet(node, "2025-03-26")
    batch = [
        request("ping", number=1),
        note("notifications/initialized"),
        request("tools/call", called("mcp_demo_echo", {"text": "b"}), 2),
        {"jsonrpc": "2.0", "id": 3},
        request("initialize", number=4),
    ]
    reply = await session.post(batch)
    assert reply.headers["Content-Type"] == "application/json"
    answers = {answer["id"]: answer for answer in reply.json}
    assert answers[1]["result"] == {}
    assert answers[2]["result"]["content"] == [{"type": "text", "text": "b"}]
    assert answers[3]["error"]["code"] == answers[4]["error"]["code"] == -32600
    only_notes = await session.post([note("notifications/initialized")])
    assert (only_notes.status, only_notes.body) == (202, b"")
    assert told(await session.post([])) == (400, -32600)


async def test_a_batch_becomes_a_stream_once_anything_is_told(node: Live) -> None:
    session = await greet(node, "2025-03-26")
    batch = [
        request("tools/call", telling("mcp_teller_tell"), 1),
        request("tools/call", called("mcp_demo_echo"), 2),
        request("ping", number=3),
        request("ping", number=3),
    ]
    reply = await session.post(batch)
    assert reply.headers["Content-Type"] == "text/event-stream"
    assert reply.body.count(b'"method":"notifications/progress"') == 1
    assert reply.body.count(b'"result"') >= 3
    assert reply.body.endswith(b"\n\n")


async def test_no_other_revision_has_batches(node: Live) -> None:
    for version in ("2025-06-18", "2025-11-25"):
        session = await greet(node, version)
        assert told(await session.post([request("ping")])) == (400, -32600)
    assert told(await node.post("/mcp", [request("ping")])) == (400, -32600)


# By itself


async def test_a_post_by_itself_is_cancelled_by_who_hangs_up(node: Live, demo: Demo) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mcp_demo_wait"}}'
    client = await node.client()
    await client.send(node.request("POST", "/mcp", f"Accept: {BOTH}", body=body))
    await demo.begun.wait()
    client.hang_up()
    await demo.cancelled.wait()


async def test_a_post_by_itself_has_one_json_answer_whatever_is_told(node: Live) -> None:
    for accept in (BOTH, "text/event-stream"):
        body = request("tools/call", telling("mcp_teller_tell", 3))
        reply = await node.post("/mcp", body, headers={"Accept": accept})
        assert reply.headers["Content-Type"] == "application/json"
        assert reply.json["result"]["content"][0]["text"] == "xxxx"


async def test_an_answer_to_nothing_is_no_request(node: Live) -> None:
    assert told(await node.post("/mcp", {"jsonrpc": "2.0", "id": 1, "result": {}})) == (400, -32600)


async def test_a_call_that_the_end_of_the_node_cut_short_says_so(
    tmp_path: Path, demo: Demo
) -> None:
    limits = ServerLimits(drain_seconds=0.1)
    async with live(tmp_path / "home", sources=[demo.source], limits=limits) as node:
        session = await greet(node)
        answers: list[Any] = []
        async with anyio.create_task_group() as group:

            async def wait() -> None:
                body = request("tools/call", called("mcp_demo_wait"))
                answers.append((await session.post(body)).json)

            group.start_soon(wait)
            await demo.begun.wait()
            node.stop.set()
        assert "may have had an effect" in answers[0]["error"]["message"]
