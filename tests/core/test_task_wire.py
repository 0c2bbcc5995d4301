"""Tasks as JSON come back as they were, and what is told of one adds up to it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.core.labels import Labels
from openfang.core.task_wire import (
    SEEN,
    Following,
    read_states,
    read_task,
    read_tasks,
    seen_body,
    seen_name,
    states_body,
    task_body,
    tasks_body,
)
from openfang.core.tasks import (
    Moved,
    Role,
    Spoken,
    Task,
    TaskArtifact,
    TaskMessage,
    TaskPage,
    TaskState,
    TaskUpdate,
)

pytestmark = pytest.mark.requirement("C5.3", "C12.5")

TEXT = st.text(max_size=8)
MOMENTS = st.integers(1, 2_000_000_000).map(lambda second: second * 1_000_000_000)
METADATA = st.dictionaries(TEXT, st.integers(-9, 9) | TEXT | st.none(), max_size=2)
TEXT_PARTS = st.fixed_dictionaries({"type": st.just("text"), "text": TEXT})
DATA_PARTS = st.fixed_dictionaries({"type": st.just("data"), "data": METADATA})
PARTS = st.lists(TEXT_PARTS | DATA_PARTS, max_size=3).map(tuple)
WORDS = st.lists(TEXT, max_size=2).map(tuple)
MESSAGES = st.builds(
    TaskMessage,
    id=TEXT,
    role=st.sampled_from(Role),
    parts=PARTS,
    metadata=METADATA,
    extensions=WORDS,
    references=WORDS,
)
ARTIFACTS = st.builds(
    TaskArtifact, id=TEXT, name=TEXT, parts=PARTS, description=TEXT, metadata=METADATA
)
LABELS = st.lists(st.sampled_from(["user_input", "pii", "external_network"])).map(Labels.of)
SAID = st.lists(MESSAGES, max_size=2).map(tuple)
MADE = st.lists(ARTIFACTS, max_size=2).map(tuple)
TASKS = st.builds(
    Task,
    id=TEXT,
    agent=TEXT,
    caller=TEXT,
    context=TEXT,
    session=TEXT,
    state=st.sampled_from(TaskState),
    status=st.none() | MESSAGES,
    history=SAID,
    artifacts=MADE,
    metadata=METADATA,
    labels=LABELS,
    version=st.integers(1, 9),
    created_at=MOMENTS,
    changed_at=MOMENTS,
)
MOVES = st.builds(
    Moved,
    state=st.sampled_from(TaskState),
    status=st.none() | MESSAGES,
    said=SAID,
    artifacts=MADE,
    labels=LABELS,
)


def sent(body: Any) -> Any:
    """Over the wire and back."""
    return json.loads(json.dumps(body))


@given(st.lists(TASKS, max_size=2), TEXT, MOMENTS)
@settings(max_examples=60)
def test_a_task_comes_back_as_it_was(tasks: list[Task], after: str, at: int) -> None:
    assert [read_task(sent(task_body(task))) for task in tasks] == tasks
    page = TaskPage(tasks=tasks, total=7, after=after)
    assert read_tasks(sent(tasks_body(page))) == page
    states = [(n, at, state) for n, state in enumerate(TaskState, 1)]
    assert read_states(sent(states_body(states))) == states


@given(TASKS, st.lists(st.tuples(MOVES | st.builds(Spoken, text=TEXT), MOMENTS), max_size=4))
@settings(max_examples=60)
def test_what_is_told_of_a_task_adds_up_to_it(
    task: Task, story: list[tuple[Moved | Spoken, int]]
) -> None:
    following = Following()
    assert following.read("task", sent(seen_body(task))) == task
    for what, at in story:
        if isinstance(what, Moved):
            task = replace(task.moved(what, at), version=task.version + 3)
            update = TaskUpdate(task=task, what=what, at=at, n=task.version)
        else:
            update = TaskUpdate(task=task, what=what, at=task.changed_at)
        assert seen_name(update) in SEEN
        assert following.read(seen_name(update), sent(seen_body(update))) == update
    assert following.task == task


def test_what_cannot_be_is_not_read() -> None:
    with pytest.raises(LookupError):
        Following().read("moved", {})
    with pytest.raises(LookupError):
        Following().read("dreamt", {})
