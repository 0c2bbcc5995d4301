"""The words of A2A's first dialect: what we write, and all that we read."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.core.tasks import Role, Task, TaskArtifact, TaskMessage, TaskState
from openfang.protocols.a2a.seed import (
    Unreadable,
    read_message,
    read_state,
    read_task,
    write_message,
    write_state,
    write_task,
)

pytestmark = pytest.mark.requirement("C5.2")

SEEDS = Path(__file__).parent.parent / "data/seeds"
TEXT = {"type": "text", "text": "hello"}


def said(role: Role, *parts: dict[str, Any]) -> TaskMessage:
    return TaskMessage(id="m", role=role, parts=parts or (TEXT,))


TASK = Task(
    id="task_1",
    agent="reviewer",
    caller="key:a",
    context="optional-session-id",
    session="session_1",
    state=TaskState.COMPLETED,
)


def test_the_seeds_own_answer_is_what_is_written() -> None:
    text = (SEEDS / "000-21-document.json").read_text("utf-8")
    seed = json.loads(text)
    asked, answered = (
        said(role, {"type": "text", "text": message["parts"][0]["text"]})
        for role, message in zip((Role.USER, Role.AGENT), seed["messages"], strict=True)
    )
    task = replace(TASK, id=seed["id"], history=(asked, answered))
    assert write_task(task) == seed
    assert list(write_task(task)) == list(seed)


def test_what_is_said_with_a_state_is_the_last_message() -> None:
    task = replace(
        TASK,
        state=TaskState.INPUT_REQUIRED,
        history=(said(Role.USER),),
        status=said(Role.AGENT, {"type": "text", "text": "Which one?"}),
    )
    assert write_task(task) == {
        "id": "task_1",
        "sessionId": "optional-session-id",
        "status": "inputRequired",
        "messages": [
            {"role": "user", "parts": [TEXT]},
            {"role": "agent", "parts": [{"type": "text", "text": "Which one?"}]},
        ],
        "artifacts": [],
    }


def test_every_kind_of_part_has_its_words() -> None:
    made = TaskArtifact(
        id="a",
        name="report",
        parts=(
            {"type": "text", "text": "# x", "mime_type": "text/markdown"},
            {"type": "file", "name": "x.png", "mime_type": "image/png", "data": "AAAA"},
            {"type": "file", "uri": "https://example.com/x"},
            {"type": "data", "data": {"n": 1}},
            {"type": "data", "mime_type": "text/csv", "data": "a,b"},
            {"type": "odd", "what": 1},
        ),
    )
    assert write_task(replace(TASK, artifacts=(made,)))["artifacts"] == [
        {
            "name": "report",
            "parts": [
                {"type": "text", "text": "# x"},
                {"type": "file", "name": "x.png", "mime_type": "image/png", "data": "AAAA"},
                {
                    "type": "file",
                    "name": "",
                    "mime_type": "application/octet-stream",
                    "data": "",
                    "uri": "https://example.com/x",
                },
                {"type": "data", "mime_type": "application/json", "data": {"n": 1}},
                {"type": "data", "mime_type": "text/csv", "data": "a,b"},
                {
                    "type": "data",
                    "mime_type": "application/json",
                    "data": {"type": "odd", "what": 1},
                },
            ],
        }
    ]


@pytest.mark.parametrize(
    ("state", "word"),
    [
        (TaskState.SUBMITTED, "submitted"),
        (TaskState.WORKING, "working"),
        (TaskState.INPUT_REQUIRED, "inputRequired"),
        (TaskState.AUTH_REQUIRED, "inputRequired"),
        (TaskState.COMPLETED, "completed"),
        (TaskState.CANCELED, "cancelled"),
        (TaskState.FAILED, "failed"),
        (TaskState.REJECTED, "failed"),
    ],
)
def test_every_state_has_a_word_that_the_seed_knows(state: TaskState, word: str) -> None:
    assert write_state(state) == word


@pytest.mark.parametrize(
    ("spelled", "state"),
    [
        ("Submitted", TaskState.SUBMITTED),
        ("working", TaskState.WORKING),
        ("InputRequired", TaskState.INPUT_REQUIRED),
        ("input-required", TaskState.INPUT_REQUIRED),
        ("input_required", TaskState.INPUT_REQUIRED),
        ("auth-required", TaskState.AUTH_REQUIRED),
        ("canceled", TaskState.CANCELED),
        ("Cancelled", TaskState.CANCELED),
        ("TASK_STATE_CANCELED", TaskState.CANCELED),
        ("TASK_STATE_INPUT_REQUIRED", TaskState.INPUT_REQUIRED),
        ("rejected", TaskState.REJECTED),
    ],
)
def test_a_state_is_read_in_every_spelling(spelled: str, state: TaskState) -> None:
    assert read_state(spelled) is state
    held = {"state": spelled, "message": {"role": "agent", "parts": [TEXT]}}
    task = read_task({"id": "x", "session_id": "s", "status": held, "messages": None})
    assert (task.state, task.context) == (state, "s")
    assert task.status is not None
    assert task.status.text == "hello"


@pytest.mark.parametrize("word", ["done", "", None, 3, ["working"]])
def test_a_state_that_nobody_knows_is_said_to_be_none(word: object) -> None:
    with pytest.raises(Unreadable, match="status"):
        read_state(word)


def test_the_spellings_of_later_dialects_are_read() -> None:
    message = read_message(
        {
            "kind": "message",
            "messageId": "m-1",
            "role": "ROLE_USER",
            "metadata": {"a": 1},
            "parts": [
                {"kind": "text", "text": "one", "metadata": {"b": 2}},
                {"kind": "file", "file": {"name": "x", "mimeType": "image/png", "bytes": "AAAA"}},
                {"type": "file", "name": "y", "mimeType": "image/png", "data": "AAAA"},
                {"type": "file", "file": {"uri": "https://example.com/z"}},
                {"type": "file", "name": "empty", "data": ""},
                {"type": "data", "mimeType": "text/csv", "data": None},
            ],
        }
    )
    assert message == TaskMessage(
        id="m-1",
        role=Role.USER,
        metadata={"a": 1},
        parts=(
            {"type": "text", "text": "one", "metadata": {"b": 2}},
            {"type": "file", "name": "x", "mime_type": "image/png", "data": "AAAA"},
            {"type": "file", "name": "y", "mime_type": "image/png", "data": "AAAA"},
            {"type": "file", "uri": "https://example.com/z"},
            {"type": "file", "name": "empty", "data": ""},
            {"type": "data", "mime_type": "text/csv", "data": None},
        ),
    )


@pytest.mark.parametrize(
    "message",
    [
        None,
        "hello",
        {},
        {"role": "user"},
        {"role": "user", "parts": []},
        {"role": "user", "parts": {}},
        {"role": "user", "parts": ["hello"]},
        {"role": "system", "parts": [TEXT]},
        {"role": 1, "parts": [TEXT]},
        {"parts": [TEXT]},
        {"role": "user", "parts": [{"type": "video", "data": ""}]},
        {"role": "user", "parts": [{"text": "hello"}]},
        {"role": "user", "parts": [{"type": "text"}]},
        {"role": "user", "parts": [{"type": "text", "text": 1}]},
        {"role": "user", "parts": [{"type": "file", "name": "x"}]},
        {"role": "user", "parts": [{"type": "file", "data": "no base 64!"}]},
        {"role": "user", "parts": [{"type": "file", "data": "AAA"}]},
        {"role": "user", "parts": [{"type": "file", "data": 1}]},
        {"role": "user", "parts": [{"type": "file", "file": "x"}]},
        {"role": "user", "parts": [{"type": "data"}]},
        {"role": "user", "parts": [TEXT], "metadata": "x"},
        {"role": "user", "parts": [TEXT], "messageId": 1},
    ],
)
def test_a_message_that_makes_no_sense_is_not_read(message: object) -> None:
    with pytest.raises(Unreadable):
        read_message(message)


_words = st.text(max_size=20)
_file = {
    "type": st.just("file"),
    "name": st.text(min_size=1, max_size=20),
    "mime_type": st.just("image/png"),
    "data": st.binary(max_size=20).map(lambda content: b64encode(content).decode()),
}
_data = {
    "type": st.just("data"),
    "mime_type": st.just("application/json"),
    "data": st.dictionaries(_words, st.integers() | _words | st.none(), max_size=3),
}
_parts: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": _words}),
    st.fixed_dictionaries(_file),
    st.fixed_dictionaries(_data),
)


@given(st.lists(_parts, min_size=1, max_size=4), st.sampled_from(list(Role)))
@settings(max_examples=100, deadline=None)
def test_what_is_written_is_read_as_it_was(parts: list[dict[str, Any]], role: Role) -> None:
    message = said(role, *parts)
    assert replace(read_message(write_message(message)), id="m") == message


_json: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_words, inner, max_size=3),
    max_leaves=10,
)
_tasks = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(
        ("id", "sessionId", "status", "messages", "history", "artifacts"), _json
    ),
)


@given(_tasks | _json)
@settings(max_examples=200, deadline=None)
def test_a_peers_task_is_read_or_said_to_be_unreadable(value: object) -> None:
    try:
        task = read_task(value)
    except Unreadable:
        return
    assert isinstance(task.id, str)
    assert isinstance(task.state, TaskState)
