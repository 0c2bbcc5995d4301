"""The seed's tasks of A2A, and its store for them: bounded, the oldest finished one goes first."""

from __future__ import annotations

from dataclasses import field, replace
from enum import StrEnum
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from openfang.core.errors import Conflict, Rejected
from openfang.core.results import text_part
from openfang.core.tasks import Role
from openfang.core.values import dataclass
from openfang.protocols.a2a.seed import read_state, write_state

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_TASKS: Final = 1000


class A2aTaskStatus(StrEnum):
    """How far a task has got; any spelling of a word is read."""

    SUBMITTED = "submitted"
    WORKING = "working"
    INPUT_REQUIRED = "inputRequired"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"

    @classmethod
    def _missing_(cls, value: object) -> A2aTaskStatus:
        return cls(write_state(read_state(value)))


@dataclass(frozen=True, slots=True)
class A2aMessage:
    """Something said: `role` is `user` or `agent`, a part is text, a file or data."""

    role: str
    parts: Sequence[Mapping[str, Any]]

    @classmethod
    def of_agent(cls, said: A2aMessage | str) -> A2aMessage:
        """What an agent says, perhaps as plain text."""
        return cls(Role.AGENT.value, (text_part(said),)) if isinstance(said, str) else said

    @property
    def text(self) -> str:
        """All of its text."""
        return "\n".join(part["text"] for part in self.parts if part.get("type") == "text")


@dataclass(frozen=True, slots=True)
class A2aArtifact:
    """Something that was made."""

    name: str
    parts: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class A2aTask:
    """A task, as it was when it was read."""

    id: str
    session_id: str | None = None
    status: A2aTaskStatus = A2aTaskStatus.SUBMITTED
    messages: Sequence[A2aMessage] = ()
    artifacts: Sequence[A2aArtifact] = ()

    @property
    def ended(self) -> bool:
        """Whether nothing happens to it any more."""
        return read_state(self.status.value).final


@dataclass(slots=True)
class A2aTaskStore:
    """Keeps tasks in memory, for programs of one's own; a node keeps its tasks in its database.

    It may be used from several threads. What has ended is never changed.
    """

    max_tasks: int = MAX_TASKS
    _tasks: dict[str, A2aTask] = field(default_factory=dict[str, A2aTask], init=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    def __len__(self) -> int:
        return len(self._tasks)

    def insert(self, task: A2aTask) -> None:
        """Add a new task. At the bound one that has ended goes; if none has, this is refused."""
        with self._lock:
            if task.id in self._tasks:
                raise Conflict(f"The task {task.id} is there already.", way_out="use another id")
            if len(self._tasks) >= self.max_tasks:
                self._evict()
            self._tasks[task.id] = task

    def _evict(self) -> None:
        oldest = next((task.id for task in self._tasks.values() if task.ended), None)
        if oldest is None:
            raise Rejected(
                f"{self.max_tasks} tasks are kept at most, and none of them has ended.",
                status=503,
                rule="tasks_full",
                way_out="cancel some, or make the store with more max_tasks",
            )
        del self._tasks[oldest]

    def get(self, task_id: str) -> A2aTask | None:
        """Find one."""
        with self._lock:
            return self._tasks.get(task_id)

    def update_status(self, task_id: str, status: A2aTaskStatus | str) -> bool:
        """Change how far one has got; false if it is not there, or has ended."""
        return self._change(task_id, status=A2aTaskStatus(status))

    def complete(
        self, task_id: str, response: A2aMessage | str, artifacts: Sequence[A2aArtifact] = ()
    ) -> bool:
        """End one with the agent's answer and what it made."""
        said = A2aMessage.of_agent(response)
        return self._change(task_id, A2aTaskStatus.COMPLETED, said, artifacts)

    def fail(self, task_id: str, error_message: A2aMessage | str) -> bool:
        """End one with the reason why nothing came of it."""
        return self._change(task_id, A2aTaskStatus.FAILED, A2aMessage.of_agent(error_message))

    def cancel(self, task_id: str) -> bool:
        """End one because its caller does not want it any more."""
        return self._change(task_id, A2aTaskStatus.CANCELLED)

    def _change(
        self,
        task_id: str,
        status: A2aTaskStatus,
        said: A2aMessage | None = None,
        made: Sequence[A2aArtifact] = (),
    ) -> bool:
        with self._lock:
            task = self._tasks.get(task_id)
            if task is None or task.ended:
                return False
            messages = task.messages if said is None else (*task.messages, said)
            artifacts = (*task.artifacts, *made)
            self._tasks[task_id] = replace(
                task, status=status, messages=messages, artifacts=artifacts
            )
            return True
