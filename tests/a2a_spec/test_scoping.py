from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.a2a_spec.speaking import Speaker, message
from tests.peers.a2a.house import key

from openfang.core.ids import new_id

if TYPE_CHECKING:
    from tests.peers.a2a.house import House

pytestmark = pytest.mark.requirement("C5.5")

OPERATIONS = ("get", "cancel", "subscribe", "push_set", "push_get", "push_list", "push_delete")


def params(op: str, task: str) -> dict[str, Any]:
    if not op.startswith("push"):
        return {"id": task}
    push = {"url": "http://127.0.0.1:9/none"} if op == "push_set" else {}
    return {"taskId": task, **push, **({} if op == "push_list" else {"id": "one"})}


@pytest.mark.a2a(
    "13.1-MUST-1",
    "13.1-MUST-2",
    "13.1-MUST-6",
    "13.1-MUST-7",
    "3.1.8-MUST-2",
    "3.3.2-MUST-4",
    "3.3.2-MUST-6",
    "3.3.2-SHOULD-7",
)
@pytest.mark.parametrize("op", OPERATIONS)
def test_what_is_not_theirs_is_as_if_it_were_not_there(
    caller: Speaker, other: Speaker, op: str
) -> None:
    task, name = caller.hold()
    caller.ask("push_set", params("push_set", task))
    foreign = other.answer(op, params(op, task))
    missing = new_id("task")
    unknown = other.answer(op, params(op, missing))
    assert other.refused(op, params(op, task)).reason == "TASK_NOT_FOUND"
    assert foreign.status == unknown.status
    assert foreign.body.replace(task.encode(), b"") == unknown.body.replace(missing.encode(), b"")
    assert caller.ask("get", {"id": task})["status"]["state"] == "TASK_STATE_WORKING"
    assert len(caller.ask("push_list", {"taskId": task})["configs"]) == 1
    caller.house.release(name)


@pytest.mark.a2a("3.1.4-MUST-4", "3.1.4-MUST-7", "13.1-MUST-3", "13.1-MUST-4", "13.1-MUST-5")
def test_a_list_has_only_what_is_theirs(caller: Speaker, other: Speaker) -> None:
    context = new_id("talk")
    mine = caller.say("say mine", contextId=context)["id"]
    theirs = other.say("say theirs", contextId=context)["id"]
    assert ids(other.ask("list", {"contextId": context})) == [theirs]
    assert ids(caller.ask("list", {"contextId": context})) == [mine]
    assert mine not in ids(other.ask("list"))


def ids(page: Any) -> list[str]:
    return [task["id"] for task in page["tasks"]]


def test_a_context_is_not_shared(caller: Speaker, other: Speaker) -> None:
    context = new_id("talk")
    caller.say("say a secret", contextId=context)
    theirs = other.say("tell", contextId=context)
    assert "a secret" not in str(theirs)


def test_a_context_that_another_was_given_is_none(caller: Speaker, other: Speaker) -> None:
    context = caller.say("say a secret")["contextId"]
    missing = new_id("session")
    foreign = other.answer("send", message(contextId=context))
    unknown = other.answer("send", message(contextId=missing))
    assert foreign.body.replace(context.encode(), b"") == unknown.body.replace(
        missing.encode(), b""
    )
    assert other.refused("send", message(contextId=context)).code in {-32602, 400}


def test_a_task_is_not_there_under_another_agent(caller: Speaker) -> None:
    task = caller.say("say hi")["id"]
    assert caller.of(agent="echo").refused("get", {"id": task}).reason == "TASK_NOT_FOUND"
    assert task not in [one["id"] for one in caller.of(agent="echo").ask("list")["tasks"]]


@pytest.mark.a2a(
    "3.3.2-MUST-2",
    "3.3.2-SHOULD-2",
    "3.3.2-SHOULD-3",
    "7.4-MUST-1",
    "7.4-SHOULD-1",
    "7.4-SHOULD-2",
    "14.1.1-MUST-5",
)
@pytest.mark.parametrize("op", ["send", "stream", "list", "extended", *OPERATIONS])
def test_nobody_gets_by_without_a_key(caller: Speaker, op: str) -> None:
    wanted = message() if op in {"send", "stream"} else {}
    wanted = params(op, "task_none") if op in OPERATIONS else wanted
    answer = caller.of(key=None).answer(op, wanted)
    assert answer.status == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_key_that_is_none_opens_nothing(caller: Speaker) -> None:
    assert caller.of(key="of_wrong").answer("list").status == 401


@pytest.mark.a2a("13.4-SHOULD-8")
def test_a_key_that_was_revoked_opens_nothing(caller: Speaker, node: House) -> None:
    name = new_id("key")
    secret = key(node.daemon, name=name, tools=["agent:*"])
    assert caller.of(key=secret).say("say hi")
    assert node.daemon.ask("DELETE", f"/api/keys/{name}").status == 200
    assert caller.of(key=secret).answer("list").status == 401


@pytest.mark.a2a("3.3.2-MUST-3", "3.3.2-SHOULD-4")
def test_who_may_not_is_told_so_and_what_is_missing(caller: Speaker) -> None:
    wanted = {**message(), "metadata": {"openfang": {"project_id": "another"}}}
    status = caller.ask("send", wanted)["task"]["status"]
    assert status["state"] == "TASK_STATE_REJECTED"
    assert "--project another" in status["message"]["parts"][0]["text"]


@pytest.mark.a2a("13.4-SHOULD-12")
def test_what_was_done_is_on_record(caller: Speaker, node: House) -> None:
    task = caller.say("say hi")["id"]
    events = node.daemon.home.rows(
        "SELECT event FROM audit WHERE payload LIKE ? ORDER BY seq", (f"%{task}%",)
    )
    assert ("task_changed",) in events
