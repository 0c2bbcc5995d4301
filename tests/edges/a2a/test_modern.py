"""A2A 1.0 and 0.3 over both ways in: what becomes of a message, and of all that makes no sense."""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Any

import pytest
from tests.edges.a2a.front import V1, code_of, reason_of, serving, text_of

from openfang.core.results import RECEIPT
from openfang.protocols.a2a.extensions import CHAIN

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from tests.edges.a2a.front import Served
    from tests.edges.live import Reply

pytestmark = pytest.mark.requirement("C5.3", "C5.4")

V03: dict[str, str] = {}
TEXT03 = {"kind": "text", "text": "hello"}


@pytest.fixture
async def served(tmp_path: Path) -> AsyncGenerator[Served]:
    async with serving(tmp_path / "home") as running:
        yield running


def message03(*parts: Any, **more: Any) -> dict[str, Any]:
    fields = {"kind": "message", "messageId": "m", "role": "user", "parts": list(parts)}
    return {"message": {**fields, **more}}


async def test_a_message_is_answered_with_the_task_it_became(served: Served) -> None:
    message = served.message("hello", metadata={"n": 1}, referenceTaskIds=["task_1"])
    params = {"message": message, "metadata": {"of": "the request"}}
    task = (await served.rpc("echo", "SendMessage", params))["result"]["task"]
    assert task["status"].keys() == {"state", "timestamp"}
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert text_of(task) == "you said hello"
    said, answered = task["history"]
    ids = {"taskId": task["id"], "contextId": task["contextId"]}
    assert said == {**message, **ids}
    assert answered["role"] == "ROLE_AGENT"
    assert answered["parts"] == [{"text": "you said hello"}]
    receipt = task["metadata"].pop(RECEIPT)
    assert task["metadata"] == {"of": "the request"}
    (end,) = [one for one in await served.node.events() if one.audit_id == receipt["end"]]
    assert (end.call_id, end.hash) == (receipt["call"], receipt["hash"])


async def test_all_kinds_of_parts_reach_the_agent_and_come_back(served: Served) -> None:
    parts: list[Any] = [
        "words",
        {"raw": base64.b64encode(b"\x00\xff").decode(), "filename": "a.bin", "mediaType": "x/y"},
        {"url": "https://example.org/a", "mediaType": "image/png"},
        {"data": {"number": 1, "list": [1.5, None, True]}, "metadata": {"why": "because"}},
    ]
    task = await served.send("teller", *parts)
    assert task["history"][0]["parts"] == [{"text": "words"}, *parts[1:]]
    _, note, table = task["artifacts"]
    assert (note["name"], note["parts"]) == ("note.md", [{"text": "# words"}])
    assert table["parts"][0]["data"]["parts"] == [
        {"type": "text", "text": "words"},
        {"type": "file", "name": "a.bin", "mime_type": "x/y", "data": "AP8="},
        {"type": "file", "name": "", "mime_type": "image/png", "uri": "https://example.org/a"},
        {"type": "data", "data": parts[3]["data"], "metadata": {"why": "because"}},
    ]


async def test_who_does_not_wait_gets_the_task_as_it_began(served: Served) -> None:
    task = await served.begun()
    assert task["status"]["state"] in {"TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"}
    async with served.stream("waiter", "SubscribeToTask", {"id": task["id"]}) as stream:
        first = await stream.next()
        assert first is not None
        assert first.data["result"]["task"]["id"] == task["id"]
        served.demo.released.set()
        told = [event.data["result"] for event in await stream.rest()]
    assert told[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
    words = [one["artifactUpdate"]["artifact"]["parts"][0]["text"] for one in told[:-1]]
    assert "".join(words) == "I wait no more"


async def test_a_question_is_answered_by_the_next_message_to_the_task(served: Served) -> None:
    asked = await served.send("asker", "begin")
    assert asked["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert asked["status"]["message"]["parts"] == [{"text": "Which one?"}]
    message = served.message("blue", taskId=asked["id"])
    task = (await served.rpc("asker", "SendMessage", {"message": message}))["result"]["task"]
    assert (task["id"], task["contextId"]) == (asked["id"], asked["contextId"])
    assert text_of(task) == "so: blue"
    said = [one["parts"][0]["text"] for one in task["history"]]
    assert said == ["begin", "Which one?", "blue", "so: blue"]


@pytest.mark.requirement("C9.4")
async def test_what_an_answer_carries_stays_with_what_comes_of_it(served: Served) -> None:
    asked = await served.send("asker", "begin")
    told = {"openfang/chain": {"labels": ["external_network"]}}
    message = served.message("blue", taskId=asked["id"], metadata=told)
    task = (await served.rpc("asker", "SendMessage", {"message": message}))["result"]["task"]
    assert text_of(task) == "so: blue"
    assert "external_network" in task["metadata"]["openfang/labels"]["labels"]


async def test_a_stream_tells_the_task_its_words_what_it_made_and_its_end(served: Served) -> None:
    params = {"message": served.message("hello")}
    first, *rest = await served.told("teller", "SendStreamingMessage", params)
    assert first["task"]["status"]["state"] == "TASK_STATE_WORKING"
    updates = [one["artifactUpdate"] for one in rest[:-1]]
    words = [one for one in updates if one["artifact"]["artifactId"] == "response"]
    assert "".join(one["artifact"]["parts"][0]["text"] for one in words) == "I talk a lot"
    assert [one.get("append", False) for one in words] == [False] + [True] * (len(words) - 1)
    assert [one.get("lastChunk", False) for one in words] == [False] * (len(words) - 1) + [True]
    made = [one["artifact"]["name"] for one in updates[len(words) :]]
    assert made == ["note.md", "table"]
    assert rest[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


async def test_a_stream_ends_when_it_is_the_callers_turn(served: Served) -> None:
    told = await served.told("asker", "SendStreamingMessage", {"message": served.message("go")})
    assert told[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    older = await served.told("asker", "message/stream", message03(TEXT03), headers=V03)
    assert (older[0]["kind"], older[-1]["kind"]) == ("task", "status-update")
    assert older[-1]["status"]["state"] == "input-required"
    assert older[-1]["final"] is True


async def test_the_last_words_of_a_history_are_kept_when_it_is_cut(served: Served) -> None:
    task = await served.send("echo", "hello", configuration={"historyLength": 1})
    assert [one["role"] for one in task["history"]] == ["ROLE_AGENT"]
    for length, said in ((0, 0), (1, 1), (9, 2)):
        found = await served.rpc("echo", "GetTask", {"id": task["id"], "historyLength": length})
        assert len(found["result"].get("history", [])) == said
    assert (
        code_of(await served.rpc("echo", "GetTask", {"id": task["id"], "historyLength": -1}))
        == -32602
    )


async def test_the_older_version_too_has_no_history_of_no_length(served: Served) -> None:
    for length, said in ((0, 0), (1, 1), (None, 2)):
        wanted = {} if length is None else {"historyLength": length}
        params = {**message03(TEXT03, messageId=f"m-{length}"), "configuration": wanted}
        task = (await served.rpc("echo", "message/send", params, headers=V03))["result"]
        assert len(task.get("history") or ()) == said
        (first, *_) = await served.told("echo", "message/stream", params, headers=V03)
        assert len(first.get("history") or ()) == said
        asked = {"id": task["id"], **wanted}
        found = (await served.rpc("echo", "tasks/get", asked, headers=V03))["result"]
        assert len(found.get("history") or ()) == said
    for wrong in (-1, 99_999_999_999, "abc"):
        asked = {"id": "task_x", "historyLength": wrong}
        assert code_of(await served.rpc("echo", "tasks/get", asked, headers=V03)) == -32602


async def test_tasks_are_listed_newest_change_first_behind_a_cursor(served: Served) -> None:
    sent = [await served.send("echo", str(number)) for number in range(3)]
    await served.send("teller", "of another agent")
    first = (await served.rpc("echo", "ListTasks", {"pageSize": 2}))["result"]
    assert [task["id"] for task in first["tasks"]] == [sent[2]["id"], sent[1]["id"]]
    assert (first["totalSize"], first["pageSize"]) == (3, 2)
    assert all("artifacts" not in task for task in first["tasks"])
    more = {"pageSize": 2, "pageToken": first["nextPageToken"], "includeArtifacts": True}
    second = (await served.rpc("echo", "ListTasks", more))["result"]
    assert [task["id"] for task in second["tasks"]] == [sent[0]["id"]]
    assert second["nextPageToken"] == ""
    assert second["tasks"][0]["artifacts"][0]["artifactId"] == "response"


async def test_a_list_holds_what_its_filters_name(served: Served) -> None:
    asked = await served.send("asker", "a")
    named = await served.send("echo", "b")
    await served.send("echo", "c")

    async def listed(agent: str, **wanted: Any) -> list[str]:
        found = await served.rpc(agent, "ListTasks", wanted)
        return [task["id"] for task in found["result"]["tasks"]]

    assert await listed("asker", status="TASK_STATE_INPUT_REQUIRED") == [asked["id"]]
    assert await listed("asker", status="TASK_STATE_COMPLETED") == []
    assert await listed("echo", contextId=named["contextId"]) == [named["id"]]
    since = named["status"]["timestamp"]
    assert len(await listed("echo", statusTimestampAfter=since)) == 2
    assert await listed("echo", statusTimestampAfter="2100-01-01T00:00:00Z") == []


SENSELESS_LISTS: list[Any] = [
    {"pageSize": 0},
    {"pageSize": 101},
    {"pageToken": "of somebody else"},
    {"status": "TASK_STATE_SLEEPING"},
    {"historyLength": -1},
    {"statusTimestampAfter": "yesterday"},
]


async def test_a_list_that_makes_no_sense_is_refused(served: Served) -> None:
    for wanted in SENSELESS_LISTS:
        assert code_of(await served.rpc("echo", "ListTasks", wanted)) == -32602
        query = "&".join(f"{name}={value}".replace(" ", "+") for name, value in wanted.items())
        reply = await served.rest("GET", f"echo/rest/tasks?{query}")
        assert reply.status == 400


@pytest.mark.requirement("C5.7")
async def test_a_cancelled_task_is_canceled_and_cannot_be_cancelled_again(served: Served) -> None:
    task = await served.begun()
    ended = (await served.rpc("waiter", "CancelTask", {"id": task["id"]}))["result"]
    assert ended["status"]["state"] == "TASK_STATE_CANCELED"
    await served.demo.cancelled.wait()
    assert code_of(await served.rpc("waiter", "CancelTask", {"id": task["id"]})) == -32002
    reply = await served.rest("POST", f"waiter/rest/tasks/{task['id']}:cancel")
    assert (reply.status, reason_of(reply.json)) == (400, "TASK_NOT_CANCELABLE")
    again = served.message("more", taskId=task["id"])
    assert code_of(await served.rpc("waiter", "SendMessage", {"message": again})) == -32004


async def test_nobody_can_talk_into_a_task_that_works(served: Served) -> None:
    task = await served.begun()
    more = served.message("more", taskId=task["id"])
    assert code_of(await served.rpc("waiter", "SendMessage", {"message": more})) == -32004


@pytest.mark.requirement("C5.5")
async def test_what_is_not_there_for_a_caller_is_not_found(served: Served) -> None:
    task = await served.send("asker", "begin")
    other = await served.node.key("other", tools=["*"])
    operations = [
        ("GetTask", {"id": task["id"]}),
        ("CancelTask", {"id": task["id"]}),
        ("SubscribeToTask", {"id": task["id"]}),
        ("SendMessage", {"message": served.message("x", taskId=task["id"])}),
        ("ListTaskPushNotificationConfigs", {"taskId": task["id"]}),
    ]
    for method, params in operations:
        assert code_of(await served.rpc("asker", method, params, key=other)) == -32001
        assert code_of(await served.rpc("echo", method, params)) == -32001
    listed = await served.rpc("asker", "ListTasks", {}, key=other)
    assert listed["result"]["totalSize"] == 0
    unknown = served.message("x", taskId="task_of_nobody")
    assert code_of(await served.rpc("asker", "SendMessage", {"message": unknown})) == -32001


@pytest.mark.requirement("C5.5")
async def test_a_context_goes_on_and_contradicts_no_task(served: Served) -> None:
    first = await served.send("asker", "a")
    other = served.message("b", taskId=first["id"], contextId="another")
    assert code_of(await served.rpc("asker", "SendMessage", {"message": other})) == -32602
    both = served.message("c", taskId=first["id"], contextId=first["contextId"])
    task = (await served.rpc("asker", "SendMessage", {"message": both}))["result"]["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    mine = served.message("d", contextId="mine")
    task = (await served.rpc("echo", "SendMessage", {"message": mine}))["result"]["task"]
    assert task["contextId"] == "mine"


async def test_a_message_that_comes_twice_is_one_task(served: Served) -> None:
    params = {"message": served.message("once")}
    first, second = [await served.rpc("echo", "SendMessage", params) for _ in range(2)]
    assert first["result"]["task"] == second["result"]["task"]


async def test_a_failure_is_a_task_that_failed_with_the_reason(served: Served) -> None:
    task = await served.send("broken", "x")
    assert task["status"]["state"] == "TASK_STATE_FAILED"
    assert "RuntimeError" in task["status"]["message"]["parts"][0]["text"]
    assert "artifacts" not in task


SENSELESS: list[tuple[Any, str]] = [
    ({"messageId": ""}, "messageId"),
    ({"messageId": "x" * 257}, "messageId"),
    ({"messageId": "a\u0000b"}, "messageId"),
    ({"role": "ROLE_ROBOT"}, "role"),
    ({"role": "ROLE_AGENT"}, "role"),
    ({"parts": []}, "parts"),
    ({"parts": [{}]}, "part"),
    ({"parts": [{"video": "x"}]}, "part"),
    ({"parts": [{"raw": "no base 64!"}]}, "parts"),
    ({"parts": [{"raw": "abcde"}]}, "parts"),
    ({"parts": [{"text": "a", "url": "b"}]}, ""),
    ({"parts": "a"}, ""),
    ({"contextId": "x" * 300}, "contextId"),
    ({"taskId": "x" * 300}, "taskId"),
    ({"metadata": {"openfang": {"mode": "dreaming"}}}, "openfang"),
    ({"extensions": ["x"] * 101}, "extensions"),
]


async def test_a_message_that_makes_no_sense_becomes_no_task(served: Served) -> None:
    for fields, name in SENSELESS:
        params = {"message": {**served.message("x"), **fields}}
        answer = await served.rpc("echo", "SendMessage", params)
        assert code_of(answer) == -32602, fields
        assert name in answer["error"]["message"]
        reply = await served.rest("POST", "echo/rest/message:send", params)
        assert reply.status == 400, fields
    assert (await served.rpc("echo", "ListTasks"))["result"]["totalSize"] == 0


SENSELESS_03: list[Any] = [
    message03(),
    message03({"kind": "video", "video": "x"}),
    message03({"kind": "file", "file": {"bytes": "no base 64!"}}),
    message03({"kind": "data", "data": "no object"}),
    message03(TEXT03, role="robot"),
    message03(TEXT03, messageId=None),
    message03(TEXT03, parts="x"),
    {},
]


async def test_in_0_3_too_bad_parameters_are_called_so(served: Served) -> None:
    for message in SENSELESS_03:
        answer = await served.rpc("echo", "message/send", message, headers=V03)
        assert code_of(answer) == -32602, message
        reply = await served.ask("echo", "message/stream", message, headers=V03)
        assert b"-32602" in reply.body, message
    assert (await served.rpc("echo", "ListTasks"))["result"]["totalSize"] == 0


async def test_what_nobody_knows_in_a_message_is_no_matter(served: Served) -> None:
    params = {"message": {**served.message("x"), "mood": "good"}, "later": {"a": 1}}
    assert "result" in await served.rpc("echo", "SendMessage", params)
    older = message03({**TEXT03, "mood": "good"}, mood="good")
    answer = await served.rpc("echo", "message/send", older, headers=V03)
    assert answer["result"]["status"]["state"] == "completed"


async def test_an_answer_of_another_kind_is_not_promised(served: Served) -> None:
    async def answered(*modes: str) -> Any:
        wanted = {"acceptedOutputModes": modes}
        params = {"message": served.message("x"), "configuration": wanted}
        return await served.rpc("echo", "SendMessage", params)

    assert "result" in await answered("image/png", "application/json")
    assert code_of(await answered("image/png")) == -32005


METHODS: list[tuple[dict[str, str], str, int]] = [
    ({"A2A-Version": "1.0"}, "GetTask", -32001),
    ({"A2A-Version": " 1.0.7 "}, "GetTask", -32001),
    ({"A2A-Version": "0.3"}, "tasks/get", -32001),
    ({"A2A-Version": "0.3.0"}, "tasks/get", -32001),
    ({"A2A-Version": ""}, "tasks/get", -32001),
    ({}, "tasks/get", -32001),
    ({"A2A-Version": "1.1"}, "GetTask", -32009),
    ({"A2A-Version": "2.0"}, "GetTask", -32009),
    ({"A2A-Version": "0.2"}, "tasks/get", -32009),
    ({"A2A-Version": "latest"}, "GetTask", -32009),
    ({}, "GetTask", -32009),
    ({"A2A-Version": "1.0"}, "tasks/get", -32601),
    ({"A2A-Version": "1.0"}, "tasks/list", -32601),
    ({}, "tasks/list", -32601),
]


async def test_the_version_says_which_methods_there_are(served: Served) -> None:
    for headers, method, code in METHODS:
        answer = await served.rpc("echo", method, {"id": "task_x"}, headers=headers)
        assert (code_of(answer), answer["id"]) == (code, 7), (headers, method)


async def test_the_version_may_stand_in_the_query(served: Served) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "task_x"}}
    reply = await served.node.post("/a2a/agents/echo?A2A-Version=1.0", body)
    assert code_of(reply.json) == -32001
    reply = await served.node.get("/a2a/agents/echo/rest/tasks/task_x?a2a-version=1.0")
    assert (reply.status, reason_of(reply.json)) == (404, "TASK_NOT_FOUND")


ADDRESSES = [
    ("tasks/x", "", 400, "VERSION_NOT_SUPPORTED"),
    ("tasks/x", "7.0", 400, "VERSION_NOT_SUPPORTED"),
    ("v1/tasks/x", "1.0", 400, "VERSION_NOT_SUPPORTED"),
    ("v1/tasks/x", "0.3", 404, "TASK_NOT_FOUND"),
    ("acme/tasks/x", "1.0", 404, "TASK_NOT_FOUND"),
    ("a/b/tasks/x", "1.0", 404, "METHOD_NOT_FOUND"),
    ("nothing", "1.0", 404, "METHOD_NOT_FOUND"),
]


async def test_an_address_belongs_to_a_version(served: Served) -> None:
    for path, version, status, reason in ADDRESSES:
        reply = await served.rest("GET", f"echo/rest/{path}", headers={"A2A-Version": version})
        assert (reply.status, reason_of(reply.json)) == (status, reason), (path, version)


async def test_what_is_no_json_rpc_is_said_to_be_none(served: Served) -> None:
    async def posted(body: bytes, kind: str = "application/json") -> Any:
        headers = {**V1, "Content-Type": kind}
        reply = await served.node.ask("POST", "/a2a/agents/echo", data=body, headers=headers)
        return reply.status, code_of(reply.json)

    assert await posted(b"{") == (200, -32700)
    assert await posted(b'{"a": "\xff"}') == (200, -32700)
    assert await posted(b"[]") == (200, -32600)
    assert await posted(b'[{"jsonrpc": "2.0", "id": 1, "method": "GetTask"}]') == (200, -32600)
    assert await posted(b"7") == (200, -32600)
    assert await posted(b'{"id": 1, "method": "GetTask", "params": {}}') == (200, -32600)
    assert await posted(b'{"jsonrpc": "2.0", "id": [], "method": "GetTask"}') == (200, -32600)
    assert await posted(b'{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "a"}') == (200, -32600)
    assert await posted(b'{"jsonrpc": "2.0", "id": 1, "method": "GetTask"}') == (200, -32602)
    assert await posted(b'{"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": []}') == (
        200,
        -32602,
    )
    assert await posted(b"{}", "text/plain") == (415, -32005)
    assert (await served.node.get("/a2a/agents/echo")).status == 405


async def test_over_http_the_type_of_a_body_is_json(served: Served) -> None:
    async def posted(kind: str, body: bytes) -> int:
        headers = {**V1, "Content-Type": kind}
        path = "/a2a/agents/echo/rest/message:send"
        return (await served.node.ask("POST", path, data=body, headers=headers)).status

    good = b'{"message": {"messageId": "%s", "role": "ROLE_USER", "parts": [{"text": "x"}]}}'
    assert await posted("application/json", good % b"1") == 200
    assert await posted("application/a2a+json; charset=utf-8", good % b"2") == 200
    assert await posted("text/html", good % b"3") == 415
    assert await posted("application/json", b"{") == 400
    assert await posted("application/json", b'{"message": {"messageId": "\\ud800"}}') == 400
    assert (await served.rest("PUT", "echo/rest/tasks/x")).status == 405


async def test_who_is_told_is_kept_with_the_task(tmp_path: Path) -> None:
    async with serving(tmp_path / "home", config="[a2a.push]\nallow_private = true\n") as served:
        await _tells(served)


async def _tells(served: Served) -> None:
    target = "http://127.0.0.1:9/told"
    config = {
        "url": target,
        "token": "t",
        "authentication": {"scheme": "Bearer", "credentials": "c"},
    }
    wanted = {"taskPushNotificationConfig": config, "returnImmediately": True}
    task = await served.send("asker", "begin", configuration=wanted)

    async def configs() -> list[Any]:
        found = await served.rpc("asker", "ListTaskPushNotificationConfigs", {"taskId": task["id"]})
        return found["result"].get("configs", [])

    [first] = await configs()
    assert (first["url"], first["token"], first["taskId"]) == (target, "t", task["id"])
    assert first["authentication"] == {"scheme": "Bearer"}
    own = {"taskId": task["id"], "id": "mine", "url": f"{target}/2"}
    made = await served.rpc("asker", "CreateTaskPushNotificationConfig", own)
    assert made["result"] == own
    one = {"taskId": task["id"], "id": "mine"}
    assert (await served.rpc("asker", "GetTaskPushNotificationConfig", one))["result"] == own
    path = f"asker/rest/tasks/{task['id']}/pushNotificationConfigs"
    assert (await served.rest("GET", f"{path}/mine")).json == own
    older = await served.node.get(f"/a2a/agents/{path.replace('rest', 'rest/v1')}/mine")
    assert older.json["pushNotificationConfig"]["url"] == own["url"]
    for _ in range(2):
        deleted = await served.rpc("asker", "DeleteTaskPushNotificationConfig", one)
        assert deleted["result"] is None
    assert code_of(await served.rpc("asker", "GetTaskPushNotificationConfig", one)) == -32001
    assert [config["id"] for config in await configs()] == [first["id"]]


async def test_nobody_is_told_where_it_is_not_allowed(served: Served) -> None:
    task = await served.send("asker", "begin")
    for url in ("", "ftp://example.org", "http://127.0.0.1/x", "http://[::1]/x"):
        config = {"taskId": task["id"], "id": "mine", "url": url}
        answer = await served.rpc("asker", "CreateTaskPushNotificationConfig", config)
        assert code_of(answer) == -32602, url
        wanted = {"taskPushNotificationConfig": {"url": url}}
        params = {"message": served.message("x"), "configuration": wanted}
        assert code_of(await served.rpc("echo", "SendMessage", params)) == -32602, url
    assert (await served.rpc("echo", "ListTasks"))["result"]["totalSize"] == 0


async def test_the_card_of_who_may_call_is_shown_in_every_way(served: Served) -> None:
    card = (await served.rpc("echo", "GetExtendedAgentCard"))["result"]
    assert card["name"] == "echo"
    assert (await served.rest("GET", "echo/rest/extendedAgentCard")).json == card
    older = await served.rpc("echo", "agent/getAuthenticatedExtendedCard", headers=V03)
    assert older["result"]["url"] == served.node.url + "/a2a/agents/echo"
    plain = await served.node.get("/a2a/agents/echo/rest/v1/card")
    assert plain.json["name"] == "echo"
    assert code_of(await served.rpc("nobody", "GetExtendedAgentCard")) == -32007


async def test_an_extension_that_the_card_demands_must_be_known(tmp_path: Path) -> None:
    config = "[a2a]\nenabled = true\nrequire_chain = true\n"
    async with serving(tmp_path / "home", config=config) as served:
        params = {"message": served.message("x")}
        assert code_of(await served.rpc("echo", "SendMessage", params)) == -32008
        refused = await served.rest("POST", "echo/rest/message:send", params)
        assert (refused.status, reason_of(refused.json)) == (400, "EXTENSION_SUPPORT_REQUIRED")
        assert (await served.node.get("/api/a2a/tasks")).json["total"] == 0
        known = {**V1, "A2A-Extensions": f"{CHAIN}, https://example.org/unknown"}
        reply = await served.ask("echo", "SendMessage", params, headers=known)
        assert "result" in reply.json
        assert reply.headers["A2A-Extensions"] == CHAIN
        older = {"X-A2A-Extensions": CHAIN}
        assert "result" in await served.rpc(
            "echo", "message/send", message03(TEXT03), headers=older
        )


@pytest.mark.requirement("C7.7", "C8.1")
async def test_the_metadata_of_a_message_is_where_its_call_comes_from(served: Served) -> None:
    trace = "0123456789abcdef" * 2
    told = {"traceparent": f"00-{trace}-00f067aa0ba902b7-01", "X-OpenStarry-Trace-ID": "night"}
    params = {"message": served.message("x", metadata=told)}
    task = (await served.rpc("echo", "SendMessage", params))["result"]["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    started = [
        event
        for event in await served.node.events()
        if event.event_type == "tool_invocation_start" and event.task_id == task["id"]
    ]
    assert started[0].context["trace"] == trace
    assert started[0].context["x-openstarry-trace-id"] == "night"


@pytest.mark.requirement("C8.2")
async def test_a_chain_that_is_too_deep_fails_the_task(served: Served) -> None:
    ancestors = ",".join(f"agent:a{number}" for number in range(5))
    told = {"openfang/chain": ancestors}
    params = {"message": served.message("x", metadata=told)}
    task = (await served.rpc("echo", "SendMessage", params))["result"]["task"]
    assert task["status"]["state"] == "TASK_STATE_FAILED"
    deep = {**V1, "Openfang-Chain": ancestors}
    answer = await served.rpc("echo", "GetTask", {"id": task["id"]}, headers=deep)
    assert code_of(answer) == -32000
    assert answer["error"]["data"][0]["metadata"] == {
        "rule": "recursion_limit",
        "depth": "6",
        "path": ancestors,
    }
    older = await served.rpc(
        "echo", "tasks/get", {"id": task["id"]}, headers={"Openfang-Chain": ancestors}
    )
    assert (code_of(older), older["error"]["data"]["rule"]) == (-32000, "recursion_limit")


async def test_an_extension_that_is_not_demanded_is_answered_if_it_is_used(served: Served) -> None:
    params = {"message": served.message("x")}
    plain = await served.ask("echo", "SendMessage", params)
    assert ("result" in plain.json, "A2A-Extensions" in plain.headers) == (True, False)
    used = {**V1, "A2A-Extensions": CHAIN}
    told = await served.ask("echo", "GetTask", {"id": "x"}, headers=used)
    assert told.headers["A2A-Extensions"] == CHAIN


@pytest.mark.requirement("C12.3")
async def test_of_many_messages_at_once_each_is_a_task_or_is_not_taken(served: Served) -> None:
    key = await served.node.key("hasty", tools=["*"], cells_per_minute=500)

    async def sent() -> Reply:
        params = {"message": served.message("x")}
        return await served.ask("echo", "SendMessage", params, key=key)

    replies = await asyncio.gather(*(sent() for _ in range(40)))
    states = [
        reply.json["result"]["task"]["status"]["state"] for reply in replies if reply.status == 200
    ]
    assert set(states) == {"TASK_STATE_COMPLETED"}
    assert {reply.told for reply in replies if reply.status != 200} == {(429, "rate_limit")}
    assert (await served.node.app.parts.tasks.store.counts())[0] == len(states)


@pytest.mark.requirement("C12.3")
async def test_who_is_over_its_rate_makes_no_task(tmp_path: Path) -> None:
    async with serving(
        tmp_path / "home", config="[limits]\ncells_per_minute = 60\nburst = 60\n"
    ) as served:
        other = await served.node.key("other", tools=["*"])
        status = 200
        for _ in range(60):
            params = {"message": served.message("x")}
            status = (await served.ask("echo", "SendMessage", params, key=other)).status
            if status != 200:
                break
        assert status == 429
        refused = await served.ask("echo", "SendMessage", {"message": {}}, key=other)
        assert refused.told == (429, "rate_limit")
