from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.a2a_spec.speaking import message

from openfang.core.ids import new_id

if TYPE_CHECKING:
    from tests.a2a_spec.speaking import Speaker

pytestmark = pytest.mark.requirement("C5.3", "C5.4", "C5.5")


@pytest.mark.a2a("3.2.2-MUST-1", "3.2.2-MUST-2", "3.7-SHOULD-1", "3.7-SHOULD-2")
def test_who_waits_has_the_whole_task(caller: Speaker) -> None:
    task = caller.say("make tea")
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert "message" not in task["status"]
    made = {one["name"]: one["parts"] for one in task["artifacts"]}
    assert list(made) == ["response", "note.txt", "table.json", "dot.bin"]
    assert made["response"][0]["text"] == "Made three."
    assert made["note.txt"][0]["text"] == "a note on tea"
    assert made["table.json"][0]["data"] == {"rows": [1, 2]}
    assert made["dot.bin"][0]["raw"] == "AAH/"
    assert made["dot.bin"][0]["mediaType"] == "image/x-dot"


@pytest.mark.a2a("3.2.2-MUST-1")
def test_who_waits_waits_until_something_is_asked(caller: Speaker) -> None:
    task = caller.say("ask Which colour?")
    assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    (part,) = task["status"]["message"]["parts"]
    assert part["text"] == "Which colour?"
    assert task["status"]["message"]["role"] == "ROLE_AGENT"


@pytest.mark.a2a("3.1.1-MUST-1", "3.2.2-MUST-3")
def test_who_does_not_wait_has_a_task_that_goes_on(caller: Speaker) -> None:
    task, name = caller.hold()
    assert caller.ask("get", {"id": task})["status"]["state"] == "TASK_STATE_WORKING"
    caller.house.release(name)


@pytest.mark.a2a("3.4.1-MUST-1", "3.4.2-MUST-1", "3.4.2-MUST-2")
def test_every_task_has_an_id_and_a_context(caller: Speaker) -> None:
    tasks = [caller.say("say hi") for _ in range(3)]
    assert len({task["id"] for task in tasks}) == 3
    assert len({task["contextId"] for task in tasks}) == 3


@pytest.mark.a2a("3.4.1-SHOULD-3", "3.4.3-SHOULD-3")
def test_a_context_is_one_conversation(caller: Speaker) -> None:
    context = new_id("talk")
    first = caller.say("say red", contextId=context)
    second = caller.say("tell", contextId=context)
    assert first["contextId"] == second["contextId"] == context
    assert "say red" in json.loads(second["artifacts"][0]["parts"][0]["text"])["history"]
    elsewhere = caller.say("tell")
    assert json.loads(elsewhere["artifacts"][0]["parts"][0]["text"])["history"] == []


@pytest.mark.a2a("3.4.1-MUST-2", "3.4.1-MUST-3")
@pytest.mark.parametrize("context", ["x" * 5000, "a\nb", "session_none"])
def test_a_context_is_kept_as_it_is_or_refused(caller: Speaker, context: str) -> None:
    before = caller.ask("list")["totalSize"]
    refused = caller.refused("send", message(contextId=context))
    assert refused.code == {"JSONRPC": -32602, "HTTP+JSON": 400}[caller.binding]
    assert caller.ask("list")["totalSize"] == before


@pytest.mark.a2a("3.4.3-MUST-1")
def test_an_answer_needs_the_task_alone(caller: Speaker) -> None:
    asked = caller.say("ask Which colour?")
    done = caller.say("blue", taskId=asked["id"])
    assert done["status"]["state"] == "TASK_STATE_COMPLETED"
    assert done["contextId"] == asked["contextId"]
    assert done["artifacts"][0]["parts"][0]["text"] == "It is blue."


@pytest.mark.a2a("3.4.3-MUST-2")
def test_a_context_that_is_not_the_tasks_is_refused(caller: Speaker) -> None:
    asked = caller.say("ask Which colour?")
    wrong = message("blue", taskId=asked["id"], contextId=new_id("talk"))
    refused = caller.refused("send", wrong)
    assert refused.code == {"JSONRPC": -32602, "HTTP+JSON": 400}[caller.binding]
    assert caller.ask("get", {"id": asked["id"]})["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"


@pytest.mark.parametrize("op", ["send", "stream"])
@pytest.mark.a2a("3.1.1-ERROR-3", "3.1.2-ERROR-4", "3.4.2-MUST-3", "3.4.2-MUST-4")
def test_a_client_cannot_choose_the_id_of_a_task(caller: Speaker, op: str) -> None:
    name = new_id("task")
    assert caller.refused(op, message(taskId=name)).reason == "TASK_NOT_FOUND"
    assert caller.refused("get", {"id": name}).reason == "TASK_NOT_FOUND"


@pytest.mark.parametrize("op", ["send", "stream"])
@pytest.mark.a2a("3.1.1-ERROR-2", "3.1.2-ERROR-2")
def test_what_has_ended_takes_no_message(caller: Speaker, op: str) -> None:
    task = caller.say("say hi")
    refused = caller.refused(op, message("and more", taskId=task["id"]))
    assert refused.reason == "UNSUPPORTED_OPERATION"
    assert caller.ask("get", {"id": task["id"]}) == task


@pytest.mark.parametrize("op", ["send", "stream"])
@pytest.mark.a2a("3.1.1-ERROR-1", "3.1.2-ERROR-3")
def test_what_the_agent_cannot_make_is_refused(caller: Speaker, op: str) -> None:
    before = caller.ask("list")["totalSize"]
    wanted = message(configuration={"acceptedOutputModes": ["video/mp4"]})
    assert caller.refused(op, wanted).reason == "CONTENT_TYPE_NOT_SUPPORTED"
    assert caller.ask("list")["totalSize"] == before


def test_the_same_message_is_the_same_task(caller: Speaker) -> None:
    request = message("say once")
    first = caller.ask("send", request)["task"]
    assert caller.ask("send", request)["task"] == first


def test_all_text_counts_and_files_and_data_reach_the_agent(caller: Speaker) -> None:
    parts = [
        {"text": "tell"},
        {"text": "more"},
        {"raw": "AP4=", "filename": "f.bin", "mediaType": "image/x-dot"},
        {"data": {"a": [1, None]}, "mediaType": "application/json"},
        {"url": "https://example.org/f.png", "mediaType": "image/png"},
    ]
    task = caller.say("", parts=parts, metadata={"colour": "red"})
    assert [sorted(part) for part in task["history"][0]["parts"]] == [
        sorted(part) for part in parts
    ]
    seen = json.loads(task["artifacts"][0]["parts"][0]["text"])
    assert seen["metadata"]["colour"] == "red"
    file = next(part for part in seen["parts"] if part.get("data") == "AP4=")
    assert (file["name"], file["mime_type"]) == ("f.bin", "image/x-dot")
    assert any(part.get("data") == {"a": [1, None]} for part in seen["parts"])
    assert any(part.get("uri") == "https://example.org/f.png" for part in seen["parts"])
