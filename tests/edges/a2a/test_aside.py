"""Data and metadata go through as they are, however many values they have."""

from __future__ import annotations

import base64
from io import BytesIO
from typing import TYPE_CHECKING, Any

import anyio
import orjson
import pytest
from tests.edges.a2a.seeding import body, refusal, rpc

from openfang.app.a2a.house import NodeHouse, public_skills
from openfang.edges.a2a.edge import A2aEdge

if TYPE_CHECKING:
    from tests.edges.demo import Demo
    from tests.edges.live import Live

pytestmark = pytest.mark.requirement("C5.3", "C5.6")

V1 = {"A2A-Version": "1.0"}
MAKER = "/a2a/agents/maker"
ODD: dict[str, Any] = {
    "whole": 1,
    "not": 1.0,
    "long": 2**53 + 1,
    "none": None,
    "in": [{"value": {}}, []],
}
METADATA: dict[str, Any] = {"n": 1.0, "list": [1, {"a": []}], "value": 3}


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def request(version: str, part: dict[str, Any], *, rest: bool = False, **more: Any) -> Any:
    role = "ROLE_USER" if rest or version == "1.0" else "user"
    parts = "content" if rest and version == "0.3" else "parts"
    said = {"messageId": f"m-{version}-{rest}", "role": role, parts: [part], **more}
    return {"message": said, "metadata": METADATA}


async def made(peer: Live, params: Any, version: str, *, rest: bool) -> tuple[Any, Any]:
    """What an agent was told, and the task as it is answered."""
    headers = {"A2A-Version": version}
    if rest:
        where = f"{MAKER}/rest/{'v1/' if version == '0.3' else ''}message:send"
        task = (await peer.post(where, params, headers=headers)).json["task"]
    else:
        method = "SendMessage" if version == "1.0" else "message/send"
        reply = await peer.post(MAKER, body(method, params), headers=headers)
        task = reply.json["result"]
        task = task.get("task", task)
    kept = await peer.app.parts.tasks.settled(task["id"])
    return kept.artifacts[-1].parts[0]["data"], task


@pytest.mark.parametrize("data", [ODD, [1, 1.0, ODD], {"value": [1.0]}, {}, [], 2**53 + 1, 0])
@pytest.mark.parametrize(("version", "rest"), [("1.0", False), ("1.0", True)])
async def test_data_and_metadata_reach_an_agent_as_they_are(
    peer: Live, version: str, data: Any, *, rest: bool
) -> None:
    params = request(version, {"data": data, "metadata": METADATA}, rest=rest, metadata=ODD)
    told, task = await made(peer, params, version, rest=rest)
    assert repr(told["parts"][0]["data"]) == repr(data)
    assert told["parts"] == [{"type": "data", "data": data, "metadata": METADATA}]
    said = task["history"][0]
    assert (repr(said["parts"][0]["data"]), said["metadata"]) == (repr(data), ODD)


@pytest.mark.parametrize("data", [ODD, {"value": [1.0]}, {"value": 1}, {}])
@pytest.mark.parametrize("rest", [False, True])
async def test_an_object_goes_through_0_3_and_back_as_it_is(
    peer: Live, data: Any, *, rest: bool
) -> None:
    part = {"data": {"data": data}} if rest else {"kind": "data", "data": data}
    params = request("0.3", {**part, "metadata": METADATA}, rest=rest, metadata=ODD)
    told, task = await made(peer, params, "0.3", rest=rest)
    assert repr(told["parts"][0]["data"]) == repr(data)
    assert told["parts"][0]["metadata"] == METADATA
    said = task["history"][0]
    held = said["content"][0]["data"]["data"] if rest else said["parts"][0]["data"]
    assert (repr(held), said["metadata"]) == (repr(data), ODD)


async def test_what_is_no_object_goes_through_0_3_as_its_library_wraps_it(peer: Live) -> None:
    wrapped = {"data_part_compat": True, **METADATA}
    part = {"kind": "data", "data": {"value": [1, ODD]}, "metadata": wrapped}
    told, task = await made(peer, request("0.3", part), "0.3", rest=False)
    assert told["parts"][0]["data"] == [1, ODD]
    assert told["parts"][0]["metadata"] == METADATA
    assert task["history"][0]["parts"] == [part]


@pytest.mark.requirement("C12.2")
@pytest.mark.parametrize("version", ["1.0", "0.3"])
async def test_a_million_values_are_not_looked_at(peer: Live, version: str) -> None:
    older = version == "0.3"
    part = {"kind": "data", "data": {"n": [1] * 1_000_000}} if older else {"data": [1] * 1_000_000}
    params = request(version, part)
    at_once = {"blocking": False} if older else {"returnImmediately": True}
    sent = body("message/send" if older else "SendMessage", {**params, "configuration": at_once})
    headers = {"A2A-Version": version, "Content-Type": "application/json"}
    with anyio.fail_after(6):
        reply = await peer.ask("POST", MAKER, data=BytesIO(orjson.dumps(sent)), headers=headers)
    assert "result" in reply.json


@pytest.mark.requirement("C12.2")
async def test_what_is_nested_too_deeply_is_refused_in_each_dialect(peer: Live) -> None:
    older = request("0.3", {"kind": "text", "text": "x"}, metadata={"a": deep(70)})
    newer = request("1.0", {"data": deep(70)})
    first = {"message": {"role": "user", "parts": [{"type": "text", "text": "x"}]}}
    codes = [
        (await peer.post(MAKER, body("message/send", older))).json["error"]["code"],
        (await peer.post(MAKER, body("SendMessage", newer), headers=V1)).json["error"]["code"],
        refusal(await rpc(peer, "tasks/send", {**first, "metadata": {"a": deep(150)}}))[1],
    ]
    assert codes == [-32602, -32602, -32602]
    over_http = await peer.post(f"{MAKER}/rest/message:send", newer, headers=V1)
    assert over_http.status == 400


@pytest.mark.requirement("C12.2")
async def test_more_parts_than_anybody_sends_are_refused_in_each_dialect(peer: Live) -> None:
    newer = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}] * 20_000}}
    reply = await peer.post(MAKER, body("SendMessage", newer), headers=V1)
    assert reply.json["error"]["code"] == -32602
    first = {"role": "user", "parts": [{"type": "text", "text": "x"}] * 2000}
    told = refusal(await rpc(peer, "tasks/send", {"message": first}))
    assert told == (200, -32602, "invalid_message")


async def test_a_file_of_0_3_may_be_in_the_other_alphabet(peer: Live) -> None:
    content = bytes(range(256)) + b"\xfb\xff"
    written = base64.urlsafe_b64encode(content).decode().rstrip("=")
    part = {"kind": "file", "file": {"bytes": written, "name": "all"}}
    told, _ = await made(peer, request("0.3", part), "0.3", rest=False)
    assert base64.b64decode(told["parts"][0]["data"]) == content


async def test_a_moment_far_ahead_lists_nothing_and_an_unknown_state_is_refused(peer: Live) -> None:
    await made(peer, request("1.0", {"text": "x"}), "1.0", rest=False)
    listed = [
        (await peer.post(MAKER, body("ListTasks", asked), headers=V1)).json
        for asked in (
            {"statusTimestampAfter": "9999-01-01T00:00:00Z"},
            {"statusTimestampAfter": "0001-01-01T00:00:00Z"},
            {"status": 99},
        )
    ]
    assert [len(one["result"]["tasks"]) for one in listed[:2]] == [0, 1]
    assert listed[2]["error"]["code"] == -32602


async def test_a_stream_that_cannot_be_opened_begins_no_task(peer: Live, demo: Demo) -> None:
    edge = A2aEdge(NodeHouse(peer.app.parts), most_streams=1)
    peer.served.app.mounts = (edge, *peer.served.app.mounts)
    said = {"role": "user", "parts": [{"type": "text", "text": "go"}]}
    sent = body("tasks/sendSubscribe", {"message": said, "metadata": {"agent": "waiter"}})
    async with peer.web.post(peer.at("/a2a"), json=sent, headers=peer.headers()) as response:
        await demo.begun.wait()
        refused = await peer.post("/a2a", sent)
        assert len(await peer.app.parts.tasks.store.unfinished()) == 1
        demo.released.set()
        await response.read()
    assert refusal(refused)[2] == "too_many_streams"


def test_everybody_sees_each_named_tool_once_and_no_pattern() -> None:
    named = ["ext:*", "ext:pdf:read", "ext:pdf:write", "file_read", "builtin:file_read", "mcp:a:*"]
    assert [skill.id for skill in public_skills(named)] == ["pdf", "file_read"]
