"""The answer to a question: decided on the task as it is, in whichever process it waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.core.errors import Conflict
from openfang.core.tasks import Given, Moved, TaskState
from openfang.core.values import dataclass
from openfang.pipeline.tasks.forms import content_of
from openfang.pipeline.tasks.ledger import ended_already

if TYPE_CHECKING:
    from openfang.core.labels import Labels
    from openfang.core.tasks import Task, TaskMessage


@dataclass(frozen=True, slots=True)
class Answer:
    """A message to a task that waits, and what it carries. The same one again changes nothing."""

    message: TaskMessage
    labels: Labels

    def decide(self, task: Task) -> Moved | None:
        """Go on with the task, if this is what it waits for; who asked is given it by that."""
        if holds(task, self.message):
            return None
        _check(task)
        given = Given(content_of(task.form, self.message), self.labels)
        return Moved(state=TaskState.WORKING, said=(self.message,), given=given)


def holds(task: Task, message: TaskMessage) -> bool:
    """Whether it was said in the task already."""
    return bool(message.id) and any(one.id == message.id for one in task.history)


def _check(task: Task) -> None:
    if task.state.final:
        raise ended_already(task)
    if not task.state.waiting:
        raise Conflict(
            f"The task {task.id} is {task.state.value} and asks for nothing.",
            way_out="wait until it asks, or send the message without its id for a task beside it",
        )


def left(task_id: str) -> Conflict:
    """Nobody is there to take an answer."""
    return Conflict(
        f"The task {task_id} waits in a process that is gone.",
        way_out="send the message again in a moment, or cancel the task",
    )
