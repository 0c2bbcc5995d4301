from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.a2a_spec.speaking import filled

from openfang.core.ids import new_id

if TYPE_CHECKING:
    from tests.a2a_spec.speaking import Speaker

pytestmark = pytest.mark.requirement("C5.3")


def ids(page: Any) -> list[str]:
    return [task["id"] for task in page["tasks"]]


@pytest.mark.a2a("3.1.3-ERROR-1", "3.1.5-ERROR-2")
@pytest.mark.parametrize("op", ["get", "cancel"])
def test_a_task_that_is_not_there_is_not_found(caller: Speaker, op: str) -> None:
    refused = caller.refused(op, {"id": new_id("task")})
    assert refused.reason == "TASK_NOT_FOUND"


@pytest.mark.a2a("3.2.4-SHOULD-1")
def test_the_history_is_as_long_as_wanted(caller: Speaker) -> None:
    asked = caller.say("ask Which colour?|Which size?")
    caller.say("blue", taskId=asked["id"])
    task = caller.say("large", taskId=asked["id"])
    whole = caller.ask("get", {"id": task["id"]})["history"]
    assert [one["role"] for one in whole[:3]] == ["ROLE_USER", "ROLE_AGENT", "ROLE_USER"]
    assert "history" not in caller.ask("get", {"id": task["id"], "historyLength": 0})
    assert caller.ask("get", {"id": task["id"], "historyLength": 2})["history"] == whole[-2:]
    assert caller.ask("get", {"id": task["id"], "historyLength": 99})["history"] == whole
    assert caller.refused("get", {"id": task["id"], "historyLength": -1}).code in {-32602, 400}


@pytest.mark.a2a("3.1.4-MUST-1")
def test_artifacts_are_listed_only_if_wanted(caller: Speaker) -> None:
    task = caller.say("say hi")
    (plain,) = caller.ask("list", {"contextId": task["contextId"]})["tasks"]
    assert "artifacts" not in plain
    wanted = {"contextId": task["contextId"], "includeArtifacts": True}
    (whole,) = caller.ask("list", wanted)["tasks"]
    assert filled(whole["artifacts"]) == task["artifacts"]


@pytest.mark.a2a("3.1.4-MUST-2", "3.1.4-MUST-3", "3.1.4-MUST-5")
def test_a_list_goes_on_behind_its_cursor(caller: Speaker) -> None:
    context = new_id("talk")
    tasks = [caller.say(f"say {n}", contextId=context)["id"] for n in range(3)]
    wanted: dict[str, Any] = {"contextId": context, "pageSize": 2}
    first = caller.ask("list", wanted)
    assert (first["totalSize"], first["pageSize"], ids(first)) == (3, 2, [tasks[2], tasks[1]])
    caller.say("say more", contextId=context)
    rest = caller.ask("list", {**wanted, "pageToken": first["nextPageToken"]})
    assert ids(rest) == [tasks[0]]
    assert rest["nextPageToken"] == ""
    assert caller.refused("list", {**wanted, "pageToken": "no such"}).code in {-32602, 400}


@pytest.mark.a2a("3.1.4-MUST-6", "3.1.4-MUST-8")
def test_what_changed_last_comes_first(caller: Speaker) -> None:
    asked = caller.say("ask Which colour?")["id"]
    second = caller.say("say two")["id"]
    assert ids(caller.ask("list", {"pageSize": 2})) == [second, asked]
    caller.say("blue", taskId=asked)
    page = caller.ask("list", {"pageSize": 20})
    assert ids(page)[:2] == [asked, second]
    times = [task["status"]["timestamp"] for task in page["tasks"]]
    assert times == sorted(times, reverse=True)


def test_a_list_has_what_is_wanted(caller: Speaker) -> None:
    context = new_id("talk")
    done = caller.say("say one", contextId=context)
    asked = caller.say("ask Which colour?", contextId=context)["id"]
    state = {"contextId": context, "status": "TASK_STATE_INPUT_REQUIRED"}
    assert ids(caller.ask("list", state)) == [asked]
    after = {"contextId": context, "statusTimestampAfter": done["status"]["timestamp"]}
    assert asked in ids(caller.ask("list", after))
    assert ids(caller.ask("list", {"contextId": new_id("talk")})) == []


@pytest.mark.parametrize(
    "wrong", [{"pageSize": 0}, {"pageSize": 101}, {"historyLength": -5}, {"status": "RUNNING"}]
)
def test_a_list_that_makes_no_sense_is_refused(caller: Speaker, wrong: dict[str, Any]) -> None:
    assert caller.refused("list", wrong).code in {-32602, 400}


@pytest.mark.requirement("C5.7")
def test_cancel_ends_the_task_and_the_work(caller: Speaker) -> None:
    task, name = caller.hold()
    assert caller.ask("cancel", {"id": task})["status"]["state"] == "TASK_STATE_CANCELED"
    caller.house.stopped(name)
    caller.house.release(name)
    assert caller.ask("get", {"id": task})["status"]["state"] == "TASK_STATE_CANCELED"


@pytest.mark.a2a("3.1.5-ERROR-1")
@pytest.mark.parametrize("text", ["say hi", "fail it", "reject it"])
def test_what_has_ended_cannot_be_cancelled(caller: Speaker, text: str) -> None:
    task = caller.say(text)
    assert caller.refused("cancel", {"id": task["id"]}).reason == "TASK_NOT_CANCELABLE"
    assert caller.ask("get", {"id": task["id"]}) == task


def test_a_question_can_be_cancelled(caller: Speaker) -> None:
    asked = caller.say("ask Which colour?")
    task = caller.ask("cancel", {"id": asked["id"]})
    assert task["status"]["state"] == "TASK_STATE_CANCELED"
