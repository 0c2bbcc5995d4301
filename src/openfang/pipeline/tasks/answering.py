"""The answer to a question: decided on the task as it is, and given to whoever asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from openfang.core.errors import Conflict
from openfang.core.tasks import Moved, TaskState
from openfang.pipeline.tasks.forms import content_of
from openfang.pipeline.tasks.ledger import ended_already

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.labels import Labels
    from openfang.core.tasks import Task, TaskMessage
    from openfang.pipeline.tasks.rooms import Question, Room


@dataclass(slots=True)
class Answer:
    """A message to a task that waits, and what it carries. The same one again changes nothing."""

    room: Room
    message: TaskMessage
    labels: Labels
    _question: Question | None = field(init=False, default=None)
    _content: Mapping[str, Any] = field(init=False, default_factory=dict[str, Any])

    def decide(self, task: Task) -> Moved | None:
        """Go on with the task, if this is what it waits for."""
        self._question = None
        if _holds(task, self.message):
            return None
        question = _asked(self.room, task)
        self._content = content_of(question.form, self.message)
        self._question = question
        return Moved(state=TaskState.WORKING, said=(self.message,))

    def give(self) -> None:
        """Give it to whoever asked, once it is written."""
        if self._question is not None:
            self._question.give(self._content, self.labels)


def _holds(task: Task, message: TaskMessage) -> bool:
    return bool(message.id) and any(one.id == message.id for one in task.history)


def _asked(room: Room, task: Task) -> Question:
    if task.state.final:
        raise ended_already(task)
    if not task.state.waiting:
        raise Conflict(
            f"The task {task.id} is {task.state.value} and asks for nothing.",
            way_out="wait until it asks, or send the message without its id for a task beside it",
        )
    if room.question is None:
        raise Conflict(
            f"The task {task.id} waits in a process that is not this one.",
            way_out="send the message again in a moment, or cancel the task",
        )
    return room.question
