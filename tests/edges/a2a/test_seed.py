"""The first dialect over a socket: the seed's own requests, and all that can become of them."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from tests.edges.a2a.seeding import body, message, refusal, rpc, send, texts, to

if TYPE_CHECKING:
    from tests.edges.demo import Demo
    from tests.edges.live import Live, Reply

pytestmark = pytest.mark.requirement("C5.2")

SEEDS = Path(__file__).parents[2] / "data/seeds"
REQUESTS = ("000-18-message.json", "000-20-message.json", "001-12-message.json")
ANSWER = json.loads((SEEDS / "000-21-document.json").read_text("utf-8"))
CHECKED = [json.loads((SEEDS / file).read_text("utf-8")) for file in REQUESTS]


async def test_the_seeds_own_requests_get_the_seeds_own_answers(peer: Live) -> None:
    for asked in CHECKED:
        reply = await peer.post("/a2a/tasks/send", asked)
        task = reply.json
        first, second = ANSWER["messages"]
        expected = {
            **ANSWER,
            "id": task["id"],
            "sessionId": asked["params"]["sessionId"],
            "messages": [asked["params"]["message"], second],
        }
        assert (reply.status, task) == (200, expected)
        assert list(task) == list(ANSWER)
        assert set(first) == set(task["messages"][0])
        again = await peer.get(f"/a2a/tasks/{task['id']}")
        assert (again.status, again.json) == (200, expected)
        enveloped = (await peer.post("/a2a", asked)).json
        other = enveloped["result"]["id"]
        assert enveloped == {"jsonrpc": "2.0", "id": 1, "result": {**expected, "id": other}}
        read = (await rpc(peer, "tasks/get", {"id": task["id"]})).json
        assert read == {"jsonrpc": "2.0", "id": 7, "result": expected}


@pytest.mark.requirement("C5.5")
async def test_without_a_session_a_new_one_is_made_and_can_be_gone_on_with(peer: Live) -> None:
    task = await send(peer, message("hello"))
    assert task["sessionId"].startswith("session_")
    more = await send(peer, message("more", session_id=task["sessionId"]))
    assert (more["sessionId"], more["id"] != task["id"]) == (task["sessionId"], True)


async def test_a_run_that_fails_is_a_task_that_failed_with_the_reason(peer: Live) -> None:
    task = await send(peer, to("broken", "hello"))
    assert (task["status"], task["messages"][-1]["role"]) == ("failed", "agent")
    assert "and fall" in texts(task)[-1][1]
    rejected = await send(peer, to("picky", "hello"))
    assert (rejected["status"], texts(rejected)[-1][0]) == ("failed", "agent")
    assert "not this one" in texts(rejected)[-1][1]


async def test_an_agent_asks_and_the_next_message_to_its_task_is_the_answer(peer: Live) -> None:
    asked = await send(peer, to("asker", "go"))
    assert (asked["status"], texts(asked)) == (
        "inputRequired",
        [("user", "go"), ("agent", "Which one?")],
    )
    done = await send(peer, message("the red one", id=asked["id"]))
    assert (done["id"], done["status"]) == (asked["id"], "completed")
    assert texts(done) == [
        ("user", "go"),
        ("agent", "Which one?"),
        ("user", "the red one"),
        ("agent", "so: the red one"),
    ]
    late = await peer.post("/a2a/tasks/send", message("and more", id=asked["id"]))
    assert late.told == (409, "conflict")
    told = (await rpc(peer, "tasks/send", message("x", id=asked["id"])["params"])).json["error"]
    assert (told["code"], told["data"]["rule"]) == (-32004, "conflict")
    again = await send(peer, to("asker", "go"))
    elsewhere = message("x", id=again["id"], sessionId="another")
    assert (await peer.post("/a2a/tasks/send", elsewhere)).told == (422, "context")
    other = to("code-reviewer", "x", id=again["id"])
    assert (await peer.post("/a2a/tasks/send", other)).told == (404, "not_found")
    assert (await peer.get(f"/a2a/tasks/{again['id']}")).json == again


@pytest.mark.requirement("C5.4")
async def test_all_parts_reach_the_agent_and_artifacts_come_back(peer: Live) -> None:
    content = b64encode(b"\x00\x01").decode()
    parts = [
        {"type": "text", "text": "one"},
        {"type": "text", "text": "two"},
        {"type": "file", "name": "x.bin", "mime_type": "image/x-dot", "data": content},
        {"type": "data", "mime_type": "application/json", "data": {"n": [1, None]}},
    ]
    params = {
        "message": {"role": "user", "parts": parts},
        "metadata": {"agent": "maker", "color": "red"},
    }
    task = await send(peer, body("tasks/send", params))
    assert (task["status"], task["messages"][0]["parts"]) == ("completed", parts)
    note, dot, told = task["artifacts"]
    assert note == {"name": "note.md", "parts": [{"type": "text", "text": "# one\ntwo"}]}
    assert dot == {
        "name": "dot",
        "parts": [
            {"type": "file", "name": "dot", "mime_type": "image/png", "data": "AAAA"},
        ],
    }
    (seen,) = told["parts"]
    assert (seen["type"], seen["data"]["metadata"]["color"]) == ("data", "red")
    reached = seen["data"]["parts"]
    assert [part["type"] for part in reached] == ["text", "text", "file", "data"]
    assert (reached[2]["data"], reached[3]["data"]) == (content, {"n": [1, None]})


@pytest.mark.requirement("C5.4")
async def test_a_task_names_its_agent_or_the_primary_one_answers(peer: Live) -> None:
    named = message("x")
    named["params"]["message"]["metadata"] = {"agent": "maker"}
    assert texts(await send(peer, named))[-1] == ("agent", "made")
    assert texts(await send(peer, message("x")))[-1][1] == "I found 2 potential issues..."
    nobody = to("nobody", "x")
    assert (await peer.post("/a2a/tasks/send", nobody)).told == (404, "not_found")
    told = (await peer.post("/a2a", nobody)).json["error"]
    assert (told["code"], "nobody" in told["message"]) == (-32001, True)


@pytest.mark.requirement("C5.7")
async def test_cancel_ends_the_work_and_a_finished_task_cannot_be_cancelled(
    peer: Live, demo: Demo
) -> None:
    ended = list[dict[str, Any]]()

    async def wait() -> None:
        ended.append(await send(peer, to("waiter", "go")))

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        await demo.begun.wait()
        ((found, _),) = await peer.app.parts.tasks.store.unfinished()
        working = await peer.get(f"/a2a/tasks/{found}")
        assert working.json["status"] == "working"
        reply = await peer.post(f"/a2a/tasks/{found}/cancel")
        assert (reply.status, reply.json["status"]) == (200, "cancelled")
        await demo.cancelled.wait()
    (task,) = ended
    task_id = task["id"]
    assert task["status"] == "cancelled"
    assert task == (await peer.get(f"/a2a/tasks/{task_id}")).json
    assert (await peer.post(f"/a2a/tasks/{task_id}/cancel")).told == (409, "conflict")
    told = (await rpc(peer, "tasks/cancel", {"id": task_id})).json
    assert (told["id"], told["error"]["code"]) == (7, -32002)


@pytest.mark.requirement("C5.5")
async def test_what_is_not_there_and_what_is_anothers_are_told_alike(peer: Live) -> None:
    task = await send(peer, to("asker", "go"))
    other = await peer.key("other")
    for task_id, key in ((task["id"], other), ("task_nothing", ""), ("%2e%2e%2f", "")):
        for method, path in (("GET", ""), ("POST", "/cancel"), ("GET", "/history")):
            reply = await peer.ask(method, f"/a2a/tasks/{task_id}{path}", key=key)
            assert reply.told == (404, "not_found"), (method, path)
        for method in ("tasks/get", "tasks/cancel", "tasks/resubscribe"):
            told = (await rpc(peer, method, {"id": task_id}, key=key)).json["error"]
            assert told["code"] == -32001, method
        answer = message("x", id=task_id)
        assert (await peer.post("/a2a/tasks/send", answer, key=key)).told[0] == 404
    assert (await peer.get(f"/a2a/tasks/{task['id']}")).json == task


@pytest.mark.requirement("C5.1", "C5.6")
async def test_the_states_of_a_task_can_be_read(peer: Live) -> None:
    asked = await send(peer, to("asker", "go"))
    await send(peer, message("red", id=asked["id"]))
    told = (await peer.get(f"/a2a/tasks/{asked['id']}/history")).json
    states = [one["status"] for one in told["history"]]
    assert told["id"] == asked["id"]
    assert states == ["submitted", "working", "inputRequired", "working", "completed"]
    assert all(set(one) == {"status", "at"} for one in told["history"])


@pytest.mark.requirement("C5.1")
async def test_a_task_can_be_watched_in_this_dialect_too(peer: Live) -> None:
    async def watch(method: str, params: dict[str, Any]) -> list[dict[str, Any]]:
        sent = body(method, params, 9)
        where, headers = peer.at("/a2a"), peer.headers()
        async with peer.web.post(where, json=sent, headers=headers) as response:
            assert response.headers["Content-Type"].startswith("text/event-stream")
            lines = (await response.text()).splitlines()
        events = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
        assert all((event["jsonrpc"], event["id"]) == ("2.0", 9) for event in events)
        return [event["result"] for event in events]

    asked = await watch("tasks/sendSubscribe", to("asker", "go")["params"])
    assert asked[-1]["status"] == "inputRequired"
    assert texts(asked[-1])[-1] == ("agent", "Which one?")
    again = await watch("tasks/resubscribe", {"id": asked[-1]["id"]})
    assert again == [asked[-1]]
    done = await watch("tasks/sendSubscribe", message("red", id=asked[-1]["id"])["params"])
    assert (done[-1]["status"], texts(done[-1])[-1][1]) == ("completed", "so: red")
    read = await peer.get(f"/a2a/tasks/{asked[-1]['id']}")
    assert read.json == done[-1]


TEXT = {"type": "text", "text": "x"}
BAD = {
    "no params": {"jsonrpc": "2.0", "id": 1, "method": "tasks/send"},
    "another method": body("tasks/get", message("x")["params"]),
    "no message": body("tasks/send", {}),
    "no parts": body("tasks/send", {"message": {"role": "user", "parts": []}}),
    "a part of no known type": body(
        "tasks/send", {"message": {"role": "user", "parts": [{"type": "video", "url": "x"}]}}
    ),
    "a file that is no base 64": body(
        "tasks/send",
        {"message": {"role": "user", "parts": [TEXT, {"type": "file", "data": "%%%"}]}},
    ),
    "a strange role": body("tasks/send", {"message": {"role": "system", "parts": [TEXT]}}),
    "the agent's role": body("tasks/send", {"message": {"role": "agent", "parts": [TEXT]}}),
    "a session that is no string": message("x", sessionId=7),
    "a session that nobody can see": message("x", sessionId="a\nb"),
    "a session of the other spelling": message("x", session_id="a\x00"),
    "a session that is too long": message("x", sessionId="a" * 257),
    "a task that is no string": message("x", id={}),
    "a task that nobody can see": message("x", id="\x1b[2J"),
    "an agent that nobody can see": message("x", metadata={"agent": "a\u202eb"}),
    "a message that nobody can see": body(
        "tasks/send", {"message": {"messageId": "\x07", "role": "user", "parts": [TEXT]}}
    ),
    "metadata that is no object": message("x", metadata=[]),
    "an agent that is no string": message("x", metadata={"agent": 1}),
    "a push that is not offered": message("x", pushNotification={"url": "https://x.example"}),
    "a mode that nobody knows": message("x", metadata={"openfang": {"mode": "hasty"}}),
}


async def test_what_makes_no_sense_is_refused_with_words_and_nothing_is_stored(peer: Live) -> None:
    for name, sent in BAD.items():
        reply = await peer.post("/a2a/tasks/send", sent)
        assert (name, reply.told) == (name, (422, "invalid_message"))
        if sent.get("params") and sent["method"] == "tasks/send":
            told = (await peer.post("/a2a", sent)).json["error"]
            assert (name, told["code"]) == (name, -32602)
            assert told["message"] == reply.problem["detail"]
    assert await peer.app.parts.tasks.store.counts() == (0, 0)
    assert (await peer.get("/api/sessions")).json["sessions"] == []


WRONG = [
    (b"{", None, -32700),
    (b"[]", None, -32600),
    (b"7", None, -32600),
    (b"", None, -32700),
    (b'{"jsonrpc": "2.0", "id": 3}', 3, -32600),
    (b'{"jsonrpc": "1.0", "id": "a", "method": "tasks/get"}', "a", -32600),
    (b'{"jsonrpc": "2.0", "id": {}, "method": "tasks/get"}', None, -32600),
    (b'{"jsonrpc": "2.0", "id": true, "method": "tasks/get"}', None, -32600),
    (b'{"jsonrpc": "2.0", "id": 3, "id": 3, "method": "x"}', None, -32600),
    (b'{"jsonrpc": "2.0", "id": 3, "method": "tasks/get", "params": []}', 3, -32602),
    (b'{"jsonrpc": "2.0", "id": 3, "method": "tasks/get", "params": {}}', 3, -32602),
    (b'{"jsonrpc": "2.0", "id": 3, "method": "tasks/list", "params": {}}', 3, -32601),
    (b'{"jsonrpc": "2.0", "method": "tasks/get", "params": {"id": "x"}}', None, -32001),
]


async def test_a_request_is_refused_in_the_words_of_json_rpc(peer: Live) -> None:
    kind = {"Content-Type": "application/json"}
    for sent, number, code in WRONG:
        reply = await peer.ask("POST", "/a2a", data=sent, headers=kind)
        told = reply.json
        assert (sent, reply.status, told["id"], told["error"]["code"]) == (sent, 200, number, code)
        assert told["error"]["message"].endswith(".")


async def test_a_body_that_is_no_json_is_a_problem_on_the_bare_path(peer: Live) -> None:
    kind = {"Content-Type": "application/json"}
    reply = await peer.ask("POST", "/a2a/tasks/send", data=b"{", headers=kind)
    assert reply.told == (400, "not_json")
    text = {"Content-Type": "text/plain"}
    reply = await peer.ask("POST", "/a2a/tasks/send", data=b"{}", headers=text)
    assert reply.told == (415, "content_type")
    reply = await peer.ask("POST", "/a2a", data=b"{}", headers=text)
    assert refusal(reply) == (415, -32602, "content_type")


@pytest.mark.requirement("C5.7")
async def test_who_disconnects_stops_nothing(peer: Live, demo: Demo) -> None:
    client = await peer.client()
    sent = json.dumps(to("waiter", "go")).encode()
    kind = "Content-Type: application/json"
    await client.send(peer.request("POST", "/a2a/tasks/send", kind, body=sent))
    await demo.begun.wait()
    ((task_id, _),) = await peer.app.parts.tasks.store.unfinished()
    client.hang_up()
    demo.released.set()
    ended = await peer.app.parts.tasks.settled(task_id)
    assert ended.state.value == "completed"
    assert not demo.cancelled.is_set()


async def test_who_is_over_its_rate_makes_no_task(peer: Live) -> None:
    key = await peer.key("slow", cells_per_minute=40)
    first = await peer.post("/a2a/tasks/send", message("x"), key=key)
    assert first.status == 200
    for path in ("/a2a/tasks/send", "/a2a"):
        reply = await peer.post(path, message("x"), key=key)
        assert reply.told == (429, "rate_limit")
        assert int(reply.headers["Retry-After"]) > 0
    assert (await peer.app.parts.tasks.store.counts())[0] == 1


async def waiting(peer: Live, demo: Demo, key: str = "") -> tuple[str, asyncio.Task[Reply]]:
    """Begin a task that goes on, and wait for it as a client does."""
    request = asyncio.create_task(peer.post("/a2a/tasks/send", to("waiter", "go"), key=key))
    await demo.begun.wait()
    ((task_id, _),) = await peer.app.parts.tasks.store.unfinished()
    return task_id, request


@pytest.mark.requirement("C5.7", "C18.1")
async def test_who_waits_is_turned_away_with_its_key_and_the_task_goes_on(
    peer: Live, demo: Demo
) -> None:
    key = await peer.key("short")
    task_id, request = await waiting(peer, demo, key)
    assert (await peer.ask("DELETE", "/api/keys/short")).status == 200
    reply = await request
    assert reply.told == (401, "unauthenticated")
    assert task_id in reply.problem["detail"]
    demo.released.set()
    assert (await peer.app.parts.tasks.settled(task_id)).state.final


async def test_who_waits_when_the_node_stops_is_told_how_far_it_got(peer: Live, demo: Demo) -> None:
    task_id, request = await waiting(peer, demo)
    peer.stop.set()
    reply = await request
    assert (reply.status, reply.json["id"], reply.json["status"]) == (200, task_id, "working")


async def test_a_stream_ends_with_its_key_and_the_task_goes_on(peer: Live, demo: Demo) -> None:
    key = await peer.key("short")
    sent = body("tasks/sendSubscribe", to("waiter", "go")["params"])
    where, headers = peer.at("/a2a"), peer.headers(key)
    async with peer.web.post(where, json=sent, headers=headers) as response:
        await demo.begun.wait()
        assert (await peer.ask("DELETE", "/api/keys/short")).status == 200
        told = (await response.text()).splitlines()
    events = [json.loads(line[6:])["result"] for line in told if line.startswith("data: ")]
    assert {task["status"] for task in events} == {"working"}
    assert not demo.cancelled.is_set()
    demo.released.set()
    assert (await peer.app.parts.tasks.settled(events[0]["id"])).state.final
