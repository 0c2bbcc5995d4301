"""One change of a task as one unit: the task, its event, its record, and who is to be told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from openfang.core.events import TASK_CHANGED, Record
from openfang.core.tasks import Moved, Task, TaskState, TaskUpdate
from openfang.core.values import dataclass
from openfang.storage import tasks
from openfang.storage.units import TIMERS, Notice

if TYPE_CHECKING:
    from collections.abc import Collection

    from openfang.storage.processes import Process
    from openfang.storage.tasks import Statement

Append: TypeAlias = Callable[
    [Sequence[Record], tuple[tuple[str, Sequence[Any]], ...], tuple[Notice, ...]],
    Awaitable[object],
]
Outbox: TypeAlias = Callable[[Task, TaskUpdate], Sequence[tuple[str, Sequence[Any]]]]

TASKS: Final = "tasks"
"""Under this topic nodes tell each other of tasks."""


class Audience(Protocol):
    """Who is to be told of tasks, as this node knows it; another one may know better."""

    def told_of(self, task_id: str) -> Collection[str]:
        """Name who is told."""
        ...

    async def look_at(self, task_id: str) -> bool:
        """Read again who is told; whether that is another than was known."""
        ...

    def forget(self, task_id: str) -> None:
        """Nothing more happens to a task."""
        ...


_LONGEST_REASON: Final = 500
_BAD: Final = frozenset({TaskState.FAILED, TaskState.REJECTED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Writes changes. A unit that cannot be applied, since the task is another by now, fails."""

    append: Append
    process: Process
    low_water: Callable[[], int]
    outbox: Outbox
    committed: Callable[[], None]
    audience: Audience | None = None

    async def insert(
        self, task: Task, body: str, message_id: str, beside: Sequence[Statement], process: str = ""
    ) -> None:
        """Keep a task that has just begun: it was submitted, and is being worked on.

        `process` is whose it is, if it is not ours.
        """
        at, moved = task.changed_at, Moved(state=task.state, said=task.history)
        update = TaskUpdate(task=task, what=moved, at=at, n=task.version)
        told = self.outbox(task, update)
        statements = (
            *self._known(),
            tasks.insert(task, message_id, process or self.process.id, body),
            tasks.event(task.id, 1, at, TaskState.SUBMITTED),
            tasks.event(task.id, task.version, at, task.state),
            *beside,
            *told,
        )
        await self.append([_record(task, TaskState.SUBMITTED)], statements, _soon(told))
        self.process.known = True
        if told:
            self.committed()

    async def move(
        self,
        before: Task,
        update: TaskUpdate,
        *,
        taken_from: str = "",
        beside: Sequence[Statement] = (),
    ) -> None:
        """Keep a change; with `taken_from` the task is ours from now on, and not that process's."""
        after, taken = update.task, tuple["Statement", ...]()
        if taken_from:
            taken = (*self._known(), tasks.take_over(after.id, taken_from, self.process.id))
        known = None if self.audience is None else self.audience.told_of(after.id)
        told = self.outbox(after, update)
        statements = (*taken, *beside, *tasks.move(before, after, known), *told)
        notices = (changed(after), *_soon(told))
        await self.append([_record(after, before.state)], statements, notices)
        self.process.known = self.process.known or bool(taken)
        if told:
            self.committed()

    async def has_others(self, task_id: str) -> bool:
        """Whether others are to be told of a task than it was tried with."""
        return self.audience is not None and await self.audience.look_at(task_id)

    def over(self, task_id: str) -> None:
        """Nothing more happens to a task, wherever it has ended."""
        if self.audience is not None:
            self.audience.forget(task_id)

    def _known(self) -> tuple[Statement, ...]:
        """A task whose process nobody knows would be taken for one whose process is gone."""
        return () if self.process.known else (self.process.begin(self.low_water()),)


def changed(task: Task) -> Notice:
    """Tell other nodes which task is another by now, and how new that is."""
    return Notice(TASKS, f"{task.id} {task.version}")


def _soon(told: Sequence[Statement]) -> tuple[Notice, ...]:
    """Whoever is to be told of a change is told by any node."""
    return (TIMERS,) if told else ()


def _record(task: Task, before: TaskState) -> Record:
    payload = {
        "task": task.id,
        "agent": task.agent,
        "context": tasks.readable(task.context),
        "from": before.value,
        "to": task.state.value,
    }
    if task.state.final and task.status is not None:
        payload["reason"] = tasks.readable(task.status.text[:_LONGEST_REASON])
    return Record(
        event=TASK_CHANGED,
        level="warning" if task.state in _BAD else "info",
        task_id=task.id,
        payload=payload,
        context={"caller": task.caller},
    )


def difference(before: Task, after: Task) -> Moved:
    """All that happened to a task between two looks at it, as one change."""
    said = after.history[len(before.history) :]
    if before.status is not None and said[:1] == (before.status,):
        said = said[1:]
    return Moved(
        state=after.state,
        status=after.status,
        said=said,
        artifacts=after.artifacts[len(before.artifacts) :],
        labels=after.labels,
        form=after.form,
        given=after.given,
        metadata={
            name: value
            for name, value in after.metadata.items()
            if before.metadata.get(name) != value
        },
    )
