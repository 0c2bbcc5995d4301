"""The official clients of both versions use our agents over both bindings."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from tests.peers.a2a.peer import BINDINGS, KINDS, Kind, Peer, PeerError, peer
from tests.peers.a2a.wire import (
    Piece,
    Said,
    Status,
    Task,
    event_of,
    made,
    reason_of,
    states,
    task_of,
)

from openfang.core.ids import new_id

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from tests.peers.a2a.house import House
    from tests.peers.a2a.receiver import Receiver
    from tests.peers.a2a.wire import Event

pytestmark = pytest.mark.requirement("C5.3", "C5.4")

ALL = [
    pytest.param((kind, binding), id=f"{kind.name}-{binding}")
    for kind in KINDS
    for binding in BINDINGS
]


@dataclass(frozen=True, slots=True)
class Talk:
    """A client, and what it does told in the words of these tests."""

    kind: Kind
    binding: str
    peer: Peer

    def send(self, text: str, **said: Any) -> Task:
        return task_of(self.peer.ask("send", self.message(text, **said)))

    def stream(self, text: str, **said: Any) -> Iterator[Event]:
        return map(event_of, self.peer.stream("stream", self.message(text, **said)))

    def subscribe(self, task: str) -> Iterator[Event]:
        return map(event_of, self.peer.stream("subscribe", {"id": task}))

    def get(self, task: str) -> Task:
        return task_of(self.peer.ask("get", {"id": task}))

    def cancel(self, task: str) -> Task:
        return task_of(self.peer.ask("cancel", {"id": task}))

    def message(self, text: str, **said: Any) -> dict[str, Any]:
        return Said(text=text, **said).params(self.kind.version)

    @property
    def older_rest(self) -> bool:
        """Whether it is the one that loses `append` and the names of files on the way."""
        return (self.kind.name, self.binding) == ("node-0.3", "HTTP+JSON")

    def refused(self, op: str, params: dict[str, Any], key: str = "") -> str:
        """Why this is not done."""
        with pytest.raises(PeerError) as caught:
            self.peer.ask(op, params, key)
        return reason_of(caught.value)

    def reasons(self, reason: str, *statuses: int) -> set[str]:
        """The reason as this client shows it: one of them shows a status alone."""
        plain = self.kind.name == "python-0.3" and self.binding == "HTTP+JSON"
        return {f"HTTP_{status}" for status in statuses} if plain else {reason}


@pytest.fixture(scope="module", params=ALL)
def talk(request: pytest.FixtureRequest, node: House) -> Generator[Talk]:
    kind, binding = request.param
    with peer(kind, binding, node.agent(), node.key) as found:
        yield Talk(kind, binding, found)


def test_the_card_is_found_and_says_what_is_true(talk: Talk, node: House) -> None:
    card = talk.peer.ask("card")
    assert card["name"] == "worker"
    assert card["capabilities"]["streaming"] is True
    assert card["capabilities"]["pushNotifications"] is True
    urls = [one["url"] for one in card.get("supportedInterfaces", ())]
    urls += [one["url"] for one in card.get("additionalInterfaces", ())]
    assert urls
    assert all(url.startswith(node.agent().removesuffix("/")) for url in urls)


def test_the_extended_card_is_for_who_has_a_key(talk: Talk) -> None:
    assert talk.peer.ask("extended")["name"] == "worker"


def test_a_message_is_answered(talk: Talk) -> None:
    task = talk.send("say a b c")
    assert (task.state, task.answer, task.said) == ("completed", "a b c", "")
    assert task.history[0] == ("user", "say a b c")


def test_what_an_agent_makes_comes_as_artifacts(talk: Talk) -> None:
    task = talk.send("make tea")
    assert task.artifacts == {
        "response": "Made three.",
        "note.txt": "a note on tea",
        "table.json": {"rows": [1, 2]},
        # The two libraries of 0.3 do not agree on how bytes are written in HTTP+JSON.
        "dot.bin": b"AAH/" if talk.older_rest else b"\x00\x01\xff",
    }


def test_files_and_data_reach_the_agent(talk: Talk) -> None:
    task = talk.send("tell", file=b"\x00\xfe", data={"a": [1, None]})
    parts = json.loads(task.answer)["parts"]
    file = next(part for part in parts if part["type"] == "file")
    assert (file["mime_type"], file["data"]) == ("image/x-dot", "AP4=")
    assert file["name"] == ("" if talk.older_rest else "f.bin")
    assert {"type": "data", "data": {"a": [1, None]}}.items() <= next(
        part for part in parts if part["type"] == "data"
    ).items()


def test_a_conversation_goes_on_under_its_context(talk: Talk) -> None:
    first = talk.send("say red")
    second = talk.send("tell", context=first.context)
    assert second.context == first.context
    assert second.id != first.id
    assert "say red" in json.loads(second.answer)["history"]


def test_who_does_not_wait_has_the_task_at_once(talk: Talk, node: House) -> None:
    name = new_id("hold")
    task = talk.send(f"hold {name}", wait=False)
    assert task.state in {"submitted", "working"}
    node.begun(name)
    assert talk.get(task.id).state == "working"
    assert talk.cancel(task.id).state == "canceled"


def test_an_answer_comes_as_it_is_written(talk: Talk) -> None:
    events = list(talk.stream("say one two three"))
    assert isinstance(events[0], Task)
    assert events[0].state in {"submitted", "working"}
    assert states(events)[-2:] == ["working", "completed"]
    pieces = [event for event in events if isinstance(event, Piece)]
    assert pieces[-1].last
    assert isinstance(events[-1], Status)
    if not talk.older_rest:
        assert not pieces[0].append
        assert made(events) == {"response": "one two three"}


def test_who_comes_back_sees_the_task_and_all_that_follows(talk: Talk, node: House) -> None:
    name = new_id("hold")
    task = talk.send(f"hold {name}", wait=False)
    node.begun(name)
    events = talk.subscribe(task.id)
    first = next(events)
    assert isinstance(first, Task)
    assert (first.id, first.state) == (task.id, "working")
    node.release(name)
    rest = [first, *events]
    assert states(rest)[-1] == "completed"
    assert talk.older_rest or made(rest) == {"response": "Holding. Let go."}
    assert talk.get(task.id).answer == "Holding. Let go."


@pytest.mark.requirement("C5.7")
def test_cancel_stops_the_work_for_good(talk: Talk, node: House) -> None:
    name = new_id("hold")
    task = talk.send(f"hold {name}", wait=False)
    node.begun(name)
    assert talk.cancel(task.id).state == "canceled"
    node.stopped(name)
    node.release(name)
    assert talk.get(task.id).state == "canceled"
    assert talk.refused("cancel", {"id": task.id}) in talk.reasons("TASK_NOT_CANCELABLE", 400, 409)


def test_a_question_is_asked_and_its_answer_goes_on(talk: Talk) -> None:
    asked = talk.send("ask Which colour?|Which size?")
    assert (asked.state, asked.said) == ("input-required", "Which colour?")
    again = talk.send("blue", task=asked.id, context=asked.context)
    assert (again.state, again.said) == ("input-required", "Which size?")
    done = talk.send("large", task=asked.id)
    assert (done.id, done.context, done.state) == (asked.id, asked.context, "completed")
    assert done.answer == "It is blue and large."


def test_who_streams_is_asked_and_watches_on(talk: Talk) -> None:
    first, *_, last = talk.stream("ask Which colour?")
    assert isinstance(first, Task)
    assert last == Status(task=first.id, state="input-required", said="Which colour?")
    events = list(talk.stream("red", task=first.id, context=first.context))
    assert states(events)[-1] == "completed"
    assert made(events)["response"] == "It is red."


@pytest.mark.parametrize(
    ("text", "state", "why"),
    [("fail broken on purpose", "failed", ""), ("reject not for me", "rejected", "not for me")],
)
def test_what_goes_wrong_is_said(talk: Talk, text: str, state: str, why: str) -> None:
    task = talk.send(text)
    assert task.state == state
    assert task.said
    assert why in task.said


@pytest.mark.requirement("C5.5")
def test_another_caller_finds_no_task(talk: Talk, node: House) -> None:
    task = talk.send("say hello")
    missing = talk.reasons("TASK_NOT_FOUND", 404)
    for op in ("get", "cancel"):
        assert talk.refused(op, {"id": task.id}, node.other) in missing
        assert talk.refused(op, {"id": "task_none"}) in missing
    mine = talk.message("and more", task=task.id)
    assert talk.refused("send", mine, node.other) in missing


def test_what_has_ended_takes_no_more(talk: Talk) -> None:
    task = talk.send("say hello")
    ended = talk.reasons("UNSUPPORTED_OPERATION", 400)
    assert talk.refused("send", talk.message("and more", task=task.id)) in ended


def test_tasks_are_listed_page_by_page(talk: Talk) -> None:
    if not talk.kind.lists:
        assert talk.refused("list", {})
        return
    first = talk.send("say one")
    others = [talk.send(f"say {n}", context=first.context).id for n in ("two", "three")]
    wanted: dict[str, Any] = {"contextId": first.context, "pageSize": 2}
    page = talk.peer.ask("list", wanted)
    assert [task["id"] for task in page["tasks"]] == others[::-1]
    assert (page["totalSize"], page["pageSize"]) == (3, 2)
    assert "artifacts" not in page["tasks"][0] or page["tasks"][0]["artifacts"] == []
    more = talk.peer.ask("list", {**wanted, "pageToken": page["nextPageToken"]})
    assert [task["id"] for task in more["tasks"]] == [first.id]
    assert not more.get("nextPageToken")


def config(version: str, task: str, push: dict[str, Any]) -> dict[str, Any]:
    """A push configuration as this version writes it."""
    if version == "1.0":
        return {"taskId": task, **push}
    return {"taskId": task, "pushNotificationConfig": push}


def inner(body: dict[str, Any]) -> dict[str, Any]:
    return body.get("pushNotificationConfig", body)


def test_who_wants_to_be_told_is_told(talk: Talk, node: House, hook: Receiver) -> None:
    name = new_id("hold")
    task = talk.send(f"hold {name}", wait=False)
    node.begun(name)
    push = {"id": "first", "url": f"{hook.url}/{name}", "token": "t0ken"}
    kept = inner(talk.peer.ask("push_set", config(talk.kind.version, task.id, push)))
    assert (kept["id"], kept["url"]) == ("first", push["url"])
    wanted = {"taskId": task.id, "id": "first"}
    older = {"id": task.id, "pushNotificationConfigId": "first"}
    found = talk.peer.ask("push_get", wanted if talk.kind.version == "1.0" else older)
    assert inner(found)["url"] == push["url"]
    node.release(name)
    for notice in hook.notices(f"/{name}"):
        assert notice.headers["x-a2a-notification-token"] == "t0ken"
        event = event_of(notice.body)
        if isinstance(event, Task | Status) and event.state == "completed":
            break


def test_who_is_no_longer_told_is_not_on_the_list(talk: Talk, node: House, hook: Receiver) -> None:
    if not talk.kind.manages_pushes:
        assert talk.refused("push_list", {})
        return
    name = new_id("hold")
    push = {"id": "first", "url": f"{hook.url}/{name}"}
    task = talk.send(f"hold {name}", wait=False, push=push)
    node.begun(name)
    second = {"id": "second", "url": f"{hook.url}/{name}"}
    talk.peer.ask("push_set", config(talk.kind.version, task.id, second))
    assert listed(talk, task.id) == {"first", "second"}
    current = talk.kind.version == "1.0"
    one = {"taskId": task.id, "id": "first"}
    older = {"id": task.id, "pushNotificationConfigId": "first"}
    for _ in range(2):
        talk.peer.ask("push_delete", one if current else older)
    assert listed(talk, task.id) == {"second"}
    talk.cancel(task.id)


def listed(talk: Talk, task: str) -> set[str]:
    if talk.kind.version == "1.0":
        return {one["id"] for one in talk.peer.ask("push_list", {"taskId": task})["configs"]}
    return {inner(one)["id"] for one in talk.peer.ask("push_list", {"id": task})}
