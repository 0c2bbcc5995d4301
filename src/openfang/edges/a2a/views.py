"""What of a task is shown in the current dialects: results are artifacts, and history is cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.core.tasks import RESPONSE, Role, TaskArtifact, TaskState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from openfang.core.tasks import Task, TaskMessage


def results_of(task: Task) -> Iterable[TaskArtifact]:
    """What came out of a task: the agent's own words first, then what it made."""
    answer = answer_of(task)
    return task.artifacts if answer is None else (answer, *task.artifacts)


def answer_of(task: Task) -> TaskArtifact | None:
    """The words that a task ended with, as the artifact that results are in this protocol."""
    if task.state is not TaskState.COMPLETED or not task.history:
        return None
    last = task.history[-1]
    if last.role is not Role.AGENT or not last.parts:
        return None
    return TaskArtifact(id=RESPONSE, name=RESPONSE, parts=last.parts)


def last_of(said: tuple[TaskMessage, ...], count: int | None) -> tuple[TaskMessage, ...]:
    """The last that many; all of them if no number is wanted."""
    return said if count is None else said[max(0, len(said) - count) :]
