from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.peers.a2a.wire import event_of, states

from openfang.core.ids import new_id

if TYPE_CHECKING:
    from tests.a2a_spec.speaking import Speaker
    from tests.peers.a2a.receiver import Notice, Receiver

pytestmark = pytest.mark.requirement("C5.3")


def until_the_end(hook: Receiver, name: str) -> list[Notice]:
    """What is told under this name, up to the end of the task."""
    told: list[Notice] = []
    for notice in hook.notices(f"/{name}"):
        told.append(notice)
        if states([event_of(notice.body)])[-1:] == ["completed"]:
            return told
    raise AssertionError


@pytest.mark.a2a("3.1.7-MUST-1", "4.3.3-MUST-1", "4.3.3-MUST-4", "13.2-MUST-1")
def test_who_is_to_be_told_is_told_with_credentials(caller: Speaker, hook: Receiver) -> None:
    task, name = caller.hold()
    push = {
        "taskId": task,
        "url": f"{hook.url}/{name}",
        "token": "t0ken",
        "authentication": {"scheme": "Bearer", "credentials": "s3cret"},
    }
    caller.ask("push_set", push)
    caller.house.release(name)
    notices = until_the_end(hook, name)
    for notice in notices:
        assert notice.headers["authorization"] == "Bearer s3cret"
        assert notice.headers["x-a2a-notification-token"] == "t0ken"
        assert notice.headers["content-type"] == "application/a2a+json"
        assert len(notice.body) == 1
        assert set(notice.body) <= {"task", "statusUpdate", "artifactUpdate", "message"}


def test_it_can_be_wanted_with_the_message(caller: Speaker, hook: Receiver) -> None:
    name = new_id("push")
    push = {"url": f"{hook.url}/{name}"}
    task = caller.say("say hi", configuration={"taskPushNotificationConfig": push})
    (kept,) = caller.ask("push_list", {"taskId": task["id"]})["configs"]
    assert (kept["url"], kept["taskId"]) == (push["url"], task["id"])
    until_the_end(hook, name)


@pytest.mark.a2a("13.2-SHOULD-2")
def test_who_does_not_listen_is_told_again(caller: Speaker, hook: Receiver) -> None:
    task, name = caller.hold()
    caller.ask("push_set", {"taskId": task, "url": f"{hook.url}/{name}"})
    hook.refusals = 1
    caller.house.release(name)
    until_the_end(hook, name)
    assert hook.refusals == 0


@pytest.mark.a2a("3.1.8-MUST-1", "3.1.9-MUST-1", "3.1.7-MUST-2")
def test_what_was_wanted_can_be_read(caller: Speaker, hook: Receiver) -> None:
    task, name = caller.hold()
    for each in ("one", "two"):
        caller.ask("push_set", {"taskId": task, "id": each, "url": f"{hook.url}/none/{each}"})
    found = caller.ask("push_get", {"taskId": task, "id": "one"})
    assert (found["id"], found["taskId"]) == ("one", task)
    assert found["url"] == f"{hook.url}/none/one"
    listed = caller.ask("push_list", {"taskId": task})["configs"]
    assert {one["id"] for one in listed} == {"one", "two"}
    made = caller.ask("push_set", {"taskId": task, "url": f"{hook.url}/none"})
    assert made["id"]
    caller.house.release(name)


@pytest.mark.a2a("3.1.10-MUST-1", "3.1.10-MUST-2", "3.1.8-ERROR-2")
def test_what_is_deleted_is_gone(caller: Speaker, hook: Receiver) -> None:
    task, name = caller.hold()
    gone, kept = f"{hook.url}/{name}-gone", f"{hook.url}/{name}"
    caller.ask("push_set", {"taskId": task, "id": "gone", "url": gone})
    caller.ask("push_set", {"taskId": task, "id": "kept", "url": kept})
    for _ in range(2):
        caller.ask("push_delete", {"taskId": task, "id": "gone"})
    assert caller.refused("push_get", {"taskId": task, "id": "gone"}).reason == "TASK_NOT_FOUND"
    caller.house.release(name)
    until_the_end(hook, name)
    assert [one["id"] for one in caller.ask("push_list", {"taskId": task})["configs"]] == ["kept"]


@pytest.mark.a2a("3.1.7-ERROR-2", "3.1.9-ERROR-2", "3.1.10-ERROR-2")
def test_a_task_that_is_not_there_tells_nobody(caller: Speaker, hook: Receiver) -> None:
    wanted: dict[str, Any] = {"taskId": new_id("task")}
    push = {**wanted, "url": hook.url}
    assert caller.refused("push_set", push).reason == "TASK_NOT_FOUND"
    assert caller.refused("push_list", wanted).reason == "TASK_NOT_FOUND"
    assert caller.refused("push_get", {**wanted, "id": "x"}).reason == "TASK_NOT_FOUND"
    assert caller.refused("push_delete", {**wanted, "id": "x"}).reason == "TASK_NOT_FOUND"


@pytest.mark.a2a("13.2-SHOULD-3")
@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest",
        "http://metadata.google.internal/",
        "http://0.0.0.0/",
        "file:///etc/passwd",
        "nothing",
    ],
)
def test_an_address_inside_is_refused(caller: Speaker, url: str) -> None:
    task = caller.say("say hi")["id"]
    refused = caller.refused("push_set", {"taskId": task, "url": url})
    assert refused.code in {-32602, 400}
    assert caller.ask("push_list", {"taskId": task}).get("configs", []) == []
