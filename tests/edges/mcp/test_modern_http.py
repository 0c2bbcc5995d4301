"""Requests that stand alone, over a real socket: headers against body, errors, streams."""

from __future__ import annotations

import json
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pytest
from tests.edges.live import live
from tests.edges.mcp.talking import (
    META,
    Stream,
    call,
    edge_of,
    modern,
    modern_headers,
    new_edge,
    note,
    request,
    until,
)
from tests.edges.mcp.teller import Teller

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from tests.edges.demo import Demo
    from tests.edges.live import Live, Reply

pytestmark = pytest.mark.requirement("C4.4", "C4.6", "C12.2")

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
TOKEN: dict[str, Any] = {**META, "progressToken": "p"}


@pytest.fixture
def teller() -> Teller:
    return Teller()


@pytest.fixture
async def node(tmp_path: Path, demo: Demo, teller: Teller) -> AsyncGenerator[Live]:
    async with live(tmp_path / "home", sources=[demo.source, teller]) as running:
        yield running


def told(reply: Reply) -> tuple[int, int]:
    """The status, and the code of the error."""
    assert reply.headers["Content-Type"] == "application/json"
    return reply.status, reply.json["error"]["code"]


# What is answered


async def test_a_call_is_answered_with_json_and_a_receipt(node: Live) -> None:
    reply = await call(node, "mcp_demo_echo", {"text": "hello"})
    assert (reply.status, reply.headers["Content-Type"]) == (200, "application/json")
    result = reply.json["result"]
    assert reply.json["id"] == 1
    assert result["content"] == [{"type": "text", "text": "hello"}]
    assert result["resultType"] == "complete"
    assert {"call", "start", "end", "hash"} == set(result["_meta"]["openfang/receipt"])
    assert "Mcp-Session-Id" not in reply.headers


async def test_discovery_names_the_revisions_that_stand_alone(node: Live) -> None:
    result = (await modern(node, "server/discover")).json["result"]
    assert result["supportedVersions"] == ["2026-07-28"]
    assert result["capabilities"]["tools"] == {"listChanged": True}


async def test_a_place_has_its_own_address_and_an_unknown_one_is_not_there(
    tmp_path: Path, demo: Demo
) -> None:
    config = '[toolsets.small]\nprefix = false\ntools = ["mcp:demo:echo"]\n'
    async with live(tmp_path / "home", config=config, sources=[demo.source]) as node:
        reply = await call(node, "echo", {"text": "a"}, path="/mcp/small")
        assert reply.json["result"]["content"][0]["text"] == "a"
        for path in ("/mcp/large", "/mcp/agents/nobody"):
            assert (await modern(node, "tools/list", path=path)).told == (404, "not_found")
        for path in ("/mcp/", "/mcp/a/b", "/mcp/agents/a/b", "/mcpx"):
            assert (await modern(node, "tools/list", path=path)).told == (404, "route")


async def test_a_notification_is_taken_and_nothing_more(node: Live) -> None:
    headers = {"MCP-Protocol-Version": "2026-07-28"}
    reply = await node.post("/mcp", note("notifications/cancelled"), headers=headers)
    assert (reply.status, reply.body) == (202, b"")


# Headers against the body


CONTRADICTIONS: list[dict[str, str | None]] = [
    {"MCP-Protocol-Version": None},
    {"MCP-Protocol-Version": "2025-11-25"},
    {"Mcp-Method": None},
    {"Mcp-Method": "tools/list"},
    {"Mcp-Name": None},
    {"Mcp-Name": "another"},
    {"Mcp-Name": "=?base64?!?="},
]


async def test_headers_that_contradict_the_body_are_refused(node: Live, demo: Demo) -> None:
    for changed in CONTRADICTIONS:
        assert told(await call(node, "mcp_demo_echo", headers=changed)) == (400, -32020), changed
    assert demo.source.reached == 0


async def test_a_name_is_read_however_it_is_written(node: Live) -> None:
    """Written out by hand: other clients take blanks away before they send."""
    params = {"_meta": META, "name": "mcp_demo_echo"}
    body = json.dumps(request("tools/call", params)).encode()
    client = await node.client()
    for name in ("  mcp_demo_echo\t", "=?base64?bWNwX2RlbW9fZWNobw==?="):
        headers = {**modern_headers("tools/call", params), "Mcp-Name": name}
        lines = [f"{key}: {value}" for key, value in headers.items()]
        answer = await client.ask(node.request("POST", "/mcp", *lines, body=body))
        assert answer.status == 200
        assert json.loads(answer.body)["result"]["content"] == [{"type": "text", "text": "x"}]


async def test_a_header_of_the_protocol_that_is_there_twice_is_refused(node: Live) -> None:
    params = {"_meta": META, "name": "mcp_demo_echo"}
    headers = {"Mcp-Param-Where": "a", **modern_headers("tools/call", params)}
    body = json.dumps(request("tools/call", params)).encode()
    client = await node.client()
    for doubled in ("Mcp-Method", "Mcp-Name", "Mcp-Param-Where"):
        lines = [f"{key}: {value}" for key, value in headers.items()]
        lines.append(f"{doubled}: {headers[doubled]}")
        answer = await client.ask(node.request("POST", "/mcp", *lines, body=body))
        assert (answer.status, json.loads(answer.body)["error"]["code"]) == (400, -32020)


MIRRORED: list[tuple[dict[str, str], dict[str, str], int]] = [
    ({"where": "here"}, {"Mcp-Param-Where": "here"}, 200),
    ({"where": "dört"}, {"Mcp-Param-Where": "=?base64?ZMO2cnQ=?="}, 200),
    ({}, {}, 200),
    ({}, {"Mcp-Param-Unknown": "x"}, 200),
    ({"where": "here"}, {}, 400),
    ({"where": "here"}, {"Mcp-Param-Where": "there"}, 400),
    ({}, {"Mcp-Param-Where": "here"}, 400),
]


async def test_an_argument_that_is_mirrored_stands_in_its_header(
    node: Live, teller: Teller
) -> None:
    for arguments, sent, status in MIRRORED:
        teller.calls.clear()
        reply = await call(node, "mcp_teller_marked", arguments, headers=sent)
        assert reply.status == status, (arguments, sent)
        assert teller.reached == (1 if status == 200 else 0)
        if status != 200:
            assert reply.json["error"]["code"] == -32020


# What a request says of itself


INTRODUCTIONS: list[tuple[Any, str, int]] = [
    (None, "2026-07-28", -32602),
    ({}, "2026-07-28", -32602),
    ({VERSION: "2026-07-28"}, "2026-07-28", -32602),
    ({CAPABILITIES: {}}, "2026-07-28", -32602),
    ({VERSION: "2026-07-28", CAPABILITIES: 7}, "2026-07-28", -32602),
    ({VERSION: "2099-01-01", CAPABILITIES: {}}, "2099-01-01", -32022),
    ({VERSION: 7, CAPABILITIES: {}}, "2026-07-28", -32020),
]


async def test_a_request_that_does_not_introduce_itself_is_refused(node: Live) -> None:
    for meta, version, code in INTRODUCTIONS:
        headers = {"MCP-Protocol-Version": version}
        reply = await modern(node, "tools/list", {"_meta": meta}, headers=headers)
        assert told(reply) == (400, code), meta
        if code == -32022:
            data = {"supported": ["2026-07-28"], "requested": "2099-01-01"}
            assert reply.json["error"]["data"] == data


async def test_what_the_era_has_no_method_for_is_not_found(node: Live) -> None:
    for method in ("initialize", "ping", "logging/setLevel", "resources/subscribe", "no/such"):
        assert told(await modern(node, method)) == (404, -32601), method


async def test_there_is_nothing_but_post(node: Live) -> None:
    for method in ("GET", "DELETE"):
        reply = await node.ask(method, "/mcp", headers={"MCP-Protocol-Version": "2026-07-28"})
        assert reply.told == (405, "method")
        assert reply.headers["Allow"] == "POST"


NO_REQUESTS = [
    (b"", -32700),
    (b"{", -32700),
    (b"\xff", -32700),
    (b"[" * 5000 + b"]" * 5000, -32700),
    (b"[]", -32600),
    (b"7", -32600),
    (b'[{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}]', -32600),
    (b'{"jsonrpc": "2.0", "id": 1}', -32600),
    (b'{"jsonrpc": "2.0", "id": true, "method": "tools/list"}', -32600),
    (b'{"jsonrpc": "2.0", "id": 1, "method": 7}', -32600),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": []}', -32600),
    (b'{"jsonrpc": "2.0", "id": 1, "result": {}}', -32600),
    (b'{"id": 1, "id": 2, "method": "tools/list"}', -32600),
    (b'{"id": 99999999999999999999, "method": "tools/list"}', -32600),
]


async def test_what_is_no_request_is_answered_with_an_error(node: Live) -> None:
    for version in ({"MCP-Protocol-Version": "2026-07-28"}, {}):
        headers = {"Content-Type": "application/json", **version}
        for body, code in NO_REQUESTS:
            reply = await node.ask("POST", "/mcp", data=body, headers=headers)
            assert told(reply) == (400, code), (version, body[:80])


# Before it is a request at all


async def test_what_every_edge_refuses_is_refused_here(node: Live) -> None:
    body = request("tools/list")
    assert (await node.post("/mcp", body, key=None)).told == (401, "unauthenticated")
    foreign = await node.post("/mcp", body, headers={"Origin": "http://evil.example"})
    assert foreign.told == (403, "origin")
    rebound = await node.post("/mcp", body, headers={"Host": "evil.example"})
    assert rebound.told == (421, "host")
    text = await node.ask("POST", "/mcp", data=b"{}", headers={"Content-Type": "text/plain"})
    assert text.told == (415, "content_type")
    large = await node.ask("POST", "/mcp", data=BytesIO(b"x" * 10_000_001))
    assert large.told == (413, "body_too_large")
    assert (await node.ask("PUT", "/mcp", json=body)).told == (405, "method")


async def test_a_key_of_another_edge_is_of_no_use(node: Live) -> None:
    api, mcp = await node.key("api", edges=["api"]), await node.key("mcp", edges=["mcp"])
    assert (await modern(node, "tools/list", key=api)).told == (403, "edge")
    assert (await modern(node, "tools/list", key=mcp)).status == 200
    assert (await node.get("/api/status", key=mcp)).told == (403, "edge")


async def test_a_look_costs_one_cell_and_a_name_that_is_guessed_as_much_as_a_call(
    tmp_path: Path, demo: Demo
) -> None:
    config = "[limits]\ncells_per_minute = 1\nburst = 40\n"
    async with live(tmp_path / "home", config=config, sources=[demo.source]) as node:
        left = [
            int((await asked).headers["RateLimit-Remaining"])
            for asked in (
                modern(node, "tools/list"),
                modern(node, "tools/list", headers={"Mcp-Method": "x"}),
                call(node, "mcp_demo_echo"),
                call(node, "guessed"),
                call(node, "mcp_demo_echo", headers={"Mcp-Name": "x"}),
                node.post("/mcp", note("notifications/initialized")),
                node.ask("POST", "/mcp", data=b"{", headers={"Content-Type": "application/json"}),
            )
        ]
        assert left == [39, 38, 33, 28, 23, 22, 21]


# Streams


async def test_what_is_told_before_the_answer_makes_a_stream_of_it(node: Live) -> None:
    params = {"name": "mcp_teller_tell", "arguments": {"times": 3}, "_meta": TOKEN}
    reply = await modern(node, "tools/call", params)
    assert reply.headers["Content-Type"] == "text/event-stream"
    assert reply.headers["X-Accel-Buffering"] == "no"
    events = [json.loads(line[6:]) for line in reply.body.splitlines() if line[:5] == b"data:"]
    progress = [event["params"]["progress"] for event in events[:-1]]
    assert progress == [1.0, 2.0, 3.0]
    assert {event["params"]["progressToken"] for event in events[:-1]} == {"p"}
    assert events[-1]["result"]["content"] == [{"type": "text", "text": "xxxx"}]
    assert b"id:" not in reply.body


async def test_who_cannot_read_a_stream_is_told_nothing_before_the_answer(node: Live) -> None:
    params = {"name": "mcp_teller_tell", "arguments": {"times": 3}, "_meta": TOKEN}
    for accept in ("application/json", "*/*", "", None):
        reply = await modern(node, "tools/call", params, headers={"Accept": accept})
        assert reply.json["result"]["content"] == [{"type": "text", "text": "xxxx"}]


async def test_who_can_read_nothing_but_a_stream_gets_one(node: Live) -> None:
    reply = await modern(node, "tools/list", headers={"Accept": "text/event-stream"})
    assert reply.headers["Content-Type"] == "text/event-stream"
    assert reply.body.startswith(b'event: message\ndata: {"jsonrpc":"2.0","id":1,"result":')


async def test_who_hangs_up_cancels_what_it_asked_for(
    node: Live, demo: Demo, teller: Teller
) -> None:
    for source, tool in ((demo, "mcp_demo_wait"), (teller, "mcp_teller_tell_and_wait")):
        params = {"name": tool, "arguments": {}, "_meta": TOKEN}
        lines = [f"{k}: {v}" for k, v in modern_headers("tools/call", params).items()]
        body = json.dumps(request("tools/call", params)).encode()
        client = await node.client()
        await client.send(node.request("POST", "/mcp", *lines, body=body))
        await source.begun.wait()
        client.hang_up()
        await source.cancelled.wait()


async def test_a_long_silence_becomes_a_stream_that_says_so(tmp_path: Path, teller: Teller) -> None:
    async with live(tmp_path / "home", sources=[teller]) as node:
        new_edge(node, beat=0.02)
        params = {"name": "mcp_teller_wait", "arguments": {}, "_meta": META}
        headers = node.headers("", modern_headers("tools/call", params))
        body = request("tools/call", params)
        async with node.web.post(node.at("/mcp"), json=body, headers=headers) as response:
            assert response.content_type == "text/event-stream"
            assert await response.content.readuntil(b"\n\n") == b": still here\n\n"
            assert await response.content.readuntil(b"\n\n") == b": still here\n\n"
            teller.go_on.set()
            answer = await Stream(response).rest()
        assert answer[-1]["result"]["content"] == [{"type": "text", "text": "xxxx"}]


# Subscriptions


LISTENING: dict[str, Any] = {"notifications": {"toolsListChanged": True}, "_meta": META}


async def test_a_subscription_tells_of_changes_and_ends_with_a_result(
    node: Live, teller: Teller
) -> None:
    headers = node.headers("", modern_headers("subscriptions/listen", LISTENING))
    body = request("subscriptions/listen", LISTENING, "sub")
    async with node.web.post(node.at("/mcp"), json=body, headers=headers) as response:
        assert response.content_type == "text/event-stream"
        stream = Stream(response)
        tag = {"io.modelcontextprotocol/subscriptionId": "sub"}
        first = await stream.message()
        assert first["method"] == "notifications/subscriptions/acknowledged"
        assert first["params"]["_meta"] == tag
        assert len(edge_of(node).staying) == 1
        teller.put_another()
        node.app.add(teller)
        changed = await stream.message()
        assert changed["method"] == "notifications/tools/list_changed"
        assert changed["params"]["_meta"] == tag
        node.stop.set()
        last = await stream.message()
        assert last["id"] == "sub"
        assert last["result"]["resultType"] == "complete"
        assert last["result"]["_meta"].items() >= tag.items()
        assert await stream.message() is None
    assert len(edge_of(node).staying) == 0


async def test_a_subscription_needs_no_word_about_streams(node: Live) -> None:
    headers = {**modern_headers("subscriptions/listen", LISTENING), "Accept": "*/*"}
    body = request("subscriptions/listen", LISTENING)
    sent = node.headers("", headers)
    async with node.web.post(node.at("/mcp"), json=body, headers=sent) as response:
        assert response.content_type == "text/event-stream"
        assert (await Stream(response).message())["method"].endswith("acknowledged")
    await until(lambda: not len(edge_of(node).staying))


async def test_a_subscription_to_nothing_that_makes_sense_is_an_error(node: Live) -> None:
    reply = await modern(node, "subscriptions/listen", {"notifications": 7})
    assert told(reply) == (400, -32602)
    assert len(edge_of(node).staying) == 0


async def test_a_subscription_ends_with_the_key_that_opened_it(node: Live) -> None:
    secret = await node.key("brief")
    headers = node.headers(secret, modern_headers("subscriptions/listen", LISTENING))
    body = request("subscriptions/listen", LISTENING)
    async with node.web.post(node.at("/mcp"), json=body, headers=headers) as response:
        stream = Stream(response)
        await stream.message()
        edge_of(node).staying.dismiss()
        assert len(edge_of(node).staying) == 1
        assert (await node.ask("DELETE", "/api/keys/brief")).status == 200
        edge_of(node).staying.dismiss()
        assert (await stream.rest())[-1]["result"]["resultType"] == "complete"


async def test_only_so_many_streams_stay_open_and_one_caller_has_half(
    tmp_path: Path,
) -> None:
    config = "[server]\nconnections = 16\n"
    async with live(tmp_path / "home", config=config) as node:
        headers = node.headers("", modern_headers("subscriptions/listen", LISTENING))
        body = request("subscriptions/listen", LISTENING)
        first = await node.web.post(node.at("/mcp"), json=body, headers=headers)
        second = await node.web.post(node.at("/mcp"), json=body, headers=headers)
        third = await node.post("/mcp", body, headers=headers)
        assert third.told == (429, "too_many_streams")
        assert (await modern(node, "tools/list")).status == 200
        first.close()
        second.close()
