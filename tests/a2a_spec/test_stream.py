from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.a2a_spec.speaking import Speaker, message
from tests.peers.a2a.wire import Piece, Status, Task, event_of, made, states

from openfang.core.ids import new_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.peers.a2a.house import House

pytestmark = pytest.mark.requirement("C5.3")


def until_words(events: Iterator[Any]) -> list[Any]:
    """Read until the agent has said something."""
    read: list[Any] = []
    while not made(map(event_of, read)):
        read.append(next(events))
    return read


def kinds(events: Iterable[Any]) -> list[str]:
    return [next(iter(event)) for event in events]


@pytest.mark.a2a("3.1.2-MUST-1", "3.1.2-MUST-2", "3.1.2-MUST-4", "3.1.2-MUST-5", "11.7-SHOULD-1")
def test_a_stream_begins_with_the_task_and_ends_with_it(caller: Speaker) -> None:
    events = caller.told("stream", message("make tea"))
    found = [event_of(event) for event in events]
    assert kinds(events)[0] == "task"
    assert set(kinds(events)[1:]) == {"statusUpdate", "artifactUpdate"}
    first, last = found[0], found[-1]
    assert isinstance(first, Task)
    assert last == Status(task=first.id, state="completed", said="")
    assert states(found)[-2:] == ["working", "completed"]
    whole = caller.ask("get", {"id": first.id})
    assert made(found) == made([event_of({"task": whole})])


@pytest.mark.a2a("3.1.2-MUST-6", "3.5.2-MUST-1", "3.5.2-MUST-2")
def test_words_come_as_they_are_written_and_in_order(caller: Speaker) -> None:
    name = new_id("hold")
    with caller.stream("stream", message(f"hold {name}")) as events:
        early = until_words(events)
        assert made(map(event_of, early)) == {"response": "Holding. "}
        caller.house.release(name)
        found = [event_of(event) for event in (*early, *events)]
    assert made(found) == {"response": "Holding. Let go."}
    pieces = [event for event in found if isinstance(event, Piece)]
    assert [piece.append for piece in pieces] == [False] + [True] * (len(pieces) - 1)
    assert [piece.last for piece in pieces] == [False] * (len(pieces) - 1) + [True]


@pytest.mark.a2a("3.1.6-MUST-1", "3.1.6-MUST-2")
def test_who_subscribes_has_the_task_and_then_the_rest(caller: Speaker) -> None:
    task, name = caller.hold()
    with caller.stream("subscribe", {"id": task}) as events:
        first = next(events)
        assert first["task"]["id"] == task
        assert first["task"]["status"]["state"] == "TASK_STATE_WORKING"
        caller.house.release(name)
        found = [event_of(event) for event in (first, *events)]
    assert states(found) == ["working", "completed"]
    assert made(found) == {"response": "Holding. Let go."}


@pytest.mark.a2a("3.5.2-MUST-3", "3.5.2-MUST-4", "3.5.2-MUST-5")
def test_every_stream_has_the_same_and_none_ends_with_another(caller: Speaker) -> None:
    task, name = caller.hold()
    wanted = {"id": task}
    with caller.stream("subscribe", wanted) as one, caller.stream("subscribe", wanted) as two:
        snapshots = next(one), next(two)
        with caller.stream("subscribe", wanted) as three:
            next(three)
        caller.house.release(name)
        assert snapshots[0] == snapshots[1]
        assert joined(one) == joined(two)


def joined(events: Iterable[dict[str, Any]]) -> list[Any]:
    """What a stream told, with words that belong together as one: nodes may cut them otherwise."""
    told = list[Any]()
    for event in events:
        words = words_in(event)
        if words is not None and told and isinstance(told[-1], str):
            told[-1] += words
        else:
            told.append(event if words is None else words)
    return told


def words_in(event: dict[str, Any]) -> str | None:
    """The words of an answer that is being written."""
    parts = event.get("artifactUpdate", {}).get("artifact", {}).get("parts", ({},))
    return "".join(part["text"] for part in parts) if all("text" in one for one in parts) else None


@pytest.mark.a2a("3.1.6-ERROR-2", "3.1.6-ERROR-3")
def test_what_has_ended_or_is_not_there_cannot_be_watched(caller: Speaker) -> None:
    task = caller.say("say hi")
    assert caller.refused("subscribe", {"id": task["id"]}).reason == "UNSUPPORTED_OPERATION"
    assert caller.refused("subscribe", {"id": new_id("task")}).reason == "TASK_NOT_FOUND"


@pytest.mark.requirement("C5.7")
def test_who_leaves_stops_nothing(caller: Speaker) -> None:
    name = new_id("hold")
    with caller.stream("stream", message(f"hold {name}")) as events:
        task = next(events)["task"]["id"]
        caller.house.begun(name)
    with caller.stream("subscribe", {"id": task}) as events:
        next(events)
        caller.house.release(name)
        assert states(map(event_of, events))[-1] == "completed"


def test_subscribing_is_a_get_as_well(node: House) -> None:
    caller = Speaker(node, "HTTP+JSON")
    task, name = caller.hold()
    with caller.stream("watch", {"id": task}) as events:
        assert next(events)["task"]["id"] == task
        node.release(name)
        assert states(map(event_of, events))[-1] == "completed"
