"""Tasks in the words of A2A 1.0: what is written is read again, and streams say the same."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.core.tasks import (
    Moved,
    Role,
    Spoken,
    Task,
    TaskArtifact,
    TaskMessage,
    TaskState,
    TaskUpdate,
)
from openfang.edges.a2a.convert import (
    read_message,
    read_part,
    read_state,
    write_event,
    write_message,
    write_part,
    write_task,
)
from openfang.edges.a2a.sdk import MessageToDict, ParseDict, errors, pb
from openfang.edges.a2a.telling import Telling
from openfang.edges.a2a.written import event_json, task_json

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.requirement("C5.3")

WORDS = st.text(max_size=20)
SOME = st.text(min_size=1, max_size=20)
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS,
    lambda one: st.lists(one, max_size=3) | st.dictionaries(WORDS, one, max_size=3),
    max_leaves=8,
)
METADATA = st.dictionaries(WORDS, JSON, max_size=2)
BESIDE = {"mime_type": SOME, "metadata": st.dictionaries(WORDS, JSON, min_size=1, max_size=2)}
PARTS = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": WORDS}, optional=BESIDE),
    st.fixed_dictionaries({"type": st.just("data"), "data": JSON}, optional=BESIDE),
    st.fixed_dictionaries({"type": st.just("file"), "name": WORDS, "uri": WORDS}, optional=BESIDE),
    st.fixed_dictionaries(
        {
            "type": st.just("file"),
            "name": WORDS,
            "data": st.sampled_from(["", "AA==", "aGVsbG8=", "//79"]),
        },
        optional=BESIDE,
    ),
)
MESSAGES = st.builds(
    TaskMessage,
    id=SOME,
    role=st.sampled_from(Role),
    parts=st.lists(PARTS, min_size=1, max_size=3).map(tuple),
    metadata=METADATA,
    extensions=st.lists(SOME, max_size=2).map(tuple),
    references=st.lists(SOME, max_size=2).map(tuple),
)
TASK = Task(
    id="task_1",
    agent="a",
    caller="key:b",
    context="c",
    session="session_1",
    state=TaskState.WORKING,
    history=(TaskMessage(id="m", role=Role.USER, parts=({"type": "text", "text": "hi"},)),),
    changed_at=1_700_000_000_123_456_789,
)


def said(text: str, role: Role = Role.AGENT) -> TaskMessage:
    return TaskMessage(id=f"m-{text}", role=role, parts=({"type": "text", "text": text},))


def ended(text: str, *made: TaskArtifact) -> Moved:
    return Moved(state=TaskState.COMPLETED, said=(said(text),), artifacts=made)


def over_the_wire(message: pb.Message) -> pb.Message:
    return ParseDict(MessageToDict(message), pb.Message())


@settings(max_examples=50)
@given(MESSAGES)
def test_a_message_is_read_as_it_was_written(message: TaskMessage) -> None:
    assert read_message(over_the_wire(write_message(message, TASK))) == message


@given(PARTS)
def test_integers_stay_integers(part: Any) -> None:
    assert read_part(write_part(part)) == part
    assert read_part(write_part({"type": "data", "data": [1, 1.5]}))["data"] == [1, 1.5]
    assert str(read_part(write_part({"type": "data", "data": 1}))["data"]) == "1"


@settings(max_examples=40)
@given(
    st.lists(MESSAGES, max_size=2).map(tuple),
    st.none() | MESSAGES,
    METADATA,
    st.sampled_from(TaskState),
    st.none() | st.integers(0, 2),
)
def test_what_is_written_at_once_is_what_the_library_writes(
    history: tuple[TaskMessage, ...],
    status: TaskMessage | None,
    metadata: dict[str, Any],
    state: TaskState,
    count: int | None,
) -> None:
    made = tuple(
        TaskArtifact(id=said.id, name="n", parts=said.parts, metadata=said.metadata)
        for said in history
    )
    task = replace(
        TASK, state=state, history=history, status=status, metadata=metadata, artifacts=made
    )
    assert task_json(task, count) == MessageToDict(write_task(task, history=count))


def test_what_has_no_kind_is_data_and_what_is_no_base_64_is_text() -> None:
    odd = {"type": "hologram", "light": 1}
    assert read_part(write_part(odd)) == {"type": "data", "data": odd}
    assert write_part({"type": "file", "data": "no!"}).text == "no!"
    with pytest.raises(errors.InvalidParamsError):
        read_part(pb.Part())
    with pytest.raises(errors.InvalidParamsError):
        read_message(pb.Message(parts=[pb.Part(text="x")]))


@pytest.mark.parametrize("state", TaskState)
def test_every_state_has_a_word_and_is_read_again(state: TaskState) -> None:
    written = write_task(TASK.moved(Moved(state=state), 1)).status.state
    assert pb.TaskState.Name(written) == f"TASK_STATE_{state.name}"
    assert read_state(written) is state
    assert read_state(pb.TASK_STATE_UNSPECIFIED) is None


def test_the_answer_of_a_task_is_its_first_artifact() -> None:
    note = TaskArtifact(id="artifact_1", name="note", parts=({"type": "text", "text": "n"},))
    task = TASK.moved(ended("done", note), TASK.changed_at)
    written = MessageToDict(write_task(task))
    assert written["status"] == {
        "state": "TASK_STATE_COMPLETED",
        "timestamp": "2023-11-14T22:13:20.123Z",
    }
    assert written["artifacts"] == [
        {"artifactId": "response", "name": "response", "parts": [{"text": "done"}]},
        {"artifactId": "artifact_1", "name": "note", "parts": [{"text": "n"}]},
    ]
    assert "artifacts" not in MessageToDict(write_task(task, with_artifacts=False))
    assert [len(write_task(task, history=number).history) for number in (None, 0, 1, 7)] == [
        2,
        0,
        1,
        2,
    ]


def test_a_task_that_did_not_end_well_has_no_answer() -> None:
    failed = TASK.moved(Moved(state=TaskState.FAILED, status=said("why")), 1)
    written = MessageToDict(write_task(failed))
    assert written["status"]["message"]["parts"] == [{"text": "why"}]
    assert "artifacts" not in written
    silent = TASK.moved(Moved(state=TaskState.COMPLETED), 1)
    assert "artifacts" not in MessageToDict(write_task(silent))


def told(*updates: Moved | Spoken) -> list[Any]:
    """Tell a task from its beginning."""
    task, telling, found = TASK, Telling(), list[Any]()
    for what in updates:
        task = task.moved(what, TASK.changed_at) if isinstance(what, Moved) else task
        events = telling.events(TaskUpdate(task=task, what=what, at=1))
        for event in events:
            found.append(MessageToDict(write_event(event)))
            assert [*event_json(event).values()] == [found[-1]]
    return found


def heard(events: Sequence[Any]) -> str:
    """Put the answer together as a client does."""
    text = ""
    for event in events:
        if "artifact" in event and event["artifact"]["artifactId"] == "response":
            piece = event["artifact"]["parts"][0]["text"]
            text = text + piece if event.get("append") else piece
    return text


def test_words_are_pieces_of_the_answer_and_the_last_one_says_so() -> None:
    events = told(Spoken(text="a", first=True), Spoken(text="b"), ended("abc"))
    pieces = [(event.get("append"), event.get("lastChunk")) for event in events[:-1]]
    assert pieces == [(None, None), (True, None), (True, True)]
    assert heard(events) == "abc"
    assert events[-1]["status"]["state"] == "TASK_STATE_COMPLETED"


@given(st.lists(st.tuples(st.text("ab", max_size=3), st.booleans()), max_size=5), st.text("ab"))
def test_whatever_was_said_on_the_way_the_answer_is_heard_in_the_end(
    spoken: list[tuple[str, bool]], answer: str
) -> None:
    words = [Spoken(text=text, first=first) for text, first in spoken]
    events = told(*words, ended(answer))
    assert heard(events) == answer
    assert events[-2].get("lastChunk") is True


def test_what_comes_with_a_change_is_told_before_it() -> None:
    note = TaskArtifact(id="artifact_1", name="note", parts=({"type": "text", "text": "n"},))
    events = told(Moved(state=TaskState.FAILED, status=said("why"), artifacts=(note,)))
    assert [next(iter({"artifact", "status"} & event.keys())) for event in events] == [
        "artifact",
        "status",
    ]
    assert events[1]["status"]["message"]["parts"] == [{"text": "why"}]
