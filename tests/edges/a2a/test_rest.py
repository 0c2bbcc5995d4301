"""HTTP and JSON: what clients of 0.3 write otherwise than the library, and how 1.0 is written."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest
from tests.edges.a2a.front import Served, serving

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

pytestmark = pytest.mark.requirement("C5.3", "C5.4")

OLDER = {"A2A-Version": "0.3"}
CONTENT = b"\x00\x01 no base 64 \xff"


@pytest.fixture
async def served(tmp_path: Path) -> AsyncGenerator[Served]:
    async with serving(tmp_path / "home") as running:
        yield running


def written(content: bytes) -> str:
    return base64.b64encode(content).decode()


async def sent03(served: Served, agent: str, **part: Any) -> Any:
    said = {"messageId": str(part), "role": "ROLE_USER", "content": [{"text": "x"}, part]}
    body = {"request": said, "configuration": {"blocking": True}}
    reply = await served.rest("POST", f"{agent}/rest/v1/message:send", body, headers=OLDER)
    assert reply.status == 200, reply.body
    return reply.json["task"]


@pytest.mark.parametrize("twice", [False, True])
async def test_bytes_are_read_as_either_library_of_the_older_version_writes_them(
    served: Served, *, twice: bool
) -> None:
    content = written(CONTENT)
    inside = written(content.encode()) if twice else content
    task = await sent03(served, "teller", file={"fileWithBytes": inside, "mimeType": "x/y"})
    (table,) = [one for one in task["artifacts"] if one["name"] == "table"]
    file = table["parts"][0]["data"]["data"]["parts"][-1]
    assert file["data"] == content


async def test_who_is_told_may_stand_without_an_envelope(tmp_path: Path) -> None:
    private = "[a2a.push]\nallow_private = true\n"
    async with serving(tmp_path / "home", private) as served:
        task = await sent03(served, "echo", text="y")
        path = f"echo/rest/v1/tasks/{task['id']}/pushNotificationConfigs"
        bare = {"pushNotificationConfig": {"id": "one", "url": "http://127.0.0.1:9/none"}}
        for body in (bare, {"config": bare}):
            reply = await served.rest("POST", path, body, headers=OLDER)
            assert reply.status == 200, reply.body
            assert reply.json["pushNotificationConfig"]["id"] == "one"


async def test_an_error_has_the_number_that_the_older_version_looks_for(served: Served) -> None:
    reply = await served.rest("GET", "echo/rest/v1/tasks/task_x", headers=OLDER)
    assert (reply.status, reply.json["code"], reply.json["type"]) == (
        404,
        -32001,
        "TaskNotFoundError",
    )


async def test_a_history_of_no_length_is_none_and_one_of_no_number_is_refused(
    served: Served,
) -> None:
    said: dict[str, Any] = {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "x"}]}
    # In a message of this form a 0 is what nobody said: all of it.
    for wanted, count in (({}, 2), ({"historyLength": 1}, 1), ({"history_length": 0}, 2)):
        body = {"request": said, "configuration": {"blocking": True, **wanted}}
        reply = await served.rest("POST", "echo/rest/v1/message:send", body, headers=OLDER)
        assert len(reply.json["task"].get("history", ())) == count
    where = f"echo/rest/v1/tasks/{reply.json['task']['id']}"
    for length, count in (("", 2), ("?historyLength=1", 1), ("?historyLength=0", 0)):
        found = (await served.rest("GET", where + length, headers=OLDER)).json
        assert len(found.get("history", ())) == count
    for length in ("abc", "99999999999", "-1", "1.5", ""):
        reply = await served.rest("GET", f"{where}?historyLength={length}", headers=OLDER)
        assert (reply.status, reply.json["code"]) == (400, -32602)


async def test_numbers_stay_as_they_are_and_what_is_empty_is_not_written(served: Served) -> None:
    message = served.message("x", {"data": {"n": 1, "half": 0.5}})
    reply = await served.rest("POST", "echo/rest/message:send", {"message": message})
    task = reply.json["task"]
    assert b'{"n":1,"half":0.5}' in reply.body
    for listed in (
        (await served.rest("GET", "echo/rest/tasks?includeArtifacts=true")).json,
        (await served.rpc("echo", "ListTasks", {"includeArtifacts": True}))["result"],
    ):
        assert listed == {"tasks": [task], "nextPageToken": "", "pageSize": 50, "totalSize": 1}


@pytest.mark.parametrize("path", ["tasks/task_x", "tasks?pageSize=x", "nothing"])
async def test_an_error_of_today_has_the_media_type_of_its_binding(
    served: Served, path: str
) -> None:
    reply = await served.rest("GET", f"echo/rest/{path}")
    assert reply.status in {400, 404}
    assert reply.headers["content-type"] == "application/a2a+json"
    assert reply.json["error"]["code"] == reply.status
