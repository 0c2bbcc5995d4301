"""Notifications: 0.3 is told what the library would tell it, and no task takes long to write."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from time import process_time
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.edges.a2a.test_convert import MESSAGES, METADATA, TASK

from openfang.core.tasks import Role, Task, TaskArtifact, TaskMessage, TaskState
from openfang.edges.a2a.convert import write_task
from openfang.edges.a2a.notifying import write_notice
from openfang.edges.a2a.sdk import conversions03, types03
from openfang.edges.a2a.written import event_json

pytestmark = pytest.mark.requirement("C5.3")


def by_the_library(task: Task) -> dict[str, Any]:
    older = conversions03.to_compat_task(write_task(task))
    return json.loads(older.model_dump_json(by_alias=True, exclude_none=True))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(MESSAGES, max_size=2).map(tuple),
    st.none() | MESSAGES,
    METADATA,
    st.sampled_from(TaskState),
)
def test_a_peer_of_0_3_is_told_what_the_library_would_tell_it(
    history: tuple[TaskMessage, ...],
    status: TaskMessage | None,
    metadata: dict[str, Any],
    state: TaskState,
) -> None:
    made = tuple(
        TaskArtifact(id=said.id, name="n", parts=said.parts, metadata=said.metadata)
        for said in history
    )
    task = replace(
        TASK, state=state, history=history, status=status, metadata=metadata, artifacts=made
    )
    written = write_notice(task, "0.3")
    assert orjson.loads(written) == by_the_library(task)
    assert types03.Task.model_validate_json(written).id == task.id


def test_a_peer_of_1_0_is_told_what_a_stream_would_say() -> None:
    assert orjson.loads(write_notice(TASK, "1.0")) == event_json(TASK)


FILE = base64.b64encode(bytes(4_000_000)).decode()


@pytest.mark.parametrize("dialect", ["0.3", "1.0"])
@pytest.mark.parametrize(
    "parts",
    [
        ({"type": "data", "data": {str(number): number for number in range(300_000)}},),
        ({"type": "text", "text": "x"},) * 100_000,
        ({"type": "file", "name": "a", "mime_type": "x/y", "data": FILE},),
    ],
    ids=["values", "parts", "bytes"],
)
def test_a_large_task_is_written_in_no_time(parts: tuple[Any, ...], dialect: str) -> None:
    task = replace(TASK, history=(TaskMessage(id="m", role=Role.USER, parts=parts),))
    began = process_time()
    assert len(write_notice(task, dialect)) > 1_000_000
    assert process_time() - began < 2
