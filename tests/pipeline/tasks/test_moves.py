"""What may become of a task: whatever is tried, final is final and every state is on record."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pipeline.tasks.scene import Held, scene

from openfang.core.errors import Conflict
from openfang.core.tasks import Moved, TaskState
from openfang.pipeline.tasks.parts import agent_writes

pytestmark = pytest.mark.requirement("C5.6")

FINAL = {TaskState.COMPLETED, TaskState.CANCELED, TaskState.FAILED, TaskState.REJECTED}


def moved(state: TaskState, question: str, said: list[str]) -> Moved:
    status = agent_writes(question) if question else None
    return Moved(state=state, status=status, said=tuple(agent_writes(text) for text in said))


TEXT = st.text(max_size=3)
MOVE = st.builds(moved, st.sampled_from(TaskState), TEXT, st.lists(TEXT, max_size=2))


@given(moves=st.lists(MOVE, max_size=10))
@settings(max_examples=25, deadline=None)
async def test_any_sequence_of_moves_leaves_a_task_that_can_be_read(moves: list[Moved]) -> None:
    with TemporaryDirectory() as folder:
        async with scene(Path(folder)) as node:
            task = await node.begin(Held())
            states = [TaskState.SUBMITTED, TaskState.WORKING]
            for move in moves:
                allowed = task.state not in FINAL and move.state is not TaskState.SUBMITTED
                try:
                    after = await node.service._ledger.move(task.id, lambda _, to=move: to)
                except Conflict:
                    assert not allowed
                else:
                    assert allowed
                    assert after == task.moved(move, node.clock.time_ns())
                    task = after
                    states.append(move.state)
                assert await node.service.find(task.id) == task
            told = await node.service.states(task.id)
            assert [state for _, _, state in told] == states
            assert [n for n, _, _ in told] == list(range(1, task.version + 1))
            assert [(a, b) for a, b, _ in node.records(task)] == [
                (one.value, other.value) for one, other in pairwise(states)
            ]
